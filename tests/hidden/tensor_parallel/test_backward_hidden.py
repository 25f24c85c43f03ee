"""Task 7 at the edges: tied heads, KV heads of several ranks in unequal numbers."""

from gradescope_utils.autograder_utils.decorators import number, visibility, weight

from assignments.tensor_parallel import oracle
from assignments.tensor_parallel.case import TensorParallelCase
from grader.testing import COMM, Budget


class TestBackwardHidden(TensorParallelCase):
    @weight(1)
    @number("7.5")
    @visibility("hidden")
    def test_tied(self):
        """tp_backward with a tied head, 1 and 3 ranks: the embedding's gradient has both parts"""
        for n in (1, 3):
            self.check(oracle.config(H=12, G=3, dh=4), n, B=2, T=6, tied=True)

    @weight(2)
    @number("7.6")
    @visibility("hidden")
    def test_replicated(self):
        """tp_backward with KV heads of several ranks: n > G, and misaligned on 2 and on 4 ranks"""
        self.check(oracle.config(H=8, G=4, dh=6), n=8, B=2, T=4, tied=True)
        self.check(oracle.config(H=12, G=3, dh=4), n=2, B=1, T=6)
        self.check(oracle.config(H=24, G=6, dh=2), n=4, B=3, T=4)

    def check(self, cfg, n: int, B: int, T: int, tied: bool = False) -> None:
        """Every gradient of every rank; the bytes."""
        params, tokens = self.model(cfg, tied), self.tokens(cfg, B, T)
        dlogits = self.array(B, T, cfg.vocab)
        args = [([p], cfg, tokens, dlogits, COMM) for p in oracle.shards(params, cfg, n)]
        with self.student.ranks(n) as ranks:
            call = ranks.call("tp_backward", args)
        expected = oracle.gradient_shards(params, cfg, n, tokens, dlogits)
        what = f"H = {cfg.n_heads}, G = {cfg.n_kv_heads}, n = {n}"
        for r, value in enumerate(self.each(call, "the gradients")):
            self.assert_params(f"{what}, gradients of rank {r}", value, expected[r])
        # Of the KV heads of the rank that shares the most: two ranks hold each.
        shared = max(self.shared_heads(cfg, n, r) for r in range(n))
        sent = Budget(
            "(4*L+1)*2*(n-1)*B*T*d*s/n + tied*(n-1)*v*d*s/n + L*g*2*d*dh*s",
            **{"L": cfg.n_layers, "n": n, "B": B, "T": T, "d": cfg.d_model, "s": 8},
            **{"tied": int(tied), "v": cfg.vocab, "g": shared, "dh": cfg.d_head},
        )
        self.assert_comm(call, sent=sent)

    def shared_heads(self, cfg, n: int, r: int) -> int:
        """How many KV heads of rank r another rank holds as well."""
        return sum(len(oracle.holders(cfg, n, kv)) > 1 for kv in oracle.kv_heads(cfg, n, r))

    @weight(2)
    @number("7.7")
    @visibility("hidden")
    def test_parts(self):
        """attention_backward_of_rank and sum_over_replicas, misaligned: own heads only are sent"""
        cfg, n, index = oracle.config(H=12, G=3, dh=4), 4, 0
        params = self.model(cfg)
        h, dy = self.arrays(2, 2, 5, cfg.d_model)
        for r, shard in enumerate(oracle.shards(params, cfg, n)):
            args = [shard, cfg, n, r, index, h, dy]
            call = self.student.call("attention_backward_of_rank", *args)
            layer = params["layers"][index]
            expected = oracle.block_gradients(layer, cfg, n, r, h, dy, "attention")
            self.assert_block(call, f"rank {r} of {n}", *expected)
        for H, G, n in ((12, 3, 4), (12, 3, 3), (6, 1, 3)):
            cfg = oracle.config(H, G, dh=4 if H == 12 else 14)
            grads = self.replica_gradients(cfg, n)
            with self.student.ranks(n) as ranks:
                args = [(COMM, cfg, [g]) for g in grads]
                call = ranks.call("sum_over_replicas", args)
            expected = oracle.summed_over_replicas(grads, cfg, n)
            what = f"H = {H}, G = {G}, n = {n}"
            for r, value in enumerate(self.each(call, "the gradients")):
                self.assert_params(f"{what}, gradients of rank {r}", value, expected[r])
            self.assert_own_groups(call, cfg, n)

    def assert_own_groups(self, call, cfg, n: int) -> None:
        """No rank sends more than the rings of the groups that it is in: of its own KV heads."""
        for r in range(n):
            groups = [oracle.holders(cfg, n, kv) for kv in oracle.kv_heads(cfg, n, r)]
            m = 2 * cfg.d_model * cfg.d_head  # numbers of a head in wk and wv
            most = sum(
                cfg.n_layers * 2 * (len(group) - 1) * -(-m // len(group)) * 8 for group in groups
            )
            sent = call.comm.sent(r)
            self.assertLessEqual(
                sent, most, f"bytes that rank {r} of {n} sends for its own replicated KV heads"
            )
