"""Task 4: the forward on ranks, of which each has its own shard only."""

from typing import Any

from gradescope_utils.autograder_utils.decorators import number, visibility, weight
from transformer_lab import Config, forward

from assignments.tensor_parallel import oracle
from assignments.tensor_parallel.case import TensorParallelCase
from grader.testing import COMM, Budget, RanksCall


def sizes(cfg: Config, n: int, B: int, T: int) -> dict[str, int]:
    """What a budget of `tp_forward` is made of; s bytes an element."""
    return {"L": cfg.n_layers, "n": n, "B": B, "T": T, "d": cfg.d_model, "s": 8}


class TestForward(TensorParallelCase):
    """`kv_head_of_query`, `attention_of_rank`, `mlp_of_rank` and `tp_forward`."""

    def check_forward(self, cfg: Config, n: int, B: int, T: int, tied: bool = False) -> None:
        """tp_forward: logits at every rank; 2L all-reduces and an all-gather; the bytes."""
        params, tokens = self.model(cfg, tied), self.tokens(cfg, B, T)
        args = [([p], cfg, tokens, COMM) for p in oracle.shards(params, cfg, n)]
        with self.student.ranks(n) as ranks:
            call = ranks.call("tp_forward", args)
        self.assert_all(call, "the array of logits", forward(params, cfg, tokens))
        self.check_comm(call, cfg, n, B, T)

    def check_comm(self, call: RanksCall, cfg: Config, n: int, B: int, T: int) -> None:
        """Of a call that gathers the logits: its collectives, and the bytes."""
        self.assert_comm(
            call,
            counts={"all_reduce": 2 * cfg.n_layers, "all_gather_into_tensor": 1},
            sent=Budget(
                "2*L*2*(n-1)*B*T*d*s/n + (n-1)*B*T*v*s/n", **sizes(cfg, n, B, T), v=cfg.vocab
            ),
        )

    @weight(2)
    @number("4.1")
    @visibility("visible")
    def test_kv_head_of_query(self):
        """Which of a rank's own KV heads each of its query heads uses; (H, G) = (12, 3), too"""
        for H, G, n in ((8, 4, 2), (8, 4, 8), (12, 3, 2)):
            cfg = oracle.config(H, G)
            for r, shard in enumerate(oracle.shards(self.model(cfg), cfg, n)):
                call = self.student.call("kv_head_of_query", shard, cfg, n, r)
                own = oracle.kv_heads(cfg, n, r)
                used = [own.index(oracle.kv_head(cfg, h)) for h in oracle.query_heads(cfg, n, r)]
                what = f"kv_head_of_query, H = {H}, G = {G}, rank {r} of {n}"
                self.assert_whole_numbers(what, call.value, used)

    @weight(2)
    @number("4.2")
    @visibility("visible")
    def test_attention(self):
        """attention_of_rank: what the heads of one rank add, for every rank of 2 and of 8"""
        cfg = oracle.config(H=8, G=4, dh=6)
        index, h = 1, self.array(2, 5, cfg.d_model)
        for n in (2, 8):
            params = self.model(cfg)
            for r, shard in enumerate(oracle.shards(params, cfg, n)):
                args: list[Any] = [shard, cfg, n, r, index, h]
                call = self.student.call("attention_of_rank", *args)
                expected = oracle.attention_of_rank(params["layers"][index], cfg, n, r, h)
                self.assert_close(f"attention of rank {r} of {n}", call.value, expected)

    @weight(1)
    @number("4.3")
    @visibility("visible")
    def test_mlp(self):
        """mlp_of_rank: what the columns of one rank add, for every rank of 3"""
        cfg, n = oracle.config(H=12, G=3), 3
        params, index, h = self.model(cfg), 1, self.array(2, 5, cfg.d_model)
        for r, shard in enumerate(oracle.shards(params, cfg, n)):
            call = self.student.call("mlp_of_rank", shard, index, h)
            expected = oracle.mlp_of_rank(params["layers"][index], cfg, n, r, h)
            self.assert_close(f"MLP of rank {r} of {n}", call.value, expected)

    @weight(3)
    @number("4.4")
    @visibility("visible")
    def test_two_ranks(self):
        """tp_forward on 2 ranks: logits at both, 2L all-reduces and one all-gather, their bytes"""
        self.check_forward(oracle.config(H=8, G=4, dh=6), n=2, B=3, T=5)

    @weight(2)
    @number("4.5")
    @visibility("visible")
    def test_eight_ranks(self):
        """tp_forward on 8 ranks that share 4 KV heads and a tied head"""
        self.check_forward(oracle.config(H=8, G=4, dh=6), n=8, B=2, T=4, tied=True)

    @weight(2)
    @number("4.6")
    @visibility("visible")
    def test_options(self):
        """algo chooses the all-reduces; gather_logits=False leaves each rank its own columns"""
        n, B, T = 4, 2, 6
        cfg = oracle.config(H=8, G=4, dh=6)
        params, tokens = self.model(cfg), self.tokens(cfg, B, T)
        own = oracle.columns(forward(params, cfg, tokens), n)
        args = [([p], cfg, tokens, COMM) for p in oracle.shards(params, cfg, n)]
        with self.student.ranks(n) as ranks:
            for algo, sent in (
                ("ring", Budget("2*L*2*(n-1)*B*T*d*s/n", **sizes(cfg, n, B, T))),
                ("rd", Budget("2*L*(n//2)*B*T*d*s", **sizes(cfg, n, B, T))),  # lg 4 = 4/2
            ):
                call = ranks.call("tp_forward", args, algo=algo, gather_logits=False)
                self.assert_each(call, "its part of the logits", own)
                self.assert_comm(call, counts={"all_reduce": 2 * cfg.n_layers}, sent=sent)
                self.assert_sends(call, sent.bytes, f"what 2L all-reduces by {algo!r} send")

    @weight(2)
    @number("4.7")
    @visibility("visible")
    def test_caches(self):
        """tp_forward with caches, 5 tokens, then one at a time: logits, bytes, what caches hold"""
        n, B = 2, 3
        cfg = oracle.config(H=8, G=4, dh=6)
        params, tokens = self.model(cfg), self.tokens(cfg, B, 8)
        expected, whole = forward(params, cfg, tokens), oracle.cached(params, cfg, tokens)
        shards = oracle.shards(params, cfg, n)
        with self.student.ranks(n) as ranks:
            caches = ranks.keep("KVCache", [(oracle.of_rank(cfg, n, r), B) for r in range(n)])
            for start, end in ((0, 5), (5, 6), (6, 7), (7, 8)):
                args = [([p], cfg, tokens[:, start:end], COMM) for p in shards]
                call = ranks.call("tp_forward", args, caches=[caches])
                self.assert_all(
                    call, f"the array of logits from {start} on", expected[:, start:end]
                )
                self.check_comm(call, cfg, n, B, end - start)
            for layer in range(cfg.n_layers):
                call = ranks.call("KVCache.read", [(caches, layer, 8)] * n)
                for r, value in enumerate(call.values):
                    own = oracle.kv_heads(cfg, n, r)
                    K_and_V = [heads[:, :, own] for heads in whole.read(layer, 8)]
                    self.assert_parts(f"K and V of layer {layer}, rank {r}", value, K_and_V)
