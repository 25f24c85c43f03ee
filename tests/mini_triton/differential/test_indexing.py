"""Loads and stores at any strides, through index tiles, with masks: results and exact counts.

An index is a formula whose text means the same to Triton and to numpy. Of programs that store to
one element, the last one in grid order wins here; where that happens, the interpreter, which takes
another order, is not asked.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.mini_triton.comparing import DEVICE
from tests.mini_triton.differential.dtypes import INT32, KINDS, Array, drawn
from tests.mini_triton.differential.programs import Output, Program, examples

ROWS, COLUMNS = 4, 8
SIZE = 64  # elements of the tensor that is read, and of the one that is written at any index
_KINDS = [KINDS[name] for name in ("int8", "int32", "int64", "uint16", "float32", "bfloat16")]

_SOURCE = """\
import triton
import triton.language as tl


@triton.jit
def look(index, at):
    return tl.load(index + at)


@triton.jit
def kernel(source, index, numbers, out0, out1):
    p = tl.program_id(0)
    q = tl.program_id(1)
    i = tl.arange(0, {rows})[:, None]
    j = tl.arange(0, {columns})[None, :]
    n = tl.load(numbers + p)
    e = tl.broadcast_to({index}, ({rows}, {columns}))
    x = tl.zeros(({rows}, {columns}), dtype=source.dtype.element_ty)
    for k in range({rounds}):
        x = tl.load(source + e{masked})
        tl.store(out0 + (((p * {across} + q) * {rounds} + k) * {rows} + i) * {columns} + j, x)
        e += {step}
    e -= {step}
    f = tl.broadcast_to({target}, ({rows}, {columns}))
    tl.store(out1 + f, x{target_masked})
"""


def _value(text: str, **names: Any) -> Array:
    """What a formula is for numpy, int64 or bool, (p, q, rows, columns)."""
    names["look"] = lambda index, at: index[at]
    value = eval(text, {}, names)
    across = np.broadcast_shapes(np.shape(names["p"]), np.shape(names["q"]), (ROWS, COLUMNS))
    return np.broadcast_to(value, across)


@st.composite
def indexing(draw: Any) -> Program:
    """A program that copies tiles from any places to any places."""
    grid = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(_KINDS))
    source = drawn(kind, (SIZE,), rng, tame=False)
    index = rng.integers(-8, SIZE + 8, (ROWS * COLUMNS + 16,), np.int32)
    numbers = rng.integers(0, COLUMNS + 1, grid[:1], np.int32)
    names: dict[str, Any] = {
        "p": np.arange(grid[0])[:, None, None, None],
        "q": np.arange(grid[1])[:, None, None],
        "i": np.arange(ROWS)[:, None],
        "j": np.arange(COLUMNS),
        "n": numbers.astype(np.int64)[:, None, None, None],
        "index": index.astype(np.int64),
    }

    steps = {name: draw(st.integers(-9, 9)) for name in "ijpq"}
    affine = " + ".join(f"{name} * {step}" for name, step in steps.items())
    affine += f" + {draw(st.integers(-4, SIZE))}"
    through = f"look(index, i * {COLUMNS} + j + p)"
    formulas = [
        affine,
        f"({affine}) & {SIZE - 1}",
        f"{through} + p * 3 - q",
        "look(index, j + p)",
        "look(index, i * 2 + q) + j",
        "(i * j + j * 3 + p * 5 + q) % 32 + 32",
        "n * 5 + j + i",
    ]
    text = draw(st.sampled_from(formulas))
    rounds, step = draw(st.integers(1, 3)), draw(st.integers(1, 9))
    extra = draw(st.sampled_from(["j < n", "i < 2", "p > 0", "(i + j + k) % 2 == 0", "j >= n"]))
    inside = f"(e >= 0) & (e < {SIZE})"
    mask = draw(st.sampled_from([None, inside, f"{inside} & ({extra})", extra]))
    first = _value(text, **names)

    def lanes(mask: str | None) -> list[tuple[Array, Array]]:
        """Index and mask of each round."""
        places = [first + k * step for k in range(rounds)]
        if mask is None:
            return [(e, np.ones_like(e, bool)) for e in places]
        return [(e, _value(mask, **names, e=e, k=k)) for k, e in enumerate(places)]

    reads = lanes(mask)
    if any((let & ((e < 0) | (e >= SIZE))).any() for e, let in reads):
        mask = inside if mask is None else f"{inside} & ({mask})"
        reads = lanes(mask)
    other = draw(st.sampled_from([None, 7])) if DEVICE == "cpu" else 7  # without: 0 here only
    fill = np.array(0 if other is None else other).astype(kind.held)
    tiles = [np.where(let, source[np.clip(e, 0, SIZE - 1)], fill) for e, let in reads]
    masked = "" if mask is None else f", mask={mask}"
    masked += f", other={other}" if mask is not None and other is not None else ""

    row, column = draw(st.sampled_from([(8, 1), (1, 4), (-8, 1), (2, 8), (9, -1)]))
    target = f"i * {row} + j * {column} + p * {draw(st.integers(-9, 9))}"
    target += f" + q * {draw(st.integers(-5, 5))} + {draw(st.integers(-8, 40))}"
    target_inside = f"(f >= 0) & (f < {SIZE})"
    target_mask = draw(st.sampled_from([target_inside, f"{target_inside} & (j < n)"]))
    f = _value(target, **names)
    let_target = _value(target_mask, **names, f=f)
    everywhere = np.full((SIZE,), np.array(3).astype(kind.held))
    copied = everywhere.copy()
    writers = np.zeros(SIZE, np.int64)
    for b in range(grid[1]):  # the first axis of the grid runs fastest
        for a in range(grid[0]):
            keep = let_target[a, b]
            copied[f[a, b][keep]] = tiles[-1][a, b][keep]
            writers[f[a, b][keep]] += 1
    whole = np.stack(tiles, axis=2)
    programs = grid[0] * grid[1]
    looked = ROWS * COLUMNS if through in text else COLUMNS if "j + p" in text else ROWS
    return Program(
        _SOURCE.format(
            rows=ROWS,
            columns=COLUMNS,
            across=grid[1],
            index=text,
            rounds=rounds,
            masked=masked,
            step=step,
            target=target,
            target_masked=f", mask={target_mask}",
        ),
        grid,
        [(kind, source), (INT32, index), (INT32, numbers)],
        [
            Output(kind, np.ascontiguousarray(whole), np.zeros_like(whole)),
            Output(kind, copied, everywhere),
        ],
        interpretable=bool((writers <= 1).all()) and kind.native,
        any_order=bool((writers <= 1).all()),
        loaded=sum(int(let.sum()) for _, let in reads)
        + programs * looked * ("look" in text)
        + programs * any("n" in part.replace("index", "") for part in (text, masked, target_mask)),
        stored=whole.size + int(let_target.sum()),
    )


@given(program=indexing())
@examples(50)
def test_copies(runner, program):
    runner.check(program)
