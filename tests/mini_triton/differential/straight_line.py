"""Random programs without control flow: each line makes a value from earlier ones.

The value that a line should give is computed as the line is drawn, so that a step can look at the
data: what C and Triton leave undefined (a float that an integer cannot hold, a sum whose order
matters) is not drawn. Integer arithmetic wraps; the lowest integer over −1 is itself. Of up to 32
bits a quotient by zero has all bits set and a remainder by zero is the dividend, which is what an
H200 gives when it cannot know the operands; what LLVM knows of them can change it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.mini_triton.comparing import DEVICE
from tests.mini_triton.differential.dtypes import (
    EIGHT_BIT,
    FLOATS,
    INT1,
    INT32,
    INTEGERS,
    KINDS,
    Array,
    Kind,
    converted,
    drawn,
    fits,
    rounded,
)
from tests.mini_triton.differential.programs import Output, Program

ROWS, COLUMNS = 4, 8
SHAPES: tuple[tuple[int, ...], ...] = ((), (COLUMNS,), (ROWS, COLUMNS), (ROWS, COLUMNS))

_HEADER = """\
import triton
import triton.language as tl


@triton.jit
def other_of(a, b):
    return b


@triton.jit
def larger_of(a, b):
    return tl.maximum(a, b)


@triton.jit
def mixed(a, b):
    return (a ^ b) + (a & b)


@triton.jit
def kernel({parameters}):
    pid = tl.program_id(0)
    i = tl.arange(0, {columns})
    r = tl.arange(0, {rows})[:, None]
"""


@dataclass(frozen=True)
class Var:
    """A value: its name in the source, and what all programs have in it, (programs, *shape)."""

    name: str
    kind: Kind
    value: Array

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one program's tile."""
        return self.value.shape[1:]


Step = Callable[["Builder"], bool]


class Builder:
    """Draws a program line by line.

    plain: only what Triton's interpreter gets right: no bfloat16 nor 8-bit floats, no division by
    zero, no NaN in a minimum or maximum.
    """

    def __init__(self, draw: Any, plain: bool, tame: bool, kinds: Sequence[Kind]) -> None:
        self.draw = draw
        self.plain = plain
        self.kinds = [k for k in kinds if k.native or not plain]
        self.programs = draw(st.integers(1, 4))
        self._tame = tame
        self._rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
        self._lines: list[str] = []
        self.vars: list[Var] = []
        self._inputs: list[tuple[Kind, Array]] = []
        self._loaded = 0

    # ------------------------------------------------------------------ drawing
    def one_of(self, options: Sequence[Any]) -> Any:
        """One of the options."""
        return options[self.draw(st.integers(0, len(options) - 1))]

    def pick(self, accept: Callable[[Var], bool] = lambda var: True) -> Var | None:
        """An earlier value that fits, later ones first; None if there is none."""
        fitting = [var for var in reversed(self.vars) if accept(var)]
        return self.one_of(fitting) if fitting else None

    def add(self, text: str, kind: Kind, value: Array) -> bool:
        """A line; its value must have the type's form."""
        assert value.dtype == kind.held, f"{text}: {value.dtype}, not {kind.held}"
        name = f"v{len(self.vars)}"
        self._lines.append(f"{name} = {text}")
        self.vars.append(Var(name, kind, value))
        return True

    # ------------------------------------------------------------------ start and end
    def load(self, kind: Kind | None = None, shape: tuple[int, ...] | None = None) -> bool:
        """A value from memory."""
        kind = kind or self.one_of(self.kinds)
        shape = self.one_of(SHAPES) if shape is None else shape
        values = drawn(kind, (self.programs, *shape), self._rng, self._tame)
        name = f"in{len(self._inputs)}"
        self._inputs.append((kind, values))
        self._loaded += values.size
        text = f"tl.load({name} + {self._offsets(shape)})"
        return self.add(f"{text} != 0" if kind is INT1 else text, kind, values)

    def constants(self) -> None:
        """The program's number and the columns' numbers, int32."""
        pid = np.arange(self.programs, dtype=np.int32)
        self.vars.append(Var("pid", INT32, pid))
        columns = np.broadcast_to(np.arange(COLUMNS, dtype=np.int32), (self.programs, COLUMNS))
        self.vars.append(Var("i", INT32, columns))

    def _offsets(self, shape: tuple[int, ...]) -> str:
        return {
            0: "pid",
            1: f"pid * {shape[-1] if shape else 1} + tl.arange(0, {shape[-1] if shape else 1})",
            2: "(pid * {0} + tl.arange(0, {0})[:, None]) * {1} + tl.arange(0, {1})[None, :]".format(
                *shape if len(shape) == 2 else (1, 1)
            ),
        }[len(shape)]

    def program(self) -> Program:
        """What was drawn; every value is an output."""
        outputs, stores = [], []
        for var in self.vars:
            if var.name in ("pid", "i"):
                continue
            text = f"{var.name}.to(tl.int8)" if var.kind is INT1 else var.name
            stores.append(f"tl.store(out{len(outputs)} + {self._offsets(var.shape)}, {text})")
            outputs.append(Output(var.kind, var.value, np.zeros_like(var.value)))
        names = [f"in{k}" for k in range(len(self._inputs))]
        names += [f"out{k}" for k in range(len(outputs))]
        header = _HEADER.format(parameters=", ".join(names), rows=ROWS, columns=COLUMNS)
        body = "".join(f"    {line}\n" for line in (*self._lines, *stores))
        return Program(
            header + body,
            (self.programs,),
            self._inputs,
            outputs,
            interpretable=self.plain,
            stored=sum(output.right.size for output in outputs),
        )


