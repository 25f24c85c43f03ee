"""Steps that change a tile's shape or work along an axis: views, reductions, scans, sorts, gathers.

Sums and products of floats are drawn only where every order of the terms gives the same bits.
"""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from tests.mini_triton.comparing import DEVICE
from tests.mini_triton.differential.dtypes import INT1, INT32, Array, Kind
from tests.mini_triton.differential.straight_line import (
    ALL_KINDS,
    ROWS,
    Builder,
    Step,
    Var,
    arithmetic,
    comparison,
    where,
)


def _tile(var: Var) -> bool:
    return len(var.shape) > 0


def _number(var: Var) -> bool:
    return var.kind is not INT1 and (var.kind.bits > 8 or not var.kind.is_float)


def _axis(builder: Builder, var: Var) -> int:
    return builder.draw(st.integers(0, len(var.shape) - 1))


# ------------------------------------------------------------------------------------------- views
def view(builder: Builder) -> bool:
    """A transpose, a reshape, a broadcast, a flip, a new axis that a broadcast fills."""
    a = builder.pick(_tile)
    if a is None:
        return False
    name, value = a.name, a.value
    programs = value.shape[0]
    if len(a.shape) == 1:
        size = a.shape[0]
        choices = [
            (f"{name}[None, :].broadcast_to(({ROWS}, {size}))", _repeated(value, ROWS, 1)),
            (f"{name}[:, None].broadcast_to(({size}, {ROWS}))", _repeated(value, ROWS, 2)),
            (f"tl.reshape({name}, (2, {size // 2}))", value.reshape(programs, 2, size // 2)),
            (f"tl.flip({name}, 0)", np.flip(value, 1)),
        ]
    else:
        rows, columns = a.shape
        choices = [
            (f"tl.trans({name})", value.transpose(0, 2, 1)),
            (f"tl.permute({name}, (1, 0))", value.transpose(0, 2, 1)),
            (f"tl.reshape({name}, ({rows * columns},))", value.reshape(programs, -1)),
            (f"tl.reshape({name}, ({columns}, {rows}))", value.reshape(programs, columns, rows)),
            (f"tl.flip({name}, 0)", np.flip(value, 1)),
            (f"tl.flip({name}, 1)", np.flip(value, 2)),
        ]
    if value[0].size > 256 or a.kind is INT1:
        return False
    return builder.add(*_with_kind(a.kind, builder.one_of(choices)))


def _with_kind(kind: Kind, choice: tuple[str, Array]) -> tuple[str, Kind, Array]:
    return choice[0], kind, np.ascontiguousarray(choice[1])


def _repeated(value: Array, times: int, axis: int) -> Array:
    return np.repeat(np.expand_dims(value, axis), times, axis)


def joined(builder: Builder) -> bool:
    """Two tiles side by side: interleaved, or joined and split, or joined and reduced."""
    a = builder.pick(lambda v: _tile(v) and _number(v) and v.value[0].size <= 128)
    if a is None or np.isnan(a.value).any():
        return False
    b = builder.pick(lambda v: v.kind is a.kind and v.shape == a.shape)
    if b is None or np.isnan(b.value).any():
        return False
    both = np.stack(np.broadcast_arrays(a.value, b.value), axis=-1)
    pair, last = f"tl.join({a.name}, {b.name})", len(a.shape)
    choices = [
        (f"tl.interleave({a.name}, {b.name})", both.reshape(*both.shape[:-2], -1)),
        (f"tl.split({pair})[1]", both[..., 1]),
        (f"tl.reduce({pair}, {last}, larger_of)", np.fmax(both[..., 0], both[..., 1])),
    ]
    if last == 1:
        choices.append((f"tl.permute({pair}, (1, 0))", both.transpose(0, 2, 1)))
    return builder.add(*_with_kind(a.kind, builder.one_of(choices)))


def gathered(builder: Builder) -> bool:
    """Along an axis, with an index tile made from int32 values."""
    a = builder.pick(lambda v: _tile(v) and v.kind is not INT1)
    if a is None:
        return False
    index = builder.pick(lambda v: v.kind is INT32 and v.shape == a.shape)
    if index is None:
        return False
    axis = _axis(builder, a)
    last = a.shape[axis] - 1
    at = (index.value & last).astype(np.int64)
    value = np.take_along_axis(np.broadcast_to(a.value, at.shape), at, axis + 1)
    return builder.add(f"tl.gather({a.name}, {index.name} & {last}, {axis})", a.kind, value)


# -------------------------------------------------------------------------------------- reductions
def _exact_sum(value: Array, kind: Kind) -> bool:
    """True if every partial sum, in any order, is a number of the type."""
    if not np.isfinite(value).all():
        return False
    wide = np.abs(value.astype(np.longdouble))
    mantissa, exponent = np.frexp(wide)
    whole = np.ldexp(mantissa, kind.precision).astype(np.int64)
    trailing = np.where(whole == 0, 64, np.log2((whole & -whole).clip(1)).astype(np.int64))
    unit = (exponent - kind.precision + trailing).astype(np.int64)
    unit = np.where(wide == 0, 2000, unit)
    smallest = int(unit.min(initial=2000))
    if smallest == 2000:
        return True
    return bool(smallest > kind.lowest and wide.sum() < np.ldexp(1.0, smallest + kind.precision))


def reduction(builder: Builder) -> bool:
    """sum, max, min, xor along an axis, or a combination of our own."""
    a = builder.pick(lambda v: _tile(v) and _number(v))
    if a is None:
        return False
    axis = _axis(builder, a)
    name, value, at = a.name, a.value, axis + 1
    back = f".to(tl.{a.kind.name})"
    choices = []
    if not a.kind.is_float:
        with np.errstate(all="ignore"):
            total = np.add.reduce(value, axis=at, dtype=a.kind.held)
        choices += [
            (f"tl.sum({name}, {axis}){back}", total),
            (f"tl.xor_sum({name}, {axis})", np.bitwise_xor.reduce(value, axis=at)),
            (f"tl.reduce({name}, {axis}, larger_of)", value.max(at)),
        ]
        if DEVICE == "cpu":  # a GPU changes operands, also where that is not the same
            choices.append((f"tl.reduce({name}, {axis}, other_of)", value.take(-1, at)))
    elif _exact_sum(value, a.kind):
        choices.append((f"tl.sum({name}, {axis}){back}", value.sum(at, dtype=np.longdouble)))
    if not np.isnan(value).any():
        choices += [
            (f"tl.max({name}, {axis}){back}", value.max(at)),
            (f"tl.min({name}, {axis}){back}", value.min(at)),
        ]
    elif not builder.plain:
        choices += [
            (f"tl.max({name}, {axis}){back}", np.fmax.reduce(value, axis=at)),
            (f"tl.min({name}, {axis}){back}", np.fmin.reduce(value, axis=at)),
        ]
    if not choices:
        return False
    text, result = builder.one_of(choices)
    return builder.add(text, a.kind, result.astype(a.kind.held))


def position(builder: Builder) -> bool:
    """argmax and argmin: the first of equal ones."""
    a = builder.pick(lambda v: _tile(v) and _number(v))
    if a is None or np.isnan(a.value).any():
        return False
    axis = _axis(builder, a)
    name = builder.one_of(["argmax", "argmin"])
    value = getattr(np, name)(a.value, axis=axis + 1).astype(np.int32)
    return builder.add(f"tl.{name}({a.name}, {axis})", INT32, value)


# ------------------------------------------------------------------------------------------- scans
def scan(builder: Builder) -> bool:
    """Running sums, products and maxima, from either end."""
    a = builder.pick(lambda v: _tile(v) and _number(v))
    if a is None:
        return False
    axis = _axis(builder, a)
    reverse = builder.draw(st.booleans())
    option = ", reverse=True" if reverse else ""
    value = np.flip(a.value, axis + 1) if reverse else a.value
    back, kind = f".to(tl.{a.kind.name})", a.kind
    choices = []
    if not kind.is_float:
        choices.append((f"tl.associative_scan({a.name}, {axis}, larger_of{option})", np.maximum))
        choices.append((f"tl.cumsum({a.name}, {axis}{option}){back}", np.add))
        choices.append((f"tl.cumprod({a.name}, {axis}{option}){back}", np.multiply))
    elif _exact_sum(value, kind):
        choices.append((f"tl.cumsum({a.name}, {axis}{option}){back}", np.add))
    if not choices:
        return False
    text, function = builder.one_of(choices)
    with np.errstate(all="ignore"):
        result = function.accumulate(value, axis=axis + 1, dtype=kind.held)
    result = np.flip(result, axis + 1) if reverse else result
    return builder.add(text, kind, np.ascontiguousarray(result))


def ordered(builder: Builder) -> bool:
    """tl.sort along the last axis, up or down."""
    a = builder.pick(lambda v: _tile(v) and v.kind.is_integer)
    if a is None:
        return False
    down = builder.draw(st.booleans())
    value = np.sort(a.value, axis=-1)
    option = ", descending=True" if down else ""
    value = np.ascontiguousarray(np.flip(value, -1)) if down else value
    return builder.add(f"tl.sort({a.name}{option})", a.kind, value)


def histogram(builder: Builder) -> bool:
    """How often each of 16 numbers comes."""
    a = builder.pick(lambda v: v.kind is INT32 and len(v.shape) == 1)
    if a is None:
        return False
    value = np.stack([np.bincount(row & 15, minlength=16) for row in a.value]).astype(np.int32)
    return builder.add(f"tl.histogram({a.name} & 15, 16)", INT32, value)


TILES: list[Step] = [
    view,
    view,
    joined,
    gathered,
    reduction,
    reduction,
    position,
    scan,
    scan,
    ordered,
    histogram,
    arithmetic,
    comparison,
    where,
    Builder.load,
]
TILE_KINDS = [k for k in ALL_KINDS if k is not INT1 and k.name != "uint64"]
