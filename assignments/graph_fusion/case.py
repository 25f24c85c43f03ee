"""`GraphFusionCase`: what all tests of this assignment share.

    g = self.program(lambda p, x: exp(x) + exp(x))
    after = self.rewritten("cse", g)
    self.assert_ops(after, exp=1, add=1)

`rewritten` calls a pass and looks whether the program still means the same: it is executed before
and after, on numbers that the pass has not seen. `kernels` calls fuse and looks whether its kernels
can run and are the program. What student code says of a graph or a kernel beside its nodes, bytes
included, is not listened to: graphs and kernels are built anew here, from plain data.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from graph_ir import Graph, GraphError, Kernel, execute, trace
from graph_ir.kernels import total_bytes
from graph_ir.layout import KernelError
from graph_ir.memory import check_kernels, run

from assignments.graph_fusion import oracle
from assignments.graph_fusion.oracle import Cost
from assignments.graph_fusion.programs import SPECIAL, Dice, Sample, random_program, same
from grader.testing import AssignmentTestCase
from grader.testing.evidence import TrafficRow
from grader.testing.running import describe

#: Of longer programs messages show no more lines.
_MOST_LINES = 40

Arrays = dict[str, np.ndarray]


class GraphFusionCase(AssignmentTestCase):
    """Programs, calls of passes, and assertions on what they have made of a program."""

    @cached_property
    def rng(self) -> np.random.Generator:
        """Random numbers seeded by the run's seed and the test's number."""
        return np.random.default_rng(
            int(torch.randint(1 << 62, (), generator=self.generator, dtype=torch.int64))
        )

    def numbers(self, *shape: int) -> np.ndarray:
        """Normal random numbers, float64."""
        return self.rng.standard_normal(shape)

    def program(
        self,
        fn: Callable[..., Any],
        params: Mapping[str, Any] | None = None,
        dtype: str = "f64",
        **shapes: Any,
    ) -> Graph:
        """The graph of a function (p, x, …).

        Args:
            fn: the function; its arguments after the first, but for those with defaults, are
                inputs: x and y (4, 6), b (6,), s (4, 1), cache (4, 6), or what `shapes` says.
            params: arrays, or shapes, that become constants.
            dtype: of all of them, but for those of which `shapes` says (shape, dtype).
            **shapes: of inputs.
        """
        known = {"x": (4, 6), "y": (4, 6), "b": (6,), "s": (4, 1), "cache": (4, 6), **shapes}
        last = fn.__code__.co_argcount - len(fn.__defaults__ or ())
        names = fn.__code__.co_varnames[1:last]
        return trace(fn, {name: known[name] for name in names}, params or {}, dtype)

    def samples(self, count: int, **how: Any) -> list[Sample]:
        """Random programs; see `random_program` for what `how` may say."""
        return [random_program(Dice(self.rng), **how) for _ in range(count)]

    def inputs(self, graph: Graph, special: bool = False) -> Arrays:
        """Random numbers for a program's inputs, whose sizes all have values.

        Args:
            graph: the program.
            special: infinities, NaN and zeros of both signs among them.
        """
        given = {}
        for name, node in graph.inputs.items():
            shape = tuple(int(size) for size in node.shape)
            given[name] = self.numbers(*shape)
            if special:
                pool = np.array([*SPECIAL, *self.numbers(6)])
                given[name] = self.rng.choice(pool, size=shape)
        return given

    # ---------------------------------------------------------------------------------------------
    # Passes
    # ---------------------------------------------------------------------------------------------

    def rewritten(
        self,
        name: str,
        graph: Graph,
        *,
        count: int | None = None,
        exact: bool = True,
        rounding: bool = False,
        bind: Mapping[str, int] | None = None,
        inputs: Sequence[Arrays] | None = None,
    ) -> Graph:
        """What a pass makes of a program, without nodes that nobody needs.

        Args:
            name: of the pass.
            graph: the program.
            count: what has to stand beside the graph that it returns: a number; −1 for any; None
                for a pass that returns just a graph.
            exact: results have to be equal to the last bit, on special numbers too; else up to
                rounding, on normal numbers.
            rounding: also if every result is rounded to its dtype.
            bind: values of symbolic sizes and positions.
            inputs: what to run it on, instead of random numbers; none if it has no values.

        Raises:
            AssertionError: it returned something else, or what it returned means something else.
        """
        before = str(graph)
        after, found = self._returned(name, graph, counted=count is not None)
        if str(graph) != before:
            self.fail(f"{name} changed the graph that it was given; build another one")
        self._assert_signature(name, graph, after)
        bound, bound_after = graph.bind(bind), after.bind(bind)
        if inputs is None and _has_values(graph):
            inputs = [self.inputs(bound)] + ([self.inputs(bound, True)] if exact else [])
        for given in inputs or []:
            for rounded in (False, True) if rounding else (False,):
                self._assert_meaning(name, bound, bound_after, given, bind, exact, rounded)
        if count is not None and count >= 0 and found != count:
            self.fail(f"{name} says that it counted {found}; {count} is right\n{_shown(graph)}")
        return oracle.live(after)

    def keeps(self, name: str, sample: Sample, exact: bool = True, rounding: bool = False) -> Graph:
        """`rewritten`, of a random program, and a pass that may count or not."""
        counted = name not in ("decompose", "cse")
        return self.rewritten(
            name,
            sample.graph,
            count=-1 if counted else None,
            exact=exact,
            rounding=rounding,
            inputs=[sample.inputs],
        )

    def untouched(self, name: str, graph: Graph, **how: Any) -> None:
        """Checks that a pass that counts finds nothing in a program."""
        after = self.rewritten(name, graph, count=0, **how)
        if oracle.ops(after) != oracle.ops(graph):
            self.fail(f"{name} is to leave\n{_shown(graph)}\nas it is; it made\n{_shown(after)}")

    def assert_ops(
        self, graph: Graph, expected: Mapping[str, int] | None = None, **more: int
    ) -> None:
        """Checks which operations a graph has, and how many of each; leaves and views left out."""
        wanted = {**(expected or {}), **more}
        found = oracle.ops(graph)
        if found != wanted:
            names = [name for name in {**wanted, **found} if found[name] != wanted.get(name, 0)]
            differ = ", ".join(f"{wanted.get(n, 0)} {n}, not {found[n]}" for n in names)
            self.fail(f"{differ} should be left in\n{_shown(graph)}")

    def _returned(self, name: str, graph: Graph, counted: bool) -> tuple[Graph, int]:
        value = self.student.call(name, graph).value
        found = 0
        if counted:
            if not isinstance(value, tuple) or len(value) != 2:
                self.fail(f"{name} returned {_kind(value)}; a tuple (graph, count) was expected")
            value, found = value
            if type(found) is not int:
                self.fail(f"{name} returned {describe(found)} for the count, not a whole number")
        if _kind(value) != "a graph":
            self.fail(f"{name} returned {_kind(value)}; a graph was expected")
        try:
            return Graph.from_data(value), found
        except GraphError as error:
            raise self.failureException(f"{name} returned no program: {error}") from error

    def _assert_signature(self, name: str, graph: Graph, after: Graph) -> None:
        """Inputs and outputs have to be what they were: names, shapes, dtypes."""

        def inputs(g: Graph) -> dict[str, Any]:
            return {key: (node.shape, node.dtype) for key, node in g.inputs.items()}

        if inputs(after) != inputs(graph):
            self.fail(f"{name}: the inputs were {inputs(graph)} and are {inputs(after)}")
        outputs = [[(g[i].shape, g[i].dtype) for i in g.outputs] for g in (graph, after)]
        if outputs[0] != outputs[1]:
            self.fail(
                f"{name}: the outputs were {_types(outputs[0])} and are {_types(outputs[1])}\n"
                f"{_became(graph, after)}"
            )

    def _assert_meaning(
        self,
        name: str,
        graph: Graph,
        after: Graph,
        inputs: Arrays,
        bind: Mapping[str, int] | None,
        exact: bool,
        rounding: bool,
    ) -> None:
        expected = _run(graph, inputs, bind, rounding)
        try:
            results = _run(after, inputs, bind, rounding)
        except Exception as error:  # whatever wrong attributes may do to numpy
            raise self.failureException(
                f"{name}: the program cannot run any more: {error}\n{_became(graph, after)}"
            ) from error
        close = same(results, expected) if exact else _near(results, expected)
        if not close:
            how = ", every result rounded to its dtype," if rounding else ""
            self.fail(
                f"{name}: the program{how} means something else: "
                f"{_difference(graph, results, expected, exact)}\n{_became(graph, after)}"
            )

    # ---------------------------------------------------------------------------------------------
    # Kernels
    # ---------------------------------------------------------------------------------------------

    def kernels(
        self,
        function: str,
        graph: Graph,
        *,
        enable: bool = True,
        bind: Mapping[str, int] | None = None,
        inputs: Arrays | None = None,
    ) -> list[Kernel]:
        """The kernels of a program, which have been run if its constants have values.

        Args:
            function: "fuse"; named by the test, so that its text says what it reaches.
            graph: the program.
            enable: as of fuse.
            bind: values of symbolic sizes and positions.
            inputs: what to run it on, instead of random numbers.

        Raises:
            AssertionError: fuse returned something else; or kernels that cannot run, are not the
                program, or load and store other bytes than they say.
        """
        sizes = {name: size for name, size in (bind or {}).items() if name in graph.names()}
        how = {**({} if enable else {"enable": False}), **({"bind": sizes} if sizes else {})}
        value = self.student.call(function, graph, **how).value
        if not isinstance(value, list | tuple):
            self.fail(f"fuse returned {_kind(value)}; a list of kernels was expected")
        bound = graph.bind(sizes)
        try:
            kernels = [Kernel.from_data(bound, item) for item in value]
            check_kernels(bound, kernels)
        except ValueError as error:  # KernelErrors are some, too
            raise self.failureException(f"fuse: {error}\n{_shown(bound)}") from error
        if _has_values(graph):
            given = self.inputs(bound) if inputs is None else inputs
            self._assert_runs(bound, kernels, given, bind)
        return kernels

    def _assert_runs(
        self,
        graph: Graph,
        kernels: Sequence[Kernel],
        inputs: Arrays,
        bind: Mapping[str, int] | None,
    ) -> None:
        expected = _run(graph, inputs, bind, False)
        given = {name: array.copy() for name, array in inputs.items()}
        try:
            measured = run(graph, kernels, given, bind, seed=5)
        except KernelError as error:
            raise self.failureException(f"fuse: {error}\n{_shown(graph)}") from error
        results = [*measured.outputs, *given.values()]
        if not same(results, expected):
            self.fail(
                "fuse: run kernel by kernel the program means something else: "
                f"{_difference(graph, results, expected, True)}\n{_listed(kernels)}"
            )
        said = [(kernel.reads, kernel.writes) for kernel in kernels]
        moved = list(zip(measured.reads, measured.writes, strict=True))
        if said != moved:
            place = next(i for i, pair in enumerate(said) if pair != moved[i])
            self.fail(
                f"fuse: kernel {place} ({kernels[place].label}) loads and stores {moved[place]} B, "
                f"and says {said[place]}"
            )

    def score(
        self,
        set_score: Callable[[float], None],
        *graded: tuple[str, Sequence[Kernel], Cost],
    ) -> None:
        """Sets the test's points in proportion: none for unfused kernels, all for the reference's.

        Args:
            set_score: of `@partial_credit`.
            *graded: what counts, each as much as the others: the program's name, for people; the
                kernels that fuse made of it; and the cost that is worth all points.

        Raises:
            AssertionError: it is less than all.
        """
        shares, failures = [], []
        for what, kernels, reference in graded:
            cost = Cost(len(kernels), total_bytes(kernels))
            worst = oracle.unfused(kernels[0].graph)
            # In whole percents, rounded down: so what is not all of it is less in points, too.
            share = math.floor(100 * oracle.share(cost, worst, reference) + 1e-9) / 100
            shares.append(max(0.0, min(1.0, share)))
            self.evidence.append(
                TrafficRow(
                    name=f"fuse, {what}",
                    which="moved",
                    bytes=cost.bytes,
                    budget=reference.bytes,
                    formula=f"{reference.kernels} kernels, {reference.bytes:,} B",
                    tensors={},
                    lines=(),
                    ok=share >= 1,
                )
            )
            if share < 1:
                failures.append(
                    f"{what}: {_cost(worst)} unfused, {_cost(reference)} in the handout's kernels; "
                    f"here {_cost(cost)}: {shares[-1]:.0%} of the way\n{_listed(kernels)}"
                )
        points = vars(getattr(type(self), self._testMethodName))["__weight__"]
        set_score(points * sum(shares) / len(shares))
        if failures:
            self.fail("\n".join(failures))


def _run(
    graph: Graph, inputs: Arrays, bind: Mapping[str, int] | None, rounding: bool
) -> list[np.ndarray]:
    """The outputs, and what is in the inputs afterwards."""
    given = {name: array.copy() for name, array in inputs.items()}
    outputs = execute(graph, given, bind, seed=5, rounding=rounding)
    return [*outputs, *given.values()]


def _has_values(graph: Graph) -> bool:
    return all(array is not None for array in graph.constants.values())


def _near(results: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> bool:
    """Equal up to what summing in another order makes of float64."""
    return len(results) == len(expected) and all(
        a.shape == b.shape and np.allclose(a, b, rtol=1e-9, atol=1e-9, equal_nan=True)
        for a, b in zip(results, expected, strict=True)
    )


def _difference(
    graph: Graph, results: Sequence[np.ndarray], expected: Sequence[np.ndarray], exact: bool
) -> str:
    """Where results differ first, for people."""
    names = [f"output {k}" for k in range(len(graph.outputs))]
    names += [f"{name} afterwards" for name in graph.inputs]
    for name, got, due in zip(names, results, expected, strict=False):
        if got.shape != due.shape:
            return f"{name} has shape {got.shape}, not {due.shape}"
        for index in np.ndindex(due.shape):
            pair = [got[index]], [due[index]]
            if not (same if exact else _near)(*(list(map(np.asarray, side)) for side in pair)):
                return f"{name}{list(index)} is {got[index]}, not {due[index]}"
    return f"there are {len(results)} results, not {len(expected)}"


def _shown(graph: Graph) -> str:
    lines = str(graph).split("\n")
    if len(lines) > _MOST_LINES:
        lines = [*lines[: _MOST_LINES - 1], "…", lines[-1]]
    return _lines(lines)


def _became(graph: Graph, after: Graph) -> str:
    return f"{_shown(graph)}\nbecame\n{_shown(after)}"


def _lines(lines: Sequence[str]) -> str:
    return "\n".join(f"    {line}" for line in lines)


def _listed(kernels: Sequence[Kernel]) -> str:
    return _lines([str(kernel) for kernel in kernels])


def _cost(cost: Cost) -> str:
    return f"{cost.kernels} kernels and {cost.bytes:,} B"


def _types(outputs: Sequence[tuple[Any, str]]) -> str:
    return ", ".join(f"{shape} {dtype}" for shape, dtype in outputs)


def _kind(value: Any) -> str:
    """What a value is; graphs and kernels come as dicts."""
    if isinstance(value, dict) and "nodes" in value:
        return "a kernel" if "kind" in value else "a graph"
    return describe(value)