@st.composite
def straight_line(
    draw: Any, steps: Sequence[Step], kinds: Sequence[Kind], tame: bool = False
) -> Program:
    """A program of up to 14 steps; where one does not apply, the next in the list that does."""
    builder = Builder(draw, draw(st.booleans()), tame, kinds)
    builder.constants()
    builder.load()
    for _ in range(draw(st.integers(1, 14))):
        first = draw(st.integers(0, len(steps) - 1))
        any(step(builder) for step in (*steps[first:], *steps[:first]))
    return builder.program()


# ------------------------------------------------------------------------------- shapes of operands
def shown(var: Var, rank: int) -> str:
    """The variable with axes in front, as numpy would add them; a scalar stays one."""
    if len(var.shape) == 1 and rank == 2:
        return f"{var.name}[None, :]"
    return var.name


def pair(builder: Builder, accept: Callable[[Var], bool]) -> tuple[Var, Var, str, str] | None:
    """Two values of one type whose shapes broadcast, and their texts."""
    first = builder.pick(accept)
    if first is None:
        return None

    def broadcasts(other: Var) -> bool:
        try:
            np.broadcast_shapes(first.shape, other.shape)
        except ValueError:
            return False
        return True

    second = builder.pick(lambda v: v.kind is first.kind and broadcasts(v))
    assert second is not None  # the value itself
    rank = max(len(first.shape), len(second.shape))
    return first, second, shown(first, rank), shown(second, rank)


def aligned(*variables: Var) -> list[Array]:
    """The values with as many axes, those missing after the programs' axis."""
    rank = max(len(v.shape) for v in variables)
    return [
        v.value.reshape(v.value.shape[0], *(1,) * (rank - len(v.shape)), *v.shape)
        for v in variables
    ]


# ------------------------------------------------------------------------------------- elementwise
_EXACT: dict[str, Callable[[Array, Array], Array]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "&": np.bitwise_and,
    "|": np.bitwise_or,
    "^": np.bitwise_xor,
}
_COMPARISONS: dict[str, Callable[[Array, Array], Array]] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
}


def _computed(function: Callable[..., Array], kind: Kind, *values: Array) -> Array:
    """`function` as the type computes it: rounded once, or wrapped."""
    with np.errstate(all="ignore"):
        if kind.is_float and kind.bits < 32:
            return rounded(function(*(v.astype(np.float32) for v in values)), kind)
        return function(*values).astype(kind.held, copy=False)


def arithmetic(builder: Builder) -> bool:
    """+ − * of anything but int1 and 8-bit floats; & | ^ of integers and int1."""
    found = pair(builder, lambda v: v.kind.bits > 8 or not v.kind.is_float)
    if found is None:
        return False
    a, b, left, right = found
    names = [*"+-*"] if a.kind.is_float else [*"&|^"] if a.kind is INT1 else [*"+-*&|^"]
    name = builder.one_of(names)
    return builder.add(
        f"{left} {name} {right}", a.kind, _computed(_EXACT[name], a.kind, *aligned(a, b))
    )


