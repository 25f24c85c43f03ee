"""Task 7: gradients, each rank's by what it holds."""

from gradescope_utils.autograder_utils.decorators import number, visibility, weight

from assignments.tensor_parallel import oracle
from assignments.tensor_parallel.case import TensorParallelCase
from grader.testing import COMM, Budget


class TestBackward(TensorParallelCase):
    """`mlp_backward_of_rank`, `attention_backward_of_rank`, `sum_over_replicas`, `tp_backward`."""

    @weight(2)
    @number("7.1")
    @visibility("visible")
    def test_mlp(self):
        """mlp_backward_of_rank: dh and the gradients of w_gate, w_up and w_down; 3 ranks"""
        cfg, n, index = oracle.config(H=12, G=3), 3, 1
        params = self.model(cfg)
        h, dy = self.arrays(2, 2, 5, cfg.d_model)
        for r, shard in enumerate(oracle.shards(params, cfg, n)):
            call = self.student.call("mlp_backward_of_rank", shard, index, h, dy)
            layer = params["layers"][index]
            expected = oracle.block_gradients(layer, cfg, n, r, h, dy, "mlp")
            self.assert_block(call, f"rank {r}", *expected)

    @weight(2)
    @number("7.2")
    @visibility("visible")
    def test_attention(self):
        """attention_backward_of_rank: dh and the gradients of wq, wk, wv and wo; 2 and 8 ranks"""
        cfg, index = oracle.config(H=8, G=4, dh=6), 1
        h, dy = self.arrays(2, 2, 5, cfg.d_model)
        for n in (2, 8):
            params = self.model(cfg)
            for r, shard in enumerate(oracle.shards(params, cfg, n)):
                args = [shard, cfg, n, r, index, h, dy]
                call = self.student.call("attention_backward_of_rank", *args)
                layer = params["layers"][index]
                expected = oracle.block_gradients(layer, cfg, n, r, h, dy, "attention")
                self.assert_block(call, f"rank {r} of {n}", *expected)

    @weight(2)
    @number("7.3")
    @visibility("visible")
    def test_replicas(self):
        """sum_over_replicas, 8 ranks and 4 KV heads: each head is summed by the two that hold it"""
        cfg, n = oracle.config(H=8, G=4, dh=6), 8
        grads = self.replica_gradients(cfg, n)
        with self.student.ranks(n) as ranks:
            args = [(COMM, cfg, [g]) for g in grads]
            call = ranks.call("sum_over_replicas", args)
        expected = oracle.summed_over_replicas(grads, cfg, n)
        for r, value in enumerate(self.each(call, "the gradients")):
            self.assert_params(f"gradients of rank {r}", value, expected[r])
        self.assert_comm(
            call,
            sent=Budget(
                "L*2*(k-1)*2*d*dh*s/k", L=cfg.n_layers, k=2, d=cfg.d_model, dh=cfg.d_head, s=8
            ),
        )

    @weight(3)
    @number("7.4")
    @visibility("visible")
    def test_two_ranks(self):
        """tp_backward on 2 ranks: every gradient of both; 4L + 1 all-reduces, and their bytes"""
        cfg, n, B, T = oracle.config(H=8, G=4, dh=6), 2, 3, 5
        params, tokens = self.model(cfg), self.tokens(cfg, B, T)
        dlogits = self.array(B, T, cfg.vocab)
        args = [([p], cfg, tokens, dlogits, COMM) for p in oracle.shards(params, cfg, n)]
        with self.student.ranks(n) as ranks:
            call = ranks.call("tp_backward", args)
        expected = oracle.gradient_shards(params, cfg, n, tokens, dlogits)
        for r, value in enumerate(self.each(call, "the gradients")):
            self.assert_params(f"gradients of rank {r}", value, expected[r])
        L = cfg.n_layers
        self.assert_comm(
            call,
            counts={"all_reduce": 4 * L + 1},
            sent=Budget("(4*L+1)*2*(n-1)*B*T*d*s/n", L=L, n=n, B=B, T=T, d=cfg.d_model, s=8),
        )
