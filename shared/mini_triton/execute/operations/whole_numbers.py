"""libdevice's functions of 32- and 64-bit integers: bits, bytes, products, means; all exact."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from mini_triton.execute.operations.integer import high_half, signless, unsigned

Tensor = torch.Tensor


def _wide(x: Tensor, signed: bool) -> Tensor:
    """32-bit integers as int64."""
    return x.to(torch.int64) if signed else x.to(torch.int64) & 0xFFFFFFFF


def _narrow(x: Tensor) -> Tensor:
    """The low 32 bits."""
    return x.to(torch.int32)


def _ones(x: Tensor) -> Tensor:
    """How many bits are set."""
    return torch.from_numpy(np.bitwise_count(unsigned(x)).astype(np.int32))


def _smeared(x: Tensor) -> Tensor:
    """All bits below the highest set one are set as well."""
    bits = unsigned(x).copy()
    shift = 1
    while shift < bits.dtype.itemsize * 8:
        bits |= bits >> bits.dtype.type(shift)
        shift *= 2
    return signless(bits, x.dtype)


def _leading_zeros(x: Tensor) -> Tensor:
    return x.element_size() * 8 - _ones(_smeared(x))


def _first_set(x: Tensor) -> Tensor:
    """The place of the lowest set bit, from 1; 0 if there is none."""
    lowest = x & -x
    return torch.where(x == 0, 0, _ones(lowest - 1) + 1).to(torch.int32)


def _reversed(x: Tensor) -> Tensor:
    """The bits in the other order."""
    bits, width = unsigned(x), x.element_size() * 8
    result = np.zeros_like(bits)
    for k in range(width):
        result |= ((bits >> bits.dtype.type(k)) & bits.dtype.type(1)) << bits.dtype.type(
            width - 1 - k
        )
    return signless(result, x.dtype)


def _bytes_picked(x: Tensor, y: Tensor, selector: Tensor) -> Tensor:
    """Byte k of the result is the one of y·2³² + x that the low 3 bits of nibble k name."""
    both = (_wide(y, False) << 32) | _wide(x, False)
    result = torch.zeros_like(both + selector)
    for k in range(4):
        nibble = (_wide(selector, False) >> (4 * k)) & 0xF
        byte = (both >> (8 * (nibble & 7))) & 0xFF
        result = result | (byte << (8 * k))
    return _narrow(result)


def _upper_product(a: Tensor, b: Tensor) -> Tensor:
    """The upper half of the signed product: the unsigned one, less what the signs stand for."""
    upper = high_half(unsigned(a), unsigned(b), a.dtype)
    zero = torch.zeros_like(upper)
    return upper - torch.where(a < 0, b, zero) - torch.where(b < 0, a, zero)


def _upper_product_unsigned(a: Tensor, b: Tensor) -> Tensor:
    return high_half(unsigned(a), unsigned(b), a.dtype)


def _product_of_24_bits(a: Tensor, b: Tensor) -> Tensor:
    low = [((_wide(v, True) << 40) >> 40) for v in (a, b)]
    return _narrow(low[0] * low[1])


def _product_of_24_bits_unsigned(a: Tensor, b: Tensor) -> Tensor:
    return _narrow((_wide(a, False) & 0xFFFFFF) * (_wide(b, False) & 0xFFFFFF))


def _distance(signed: bool) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    return lambda a, b, c: _narrow((_wide(a, signed) - _wide(b, signed)).abs() + c.to(torch.int64))


def _mean(signed: bool, up: int) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda a, b: _narrow((_wide(a, signed) + _wide(b, signed) + up) >> 1)


FUNCTIONS: dict[str, Callable[..., Tensor]] = {
    "__nv_abs": torch.abs,
    "__nv_llabs": torch.abs,
    "__nv_brev": _reversed,
    "__nv_brevll": _reversed,
    "__nv_byte_perm": _bytes_picked,
    "__nv_clz": _leading_zeros,
    "__nv_clzll": _leading_zeros,
    "__nv_ffs": _first_set,
    "__nv_ffsll": _first_set,
    "__nv_hadd": _mean(signed=True, up=0),
    "__nv_uhadd": _mean(signed=False, up=0),
    "__nv_rhadd": _mean(signed=True, up=1),
    "__nv_urhadd": _mean(signed=False, up=1),
    "__nv_mul24": _product_of_24_bits,
    "__nv_umul24": _product_of_24_bits_unsigned,
    "__nv_mulhi": _upper_product,
    "__nv_mul64hi": _upper_product,
    "__nv_umulhi": _upper_product_unsigned,
    "__nv_umul64hi": _upper_product_unsigned,
    "__nv_popc": _ones,
    "__nv_popcll": _ones,
    "__nv_sad": _distance(signed=True),
    "__nv_usad": _distance(signed=False),
}