def with_number(builder: Builder) -> bool:
    """An operation with a number written in the source, which takes the other operand's type."""
    a = builder.pick(lambda v: v.kind is not INT1 and (v.kind.bits > 8 or not v.kind.is_float))
    if a is None:
        return False
    number = builder.draw(st.integers(-9 if a.kind.is_signed or a.kind.is_float else 0, 9))
    name = builder.one_of([*"+-*"] if a.kind.is_float else [*"+-*&|^"])
    text = (
        f"{a.name} {name} {number}" if builder.draw(st.booleans()) else f"{number} {name} {a.name}"
    )
    values = [a.value, np.array(number).astype(a.kind.held)]
    if text.startswith(str(number)):
        values.reverse()
    return builder.add(text, a.kind, _computed(_EXACT[name], a.kind, *values))


def quotient(builder: Builder) -> bool:
    """// and % of integers (truncating, as in C); / of floats."""
    found = pair(builder, lambda v: v.kind.is_integer or (v.kind.is_float and v.kind.bits > 8))
    if found is None:
        return False
    a, b, left, right = found
    x, y = np.broadcast_arrays(*aligned(a, b))
    if a.kind.is_float:  # by / a GPU divides float32 and narrower with an error of 2 ulp
        text = f"tl.div_rn({left}, {right})" if a.kind.bits == 32 else f"{left} / {right}"
        if a.kind.bits < 32 and DEVICE != "cpu":
            return False
        return builder.add(text, a.kind, _computed(np.divide, a.kind, x, y))
    if (y == 0).any() and (builder.plain or a.kind.bits == 64 or DEVICE != "cpu"):
        return False
    overflow = (x == np.iinfo(a.kind.held).min) & (y == -1) if a.kind.is_signed else y != y
    if overflow.any() and builder.plain:
        return False
    special = (y == 0) | overflow
    divisor = np.where(special, 1, y).astype(a.kind.held)
    with np.errstate(all="ignore"):
        whole = x // divisor
        whole = whole + ((x % divisor != 0) & ((x < 0) != (divisor < 0))).astype(a.kind.held)
        rest = (x - whole * divisor).astype(a.kind.held)
    if builder.draw(st.booleans()):
        ones = np.array(-1).astype(a.kind.held)
        result = np.where(y == 0, ones, np.where(overflow, x, whole))
        return builder.add(f"{left} // {right}", a.kind, result.astype(a.kind.held))
    result = np.where(y == 0, x, np.where(overflow, 0, rest))
    return builder.add(f"{left} % {right}", a.kind, result.astype(a.kind.held))


def shift(builder: Builder) -> bool:
    """<< and >> by less than the width; >> of signed integers keeps the sign."""
    found = pair(builder, lambda v: v.kind.is_integer)
    if found is None:
        return False
    a, b, left, right = found
    x, y = aligned(a, b)
    amount = y & np.array(a.kind.bits - 1).astype(a.kind.held)
    name = builder.one_of(["<<", ">>"])
    function = np.left_shift if name == "<<" else np.right_shift
    text = f"{left} {name} ({right} & {a.kind.bits - 1})"
    return builder.add(text, a.kind, _computed(function, a.kind, x, amount))


def _only_here(var: Var) -> bool:
    """8-bit floats: a GPU can convert them to other floats, and nothing else."""
    return DEVICE != "cpu" and var.kind in EIGHT_BIT


def comparison(builder: Builder) -> bool:
    """< <= > >= == of which a NaN makes false, != of which it makes true."""
    found = pair(builder, lambda v: v.kind is not INT1 and not _only_here(v))
    if found is None:
        return False
    a, b, left, right = found
    name = builder.one_of(list(_COMPARISONS))
    return builder.add(f"{left} {name} {right}", INT1, _COMPARISONS[name](*aligned(a, b)))


def extremum(builder: Builder) -> bool:
    """The smaller or larger; a NaN is passed over, or kept with propagate_nan=ALL."""
    found = pair(builder, lambda v: v.kind.is_integer or (v.kind.is_float and v.kind.bits > 8))
    if found is None:
        return False
    a, b, left, right = found
    x, y = aligned(a, b)
    name = builder.one_of(["minimum", "maximum"])
    if not a.kind.is_float:
        return builder.add(f"tl.{name}({left}, {right})", a.kind, getattr(np, name)(x, y))
    if builder.plain and (np.isnan(x).any() or np.isnan(y).any()):
        return False
    keep = builder.draw(st.booleans())
    option = ", propagate_nan=tl.PropagateNan.ALL" if keep else ""
    function = getattr(np, name if keep else f"f{name[:3]}")
    text = f"tl.{name}({left}, {right}{option})"
    return builder.add(text, a.kind, function(x, y).astype(a.kind.held))


