"""What the simulator refuses, by the name that the author of a kernel wrote, and the way out."""

from __future__ import annotations

from mini_triton.execute import inline_asm, libdevice
from mini_triton.execute.registry import FRAMED, LAZY, PURE
from mini_triton.ir.program import Op

#: PTX of Triton's own library that says where or when a program runs.
_OF_HARDWARE = {
    "ee7a49f675e4ece8": "tl.extra.cuda.smid: which multiprocessor a program runs on",
    "dfc204313a6871b1": "tl.extra.cuda.globaltimer: what time it is",
}
_PTX = (
    "tl.inline_asm_elementwise: PTX runs on NVIDIA hardware only. Write this line with operations "
    "of triton.language"
)


def refused(op: Op) -> str | None:
    """`name: why. What to do` of an operation that the simulator does not have, else None."""
    if op.name == "tt.elementwise_inline_asm":
        if inline_asm.is_known(op):
            return None
        place = _OF_HARDWARE.get(inline_asm.fingerprint(op))
        return f"{place} is known to hardware only. Leave it out" if place else _PTX
    if op.name == "tt.extern_elementwise":
        symbol = libdevice.symbol(op)
        if symbol in libdevice.FUNCTIONS:
            return None
        library = op.attrs.get("libpath") or op.attrs.get("libname")
        return (
            f"tl.extern_elementwise with {symbol} of {library}: the simulator runs functions of "
            "libdevice only. Write the function with operations of triton.language"
        )
    if op.name == "tt.atomic_poll":
        return (
            "tl.atomic_poll: it waits for as long as a clock says. Write a loop around "
            "tl.atomic_load, or tl.atomic_cas"
        )
    if any(op.name in table for table in (FRAMED, LAZY, PURE)):
        return None
    return f"{op.name}, which the simulator does not have. Write this line with other operations"
