"""Floating-point operations of a launch, by the unit that does them.

A product of tiles (`tt.dot`, `tt.dot_scaled`) is 2·M·N·K operations in the precision in which
tensor cores do it; three products in tf32 or bf16 that stand for one in float32 are three. All else
is counted as one operation an element of the result (of the operand, for a reduction), on the CUDA
cores, in "fp32" or "fp64"; a square root or an exponential is one too, though they are slower.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from mini_triton.ir.program import Op

if TYPE_CHECKING:
    from mini_triton.execute.frame import Frame
    from mini_triton.execute.memory.observe import Access

#: inputPrecision of a float32 product → precision and how many products it takes.
_FLOAT32 = {
    "tf32": ("tf32", 1),
    "tf32x3": ("tf32", 3),
    "bf16x3": ("bf16", 3),
    "bf16x6": ("bf16", 6),
    "ieee": ("fp32", 1),
}
_PRECISION = {
    "f64": "fp64",
    "f16": "fp16",
    "bf16": "bf16",
    "i8": "int8",
}
_ELEMENTWISE = ("arith.", "math.")
_NO_ARITHMETIC = {"arith.constant", "arith.select", "arith.bitcast"}


class Arithmetic:
    """An observer of operations.

    Attributes:
        products: operations of tile products, by precision.
        others: all other floating-point operations, by precision.
    """

    def __init__(self) -> None:
        self.products: dict[str, int] = defaultdict(int)
        self.others: dict[str, int] = defaultdict(int)

    def access(self, access: Access) -> None:
        """Accesses are no arithmetic."""

    def operation(self, frame: Frame, op: Op) -> None:
        """Called before each operation."""
        if op.name in ("tt.dot", "tt.dot_scaled"):
            precision, times = _product(op)
            *batch, m, n = op.types[0].shape
            k = op.operand_types[0].shape[-1]
            if op.name == "tt.dot_scaled" and _packed(op):
                k *= 2
            size = m * n * k * times
            for b in batch:
                size *= b
            self.products[precision] += 2 * size * frame.count
        elif op.name == "tt.reduce":
            kind = op.operand_types[0]
            if kind.is_float:
                self._other(kind.element, kind.numel * frame.count)
        elif op.name.startswith(_ELEMENTWISE) and op.results and op.name not in _NO_ARITHMETIC:
            kind = op.types[0]
            if kind.is_float:
                self._other(kind.element, kind.numel * frame.count)

    def _other(self, element: str, operations: int) -> None:
        self.others["fp64" if element == "f64" else "fp32"] += operations


def _product(op: Op) -> tuple[str, int]:
    element = op.operand_types[0].element
    if op.name == "tt.dot_scaled":
        return ("fp16" if "fp16" in (op.attrs.get("lhs"), op.attrs.get("rhs")) else "bf16"), 1
    if element == "f32":
        return _FLOAT32.get(op.attrs.get("inputPrecision", "ieee"), ("fp32", 1))
    if element.startswith("f8"):
        return "fp8", 1
    return _PRECISION.get(element, "fp32"), 1


def _packed(op: Op) -> bool:
    """Whether an element of the left operand is two factors along K, of four bits each."""
    return op.attrs.get("lhs") == "e2m1" and bool(op.attrs.get("lhs_k_pack", True))
