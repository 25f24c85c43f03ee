"""Task 6: the forward with the residual stream cut along the positions."""

from gradescope_utils.autograder_utils.decorators import number, visibility, weight
from transformer_lab import Config, forward

from assignments.tensor_parallel import oracle
from assignments.tensor_parallel.case import TensorParallelCase
from grader.testing import COMM, Budget


class TestSequenceParallel(TensorParallelCase):
    """`tp_forward_sp`."""

    def check(self, cfg: Config, n: int, B: int, T: int, tied: bool = False) -> None:
        """Logits at every rank; 2L reduce-scatters, 2L + 2 all-gathers, and their bytes."""
        params, tokens = self.model(cfg, tied), self.tokens(cfg, B, T)
        args = [([p], cfg, tokens, COMM) for p in oracle.shards(params, cfg, n)]
        with self.student.ranks(n) as ranks:
            call = ranks.call("tp_forward_sp", args)
        self.assert_all(call, "the array of logits", forward(params, cfg, tokens))
        L = cfg.n_layers
        self.assert_comm(
            call,
            counts={"reduce_scatter_tensor": 2 * L, "all_gather_into_tensor": 2 * L + 2},
            sent=Budget(
                "2*L*2*(n-1)*B*T*d*s/n + (n-1)*B*T*d*s/n + (n-1)*B*T*v*s/n",
                **{"L": L, "n": n, "B": B, "T": T, "d": cfg.d_model, "v": cfg.vocab, "s": 8},
            ),
        )

    @weight(2)
    @number("6.1")
    @visibility("visible")
    def test_two_ranks(self):
        """2 ranks: logits at both, 2L reduce-scatters and 2L + 2 all-gathers, and their bytes"""
        self.check(oracle.config(H=8, G=4, dh=6), n=2, B=3, T=10)

    @weight(2)
    @number("6.2")
    @visibility("visible")
    def test_eight_ranks(self):
        """8 ranks with a position each, 4 KV heads and a tied head"""
        self.check(oracle.config(H=8, G=4, dh=6), n=8, B=2, T=8, tied=True)
