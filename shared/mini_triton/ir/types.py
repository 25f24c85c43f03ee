"""Types of values: a scalar or a tile of integers, floats or pointers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

#: TTIR element type → torch dtype. Integers are signless in TTIR; operations say how they read
#: them.
TORCH_DTYPE: dict[str, torch.dtype] = {
    "i1": torch.bool,
    "i8": torch.int8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
    "index": torch.int64,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
    "f8E5M2": torch.float8_e5m2,
    "f8E4M3FN": torch.float8_e4m3fn,
    "f8E4M3FNUZ": torch.float8_e4m3fnuz,
    "f8E5M2FNUZ": torch.float8_e5m2fnuz,
}

#: The integer dtype that holds the bits of an element of so many bytes: for comparing NaN with NaN,
#: and for what lacks bfloat16 or 8-bit floats, as numpy does.
INTEGER_OF_SIZE: dict[int, torch.dtype] = {
    1: torch.int8,
    2: torch.int16,
    4: torch.int32,
    8: torch.int64,
}

#: Integer dtypes whose bits TTIR reads as the signless type of the same width.
SIGNLESS: dict[torch.dtype, torch.dtype] = {
    torch.uint8: torch.int8,
    torch.uint16: torch.int16,
    torch.uint32: torch.int32,
    torch.uint64: torch.int64,
}


@dataclass(frozen=True)
class Type:
    """`element` as TTIR spells it, or "ptr" with a `pointee`; `shape` is () for a scalar."""

    element: str
    shape: tuple[int, ...] = ()
    pointee: Type | None = None

    @property
    def numel(self) -> int:
        """Elements of a tile of this type (1 for a scalar)."""
        return math.prod(self.shape)

    @property
    def is_pointer(self) -> bool:
        """True for a pointer or a tile of pointers."""
        return self.element == "ptr"

    @property
    def is_float(self) -> bool:
        """True for floating-point elements, 8-bit ones included."""
        return self.element[0] == "f" or self.element == "bf16"

    @property
    def dtype(self) -> torch.dtype:
        """The torch dtype of the elements (pointers have none)."""
        return TORCH_DTYPE[self.element]

    @property
    def itemsize(self) -> int:
        """Bytes of an element; of a pointer 8."""
        return 8 if self.is_pointer else self.dtype.itemsize

    @property
    def bits(self) -> int:
        """Width of an integer element."""
        return 64 if self.element == "index" else int(self.element[1:])

    def with_shape(self, shape: tuple[int, ...]) -> Type:
        """The same element type in another shape."""
        return Type(self.element, shape, self.pointee)

    def __str__(self) -> str:
        element = f"!tt.ptr<{self.pointee}>" if self.is_pointer else self.element
        return f"tensor<{'x'.join(map(str, (*self.shape, element)))}>" if self.shape else element
