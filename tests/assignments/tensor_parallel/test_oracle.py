"""What the tests expect, against the whole model, its own gradients and closed formulas."""

import dataclasses

import numpy as np
import pytest
import torch
import transformer_lab
from comm_sim import NVLINK4, t_formula
from hw_specs import H100
from llm_math import LLAMA3_8B, LLAMA3_70B, QWEN2_5_7B
from transformer_lab import KVCache, forward, init_params

from assignments.tensor_parallel import oracle

#: H, G, d_head, n: aligned; n > G; neither divides the other; one KV head; one rank.
LAYOUTS = [
    (8, 4, 6, 2),
    (8, 4, 6, 8),
    (12, 3, 4, 2),
    (12, 3, 4, 4),
    (24, 6, 2, 4),
    (6, 1, 14, 3),
    (8, 4, 6, 1),
]
layouts = pytest.mark.parametrize(("H", "G", "dh", "n"), LAYOUTS)
tied_or_not = pytest.mark.parametrize("tied", [False, True])


def made(H, G, dh, tied=False):
    """A config, parameters, tokens (2, 5), gradients at the logits."""
    cfg = oracle.config(H, G, dh)
    rng = np.random.default_rng(H)
    tokens = rng.integers(0, cfg.vocab, (2, 5))
    return cfg, init_params(cfg, H, tied=tied), tokens, rng.standard_normal((2, 5, cfg.vocab))


def assert_close(got, expected):
    np.testing.assert_allclose(got, expected, rtol=1e-11, atol=1e-12)


class TestConfig:
    @pytest.mark.parametrize(("H", "G", "dh"), [(8, 4, 6), (12, 3, 4), (24, 6, 2), (6, 1, 14)])
    def test_no_two_sizes_are_equal(self, H, G, dh):
        cfg = oracle.config(H, G, dh)
        sizes = [cfg.d_model, cfg.d_ff, cfg.vocab, cfg.max_seq, H * dh, G * dh]
        assert len(set(sizes)) == len(sizes)

    def test_is_not_the_default(self):
        fields = {field.name: field.default for field in dataclasses.fields(transformer_lab.Config)}
        cfg = oracle.config(8, 4)
        assert cfg.norm_eps != fields["norm_eps"]
        assert cfg.rope_theta != fields["rope_theta"]


class TestWhoHoldsWhat:
    def test_by_hand(self):
        cfg = oracle.config(12, 3)
        assert [oracle.query_heads(cfg, 4, r) for r in range(4)] == [
            [0, 1, 2],
            [3, 4, 5],
            [6, 7, 8],
            [9, 10, 11],
        ]
        assert [oracle.kv_heads(cfg, 4, r) for r in range(4)] == [[0], [0, 1], [1, 2], [2]]
        assert [oracle.kv_heads(cfg, 2, r) for r in range(2)] == [[0, 1], [1, 2]]
        assert oracle.holders(cfg, 4, 1) == [1, 2]
        assert oracle.elements([0, 2], 3) == [0, 1, 2, 6, 7, 8]
        assert oracle.share(6, 3, 1) == [2, 3]

    @layouts
    @tied_or_not
    def test_shards_make_up_the_whole(self, H, G, dh, n, tied):
        cfg, params, _, _ = made(H, G, dh, tied)
        shards = oracle.shards(params, cfg, n)
        head = params["embed"].T if tied else params["lm_head"]
        assert np.array_equal(np.concatenate([p["lm_head"] for p in shards], 1), head)
        for i, layer in enumerate(params["layers"]):
            for name in ("wq", "w_gate", "w_up"):
                parts = [p["layers"][i][name] for p in shards]
                assert np.array_equal(np.concatenate(parts, 1), layer[name])
            for name in ("wo", "w_down"):
                parts = [p["layers"][i][name] for p in shards]
                assert np.array_equal(np.concatenate(parts, 0), layer[name])
            for p in shards:
                for j, kv in enumerate(p["kv_groups"]):
                    for name in ("wk", "wv"):
                        own = p["layers"][i][name][:, j * dh : (j + 1) * dh]
                        assert np.array_equal(own, layer[name][:, kv * dh : (kv + 1) * dh])

    def test_shards_share_no_memory(self):
        cfg, params, _, _ = made(8, 4, 6)
        first, second = oracle.shards(params, cfg, 2)
        for name in ("embed", "final_norm", "lm_head"):
            assert not np.shares_memory(first[name], second[name])
            assert not np.shares_memory(first[name], params[name])
        assert not np.shares_memory(
            first["layers"][0]["attn_norm"], second["layers"][0]["attn_norm"]
        )


