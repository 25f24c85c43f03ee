"""Task 2 on random programs."""

from gradescope_utils.autograder_utils.decorators import number, visibility, weight
from graph_ir import Graph
from graph_ir.trace import bernoulli, exp, kv_write

from assignments.graph_fusion.case import GraphFusionCase


def twins(g: Graph) -> list[tuple[int, int]]:
    """Pairs of nodes that compute the same, in a program that draws and writes nothing."""
    seen, found = {}, []
    for node in g:
        if node.op == "input":
            continue
        operands = sorted(node.inputs) if node.op in ("add", "mul") else node.inputs
        key = (node.op, tuple(operands), repr(sorted(node.attrs.items())))
        if key in seen:
            found.append((seen[key], node.id))
        seen.setdefault(key, node.id)
    return found


class TestCseHidden(GraphFusionCase):
    @weight(2)
    @number("2.7")
    @visibility("hidden")
    def test_random(self):
        """25 random programs mean the same, with memory that is written, draws, ∞, NaN and −0"""
        for sample in self.samples(25, steps=24, least=10, dtypes=("f64", "f32", "bf16")):
            self.keeps("cse", sample, rounding=True)

    @weight(1)
    @number("2.8")
    @visibility("hidden")
    def test_nothing_left(self):
        """35 random programs without draws and writes: no two nodes are left that are equal"""
        for sample in self.samples(35, steps=24, least=10, impure=False):
            after = self.keeps("cse", sample)
            if pairs := twins(after):
                first, second = pairs[0]
                self.fail(f"{after[first]} and {after[second]} compute the same in\n{after}")

    @weight(1)
    @number("2.9")
    @visibility("hidden")
    def test_views_of_memory(self):
        """Reads through views, of memory that is written between, or of a copy of it"""

        def through_views(p, cache, b):
            early = exp(cache.permute(1, 0))
            kv_write(cache, b.reshape(1, 6), 2)
            late = exp(cache.permute(1, 0))
            return early - late, exp(cache.permute(1, 0))

        def copies(p, cache, b, x):
            copy = cache * 1
            kv_write(cache, b.reshape(1, 6), 0)
            other = cache * 1
            kv_write(other, x, 0)
            return copy, other, cache * 1

        def draws(p, x):
            first, second = bernoulli(x, 0.5), bernoulli(x, 0.5)
            return exp(first) - exp(second), exp(first)

        expected = (
            (through_views, {"exp": 2, "sub": 1, "kv_write": 1}),
            (copies, {"mul": 3, "kv_write": 2}),
            (draws, {"bernoulli": 2, "exp": 2, "sub": 1}),
        )
        for fn, left in expected:
            self.assert_ops(self.rewritten("cse", self.program(fn)), left)
