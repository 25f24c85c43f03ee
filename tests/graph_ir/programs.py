"""Random programs for property tests: small shapes that collide, and everything that can go wrong.

Values of as many elements in other orders, square ones and their transposes, broadcast rows and
columns, views of views, values that several nodes use, nodes that look alike, random nodes, memory
that is written between reads, several outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from graph_ir import Builder, Graph, GraphError, execute
from graph_ir.sizes import numel
from hypothesis import strategies as st

UNARY = ("neg", "exp", "abs", "sqrt", "rsqrt", "log")
BINARY = ("add", "sub", "mul", "div", "maximum", "minimum")
SCALARS = (0.0, -0.0, 1.0, -1.0, 2.0, 0.5)
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.25, -3.0, 2.5, np.inf, -np.inf, np.nan)
LARGEST = 96


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


@st.composite
def samples(
    draw: st.DrawFn,
    steps: int = 14,
    dtypes: Sequence[str] = ("f64",),
    special: bool = True,
    impure: bool = True,
) -> Sample:
    """A program of up to so many steps.

    Args:
        steps: at most.
        dtypes: of inputs, constants and casts.
        special: inputs have infinities, NaN and zeros of both signs among their numbers.
        impure: random nodes, and writes to memory.
    """
    R, C = draw(st.integers(1, 4)), draw(st.sampled_from((2, 3, 4, 6)))
    rng = np.random.default_rng(draw(st.integers(0, 2**20)))

    def numbers(shape: tuple[int, ...]) -> np.ndarray:
        if special:
            return rng.choice(np.array([*SPECIAL, *rng.standard_normal(20)]), size=shape)
        return rng.uniform(0.5, 1.5, size=shape)

    def of() -> str:
        return draw(st.sampled_from(tuple(dtypes)))

    build = Builder()
    inputs: dict[str, np.ndarray] = {}
    pool: list[int] = []
    shapes = {"x": (R, C), "y": (R, C), "cache": (R, C), "b": (C,), "s": (R, 1), "one": (1,)}
    for name, shape in shapes.items():
        inputs[name] = numbers(shape)
        pool.append(build.input(name, shape, "f64" if name == "cache" else of()))
    for name, shape in {"w": (C,), "k": (R, C), "m": (C, C)}.items():
        pool.append(build.constant(name, numbers(shape), shape, of()))

    def pick(where: Sequence[int] | None = None) -> int:
        found = pool if where is None else where
        # Late nodes more often: chains are what passes work on.
        place = min(draw(st.integers(0, len(found) - 1)), draw(st.integers(0, len(found) - 1)))
        return found[-1 - place]

    def shape(number: int) -> tuple[int, ...]:
        return tuple(int(size) for size in build.nodes[number].shape)

    def step() -> int:
        kinds = ["unary", "binary", "literal", "reduction", "view", "again", "composite", "matmul"]
        kinds += ["literal", "binary", "view", "choose", "rot", "nothing", "cast", "mix", "mix"]
        kinds += ["draw", "write", "write", "write", "again", "reread", "reread"] if impure else []
        kind = draw(st.sampled_from(kinds))
        if kind == "unary":
            return build.add(draw(st.sampled_from(UNARY)), [pick()])
        if kind == "binary":
            return build.add(draw(st.sampled_from(BINARY)), [pick(), pick()])
        if kind == "literal":
            pair = [pick(), build.scalar(draw(st.sampled_from(SCALARS)))]
            pair = pair[::-1] if draw(st.booleans()) else pair
            return build.add(draw(st.sampled_from(BINARY)), pair)
        if kind == "reduction":
            return build.add(draw(st.sampled_from(("sum", "max"))), [pick()])
        if kind == "view":
            return view(pick())
        if kind in ("again", "reread"):
            old = [n for n in build.nodes if n.kind != "leaf"]
            if kind == "reread":  # what has read memory that was written to since
                last = {root(n.id): n.id for n in old if n.spec.mutates is not None}
                old = [n for n in old if any(n.id < last.get(root(i), 0) for i in n.inputs)]
            if not old:
                return pick()
            chosen = draw(st.sampled_from(old))
            return build.copy(chosen, chosen.inputs)
        if kind == "composite":
            name = draw(st.sampled_from(("softmax", "silu", "rms_norm")))
            if name != "rms_norm":
                return build.add(name, [pick()])
            x = pick()
            weights = [i for i in pool if shape(i) == shape(x)[-1:]]
            return build.add(name, [x, pick(weights)], eps=0.5) if weights else x
        if kind == "mix":  # a value with itself, shown otherwise
            x = pick()
            other = view(view(x)) if draw(st.booleans()) else view(x)
            return build.add(draw(st.sampled_from(BINARY)), [x, other])
        if kind == "matmul":
            a = pick([i for i in pool if len(shape(i)) >= 2])
            fitting = [i for i in pool if len(shape(i)) == 2 and shape(i)[0] == shape(a)[-1]]
            return build.add("matmul", [a, pick(fitting)]) if fitting else a
        if kind == "choose":
            return build.add("where", [build.add("less", [pick(), pick()]), pick(), pick()])
        if kind == "rot":
            return build.add("rot_pairs", [pick()])
        if kind == "cast":
            return build.add("cast", [pick()], dtype=of())
        if kind == "draw":
            return build.add("bernoulli", p=0.5, shape=(R, C), dtype=of())
        if kind == "write":
            targets = [
                i
                for i in pool
                if len(shape(i)) >= 2 and build.nodes[i].kind != "view" and writable(i)
            ]
            cache = pick(targets)
            old = build.nodes[cache]
            if old.computes and old.spec.pure and draw(st.booleans()):
                cache = build.copy(old, old.inputs)  # of two that are equal, one is written to
            rows = shape(cache)
            new = [i for i in pool if shape(i) and shape(i) == (*rows[:-2], *shape(i)[-2:])]
            new = [i for i in new if len(shape(i)) == len(rows) and shape(i)[-1] == rows[-1]]
            new = [i for i in new if shape(i)[-2] <= rows[-2]]
            if not new:
                return cache
            chosen = pick(new)
            last = rows[-2] - shape(chosen)[-2]
            return build.add("kv_write", [cache, chosen], pos=draw(st.integers(0, last)))
        x = pick()
        return build.add("neg", [build.add("neg", [x])])

    def root(number: int) -> int:
        node = build.nodes[number]
        if node.kind == "view" or node.spec.mutates is not None:
            return root(node.inputs[0])
        return number

    def writable(number: int) -> bool:
        node = build.nodes[number]
        return node.op != "input" or node.attrs["name"] == "cache"

    def view(number: int) -> int:
        old = shape(number)
        way = draw(st.sampled_from(("flat", "split", "turn", "grow", "front", "same")))
        if way == "flat":
            return build.add("reshape", [number], shape=(numel(old),))
        if way == "split":
            size = numel(old)
            outer = draw(st.sampled_from([n for n in range(1, size + 1) if size % n == 0]))
            return build.add("reshape", [number], shape=(outer, size // outer))
        if way == "turn":
            axes = draw(st.permutations(range(len(old))))
            return build.add("permute", [number], axes=tuple(axes))
        if way == "grow":
            grown = tuple(draw(st.integers(2, 3)) if size == 1 else size for size in old)
            return build.add("expand", [number], shape=grown)
        if way == "front":
            return build.add("expand", [number], shape=(2, *old))
        return build.add("reshape", [number], shape=old)

    for _ in range(draw(st.integers(1, steps))):
        before = len(build.nodes)
        try:
            number = step()
        except GraphError:  # what was picked does not fit together
            continue
        if numel(build.nodes[number].shape) > LARGEST:
            del build.nodes[before:]
            continue
        pool.append(number)
    chosen = [pick() for _ in range(draw(st.integers(1, 4)))]
    plain = [i for i in chosen if build.nodes[i].dtype != "bool"] or [pool[0]]
    return Sample(build.finish(plain).check(), inputs)
