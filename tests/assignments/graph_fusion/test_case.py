"""`GraphFusionCase`: what it accepts of a submission, and what it says of the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gradescope_utils.autograder_utils.decorators import partial_credit
from graph_ir import Builder, Graph, Kernel, LayerCfg, rewrite
from graph_ir.trace import cast, exp, kv_write, rms_norm

from assignments.graph_fusion import oracle
from assignments.graph_fusion.case import GraphFusionCase
from assignments.graph_fusion.oracle import Cost
from assignments.graph_fusion.programs import Dice, random_program, same
from grader.testing.running import detached
from grader.testing.student import Call
from tests.graph_ir.solution import lab


class Fake:
    """A submission of one function."""

    calls, last = 0, ""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def call(self, name: str, /, *args: Any, **kwargs: Any) -> Call:
        return Call(name, detached(self._function(*args, **kwargs)))


def case(function: Callable[..., Any]) -> GraphFusionCase:
    made = GraphFusionCase("fail")
    made.student = Fake(function)  # type: ignore[assignment]
    return made


def copied(g: Graph) -> Graph:
    return rewrite(g, lambda build, node, inputs: build.copy(node, inputs))


def replaced(op: str, by: str) -> Callable[[Graph], Graph]:
    """A pass that puts an operation in another's place."""

    def rule(build: Builder, node: Any, inputs: list[int]) -> int:
        return build.add(by if node.op == op else node.op, inputs, **node.attrs)

    return lambda g: rewrite(g, rule)


def fails(message: str) -> Any:
    return pytest.raises(AssertionError, match=message)


