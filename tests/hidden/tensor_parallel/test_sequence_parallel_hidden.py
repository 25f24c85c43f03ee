"""Task 6 at the edges: KV heads of several ranks, one rank; positions that n does not divide."""

from gradescope_utils.autograder_utils.decorators import number, visibility, weight
from transformer_lab import forward

from assignments.tensor_parallel import oracle
from assignments.tensor_parallel.case import TensorParallelCase
from grader.testing import COMM, Budget


class TestSequenceParallelHidden(TensorParallelCase):
    @weight(3)
    @number("6.3")
    @visibility("hidden")
    def test_ranks(self):
        """1, 2, 3 and 4 ranks: misaligned KV heads, a single KV head, one sequence; the bytes"""
        for H, G, dh, n, B, T, tied in (
            (8, 4, 6, 1, 2, 5, False),
            (12, 3, 4, 2, 1, 6, True),
            (6, 1, 14, 3, 2, 9, False),
            (24, 6, 2, 4, 3, 4, False),
        ):
            cfg = oracle.config(H, G, dh)
            params, tokens = self.model(cfg, tied), self.tokens(cfg, B, T)
            args = [([p], cfg, tokens, COMM) for p in oracle.shards(params, cfg, n)]
            with self.student.ranks(n) as ranks:
                call = ranks.call("tp_forward_sp", args)
            name = f"H = {H}, G = {G}, n = {n}: the array of logits"
            self.assert_all(call, name, forward(params, cfg, tokens))
            widths = {"L": cfg.n_layers, "B": B, "T": T, "d": cfg.d_model, "v": cfg.vocab, "s": 8}
            sent = Budget(
                "2*L*2*(n-1)*B*T*d*s/n + (n-1)*B*T*d*s/n + (n-1)*B*T*v*s/n", n=n, **widths
            )
            self.assert_comm(call, sent=sent)

    @weight(1)
    @number("6.4")
    @visibility("hidden")
    def test_refuses(self):
        """Positions that n does not divide are refused: a ValueError with T and n"""
        cfg, n, T = oracle.config(H=8, G=4), 4, 7
        tokens = self.tokens(cfg, 4, T)
        args = [([p], cfg, tokens, COMM) for p in oracle.shards(self.model(cfg), cfg, n)]
        what = f"tp_forward_sp of {T} positions on {n} ranks"
        with self.student.ranks(n) as ranks, self.refuses(what, T, n):
            ranks.call("tp_forward_sp", args)
