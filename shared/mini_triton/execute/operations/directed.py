"""Arithmetic and conversions that round to nearest (rn), toward zero (rz), down (rd) or up (ru).

Every result is made of the one rounded to nearest and of the sign of what that left out, which is
found exactly: for float32 in float64, for products and quotients of float64 in Python's integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from mini_triton.execute.operations.cast import rounded, to_signed, to_unsigned
from mini_triton.execute.operations.floating import (
    fused_multiply_add,
    rounded_to_odd,
    square_root,
    two_sum,
)

Tensor = torch.Tensor
Compute = Callable[..., Tensor]

MODES = ("rn", "rz", "rd", "ru")


def _directed(nearest: Tensor, residual: Tensor, mode: str) -> Tensor:
    """The result for `mode`; the sign of `residual` is that of (true value − nearest)."""
    infinity = torch.tensor(torch.inf, dtype=nearest.dtype)
    up = torch.where(residual > 0, torch.nextafter(nearest, infinity), nearest)
    down = torch.where(residual < 0, torch.nextafter(nearest, -infinity), nearest)
    if mode == "rz":
        return torch.where(nearest > 0, down, torch.where(nearest < 0, up, nearest))
    return {"rn": nearest, "rd": down, "ru": up}[mode]


def _left_out(nearest: Tensor, residual: Tensor, *operands: Tensor) -> Tensor:
    """`residual`, or what an overflow left out; nothing where an operand is infinite."""
    finite = torch.isfinite(operands[0])
    for operand in operands[1:]:
        finite = finite & torch.isfinite(operand)
    beyond = torch.where(torch.isinf(nearest), -torch.sign(nearest).double(), residual)
    return torch.where(finite, beyond, torch.zeros_like(beyond))


def _sign_of_sum(*terms: tuple[Tensor, ...]) -> Tensor:
    """The sign of a sum of products of float64, exactly; 0 where one is not finite."""
    flat = [[x.tolist() for x in torch.broadcast_tensors(*_flattened(term))] for term in terms]
    lanes = zip(*(zip(*factors, strict=True) for factors in flat), strict=True)
    shape = torch.broadcast_shapes(*(x.shape for term in terms for x in term))
    return torch.tensor([_sign(lane) for lane in lanes], dtype=torch.float64).reshape(shape)


def _flattened(term: tuple[Tensor, ...]) -> list[Tensor]:
    return [x.reshape(-1) for x in term]


def _sign(terms: tuple[tuple[float, ...], ...]) -> float:
    parts = []
    for factors in terms:
        mantissa, exponent = 1, 0
        for factor in factors:
            if not math.isfinite(factor):
                return 0.0
            fraction, power = math.frexp(factor)
            mantissa *= int(fraction * 2.0**53)
            exponent += power - 53
        parts.append((mantissa, exponent))
    lowest = min(exponent for _, exponent in parts)
    total = sum(mantissa << (exponent - lowest) for mantissa, exponent in parts)
    return float((total > 0) - (total < 0))


# -------------------------------------------------------------------- arithmetic
def _narrowed(total: Tensor, error: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """(total + error in `dtype`, what that leaves out) of a float64 and its exact error."""
    if dtype == torch.float64:
        return total, error
    nearest = rounded(rounded_to_odd(total, error), dtype)
    return nearest, (total - nearest.double()) + error


def _sum(a: Tensor, b: Tensor, mode: str) -> Tensor:
    nearest, residual = _narrowed(*two_sum(a.double(), b.double()), a.dtype)
    result = _directed(nearest, _left_out(nearest, residual, a, b), mode)
    return _negative_zero(result, a, b) if mode == "rd" else result


def _negative_zero(result: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Rounding down, x − x is −0; only of two zeros of one sign it is that zero."""
    differ = (result == 0) & (torch.signbit(a) != torch.signbit(b))
    return torch.where(differ, -torch.zeros_like(result), result)


def _difference(a: Tensor, b: Tensor, mode: str) -> Tensor:
    return _sum(a, -b, mode)


def _product(a: Tensor, b: Tensor, mode: str) -> Tensor:
    nearest = a * b
    if mode == "rn":
        return nearest
    if a.dtype == torch.float32:
        residual = a.double() * b.double() - nearest.double()
    else:
        residual = _sign_of_sum((a, b), (-nearest,))
    return _directed(nearest, _left_out(nearest, residual, a, b), mode)