class TestRewritten:
    def test_a_copy_means_the_same(self) -> None:
        test = case(copied)
        g = test.program(lambda p, x: exp(x) * p["w"], {"w": np.ones(6)})
        assert str(test.rewritten("cse", g, rounding=True)) == str(g)

    def test_another_operation_does_not(self) -> None:
        test = case(replaced("maximum", "add"))
        g = test.program(lambda p, x, y: exp(x) + y)
        test.rewritten("cse", g)  # there is none
        test = case(replaced("add", "sub"))
        with fails(r"output 0\[0, 0\] is .*, not .*\n(.*\n)*became"):
            test.rewritten("cse", g)

    def test_a_difference_of_the_last_bit_counts_unless_it_does_not(self) -> None:
        g = case(copied).program(lambda p, x: x * 3 / 7)

        def other(build: Builder, node: Any, inputs: list[int]) -> int:
            if node.op == "div":
                return build.add("mul", [inputs[0], build.scalar(1 / 7)])
            return build.copy(node, inputs)

        test = case(lambda g: rewrite(g, other))
        test.rewritten("cse", g, exact=False)
        with fails("means something else"):
            test.rewritten("cse", g)

    def test_minus_zero_and_nan(self) -> None:
        g = case(copied).program(lambda p, x: x + 0.0)
        x = np.full((4, 6), -0.0)
        drop = case(lambda g: rewrite(g, lambda b, n, i: i[0] if n.op == "add" else b.copy(n, i)))
        with fails(r"output 0\[0, 0\] is -0\.0, not 0\.0"):
            drop.rewritten("cse", g, inputs=[{"x": x}])
        x[:] = np.nan
        drop.rewritten("cse", g, inputs=[{"x": x}])

    def test_a_dtype_that_is_lost(self) -> None:
        g = case(copied).program(lambda p, x: exp(cast(cast(x, "bf16"), "f64")))
        drop = case(lambda g: rewrite(g, lambda b, n, i: i[0] if n.op == "cast" else b.copy(n, i)))
        drop.rewritten("cse", g)
        with fails("every result rounded to its dtype, means something else"):
            drop.rewritten("cse", g, rounding=True)
        g = case(copied).program(lambda p, x: cast(x, "f32"))
        with fails(r"the outputs were \(4, 6\) f32 and are \(4, 6\) f64"):
            drop.rewritten("cse", g)

    def test_what_is_in_memory_afterwards(self) -> None:
        def program(p: Any, cache: Any, b: Any) -> Any:
            kv_write(cache, b.reshape(1, 6), 0)
            return b * 2

        g = case(copied).program(program)

        def moved(build: Builder, node: Any, inputs: list[int]) -> int:
            attrs = {**node.attrs, "pos": 1} if node.op == "kv_write" else node.attrs
            return build.add(node.op, inputs, **attrs)

        with fails(r"cache afterwards\[0, 0\]"):
            case(lambda g: rewrite(g, moved)).rewritten("cse", g)

    def test_inputs_are_to_stay(self) -> None:
        g = case(copied).program(lambda p, x, y: exp(x))

        def without(g: Graph) -> Graph:
            build = Builder()
            return build.finish([build.add("exp", [build.input("x", (4, 6), "f64")])])

        with fails("the inputs were"):
            case(without).rewritten("cse", g)

    @pytest.mark.parametrize(
        ("returned", "message"),
        [
            (lambda g: None, "returned None; a graph was expected"),
            (lambda g: (g, 1), "returned a tuple of 2; a graph was expected"),
            (lambda g: list(g), "returned a list of 2; a graph was expected"),
            (lambda g: Graph(g.nodes, (7,), {}), "no program: output %7 is no node"),
            (lambda g: Graph(g.nodes[:1], (0,), {}), "means something else"),
            (lambda g: Graph((), (), {}), "the inputs were"),
            (lambda g: lab.fuse(g)[0], "returned a kernel; a graph was expected"),
        ],
    )
    def test_what_is_no_graph(self, returned: Callable[[Graph], Any], message: str) -> None:
        g = case(copied).program(lambda p, x: exp(x))
        with fails(message):
            case(returned).rewritten("cse", g)

    @pytest.mark.parametrize(
        ("returned", "message"),
        [
            (lambda g: g, r"a graph; a tuple \(graph, count\) was expected"),
            (lambda g: (g, 1.0), "a float for the count"),
            (lambda g: (g, True), "a bool for the count"),
            (lambda g: (g, 2), "counted 2; 1 is right"),
        ],
    )
    def test_counts(self, returned: Callable[[Graph], Any], message: str) -> None:
        g = case(copied).program(lambda p, x: exp(x))
        case(lambda g: (g, 1)).rewritten("simplify", g, count=1)
        case(lambda g: (g, 5)).rewritten("simplify", g, count=-1)
        with fails(message):
            case(returned).rewritten("simplify", g, count=1)

    def test_an_attribute_that_numpy_does_not_take(self) -> None:
        def wrong(build: Builder, node: Any, inputs: list[int]) -> int:
            attrs = {"eps": "much"} if node.op == "rms_norm" else node.attrs
            return build.add(node.op, inputs, **attrs)

        test = case(lambda g: rewrite(g, wrong))
        g = test.program(lambda p, x, b: rms_norm(x, b))
        with fails("cannot run any more"):
            test.rewritten("cse", g)

    def test_a_graph_that_is_changed_in_place(self) -> None:
        def spoil(g: Graph) -> Graph:
            after = copied(g)
            g.nodes[1].attrs["value"] = 3.0  # type: ignore[index]
            return after

        g = case(copied).program(lambda p, x: x * 2)
        with fails("changed the graph that it was given"):
            case(spoil).rewritten("cse", g)

    def test_untouched_and_ops(self) -> None:
        g = case(copied).program(lambda p, x: exp(x) * 2)
        case(lambda g: (copied(g), 0)).untouched("simplify", g)
        drop = case(
            lambda g: (
                rewrite(
                    g,
                    lambda b, n, i: b.add("add", [i[0], i[0]]) if n.op == "mul" else b.copy(n, i),
                ),
                0,
            )
        )
        with fails("as it is; it made"):
            drop.untouched("simplify", g)
        drop.assert_ops(g, exp=1, mul=1)
        with fails("2 exp, not 1, 0 mul, not 1 should be left"):
            drop.assert_ops(g, {"exp": 2})


def changed(**how: Any) -> Callable[..., list[Kernel]]:
    """fuse, with something else in its last kernel."""

    def fuse(g: Graph, **options: Any) -> list[Kernel]:
        kernels = lab.fuse(g, **options)
        last = kernels[-1]
        fields = {name: getattr(last, name) for name in ("kind", "nodes", "inputs", "outputs")}
        return [*kernels[:-1], Kernel(last.graph, **{**fields, **how})]

    return fuse


