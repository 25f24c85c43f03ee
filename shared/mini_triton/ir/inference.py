"""What the printed form of an operation leaves out: result types, and the numbers of constants."""

from __future__ import annotations

import struct
from typing import Any

import torch

from mini_triton.errors import BadProgram
from mini_triton.ir.types import TORCH_DTYPE, Type

_POINTEE_RESULT = {"tt.load"}  # printed with the pointer's type only
_FLOAT_BITS = {"f16": "<e", "f32": "<f", "f64": "<d"}

#: Operations without results among those that `_plain` reads.
_NO_RESULT = {
    "tt.store",
    "tt.atomic_store",
    "tt.print",
    "tt.assert",
    "gpu.barrier",
    "ttg.barrier",
    "llvm.intr.assume",
    "tt.descriptor_store",
}


def inferred_results(name: str, types: list[Type]) -> list[Type]:
    """Result types of operations whose printed signature names operand types only."""
    if name in _NO_RESULT or not types:
        return []
    last = types[-1]
    if name in ("arith.cmpi", "arith.cmpf"):
        return [Type("i1", last.shape)]
    if name in _POINTEE_RESULT:
        if last.pointee is None:
            raise BadProgram(f"{name} takes a pointer, not {last}")
        return [last.pointee.with_shape(last.shape)]
    if name == "arith.mulsi_extended" or name == "arith.mului_extended":
        return [last, last]
    if name == "tt.unsplat":
        return [last.with_shape(())]
    if name == "tt.addptr":
        return [types[0]]
    return [last]


def number(raw: Any, kind: Type) -> Any:
    """A Python number (or nested list of numbers) from the text of a constant.

    Raises `ValueError` if it is no constant of that type.
    """
    if isinstance(raw, list):
        return [number(item, kind) for item in raw]
    if raw in ("true", "false"):
        return raw == "true"
    if kind.is_float and raw.startswith("0x"):
        return _float_from_bits(int(raw, 16), kind.element)
    return float(raw) if kind.is_float else int(raw, 0)


def _float_from_bits(bits: int, element: str) -> float:
    """The value of a hexadecimal float constant, whose bits are those of `element`."""
    if element.startswith("f8") and element in TORCH_DTYPE:
        return float(torch.tensor([bits & 0xFF], dtype=torch.uint8).view(TORCH_DTYPE[element]))
    if element == "bf16":
        return float(struct.unpack("<f", struct.pack("<I", bits << 16))[0])
    if element in _FLOAT_BITS:
        code = _FLOAT_BITS[element]
        return float(struct.unpack(code, bits.to_bytes(struct.calcsize(code), "little"))[0])
    raise ValueError(element)
