"""Task 3, second half: operations that change nothing vanish, and no others."""

from gradescope_utils.autograder_utils.decorators import number, visibility, weight
from graph_ir.trace import apply, cast, exp, kv_write, maximum, minimum, where

from assignments.graph_fusion.case import GraphFusionCase


class TestSimplify(GraphFusionCase):
    """`simplify`."""

    @weight(2)
    @number("3.5")
    @visibility("visible")
    def test_identities(self):
        """x·1, x/1, x − 0, x + (−0), −(−x), max(x, x), where(c, x, x), … become x"""
        for fn in (
            lambda p, x: exp(x * 1),
            lambda p, x: exp(1 * x),
            lambda p, x: exp(x / 1),
            lambda p, x: exp(x - 0.0),
            lambda p, x: exp(x + -0.0),
            lambda p, x: exp(-0.0 + x),
            lambda p, x: exp(apply("neg", -x)),
            lambda p, x: exp(maximum(x, x)),
            lambda p, x: exp(minimum(x, x)),
            lambda p, x: exp(cast(x, "f64")),
        ):
            after = self.rewritten("simplify", self.program(fn), count=1, rounding=True)
            self.assert_ops(after, exp=1)
        g = self.program(lambda p, x, y: where(x < y, x, x))
        self.assert_ops(self.rewritten("simplify", g, count=1))
        g = self.program(lambda p, x, y: (x + (-y), (-y) + x, x - (-y)))
        self.assert_ops(self.rewritten("simplify", g, count=3), sub=2, add=1)
        g = self.program(lambda p, x: exp(apply("neg", -(x * 1)) / 1))
        self.assert_ops(self.rewritten("simplify", g, count=-1), exp=1)

    @weight(2)
    @number("3.6")
    @visibility("visible")
    def test_views_and_casts(self):
        """A view of a view is one; a view that shows what is there, a cast there and back, none"""
        for fn, views in (
            (lambda p, x: exp(x.permute(1, 0).permute(1, 0)), 0),
            (lambda p, x: exp(x.reshape(24).reshape(2, 12)), 1),
            (lambda p, x: exp(x.reshape(24).reshape(4, 6)), 0),
            (lambda p, x: exp(x.expand(4, 6)), 0),
            (lambda p, s: exp(s.expand(4, 6).expand(2, 4, 6)), 1),
            (lambda p, z: exp(z.permute(1, 2, 0).permute(1, 2, 0)), 1),
        ):
            g = self.program(fn, z=(2, 3, 4))
            after = self.rewritten("simplify", g, count=-1)
            found = [str(node) for node in after if node.kind == "view"]
            if len(found) != views:
                self.fail(f"{views} views should be left in\n{after}")
        g = self.program(lambda p, x: exp(cast(cast(x, "f32"), "bf16")), dtype="bf16")
        self.assert_ops(self.rewritten("simplify", g, count=-1, rounding=True), exp=1)

    @weight(2)
    @number("3.7")
    @visibility("visible")
    def test_not_identities(self):
        """x + 0, x − (−0), x·0, x − x, x / x, 1/x, a cast that rounds: all stay"""
        for fn in (
            lambda p, x: x + 0.0,
            lambda p, x: 0.0 + x,
            lambda p, x: x - -0.0,
            lambda p, x: 0.0 - x,
            lambda p, x: x * 0.0,
            lambda p, x: x * -1.0,
            lambda p, x: x - x,
            lambda p, x: x / x,
            lambda p, x: 1 / x,
            lambda p, x: maximum(x, 0.0),
            lambda p, x, y: where(x < y, x, y),
            lambda p, x, b: maximum(x, b),
            lambda p, x: cast(cast(x, "bf16"), "f64"),
            lambda p, x: cast(x, "f32"),
            lambda p, x: x.permute(1, 0).reshape(4, 6),
        ):
            self.untouched("simplify", self.program(fn), rounding=True)
        g = self.program(lambda p, x: cast(cast(x, "f16"), "bf16"), dtype="bf16")
        self.untouched("simplify", g, rounding=True)

    @weight(1)
    @number("3.8")
    @visibility("visible")
    def test_copies(self):
        """x · 1 is a copy, and −x no longer −x, where x, the copy or −x is written to later"""

        def written_later(p, cache, b):
            copy, negative = cache * 1, -cache
            kv_write(cache, b.reshape(1, 6), 0)
            return copy, b - negative

        def copy_written(p, x, b):
            copy = x * 1
            kv_write(copy, b.reshape(1, 6), 0)
            return copy, x + 1

        def negative_written(p, x, y, b):
            negative = -x
            kv_write(negative, b.reshape(1, 6), 0)
            return y + negative, y - negative, -negative

        for fn in (written_later, copy_written, negative_written):
            self.untouched("simplify", self.program(fn))
