"""What to do about Triton's own errors, whose words say what is wrong, but not what was meant.

A beginner's dozen: each has a sentence, found by Triton's words (of 3.6 to 3.9).
"""

from __future__ import annotations

import ast
import re

_ADVICE = {
    r"range must be a power of 2": "round it up with triton.next_power_of_2, and mask the lanes "
    "beyond: mask=i < n",
    r"arguments must be of type tl\.constexpr": "declare the parameter as a constant: "
    "BLOCK: tl.constexpr",
    r"invalid operands of type pointer": "numbers are what tl.load(pointer) gives; to a pointer "
    "only whole numbers are added, which // divides (/ gives floats)",
    r"more than one value is ambiguous": "an `if` is for a whole program; for each lane of a tile, "
    "mask the load or store, or choose with tl.where",
    r"Loop-carried variable (\w+) has initial type|initial value for `(\w+)` is of type": "begin "
    "with a value of the type that it gets, as 0.0 or tl.zeros(shape, tl.float32) do",
    r"Both operands must be same dtype": "convert one of them: b.to(a.dtype)",
    r"Unsupported ptr type": "what is loaded or stored through is no pointer: pass a tensor for it",
    r"Cannot access global variable": "pass it as an argument, or make it a tl.constexpr",
    r"equal reduction dimensions": "tl.dot takes (M, K) and (K, N): one of them may want tl.trans",
    # Before the kernel is compiled:
    r"failed to specialize argument of type": "kernels take torch tensors and numbers; a "
    "numpy.ndarray becomes a tensor by torch.from_numpy",
    r"outside of the scope of a kernel": "a kernel is launched with its grid: "
    "kernel[(programs,)](…)",
    r"^object of type 'int' has no len": "the grid of a launch is a tuple: kernel[(programs,)](…)",
    r"Unsupported function referenced": "kernels compute with triton.language: tl.exp, not "
    "torch.exp; torch is for what launches them",
}


#: Of an index by a number, of a pointer or of a tile.
_INDEX = "_semantic|unsupported tensor index"


def advice(error: BaseException) -> str:
    """What to do about an error of Triton's; "" if nothing is known."""
    words = str(getattr(error, "error_message", None) or error)
    if isinstance(getattr(error, "node", None), ast.Subscript) and re.search(_INDEX, words):
        return "neither pointers nor tiles are indexed by numbers: x_ptr[i] is tl.load(x_ptr + i)"
    return next((text for known, text in _ADVICE.items() if re.search(known, words)), "")
