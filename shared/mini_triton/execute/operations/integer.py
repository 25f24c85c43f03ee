"""`arith` on integers: two's complement, wrapping, as hardware does it.

torch's integers are signed and wrap. Unsigned readings are made by widening (up to 32 bits) or by
numpy's unsigned views (64 bits). What C leaves undefined is given the value that an H200 gives: a
quotient by zero has all bits set, a remainder by zero is the dividend (of 64 bits, and where LLVM
knows something of the operands, it depends on the code around it), a shift by the width or more
gives 0 (or the sign), and of a 64-bit shift's amount the low 32 bits count.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from mini_triton.execute.registry import pure
from mini_triton.ir.program import Op

Tensor = torch.Tensor

_UNSIGNED = {
    torch.int8: np.uint8,
    torch.int16: np.uint16,
    torch.int32: np.uint32,
    torch.int64: np.uint64,
}
_BITS = {torch.bool: 1, torch.int8: 8, torch.int16: 16, torch.int32: 32, torch.int64: 64}


def bits_of(dtype: torch.dtype) -> int:
    """Width of a torch integer dtype."""
    return _BITS[dtype]


def unsigned(value: Tensor) -> np.ndarray:
    """The value's bits as numpy unsigned integers (bool as 0 and 1)."""
    if value.dtype == torch.bool:
        return value.numpy().astype(np.uint8)
    return value.contiguous().numpy().view(_UNSIGNED[value.dtype])


def signless(array: np.ndarray, dtype: torch.dtype) -> Tensor:
    """numpy unsigned integers back to the torch dtype of the same bits."""
    if dtype == torch.bool:
        return torch.from_numpy((array & 1).astype(np.bool_))
    width = np.dtype(f"i{bits_of(dtype) // 8}")
    array = np.ascontiguousarray(array.astype(_UNSIGNED[dtype], copy=False))
    return torch.from_numpy(array.view(width))


def _on_single_bits(
    rule: Callable[[Tensor, Tensor], Tensor],
) -> Callable[[Callable[[Op, Tensor, Tensor], Tensor]], Callable[[Op, Tensor, Tensor], Tensor]]:
    """Of an operation that torch has no truth values for: what it does to them.

    As signed integers they are 0 and −1; the rules for zero, overflow and wide shifts are the same.
    """

    def wrapped(
        handler: Callable[[Op, Tensor, Tensor], Tensor],
    ) -> Callable[[Op, Tensor, Tensor], Tensor]:
        return lambda op, a, b: rule(a, b) if a.dtype == torch.bool else handler(op, a, b)

    return wrapped


@pure("arith.addi")
def _add(op: Op, a: Tensor, b: Tensor) -> Tensor:
    return a ^ b if a.dtype == torch.bool else a + b


@pure("arith.subi")
def _sub(op: Op, a: Tensor, b: Tensor) -> Tensor:
    return a ^ b if a.dtype == torch.bool else a - b


@pure("arith.muli")
def _mul(op: Op, a: Tensor, b: Tensor) -> Tensor:
    return a & b if a.dtype == torch.bool else a * b


@pure("arith.andi")
def _and(op: Op, a: Tensor, b: Tensor) -> Tensor:
    return a & b


@pure("arith.ori")
def _or(op: Op, a: Tensor, b: Tensor) -> Tensor:
    return a | b


@pure("arith.xori")
def _xor(op: Op, a: Tensor, b: Tensor) -> Tensor:
    return a ^ b


