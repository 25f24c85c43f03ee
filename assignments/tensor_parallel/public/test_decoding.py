"""Task 5: decoding with a cache a rank."""

import numpy as np
from gradescope_utils.autograder_utils.decorators import number, visibility, weight
from transformer_lab import Config, forward

from assignments.tensor_parallel import oracle
from assignments.tensor_parallel.case import TensorParallelCase
from grader.testing import COMM, Budget


class TestDecoding(TensorParallelCase):
    """`tp_caches` and `tp_generate`."""

    def check_generate(self, cfg: Config, n: int, B: int, T: int, k: int) -> None:
        """tp_generate: k tokens at every rank; collectives and bytes."""
        params, prompt = self.model(cfg), self.tokens(cfg, B, T)
        args = [([p], cfg, prompt, k, COMM) for p in oracle.shards(params, cfg, n)]
        with self.student.ranks(n) as ranks:
            call = ranks.call("tp_generate", args)
        self.assert_tokens(call, oracle.generate(params, cfg, prompt, k))
        # Both numbers in one all-gather a step, or each in its own: as you like.
        gathers = call.comm.get_comm_counts(0)["all_gather_into_tensor"]
        self.assert_comm(
            call,
            counts={"all_reduce": 2 * cfg.n_layers * k, "all_gather_into_tensor": gathers},
            sent=Budget(
                "2*L*2*(n-1)*B*(T+k-1)*d*s/n + k*(n-1)*2*B*s",
                **{"L": cfg.n_layers, "n": n, "B": B, "T": T, "k": k, "d": cfg.d_model, "s": 8},
            ),
        )

    @weight(2)
    @number("5.1")
    @visibility("visible")
    def test_caches(self):
        """tp_caches: room for max_seq positions of the rank's own KV heads, and for no more"""
        cfg, n, B = oracle.config(H=8, G=4, dh=6), 2, 3
        args = [(cfg, [p], B) for p in oracle.shards(self.model(cfg), cfg, n)]
        heads = len(oracle.kv_heads(cfg, n, 0))
        with self.student.ranks(n) as ranks:
            caches = ranks.keep("tp_caches", args)
            for layer in range(cfg.n_layers):
                K_and_V = [self.arrays(2, B, cfg.max_seq, heads, cfg.d_head) for _ in range(n)]
                ranks.call("KVCache.write", [(caches[0], layer, k, v) for k, v in K_and_V])
                call = ranks.call("KVCache.read", [(caches[0], layer, cfg.max_seq)] * n)
                for r, value in enumerate(call.values):
                    name = f"K and V of layer {layer} in the cache of rank {r}"
                    self.assert_parts(name, value, K_and_V[r])
            call = ranks.call("KVCache.nbytes.fget", [(caches[0],)] * n)
        nbytes = 2 * cfg.n_layers * B * cfg.max_seq * heads * cfg.d_head * 8
        for r, value in enumerate(call.values):
            self.assertEqual(value, nbytes, f"bytes of the cache of rank {r}")

    @weight(2)
    @number("5.2")
    @visibility("visible")
    def test_decode(self):
        """5 tokens, then one at a time, with tp_caches: own logits, own KV heads; the bytes"""
        cfg, n, B = oracle.config(H=8, G=4, dh=6), 2, 3
        params, tokens = self.model(cfg), self.tokens(cfg, B, 8)
        expected, whole = forward(params, cfg, tokens), oracle.cached(params, cfg, tokens)
        shards = oracle.shards(params, cfg, n)
        with self.student.ranks(n) as ranks:
            caches = ranks.keep("tp_caches", [(cfg, [p], B) for p in shards])
            for start, end in ((0, 5), (5, 6), (6, 7), (7, 8)):
                args = [([p], cfg, tokens[:, start:end], COMM) for p in shards]
                call = ranks.call("tp_forward", args, caches=caches, gather_logits=False)
                parts = oracle.columns(expected[:, start:end], n)
                self.assert_each(call, f"its part of the logits from {start} on", parts)
                widths = {"L": cfg.n_layers, "n": n, "B": B, "T": end - start, "d": cfg.d_model}
                self.assert_comm(
                    call,
                    counts={"all_reduce": 2 * cfg.n_layers},
                    sent=Budget("2*L*2*(n-1)*B*T*d*s/n", **widths, s=8),
                )
            for layer in range(cfg.n_layers):
                call = ranks.call("KVCache.read", [(caches[0], layer, 8)] * n)
                for r, value in enumerate(call.values):
                    own = oracle.kv_heads(cfg, n, r)
                    K_and_V = [heads[:, :, own] for heads in whole.read(layer, 8)]
                    self.assert_parts(f"K and V of layer {layer}, rank {r}", value, K_and_V)

    @weight(2)
    @number("5.3")
    @visibility("visible")
    def test_generate(self):
        """tp_generate, 5 tokens on 2 ranks: two numbers of each rank choose, no logits travel"""
        self.check_generate(oracle.config(H=8, G=4, dh=6), n=2, B=3, T=6, k=5)

    @weight(1)
    @number("5.4")
    @visibility("visible")
    def test_no_steps(self):
        """tp_generate with steps = 0: (B, 0) tokens; with steps = 1 the prompt alone is seen"""
        cfg, n, B = oracle.config(H=8, G=4, dh=6), 2, 4
        params, prompt = self.model(cfg), self.tokens(cfg, B, 3)
        shards = oracle.shards(params, cfg, n)
        with self.student.ranks(n) as ranks:
            call = ranks.call("tp_generate", [([p], cfg, prompt, 0, COMM) for p in shards])
            self.assert_tokens(call, np.empty((B, 0), dtype=np.int64))
            call = ranks.call("tp_generate", [([p], cfg, prompt, 1, COMM) for p in shards])
            self.assert_tokens(call, oracle.generate(params, cfg, prompt, 1))
