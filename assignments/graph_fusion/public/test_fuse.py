"""Task 6: kernels, what they load, and what they store."""

from gradescope_utils.autograder_utils.decorators import number, visibility, weight
from graph_ir import LLAMA8B
from graph_ir.kernels import total_bytes
from graph_ir.trace import bernoulli, exp, kv_write, rms_norm, rot_pairs, silu, softmax

from assignments.graph_fusion import oracle
from assignments.graph_fusion.case import GraphFusionCase
from assignments.graph_fusion.oracle import Cost

T, S = 2048, 4096


class TestFuse(GraphFusionCase):
    """`fuse`, on programs that are small enough to be worked out by hand."""

    def costs(self, fn, expected, params=None, **how):
        """Checks that a program's kernels cost what they are to cost, or less.

        Args:
            fn: the program.
            expected: the most that it may cost.
            params: its parameters.
            **how: dtype, and shapes of inputs.
        """
        g = self.program(fn, params, **how)
        kernels = self.kernels("fuse", g)
        found = Cost(len(kernels), total_bytes(kernels))
        if found.kernels > expected.kernels or found.bytes > expected.bytes:
            shown = "\n".join(f"    {kernel}" for kernel in kernels)
            self.fail(
                f"{expected.kernels} kernels and {expected.bytes:,} B are enough; here are "
                f"{found.kernels} and {found.bytes:,} B\n{shown}\nof\n{g}"
            )

    @weight(3)
    @number("6.1")
    @visibility("visible")
    def test_unfused(self):
        """enable=False: a kernel a node; each root loaded once, at its own size; views are free"""

        def program(p, x, b, s, cache):
            wide = x * b.reshape(1, 6).expand(4, 6) + s.expand(4, 6) * 2
            square = wide.permute(1, 0) @ wide
            kv_write(cache, b.reshape(1, 6), 1)
            normed = rms_norm(wide, p["w"]) + bernoulli(x, 0.5)
            return square, normed.sum(), softmax(cache), silu(wide - wide.reshape(24).reshape(4, 6))

        programs = [(self.program(program, {"w": self.numbers(6)}), {})]
        for form in (oracle.EAGER, oracle.DECOMPOSED):
            programs.append((oracle.prefill(LLAMA8B, T, form), {}))
            programs.append((oracle.decode(LLAMA8B, form), {"S": S}))
        for g, bind in programs:
            kernels = self.kernels("fuse", g, enable=False, bind=bind)
            bound = g.bind(bind)
            each = {tuple(node.id for node in kernel.nodes): kernel.kind for kernel in kernels}
            kinds = {"reduction": "rowwise"}
            due = {(n.id,): kinds.get(n.kind, n.kind) for n in bound if n.computes}
            self.assertEqual(each, due, "kinds of kernels by their nodes")
            cost = Cost(len(kernels), total_bytes(kernels))
            self.assertEqual(cost, oracle.unfused(bound), "cost")

    @weight(3)
    @number("6.2")
    @visibility("visible")
    def test_apart(self):
        """Kernels that can run: nothing in another order, broadcast, of other rows, no cycles"""
        square = {"m": self.numbers(6, 4)}
        for fn in (
            lambda p, x: (lambda y: y + y.permute(1, 0))(x @ p["m"]),
            lambda p, x: exp((x @ p["m"]).permute(1, 0)) + x.sum(),
            lambda p, x, b: x + exp(b),
            lambda p, x, s: x * exp(s),
            lambda p, x: (lambda y: y - y.max().permute(1, 0))(x @ p["m"]),
            lambda p, x: (lambda y: y.sum().reshape(1, 4) + y.reshape(3, 8).sum())(exp(x)),
            lambda p, x: (lambda y: (y + (y.permute(1, 0) * 2).permute(1, 0)).sum())(exp(x)),
            lambda p, x: (lambda y: y + y @ (y.permute(1, 0) @ y))(exp(x)),
            lambda p, x: (lambda y: y / y.sum().sum() + y)(exp(x)),
            lambda p, x: exp(x).sum().reshape(2, 2).sum(),
            lambda p, x: rot_pairs((x @ p["m"]).reshape(2, 8)),
            lambda p, x: rot_pairs(rot_pairs(exp(x).reshape(12, 2)).reshape(2, 12)),
            lambda p, x: rot_pairs(exp(x).reshape(12, 2)).reshape(2, 12).sum(),
            lambda p, x: x.sum() @ (x.sum() * 2).permute(1, 0),
        ):
            self.kernels("fuse", self.program(fn, square))

    @weight(2)
    @number("6.3")
    @visibility("visible")
    def test_stored(self):
        """Outputs are stored whoever uses them; draws happen once; memory is read in time"""

        def before_and_after(p, cache, b):
            powers = exp(cache)
            kv_write(cache, b.reshape(1, 6), 1)
            return powers.sum() + cache.sum(), cache * 2

        def written_twice(p, cache, x, y):
            early = (cache * x).sum()
            kv_write(cache, x, 0)
            late = cache * early
            kv_write(cache, y, 0)
            return late, cache - late

        for fn in (
            lambda p, x: (lambda y: (y, -y, (-y).sum()))(exp(x)),
            lambda p, x: (lambda y: (exp(y), y.permute(1, 0)))(x * 2),
            lambda p, x: exp(x) * bernoulli(x, 0.5) + bernoulli(x, 0.5),
            lambda p, x, y: (lambda h: (h @ y.permute(1, 0) - h.sum(), h / h.sum()))(x * y),
            before_and_after,
            written_twice,
        ):
            self.kernels("fuse", self.program(fn))

    @weight(2)
    @number("6.4")
    @visibility("visible")
    def test_together(self):
        """What has to be together: chains, softmax, RMSNorm, epilogues; their bytes"""
        n, w = 24 * 8, {"w": self.numbers(6), "m": self.numbers(6, 6)}
        m = 36 * 8
        norm = oracle.norm
        self.costs(lambda p, x, y: exp(-x * y) / x + 1, Cost(1, 3 * n))
        self.costs(lambda p, x: oracle.attention_weights(x, oracle.OPTIMIZED), Cost(1, 2 * n))
        self.costs(lambda p, x: norm(x, p["w"], 1e-5, oracle.DECOMPOSED), Cost(1, 2 * n + 48), w)
        self.costs(lambda p, x, y: exp(x @ p["m"]) * y, Cost(1, 3 * n + m), w)
        self.costs(lambda p, x: exp((x @ p["m"]).reshape(24)), Cost(1, 2 * n + m), w)
        self.costs(lambda p, x, b, s: (x + b) * s, Cost(1, 2 * n + 48 + 32))

        def norm_of_sum(p, x):
            return norm(x + x @ p["m"], None, 1e-5, oracle.OPTIMIZED)

        self.costs(norm_of_sum, Cost(2, 4 * n + m), w)

        def rotated(p, x, b):
            y = (x @ p["m"]).reshape(4, 3, 2)
            return y * b.reshape(3, 2) + rot_pairs(y)

        self.costs(rotated, Cost(1, 2 * n + m + 48), w)

        def swiglu(p, x):
            return oracle.gate(x @ p["m"], oracle.OPTIMIZED) * (x @ p["m"])

        self.costs(swiglu, Cost(2, 5 * n + 2 * m), w)