def _multiply_add(a: Tensor, b: Tensor, c: Tensor, mode: str) -> Tensor:
    if mode == "rn":
        return fused_multiply_add(a, b, c)
    product = a.double() * b.double()
    if a.dtype == torch.float32:
        nearest, residual = _narrowed(*two_sum(product, c.double()), a.dtype)
    else:
        nearest = fused_multiply_add(a, b, c)
        residual = _sign_of_sum((a, b), (c,), (-nearest,))
    result = _directed(nearest, _left_out(nearest, residual, a, b, c), mode)
    exact_zero = (result == 0) & (residual == 0)
    return (
        torch.where(exact_zero, _negative_zero(result, product, c), result)
        if (mode == "rd")
        else result
    )


def _quotient(a: Tensor, b: Tensor, mode: str) -> Tensor:
    nearest = a / b
    if mode == "rn":
        return nearest
    if a.dtype == torch.float32:
        rest = a.double() - nearest.double() * b.double()
    else:
        rest = _sign_of_sum((a,), (-nearest, b))
    residual = torch.where(torch.signbit(b), -rest, rest)
    left = _left_out(nearest, residual, a, b)
    return _directed(nearest, torch.where(b == 0, torch.zeros_like(left), left), mode)


def _reciprocal(x: Tensor, mode: str) -> Tensor:
    return _quotient(torch.ones_like(x), x, mode)


def _root(x: Tensor, mode: str) -> Tensor:
    nearest = square_root(x)
    if mode == "rn":
        return nearest
    if x.dtype == torch.float32:
        residual = x.double() - nearest.double() * nearest.double()
    else:
        residual = _sign_of_sum((x,), (-nearest, nearest))
    return _directed(nearest, _left_out(nearest, residual, x), mode)


# -------------------------------------------------------------------- conversions
_WHOLE: dict[str, Callable[[Tensor], Tensor]] = {
    "rn": torch.round,  # ties to even
    "rz": torch.trunc,
    "rd": torch.floor,
    "ru": torch.ceil,
}


def _to_integer(x: Tensor, mode: str, dtype: torch.dtype, signed: bool) -> Tensor:
    whole = _WHOLE[mode](x)
    return to_signed(whole, dtype) if signed else to_unsigned(whole, dtype)


def _from_integer(x: Tensor, mode: str, dtype: torch.dtype, signed: bool) -> Tensor:
    """By its two halves of 32 bits, which float64 holds."""
    wide = x.to(torch.int64)
    if not signed and x.dtype == torch.int32:
        wide = wide & 0xFFFFFFFF
    high = wide >> 32
    if not signed and x.dtype == torch.int64:
        high = high & 0xFFFFFFFF
    total, error = two_sum(high.double() * 2.0**32, (wide & 0xFFFFFFFF).double())
    return _directed(*_narrowed(total, error, dtype), mode)


def _to_single(x: Tensor, mode: str) -> Tensor:
    nearest = x.float()
    return _directed(nearest, _left_out(nearest, x - nearest.double(), x), mode)


# -------------------------------------------------------------------- names
def _with_modes(name: str, compute: Callable[..., Tensor]) -> dict[str, Compute]:
    def rounding(mode: str) -> Compute:
        return lambda *values: compute(*values, mode)

    return {f"__nv_{name}_{mode}": rounding(mode) for mode in MODES}


def _conversions() -> dict[str, Compute]:
    integers = {
        "int": (torch.int32, True),
        "uint": (torch.int32, False),
        "ll": (torch.int64, True),
        "ull": (torch.int64, False),
    }
    found: dict[str, Compute] = {}
    for whole, (integer, signed) in integers.items():
        for name, dtype in (("float", torch.float32), ("double", torch.float64)):

            def to_integer(
                x: Tensor, mode: str, integer: torch.dtype = integer, signed: bool = signed
            ) -> Tensor:
                return _to_integer(x, mode, integer, signed)

            def from_integer(
                x: Tensor, mode: str, dtype: torch.dtype = dtype, signed: bool = signed
            ) -> Tensor:
                return _from_integer(x, mode, dtype, signed)

            found |= _with_modes(f"{name}2{whole}", to_integer)
            found |= _with_modes(f"{whole}2{name}", from_integer)
    return found | _with_modes("double2float", _to_single)


#: By the name of the function in libdevice: `__nv_fadd_rz` adds float32, `__nv_dadd_rz` float64.
FUNCTIONS: dict[str, Compute] = (
    _with_modes("fadd", _sum)
    | _with_modes("dadd", _sum)
    | _with_modes("fsub", _difference)
    | _with_modes("dsub", _difference)
    | _with_modes("fmul", _product)
    | _with_modes("dmul", _product)
    | _with_modes("fmaf", _multiply_add)
    | _with_modes("fma", _multiply_add)
    | _with_modes("fdiv", _quotient)
    | _with_modes("ddiv", _quotient)
    | _with_modes("frcp", _reciprocal)
    | _with_modes("drcp", _reciprocal)
    | _with_modes("fsqrt", _root)
    | _with_modes("dsqrt", _root)
    | _conversions()
)
