"""Random programs, small ones with everything in them that can go wrong.

Values of as many elements in other orders, square ones and their transposes, broadcast rows and
columns, views of views, values that several nodes use, nodes that look alike, random nodes, memory
that is written between reads, several outputs.

What is random is asked of a `Chooser`: `Dice` throws dice; a property test may choose otherwise.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from graph_ir import Builder, Graph, GraphError, execute
from graph_ir.sizes import numel

UNARY = ("neg", "exp", "abs", "sqrt", "rsqrt", "log")
BINARY = ("add", "sub", "mul", "div", "maximum", "minimum")
SCALARS = (0.0, -0.0, 1.0, -1.0, 2.0, 0.5)
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.25, -3.0, 2.5, np.inf, -np.inf, np.nan)
LARGEST = 96
#: Steps by how likely they are; those of the second list are impure, or of use with impure ones.
PURE = (
    *("unary", "binary", "literal", "reduction", "view", "again", "composite", "matmul"),
    *("literal", "binary", "view", "choose", "rot", "nothing", "cast", "mix", "mix"),
)
IMPURE = ("draw", "write", "write", "write", "again", "reread", "reread")


class Chooser(Protocol):
    """Where choices come from."""

    def whole(self, low: int, high: int) -> int:
        """A number from low to high, both included."""

    def of(self, options: Sequence[Any]) -> Any:
        """One of some options."""

    def flag(self) -> bool:
        """True or False."""

    def order(self, n: int) -> list[int]:
        """0 … n − 1 in some order."""


class Dice:
    """A `Chooser` that throws dice.

    Args:
        rng: the dice.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def whole(self, low: int, high: int) -> int:
        """A number from low to high, both included."""
        return int(self._rng.integers(low, high + 1))

    def of(self, options: Sequence[Any]) -> Any:
        """One of some options."""
        return options[self.whole(0, len(options) - 1)]

    def flag(self) -> bool:
        """True or False."""
        return bool(self.whole(0, 1))

    def order(self, n: int) -> list[int]:
        """0 … n − 1 in some order."""
        return [int(i) for i in self._rng.permutation(n)]


@dataclass(frozen=True)
class Sample:
    """A program, and numbers to run it on."""

    graph: Graph
    inputs: dict[str, np.ndarray]

    def copies(self) -> dict[str, np.ndarray]:
        """The inputs anew: a program may write to them."""
        return {name: array.copy() for name, array in self.inputs.items()}

    def run(self, graph: Graph | None = None, rounding: bool = False) -> list[np.ndarray]:
        """The outputs, and what is in the inputs afterwards."""
        given = self.copies()
        outputs = execute(graph or self.graph, given, seed=5, rounding=rounding)
        return [*outputs, *given.values()]


