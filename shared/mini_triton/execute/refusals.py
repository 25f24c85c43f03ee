"""What the simulator refuses, by the name that the author of a kernel wrote, and the way out."""

from __future__ import annotations

from typing import NamedTuple

from mini_triton.execute.operations import inline_asm, libdevice
from mini_triton.execute.registry import FRAMED, LAZY, PURE
from mini_triton.ir.program import Op


class Refusal(NamedTuple):
    """Why an operation is refused.

    Attributes:
        what: the operation, and why.
        word: its name as it stands in the source, "" if that is not known.
        way_out: what to do.
    """

    what: str
    word: str
    way_out: str


_IN_TRITON = "write this line with operations of triton.language"
#: PTX of Triton's own library that says where or when a program runs.
_OF_HARDWARE = {
    "ee7a49f675e4ece8": ("smid", "which multiprocessor a program runs on"),
    "dfc204313a6871b1": ("globaltimer", "what time it is"),
}
_PTX = Refusal(
    "tl.inline_asm_elementwise: PTX runs on NVIDIA hardware only",
    "inline_asm_elementwise",
    _IN_TRITON,
)


def refused(op: Op) -> Refusal | None:
    """Why the simulator does not have an operation, else None."""
    if op.name == "tt.elementwise_inline_asm":
        if inline_asm.is_known(op):
            return None
        if (of_hardware := _OF_HARDWARE.get(inline_asm.fingerprint(op))) is None:
            return _PTX
        name, what = of_hardware
        return Refusal(f"tl.extra.cuda.{name}: only hardware knows {what}", name, "leave it out")
    if op.name == "tt.extern_elementwise":
        symbol = libdevice.symbol(op)
        if symbol in libdevice.FUNCTIONS:
            return None
        library = op.attrs.get("libpath") or op.attrs.get("libname")
        return Refusal(
            f"tl.extern_elementwise with {symbol} of {library}: the simulator runs functions of "
            "libdevice only",
            "extern_elementwise",
            "write the function with operations of triton.language",
        )
    if op.name == "tt.atomic_poll":
        return Refusal(
            "tl.atomic_poll: it waits for as long as a clock says",
            "atomic_poll",
            "write a loop around tl.atomic_load, or tl.atomic_cas",
        )
    if any(op.name in table for table in (FRAMED, LAZY, PURE)):
        return None
    what = f"{op.name}, an operation that the simulator does not have"
    return Refusal(what, "", f"{_IN_TRITON} that it has: docs/language.md lists them")