class TestParts:
    @layouts
    def test_add_up_to_the_whole_block(self, H, G, dh, n):
        cfg, params, _, _ = made(H, G, dh)
        layer = params["layers"][1]
        x = np.random.default_rng(1).standard_normal((2, 5, cfg.d_model))
        # The model norms its input, with weights of 1 and an ε of nearly 0 to no effect here.
        normed = x / np.sqrt(np.mean(x * x, -1, keepdims=True))
        plain = dataclasses.replace(cfg, norm_eps=1e-30)
        whole = layer | {"attn_norm": np.ones(cfg.d_model), "mlp_norm": np.ones(cfg.d_model)}
        angles = transformer_lab.rope_angles(np.arange(5), cfg.d_head, cfg.rope_theta)
        attention = transformer_lab.model.attention(whole, plain, 1, normed, *angles, 0, None)
        parts = [oracle.attention_of_rank(layer, cfg, n, r, normed) for r in range(n)]
        assert_close(sum(parts), attention)
        late = [oracle.attention_of_rank(layer, cfg, n, r, normed, pos0=3) for r in range(n)]
        assert_close(sum(late), attention[:, 3:])
        parts = [oracle.mlp_of_rank(layer, cfg, n, r, normed) for r in range(n)]
        assert_close(sum(parts), transformer_lab.model.mlp(whole, plain, normed))

    @pytest.mark.parametrize("block", ["attention", "mlp"])
    def test_gradients_are_derivatives(self, block):
        cfg, params, _, _ = made(12, 3, 4)
        layer, rng = params["layers"][0], np.random.default_rng(2)
        x, dy = rng.standard_normal((2, 1, 4, cfg.d_model))
        step = {name: rng.standard_normal(array.shape) for name, array in layer.items()}
        move = rng.standard_normal(x.shape)
        part = oracle.attention_of_rank if block == "attention" else oracle.mlp_of_rank
        n, r, e = 4, 1, 1e-6
        dx, grads = oracle.block_gradients(layer, cfg, n, r, x, dy, block)

        def loss(at):
            moved = {name: layer[name] + at * step[name] for name in layer}
            return np.sum(part(moved, cfg, n, r, x + at * move) * dy)

        own = oracle.part(step, cfg, n, r)
        expected = np.sum(dx * move) + sum(np.sum(grads[name] * own[name]) for name in grads)
        assert (loss(e) - loss(-e)) / (2 * e) == pytest.approx(expected, rel=1e-7)


class TestGradients:
    @pytest.mark.parametrize(("H", "G", "dh"), [(8, 4, 6), (12, 3, 4)])
    @tied_or_not
    def test_are_the_models_own(self, H, G, dh, tied):
        cfg, params, tokens, dlogits = made(H, G, dh, tied)
        got = oracle.gradients(params, cfg, tokens, dlogits)
        expected = transformer_lab.backward(params, cfg, tokens, dlogits)
        assert got.keys() == expected.keys()
        assert (got["lm_head"] is None) == tied
        for name in ("embed", "final_norm", *(() if tied else ("lm_head",))):
            assert_close(got[name], expected[name])
        for one, other in zip(got["layers"], expected["layers"], strict=True):
            assert one.keys() == other.keys()
            for name in one:
                assert_close(one[name], other[name])

    def test_are_computed_where_autograd_is_off(self):
        cfg, params, tokens, dlogits = made(8, 4, 6)
        with torch.no_grad():
            assert oracle.gradients(params, cfg, tokens, dlogits)["embed"].any()

    def test_shards_have_the_keys_of_gradients(self):
        cfg, params, tokens, dlogits = made(8, 4, 6, tied=True)
        for shard in oracle.gradient_shards(params, cfg, 2, tokens, dlogits):
            assert set(shard) == {"embed", "final_norm", "lm_head", "layers"}
            assert shard["lm_head"] is None

    @layouts
    def test_replicas_sum_to_the_whole_gradient(self, H, G, dh, n):
        cfg, params, _, _ = made(H, G, dh)
        layer, rng = params["layers"][0], np.random.default_rng(3)
        x, dy = rng.standard_normal((2, 2, 5, cfg.d_model))
        cfg = dataclasses.replace(cfg, n_layers=1)
        parts = [oracle.block_gradients(layer, cfg, n, r, x, dy, "attention")[1] for r in range(n)]
        _, whole = oracle.block_gradients(layer, cfg, 1, 0, x, dy, "attention")
        summed = oracle.summed_over_replicas([{"layers": [p]} for p in parts], cfg, n)
        for r, got in enumerate(summed):
            own = oracle.elements(oracle.kv_heads(cfg, n, r), dh)
            for name in ("wk", "wv"):
                assert_close(got["layers"][0][name], whole[name][:, own])
            assert got["layers"][0]["wq"] is parts[r]["wq"]