def _safe_divisor(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(divisor without 0 and −1, where it was 0, where it was −1): INT_MIN / −1 traps on x86."""
    zero, minus_one = b == 0, b == -1
    return torch.where(zero | minus_one, torch.ones_like(b), b), zero, minus_one


def _divided(a: Tensor, b: Tensor, rounding: str) -> Tensor:
    divisor, zero, minus_one = _safe_divisor(a, b)
    quotient = torch.div(a, divisor, rounding_mode=rounding)
    quotient = torch.where(minus_one, -a, quotient)
    return torch.where(zero, torch.full_like(quotient, -1), quotient)


@pure("arith.divsi")
@_on_single_bits(lambda a, b: a | ~b)
def _divide(op: Op, a: Tensor, b: Tensor) -> Tensor:
    return _divided(a, b, "trunc")


@pure("arith.floordivsi")
@_on_single_bits(lambda a, b: a | ~b)
def _floor_divide(op: Op, a: Tensor, b: Tensor) -> Tensor:
    return _divided(a, b, "floor")


@pure("arith.ceildivsi")
@_on_single_bits(lambda a, b: a | ~b)
def _ceil_divide(op: Op, a: Tensor, b: Tensor) -> Tensor:
    return -_divided(-a, b, "floor")


@pure("arith.remsi")
@_on_single_bits(lambda a, b: a & ~b)
def _remainder(op: Op, a: Tensor, b: Tensor) -> Tensor:
    divisor, zero, minus_one = _safe_divisor(a, b)
    rest = torch.fmod(a, divisor)
    rest = torch.where(minus_one, torch.zeros_like(rest), rest)
    return torch.where(zero, a, rest)


@pure("arith.divui")
def _divide_unsigned(op: Op, a: Tensor, b: Tensor) -> Tensor:
    ua, ub = unsigned(a), unsigned(b)
    quotient = np.where(ub == 0, np.iinfo(ua.dtype).max, ua // np.where(ub == 0, 1, ub))
    return signless(quotient, a.dtype)


@pure("arith.remui")
def _remainder_unsigned(op: Op, a: Tensor, b: Tensor) -> Tensor:
    ua, ub = unsigned(a), unsigned(b)
    return signless(np.where(ub == 0, ua, ua % np.where(ub == 0, 1, ub)), a.dtype)


def _amount(b: Tensor) -> Tensor:
    return b & 0xFFFFFFFF if b.dtype == torch.int64 else b


def _shift(a: Tensor, b: Tensor, shifted: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """Shifts by 0 … width−1; `shifted` is only asked for those, the rest gives 0."""
    width = bits_of(a.dtype)
    b = _amount(b)
    outside = (b < 0) | (b >= width)  # negative: an unsigned amount of at least 2^(width−1)
    result = shifted(a, torch.where(outside, torch.zeros_like(b), b))
    return torch.where(outside, torch.zeros_like(result), result)


@pure("arith.shli")
@_on_single_bits(lambda a, b: a & ~b)
def _shift_left(op: Op, a: Tensor, b: Tensor) -> Tensor:
    return _shift(a, b, torch.bitwise_left_shift)


@pure("arith.shrsi")
@_on_single_bits(lambda a, b: a)
def _shift_right(op: Op, a: Tensor, b: Tensor) -> Tensor:
    last = bits_of(a.dtype) - 1
    b = _amount(b)
    amount = torch.where((b < 0) | (b > last), torch.full_like(b, last), b)
    return torch.bitwise_right_shift(a, amount)


@pure("arith.shrui")
@_on_single_bits(lambda a, b: a & ~b)
def _shift_right_unsigned(op: Op, a: Tensor, b: Tensor) -> Tensor:
    def shifted(x: Tensor, amount: Tensor) -> Tensor:
        if x.dtype == torch.int64:
            return signless(unsigned(x) >> unsigned(amount), x.dtype)
        wide = x.to(torch.int64) & ((1 << bits_of(x.dtype)) - 1)
        return torch.bitwise_right_shift(wide, amount.to(torch.int64)).to(x.dtype)

    return _shift(a, b, shifted)


@pure("arith.maxsi")
@_on_single_bits(torch.logical_and)
def _max_signed(op: Op, a: Tensor, b: Tensor) -> Tensor:
    return torch.maximum(a, b)


@pure("arith.minsi")
@_on_single_bits(torch.logical_or)
def _min_signed(op: Op, a: Tensor, b: Tensor) -> Tensor:
    return torch.minimum(a, b)


@pure("arith.maxui")
def _max_unsigned(op: Op, a: Tensor, b: Tensor) -> Tensor:
    return torch.where(_biased(a) >= _biased(b), a, b)


@pure("arith.minui")
def _min_unsigned(op: Op, a: Tensor, b: Tensor) -> Tensor:
    return torch.where(_biased(a) <= _biased(b), a, b)


@pure("math.absi")
def _absolute(op: Op, a: Tensor) -> Tensor:
    return a if a.dtype == torch.bool else a.abs()


@pure("tt.mulhiui")
def _multiply_high(op: Op, a: Tensor, b: Tensor) -> Tensor:
    """The upper half of the unsigned product."""
    return high_half(unsigned(a), unsigned(b), a.dtype)


@pure("arith.mului_extended")
def _multiply_extended(op: Op, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    return a * b, high_half(unsigned(a), unsigned(b), a.dtype)


def high_half(a: np.ndarray, b: np.ndarray, dtype: torch.dtype) -> Tensor:
    """The upper half of unsigned products, as the bits of `dtype`."""
    width = bits_of(dtype)
    wide_a, wide_b = a.astype(np.uint64), b.astype(np.uint64)
    if width < 64:
        return signless((wide_a * wide_b) >> np.uint64(width), dtype)
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    a0, a1, b0, b1 = wide_a & low, wide_a >> half, wide_b & low, wide_b >> half
    middle = a1 * b0 + ((a0 * b0) >> half)
    cross = a0 * b1 + (middle & low)
    return signless(a1 * b1 + (middle >> half) + (cross >> half), dtype)


def _biased(value: Tensor) -> Tensor:
    """Maps unsigned order to signed order: flips the top bit."""
    if value.dtype == torch.bool:
        return value
    return value ^ torch.iinfo(value.dtype).min


_SIGNED_ORDER = {"slt": torch.lt, "sle": torch.le, "sgt": torch.gt, "sge": torch.ge}
_UNSIGNED_ORDER = {"ult": torch.lt, "ule": torch.le, "ugt": torch.gt, "uge": torch.ge}


@pure("arith.cmpi")
def _compare(op: Op, a: Tensor, b: Tensor) -> Tensor:
    predicate = op.keywords[0]
    if predicate == "eq":
        return a == b
    if predicate == "ne":
        return a != b
    if predicate in _UNSIGNED_ORDER:
        return _UNSIGNED_ORDER[predicate](_biased(a), _biased(b))
    if a.dtype == torch.bool:  # as a signed 1-bit integer, true is −1
        a, b = b, a
    return _SIGNED_ORDER[predicate](a, b)