def same(results: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> bool:
    """Equal to the last bit and to the sign of zero; NaN is NaN."""
    return len(results) == len(expected) and all(
        a.shape == b.shape
        and np.array_equal(a, b, equal_nan=True)
        and np.array_equal(np.signbit(a)[~np.isnan(a)], np.signbit(b)[~np.isnan(b)])
        for a, b in zip(results, expected, strict=True)
    )


def random_program(
    choose: Chooser,
    steps: int = 14,
    dtypes: Sequence[str] = ("f64",),
    special: bool = True,
    impure: bool = True,
    least: int = 1,
) -> Sample:
    """A program of up to so many steps, and inputs.

    Args:
        choose: where choices come from.
        steps: at most.
        dtypes: of inputs, constants and casts.
        special: inputs have infinities, NaN and zeros of both signs among their numbers.
        impure: random nodes, and writes to memory.
        least: steps at least; a step whose operands do not fit together adds nothing.
    """
    growing = _Growing(choose, tuple(dtypes), special)
    kinds = [*PURE, *(IMPURE if impure else ())]
    for _ in range(choose.whole(least, steps)):
        growing.step(choose.of(kinds))
    return growing.finished()


class _Growing:
    """A program while it grows."""

    def __init__(self, choose: Chooser, dtypes: tuple[str, ...], special: bool) -> None:
        self.choose, self.dtypes, self.special = choose, dtypes, special
        self.build = Builder()
        self.inputs: dict[str, np.ndarray] = {}
        self.pool: list[int] = []
        R, C = choose.whole(1, 4), choose.of((2, 3, 4, 6))
        self.rows_columns = R, C
        self._rng = np.random.default_rng(choose.whole(0, 2**20))
        shapes = {"x": (R, C), "y": (R, C), "cache": (R, C), "b": (C,), "s": (R, 1), "one": (1,)}
        for name, shape in shapes.items():
            self.inputs[name] = self._numbers(shape)
            dtype = "f64" if name == "cache" else self._dtype()
            self.pool.append(self.build.input(name, shape, dtype))
        for name, shape in {"w": (C,), "k": (R, C), "m": (C, C)}.items():
            array = self._numbers(shape)
            self.pool.append(self.build.constant(name, array, shape, self._dtype()))

    def step(self, kind: str) -> None:
        """Adds what a step of this kind makes, if it fits together and is not too large."""
        before = len(self.build.nodes)
        try:
            number = getattr(self, f"_{kind}")()
        except GraphError:  # what was picked does not fit together
            return
        if numel(self.build.nodes[number].shape) > LARGEST:
            del self.build.nodes[before:]
            return
        self.pool.append(number)

    def finished(self) -> Sample:
        """The program, with one to four outputs."""
        chosen = [self._pick() for _ in range(self.choose.whole(1, 4))]
        plain = [i for i in chosen if self.build.nodes[i].dtype != "bool"] or [self.pool[0]]
        return Sample(self.build.finish(plain).check(), self.inputs)

    def _numbers(self, shape: tuple[int, ...]) -> np.ndarray:
        if self.special:
            return self._rng.choice(
                np.array([*SPECIAL, *self._rng.standard_normal(20)]), size=shape
            )
        return self._rng.uniform(0.5, 1.5, size=shape)

    def _dtype(self) -> str:
        return str(self.choose.of(self.dtypes))

    def _pick(self, where: Sequence[int] | None = None) -> int:
        found = self.pool if where is None else where
        # Late nodes more often: chains are what passes work on.
        last = len(found) - 1
        return found[last - min(self.choose.whole(0, last), self.choose.whole(0, last))]

    def _shape(self, number: int) -> tuple[int, ...]:
        return tuple(int(size) for size in self.build.nodes[number].shape)

    def _root(self, number: int) -> int:
        node = self.build.nodes[number]
        if node.kind == "view" or node.spec.mutates is not None:
            return self._root(node.inputs[0])
        return number

    def _unary(self) -> int:
        return self.build.add(self.choose.of(UNARY), [self._pick()])

    def _binary(self) -> int:
        return self.build.add(self.choose.of(BINARY), [self._pick(), self._pick()])

    def _literal(self) -> int:
        pair = [self._pick(), self.build.scalar(self.choose.of(SCALARS))]
        pair = pair[::-1] if self.choose.flag() else pair
        return self.build.add(self.choose.of(BINARY), pair)

    def _reduction(self) -> int:
        return self.build.add(self.choose.of(("sum", "max")), [self._pick()])

    def _view(self, number: int | None = None) -> int:
        number = self._pick() if number is None else number
        old, add = self._shape(number), self.build.add
        way = self.choose.of(("flat", "split", "turn", "grow", "front", "same"))
        if way == "flat":
            return add("reshape", [number], shape=(numel(old),))
        if way == "split":
            size = numel(old)
            outer = self.choose.of([n for n in range(1, size + 1) if size % n == 0])
            return add("reshape", [number], shape=(outer, size // outer))
        if way == "turn":
            return add("permute", [number], axes=tuple(self.choose.order(len(old))))
        if way == "grow":
            grown = tuple(self.choose.whole(2, 3) if size == 1 else size for size in old)
            return add("expand", [number], shape=grown)
        if way == "front":
            return add("expand", [number], shape=(2, *old))
        return add("reshape", [number], shape=old)

    def _mix(self) -> int:
        """A value with itself, shown otherwise."""
        x = self._pick()
        other = self._view(self._view(x)) if self.choose.flag() else self._view(x)
        return self.build.add(self.choose.of(BINARY), [x, other])

    def _again(self) -> int:
        return self._copied([n for n in self.build.nodes if n.kind != "leaf"])

    def _reread(self) -> int:
        """Again what has read memory that was written to since."""
        nodes = self.build.nodes
        last = {self._root(n.id): n.id for n in nodes if n.spec.mutates is not None}
        found = [n for n in nodes if n.kind != "leaf"]
        return self._copied(
            [n for n in found if any(n.id < last.get(self._root(i), 0) for i in n.inputs)]
        )

    def _copied(self, nodes: Sequence[Any]) -> int:
        if not nodes:
            return self._pick()
        chosen = self.choose.of(nodes)
        return self.build.copy(chosen, chosen.inputs)

    def _composite(self) -> int:
        name = self.choose.of(("softmax", "silu", "rms_norm"))
        x = self._pick()
        if name != "rms_norm":
            return self.build.add(name, [x])
        weights = [i for i in self.pool if self._shape(i) == self._shape(x)[-1:]]
        return self.build.add(name, [x, self._pick(weights)], eps=0.5) if weights else x

    def _matmul(self) -> int:
        a = self._pick([i for i in self.pool if len(self._shape(i)) >= 2])
        width = self._shape(a)[-1]
        fitting = [i for i in self.pool if len(self._shape(i)) == 2 and self._shape(i)[0] == width]
        return self.build.add("matmul", [a, self._pick(fitting)]) if fitting else a

    def _choose(self) -> int:
        condition = self.build.add("less", [self._pick(), self._pick()])
        return self.build.add("where", [condition, self._pick(), self._pick()])

    def _rot(self) -> int:
        return self.build.add("rot_pairs", [self._pick()])

    def _cast(self) -> int:
        return self.build.add("cast", [self._pick()], dtype=self._dtype())

    def _nothing(self) -> int:
        return self.build.add("neg", [self.build.add("neg", [self._pick()])])

    def _draw(self) -> int:
        return self.build.add("bernoulli", p=0.5, shape=self.rows_columns, dtype=self._dtype())

    def _write(self) -> int:
        nodes = self.build.nodes
        cache = self._pick([i for i in self.pool if self._writable(i)])
        old = nodes[cache]
        if old.computes and old.spec.pure and self.choose.flag():
            cache = self.build.copy(old, old.inputs)  # of two that are equal, one is written to
        rows = self._shape(cache)
        new = [i for i in self.pool if self._fits(self._shape(i), rows)]
        if not new:
            return cache
        chosen = self._pick(new)
        last = rows[-2] - self._shape(chosen)[-2]
        return self.build.add("kv_write", [cache, chosen], pos=self.choose.whole(0, last))

    def _writable(self, number: int) -> bool:
        node = self.build.nodes[number]
        mine = node.op != "input" or node.attrs["name"] == "cache"
        return mine and node.kind != "view" and len(node.shape) >= 2

    @staticmethod
    def _fits(new: tuple[int, ...], rows: tuple[int, ...]) -> bool:
        return (
            len(new) == len(rows)
            and (new[:-2], new[-1]) == (rows[:-2], rows[-1])
            and new[-2] <= rows[-2]
        )
