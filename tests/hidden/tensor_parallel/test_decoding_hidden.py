"""Task 5 at the edges: KV heads of several ranks, tied heads, equal logits."""

import numpy as np
from gradescope_utils.autograder_utils.decorators import number, visibility, weight
from transformer_lab import Config, forward

from assignments.tensor_parallel import oracle
from assignments.tensor_parallel.case import TensorParallelCase
from grader.testing import COMM, Budget


class TestDecodingHidden(TensorParallelCase):
    def check_caches(self, cfg: Config, n: int, B: int, tied: bool) -> None:
        """Prompt and steps with tp_caches: own columns of the logits, own KV heads; the bytes."""
        params, tokens = self.model(cfg, tied), self.tokens(cfg, B, 6)
        expected, whole = forward(params, cfg, tokens), oracle.cached(params, cfg, tokens)
        shards = oracle.shards(params, cfg, n)
        with self.student.ranks(n) as ranks:
            caches = ranks.keep("tp_caches", [(cfg, [p], B) for p in shards])
            for start, end in ((0, 1), (1, 4), (4, 5), (5, 6)):
                args = [([p], cfg, tokens[:, start:end], COMM) for p in shards]
                call = ranks.call("tp_forward", args, caches=caches, gather_logits=False)
                parts = oracle.columns(expected[:, start:end], n)
                self.assert_each(call, f"its part of the logits from {start} on", parts)
                widths = {"L": cfg.n_layers, "n": n, "B": B, "T": end - start, "d": cfg.d_model}
                self.assert_comm(call, sent=Budget("2*L*2*(n-1)*B*T*d*s/n", **widths, s=8))
            call = ranks.call("KVCache.read", [(caches[0], 1, 6)] * n)
            for r, value in enumerate(call.values):
                own = oracle.kv_heads(cfg, n, r)
                K_and_V = [heads[:, :, own] for heads in whole.read(1, 6)]
                self.assert_parts(f"K and V of layer 1, rank {r}", value, K_and_V)

    @weight(2)
    @number("5.5")
    @visibility("hidden")
    def test_replicated(self):
        """Caches where ranks hold KV heads of others as well, in unequal numbers; n > G, tied"""
        self.check_caches(oracle.config(H=12, G=3, dh=4), n=4, B=2, tied=False)
        self.check_caches(oracle.config(H=8, G=4, dh=6), n=8, B=4, tied=True)

    @weight(3)
    @number("5.6")
    @visibility("hidden")
    def test_generate(self):
        """tp_generate on 1, 2, 3 and 8 ranks: tokens and bytes; of equal logits the first counts"""
        for H, G, dh, n, B, tied in (
            (8, 4, 6, 1, 2, False),
            (12, 3, 4, 3, 3, True),
            (12, 3, 4, 2, 1, False),
            (8, 4, 6, 8, 4, False),
        ):
            cfg, T, k = oracle.config(H, G, dh), 4, 3
            params, prompt = self.model(cfg, tied), self.tokens(cfg, B, T)
            # Columns of the ranks are equal, so each rank has the same largest logit.
            equal = (H, n) == (8, 8)
            if equal:
                params["lm_head"][:] = np.tile(params["lm_head"][:, : cfg.vocab // n], n)
            among = cfg.vocab // n if equal else cfg.vocab
            args = [([p], cfg, prompt, k, COMM) for p in oracle.shards(params, cfg, n)]
            with self.student.ranks(n) as ranks:
                call = ranks.call("tp_generate", args)
            self.assert_tokens(call, oracle.generate(params, cfg, prompt, k, among))
            widths = {"L": cfg.n_layers, "B": B, "T": T, "k": k, "d": cfg.d_model, "s": 8}
            sent = Budget("2*L*2*(n-1)*B*(T+k-1)*d*s/n + k*(n-1)*2*B*s", n=n, **widths)
            self.assert_comm(call, sent=sent)