class TestDecoding:
    def test_generates_as_with_a_cache(self):
        cfg, params, prompt, _ = made(8, 4, 6)
        cache, tokens, chosen = KVCache(cfg, len(prompt)), prompt, []
        for _ in range(4):
            tokens = forward(params, cfg, tokens, cache)[:, -1:].argmax(-1)
            chosen.append(tokens)
        expected = np.concatenate(chosen, 1)
        assert np.array_equal(oracle.generate(params, cfg, prompt, 4), expected)
        assert oracle.generate(params, cfg, prompt, 0).shape == (2, 0)

    def test_chooses_among_the_first_tokens(self):
        cfg, params, prompt, _ = made(8, 4, 6)
        assert oracle.generate(params, cfg, prompt, 5).max() >= 12
        assert oracle.generate(params, cfg, prompt, 5, among=12).max() < 12

    def test_a_ranks_own_config(self):
        cfg = oracle.config(12, 3)
        assert oracle.of_rank(cfg, 4, 1).n_kv_heads == 2
        assert oracle.of_rank(cfg, 4, 0).n_kv_heads == 1

    def test_caches_what_the_whole_model_caches(self):
        cfg, params, tokens, _ = made(8, 4, 6)
        cache = oracle.cached(params, cfg, tokens)
        assert cache.length == 5
        assert cache.read(1, 5)[0].shape == (2, 5, 4, 6)


class TestSeconds:
    @pytest.mark.parametrize("model", [LLAMA3_8B, LLAMA3_70B, QWEN2_5_7B], ids=lambda m: m.name)
    @pytest.mark.parametrize("algo", ["ring", "rd", "innet"])
    @pytest.mark.parametrize("n", [1, 4])
    def test_follow_from_the_packages_figures(self, model, algo, n):
        batch, ctx = 24, 3000
        got = oracle.decode_step(
            *(model, n, batch, ctx),
            peak=H100.peak_flops("bf16"),
            mem_bw=H100.mem_bw,
            alpha=NVLINK4.alpha,
            bw=NVLINK4.bw,
            algo=algo,
        )
        message = batch * model.d_model * 2
        one = t_formula(algo, n, message, NVLINK4.alpha, NVLINK4.bw)
        cache = batch * ctx * model.kv_bytes_per_token(2) / n
        assert got == pytest.approx(
            {
                "t_math": batch * model.flops_per_token(ctx) / n / 989e12,
                "t_mem": (model.matmul_params() * 2 / n + cache) / 3.35e12,
                "t_comm": 2 * model.n_layers * one,
                "t_step": max(got["t_math"], got["t_mem"]) + got["t_comm"],
                "kv_per_chip_per_token": model.kv_bytes_per_token(2) / n,
                "n_allreduce": 2 * model.n_layers,
                "msg_bytes": message,
            },
            rel=1e-12,
        )

    def test_wait_for_the_fullest_rank(self):
        model = dataclasses.replace(LLAMA3_8B, n_heads=12, n_kv_heads=4)
        got = oracle.decode_step(model, 6, 1, 1, peak=1, mem_bw=1, alpha=1, bw=1)
        assert got["kv_per_chip_per_token"] == model.kv_bytes_per_token(2) * 2 / 4