class TestFused:
    @staticmethod
    def program(p: Any, x: Any, y: Any) -> Any:
        return exp(x @ p["m"]) + y, x * 2

    PARAMS = {"m": np.eye(6)}  # noqa: RUF012

    def test_the_solutions_kernels(self) -> None:
        test = case(lab.fuse)
        kernels = test.kernels("fuse", test.program(self.program, self.PARAMS))
        assert [k.label for k in kernels] == [k.label for k in lab.fuse(kernels[0].graph)]

    @pytest.mark.parametrize(
        ("fuse", "message"),
        [
            (lambda g: None, "returned None; a list of kernels was expected"),
            (lambda g: [g], "a dict is no kernel"),
            (lambda g: [3], "a int is no kernel"),
            (lambda g: [], "is in no kernel"),
            (lambda g: lab.fuse(g)[::-1][:1], "is in no kernel"),
            (changed(inputs=()), "says that it loads nothing; what it needs is %0"),
            (changed(inputs=(0, 0)), "what it needs is %0, each once"),
            (changed(outputs=()), "an output shows %"),
            (changed(kind="rowwise"), "a rowwise kernel has reductions, this has none"),
        ],
    )
    def test_kernels_that_are_none(self, fuse: Callable[..., Any], message: str) -> None:
        test = case(fuse)
        with fails(message):
            test.kernels("fuse", test.program(self.program, self.PARAMS))

    def test_sizes_are_passed_and_positions_not(self) -> None:
        seen = {}

        def fuse(g: Graph, **options: Any) -> list[Kernel]:
            seen.update(options)
            return lab.fuse(g, **options)

        cfg = LayerCfg(8, 2, 1, 4, 8)
        g, bind = oracle.decode(cfg, oracle.OPTIMIZED, arrays=True), {"S": 5, "P": 4}
        test = case(fuse)
        assert len(test.kernels("fuse", g, bind=bind)) == 14
        assert seen == {"bind": {"S": 5}}

    def test_points_in_proportion(self) -> None:
        class Scored(GraphFusionCase):
            @partial_credit(3)
            def test_it(self, set_score: Any) -> None:
                """Never run."""

        test, points = Scored("test_it"), []
        g = test.program(lambda p, x: exp(exp(exp(x))))
        apart, whole = lab.fuse(g, enable=False), lab.fuse(g)
        reference = Cost(1, 2 * 24 * 8)
        test.score(points.append, ("a chain", whole, reference))
        with fails("a chain: 3 .* 1,152 B unfused, 1 .* 384 B .* here 3 kernels and 1,152 B: 0% "):
            test.score(points.append, ("a chain", apart, reference))
        with fails("a chain: .* 66% of the way"):
            test.score(points.append, ("a chain", whole, Cost(0, 0)))
        with fails("^two: "):
            test.score(points.append, ("one", whole, reference), ("two", apart, reference))
        test.score(points.append, ("better than the reference", whole, Cost(2, 500)))
        assert points == pytest.approx([3, 0, 1.98, 1.5, 3])
        assert [row.ok for row in test.evidence] == [True, False, False, True, False, True]


def test_random_programs_are_those_of_their_seed() -> None:
    def made(seed: int) -> Any:
        return random_program(Dice(np.random.default_rng(seed)), steps=20, least=10)

    assert str(made(1).graph) == str(made(1).graph)
    assert same(made(1).run(), made(1).run())
    assert str(made(1).graph) != str(made(2).graph)


def test_random_programs_have_everything_in_them() -> None:
    ops = {node.op for node in made_of(200)}
    assert ops >= {"kv_write", "bernoulli", "softmax", "rms_norm", "silu", "matmul", "permute"}
    assert ops >= {"cast", "where", "rot_pairs", "expand", "sum", "max", "scalar"}


def made_of(count: int) -> list[Any]:
    rng = np.random.default_rng(0)
    return [n for _ in range(count) for n in random_program(Dice(rng), 20, least=10).graph]
