"""Task 4 at the edges: KV heads of several ranks, one KV head, one rank; caches."""

from gradescope_utils.autograder_utils.decorators import number, visibility, weight
from transformer_lab import Config, forward

from assignments.tensor_parallel import oracle
from assignments.tensor_parallel.case import TensorParallelCase
from grader.testing import COMM, Budget, RanksCall


class TestForwardHidden(TensorParallelCase):
    def check(self, cfg: Config, n: int, B: int, T: int, tied: bool = False) -> None:
        """tp_forward: logits at every rank; the bytes."""
        params, tokens = self.model(cfg, tied), self.tokens(cfg, B, T)
        args = [([p], cfg, tokens, COMM) for p in oracle.shards(params, cfg, n)]
        with self.student.ranks(n) as ranks:
            call = ranks.call("tp_forward", args)
        what = f"H = {cfg.n_heads}, G = {cfg.n_kv_heads}, n = {n}: the array of logits"
        self.assert_all(call, what, forward(params, cfg, tokens))
        self.check_sent(call, cfg, n, B, T)

    def check_sent(self, call: RanksCall, cfg: Config, n: int, B: int, T: int) -> None:
        """Of a call that gathers the logits: the bytes."""
        sizes = {"L": cfg.n_layers, "B": B, "T": T, "d": cfg.d_model, "v": cfg.vocab, "s": 8}
        sent = Budget("2*L*2*(n-1)*B*T*d*s/n + (n-1)*B*T*v*s/n", n=n, **sizes)
        self.assert_comm(call, sent=sent)

    @weight(2)
    @number("4.8")
    @visibility("hidden")
    def test_misaligned(self):
        """tp_forward where a KV head's query heads lie on several ranks, in unequal numbers"""
        self.check(oracle.config(H=12, G=3, dh=4), n=2, B=2, T=6)
        self.check(oracle.config(H=24, G=6), n=4, B=3, T=4)
        cfg, n, B = oracle.config(H=12, G=3, dh=4), 4, 2
        params, tokens = self.model(cfg), self.tokens(cfg, B, 7)
        expected = forward(params, cfg, tokens)
        shards = oracle.shards(params, cfg, n)
        with self.student.ranks(n) as ranks:
            caches = ranks.keep("KVCache", [(oracle.of_rank(cfg, n, r), B) for r in range(n)])
            for start, end in ((0, 4), (4, 7)):
                args = [([p], cfg, tokens[:, start:end], COMM) for p in shards]
                call = ranks.call("tp_forward", args, caches=[caches])
                self.assert_all(
                    call, f"the array of logits from {start} on", expected[:, start:end]
                )
                self.check_sent(call, cfg, n, B, end - start)

    @weight(2)
    @number("4.9")
    @visibility("hidden")
    def test_numbers_of_ranks(self):
        """tp_forward on 1, 3 and 6 ranks: a model of one KV head, a tied head, a single token"""
        self.check(oracle.config(H=8, G=4), n=1, B=2, T=5)
        self.check(oracle.config(H=12, G=3, dh=4), n=3, B=1, T=6, tied=True)
        self.check(oracle.config(H=6, G=1, dh=14), n=6, B=3, T=1, tied=True)