def where(builder: Builder) -> bool:
    """One of two values for each lane."""
    condition = builder.pick(lambda v: v.kind is INT1)
    found = pair(builder, lambda v: True)
    if condition is None or found is None:
        return False
    a, b = found[:2]
    try:
        np.broadcast_shapes(condition.shape, a.shape, b.shape)
    except ValueError:
        return False
    rank = max(len(v.shape) for v in (condition, a, b))
    texts = ", ".join(shown(v, rank) for v in (condition, a, b))
    return builder.add(f"tl.where({texts})", a.kind, np.where(*aligned(condition, a, b)))


def unary(builder: Builder) -> bool:
    """− ~ abs floor ceil sqrt."""
    a = builder.pick(lambda v: v.kind.bits > 8 or not v.kind.is_float)
    if a is None:
        return False
    if a.kind is INT1:
        return builder.add(f"~{a.name}", INT1, ~a.value)
    if not a.kind.is_float:
        if not a.kind.is_signed:  # the interpreter has no ~ of unsigned integers
            return False
        text, function = builder.one_of(
            [("-{}", np.negative), ("~{}", np.invert), ("tl.abs({})", np.abs)]
        )
    else:
        choices = [("-{}", np.negative), ("tl.abs({})", np.abs)]
        if a.kind.bits >= 32 and DEVICE == "cpu":  # a GPU takes subnormal numbers for 0
            choices += [("tl.floor({})", np.floor), ("tl.ceil({})", np.ceil)]
        if a.kind.bits >= 32:
            choices += [("tl.sqrt_rn({})" if a.kind.bits == 32 else "tl.sqrt({})", np.sqrt)]
        text, function = builder.one_of(choices)
    return builder.add(text.format(a.name), a.kind, _computed(function, a.kind, a.value))


# ------------------------------------------------------------------------------------------ casts
def cast(builder: Builder) -> bool:
    """To any type that the program may have; of floats to integers only what fits."""
    a = builder.pick(lambda v: not _only_here(v))
    if a is None:
        return False
    target: Kind = builder.one_of([k for k in builder.kinds if k is not a.kind] or [INT32])
    if a.kind.is_float and target.is_integer and not fits(a.value, target):
        return False
    if a.kind.is_float and target is INT1:
        return False  # != 0 or truncated: front ends differ
    if DEVICE != "cpu" and a.kind.bits == 64 and target in EIGHT_BIT:
        return False  # NVIDIA's backend has no such conversion
    if not a.kind.is_float and target in EIGHT_BIT:
        return False  # by way of float32, which rounds twice
    if builder.plain and target.is_float and a.kind.bits > 53 and not a.kind.is_float:
        return False  # the interpreter goes by way of float64
    value = converted(a.value, a.kind, target)
    return builder.add(f"{a.name}.to(tl.{target.name})", target, value)


def bitcast(builder: Builder) -> bool:
    """The same bits in another type of that width; not of NaNs and zeros, which have several."""
    a = builder.pick(lambda v: v.kind.native and v.kind is not INT1)
    if a is None:
        return False
    if a.kind.is_float and (np.isnan(a.value).any() or (a.value == 0).any()):
        return False
    same = [k for k in builder.kinds if k.bits == a.kind.bits and k.native and k is not a.kind]
    if not same:
        return False
    target: Kind = builder.one_of(same)
    value = np.ascontiguousarray(a.value).view(target.held)
    return builder.add(f"{a.name}.to(tl.{target.name}, bitcast=True)", target, value)


ELEMENTWISE: list[Step] = [
    arithmetic,
    arithmetic,
    with_number,
    quotient,
    shift,
    comparison,
    comparison,
    extremum,
    where,
    where,
    unary,
    Builder.load,
]
CASTS: list[Step] = [cast, cast, cast, bitcast, comparison, where, unary, arithmetic, Builder.load]
ALL_KINDS = [*INTEGERS, *FLOATS, INT1]
CAST_KINDS = [*ALL_KINDS, *EIGHT_BIT]
assert set(CAST_KINDS) == set(KINDS.values())
