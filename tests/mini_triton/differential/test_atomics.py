"""Atomics of every kind whose lanes and programs meet in one element: memory and old values.

Lanes follow each other in the order of the tile, programs in grid order, one of the orders that
hardware may take.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.mini_triton.differential.dtypes import INT32, KINDS, drawn, rounded
from tests.mini_triton.differential.programs import Output, Program, examples

LANES, SIZE = 16, 6

_SOURCE = """\
import triton
import triton.language as tl


@triton.jit
def kernel(values, others, index, lengths, memory, old):
    pid = tl.program_id(0)
    i = tl.arange(0, {lanes})
    at = tl.load(index + pid * {lanes} + i)
    value = tl.load(values + pid * {lanes} + i)
    mask = i < tl.load(lengths + pid)
    {update}
"""

_INTEGERS = [KINDS[name] for name in ("int32", "int64", "uint32", "uint64")]
_FLOATS = [KINDS[name] for name in ("float32", "float64", "float16", "bfloat16")]
_UPDATES: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "xchg": lambda now, value: value,
}
#: Of Triton 3.9: they do not read and write at once, so that lanes need not follow each other.
_NO_UPDATES = {"load", "store", "poll"}


@st.composite
def atomics(draw: Any) -> Program:
    """One atomic operation, of which the old values may be kept."""
    name = draw(st.sampled_from([*_UPDATES, "cas"]))
    kinds = _INTEGERS
    if name in ("add", "xchg", "max", "min"):
        kinds = _INTEGERS + _FLOATS[: {"add": 4, "xchg": 2}.get(name, 2)]
    kind = draw(st.sampled_from(kinds))
    programs, used = draw(st.integers(1, 4)), draw(st.booleans())
    if kind.is_float and name in ("max", "min"):
        used = False  # Triton makes two integer operations of it, one for each sign
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    tame = kind.is_float or name == "cas"
    values, others = (drawn(kind, (programs, LANES), rng, tame) for _ in range(2))
    memory = drawn(kind, (SIZE,), rng, tame)
    index = rng.integers(0, draw(st.integers(1, SIZE)), (programs, LANES), np.int32)
    lengths = rng.integers(0, LANES + 1, (programs,), np.int32)
    masked = name != "cas" and draw(st.booleans())

    after, old = memory.copy(), np.zeros_like(values)
    with np.errstate(all="ignore"):
        for p in range(programs):
            for lane in range(lengths[p] if masked else LANES):
                at = index[p, lane]
                old[p, lane] = now = after[at]
                if name == "cas":
                    new = others[p, lane] if now == values[p, lane] else now
                else:
                    new = _UPDATES[name](now, values[p, lane])
                after[at] = rounded(np.array(new), kind) if kind.is_float else new
    counted = int(lengths.sum()) if masked else values.size
    option = ", mask=mask" if masked else ""
    call = f"tl.atomic_{name}(memory + at, value{option})"
    if name == "cas":
        call = f"tl.atomic_cas(memory + at, value, tl.load(others + pid * {LANES} + i))"
    update = f"tl.store(old + pid * {LANES} + i, {call})" if used else call
    if used and masked:
        update = f"tl.store(old + pid * {LANES} + i, tl.where(mask, {call}, 0))"
    return Program(
        _SOURCE.format(lanes=LANES, update=update),
        (programs,),
        [(kind, values), (kind, others), (INT32, index), (INT32, lengths)],
        [Output(kind, after, memory), Output(kind, old if used else old * 0, np.zeros_like(old))],
        # The interpreter has no 16-bit floats here, and of floats no exchange.
        interpretable=kind.bits >= 32 and not (kind.is_float and name == "xchg"),
        any_order=not used and name not in ("xchg", "cas"),
        stored=counted + used * values.size,
    )


@given(program=atomics())
@examples(30)
def test_updates(runner, program):
    runner.check(program)


def test_every_kind_is_drawn():
    """The table above has all updates that Triton offers."""
    import triton.language as tl

    offered = {name.removeprefix("atomic_") for name in dir(tl) if name.startswith("atomic_")}
    assert offered - _NO_UPDATES == {*_UPDATES, "cas"}
