"""The forward agrees with a model of torch's modules; the cache changes nothing but the work."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformer_lab import TINY, Config, KVCache, forward, init_params

from tests.transformer_lab.torch_model import torch_logits

#: Logits are of the order of 1. A norm of few, small numbers enlarges what was rounded before.
BOUND, BOUND_OF_ANY_SHAPE = 1e-12, 1e-10


def tokens_of(cfg, batch, length, seed=0):
    return np.random.default_rng(seed).integers(0, cfg.vocab, size=(batch, length))


def error(a, b):
    assert a.shape == b.shape and a.dtype == b.dtype == np.float64
    return np.max(np.abs(a - b))


class TestAgainstTorch:
    @pytest.mark.parametrize("tied", [False, True])
    def test_tiny(self, tied):
        params = init_params(TINY, seed=1, tied=tied)
        tokens = tokens_of(TINY, 2, 9)
        logits = forward(params, TINY, tokens)
        assert logits.shape == (2, 9, TINY.vocab)
        assert 0.1 < np.std(logits) < 10
        assert error(logits, torch_logits(params, TINY, tokens)) < BOUND

    @given(
        groups=st.sampled_from([1, 2, 3]),
        repeats=st.sampled_from([1, 2, 5]),
        half=st.integers(1, 4),
        d_model=st.integers(1, 40),
        d_ff=st.integers(1, 40),
        n_layers=st.integers(1, 3),
        length=st.integers(1, 12),
        theta=st.sampled_from([10.0, 1e4, 5e5]),
        eps=st.sampled_from([1e-6, 1e-2]),
        seed=st.integers(0, 2**31),
    )
    @settings(max_examples=30, deadline=None)
    def test_any_shape(
        self, groups, repeats, half, d_model, d_ff, n_layers, length, theta, eps, seed
    ):
        cfg = Config(
            n_layers=n_layers,
            d_model=d_model,
            n_heads=groups * repeats,
            n_kv_heads=groups,
            d_head=2 * half,
            d_ff=d_ff,
            vocab=17,
            max_seq=12,
            norm_eps=eps,
            rope_theta=theta,
        )
        params = init_params(cfg, seed, tied=seed % 2 == 0)
        tokens = tokens_of(cfg, 2, length, seed)
        difference = error(forward(params, cfg, tokens), torch_logits(params, cfg, tokens))
        assert difference < BOUND_OF_ANY_SHAPE


class TestCache:
    @pytest.mark.parametrize("steps", [[9], [1] * 9, [4, 1, 1, 3], [8, 1]])
    def test_in_steps_it_agrees_with_torch_on_the_whole(self, steps):
        params = init_params(TINY, seed=2)
        tokens = tokens_of(TINY, 3, 9)
        cache = KVCache(TINY, batch=3, max_len=9)
        logits, start = [], 0
        for step in steps:
            logits.append(forward(params, TINY, tokens[:, start : start + step], cache))
            start += step
            assert cache.length == start
        assert error(np.concatenate(logits, axis=1), torch_logits(params, TINY, tokens)) < BOUND

    def test_it_is_set_back_to_try_other_tokens(self):
        params = init_params(TINY, seed=3)
        first, second = tokens_of(TINY, 1, 8, seed=1), tokens_of(TINY, 1, 8, seed=2)
        second[:, :5] = first[:, :5]
        cache = KVCache(TINY, batch=1)
        forward(params, TINY, first, cache)
        cache.length = 5
        logits = forward(params, TINY, second[:, 5:], cache)
        assert error(logits, torch_logits(params, TINY, second)[:, 5:]) < BOUND

    def test_one_that_is_full_is_refused_and_stays_as_it_was(self):
        params = init_params(TINY)
        cache = KVCache(TINY, batch=1, max_len=4)
        forward(params, TINY, [[1, 2, 3]], cache)
        with pytest.raises(ValueError, match="has room for 4 positions; 3 are taken"):
            forward(params, TINY, [[1, 2]], cache)
        assert cache.length == 3

    def test_one_of_another_model_is_refused(self):
        cache = KVCache(replace(TINY, n_kv_heads=1), batch=1)
        with pytest.raises(ValueError, match=r"k has shape \(1, 2, 4, 10\).* \(1, T, 1, 10\)"):
            forward(init_params(TINY), TINY, [[1, 2]], cache)


def test_parameters_of_another_model_are_refused():
    """Numpy would repeat a row of final_norm, and a d_ff of its own would fit unnoticed."""
    params = init_params(replace(TINY, d_ff=8))
    with pytest.raises(ValueError, match=r"layers\[0\]\.w_gate has shape \(64, 8\)"):
        forward(params, TINY, [[1]])


class TestTokens:
    @pytest.mark.parametrize(
        ("tokens", "message"),
        [
            ([1, 2], r"tokens has shape \(2,\); it needs two dimensions, batch and positions"),
            ([[1.0]], "tokens is of float64; give whole numbers"),
            ([[True]], "tokens is of bool; give whole numbers"),
            ([[0, -1]], r"tokens\[0, 1\] is -1; .* from 0 to 103"),
            ([[0], [104]], r"tokens\[1, 0\] is 104; .* from 0 to 103"),
            (np.zeros((1, 65), int), "65 positions are asked for; .* max_seq 64"),
        ],
    )
    def test_what_cannot_be_looked_up_is_named(self, tokens, message):
        with pytest.raises(ValueError, match=message):
            forward(init_params(TINY), TINY, tokens)

    def test_no_token_gives_no_logits(self):
        assert forward(init_params(TINY), TINY, np.zeros((2, 0), int)).shape == (2, 0, 104)


def test_numpy_alone_imports_neither_torch_nor_a_wrapper_of_numpy():
    """Each process of each test of a submission pays for what is imported."""
    code = (
        "import sys, transformer_lab as t, hw_specs, llm_math; "
        "t.forward(t.init_params(t.TINY), t.TINY, [[1, 2]], t.KVCache(t.TINY, 1)); "
        "heavy = ('torch', 'triton', 'array_api_compat.numpy', 'array_api_compat.torch'); "
        "print([m for m in heavy if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
