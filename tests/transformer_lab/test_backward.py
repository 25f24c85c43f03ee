"""Gradients of the parts, against torch's autograd on torch's own functions."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F
from transformer_lab import (
    apply_rope_backward,
    attention_core_backward,
    rms_norm_backward,
    rope_angles,
    silu,
    silu_backward,
)

BOUND = 1e-12

shapes = st.lists(st.integers(1, 6), min_size=0, max_size=3)
seeds = st.integers(0, 2**31)


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def gradients(function, dy, *inputs):
    """Of Σ dy ⊙ function(inputs), with regard to each input."""
    leaves = [torch.tensor(value, requires_grad=True) for value in inputs]
    out = function(*leaves)
    return [g.numpy() for g in torch.autograd.grad(out, leaves, torch.tensor(dy))]


def assert_equal(ours, expected):
    """Within BOUND of the largest element, where that is above 1: a norm of small numbers divides
    by them."""
    assert len(ours) == len(expected)
    for mine, reference in zip(ours, expected, strict=True):
        assert mine.shape == reference.shape
        assert mine.dtype == np.float64
        scale = max(1, np.max(np.abs(reference), initial=0))
        assert np.max(np.abs(mine - reference), initial=0) < BOUND * scale


class TestRmsNorm:
    @given(rows=shapes, d=st.integers(1, 40), eps=st.sampled_from([1e-6, 1e-2, 3.0]), seed=seeds)
    @settings(max_examples=60, deadline=None)
    def test_any_shape(self, rows, d, eps, seed):
        x, dy = numbers(*rows, d, seed=seed), numbers(*rows, d, seed=seed + 1)
        weight = numbers(d, seed=seed + 2)
        expected = gradients(lambda x, w: F.rms_norm(x, (d,), w, eps), dy, x, weight)
        assert_equal(rms_norm_backward(dy, x, weight, eps), expected)

    def test_a_row_is_not_changed_by_what_only_makes_it_longer(self):
        """y is the same for x and 2x but for ε, so the gradient has no part along x."""
        x, weight = numbers(3, 5), numbers(5, seed=1)
        dx, _ = rms_norm_backward(x, x, weight, 0.0)
        assert np.abs(np.sum(dx * x, axis=-1)).max() < BOUND
        assert np.abs(dx).max() > 0.1

    def test_no_rows_have_no_gradient_of_the_weight(self):
        dx, dweight = rms_norm_backward(np.zeros((2, 0, 3)), np.zeros((2, 0, 3)), np.ones(3), 1e-5)
        assert dx.shape == (2, 0, 3)
        assert dweight.tolist() == [0, 0, 0]


class TestSilu:
    @given(shape=shapes, scale=st.sampled_from([1e-3, 1.0, 30.0]), seed=seeds)
    @settings(max_examples=30, deadline=None)
    def test_any_shape(self, shape, scale, seed):
        x, dy = scale * numbers(*shape, seed=seed), numbers(*shape, seed=seed + 1)
        assert_equal([silu_backward(dy, x)], gradients(F.silu, dy, x))

    def test_large_numbers_do_not_overflow(self):
        assert silu_backward(np.ones(2), np.array([-1e4, 1e4])).tolist() == [0, 1]

    def test_it_is_the_slope_of_silu(self):
        x, step = np.linspace(-6, 6, 25), 1e-5
        slope = (silu(x + step) - silu(x - step)) / (2 * step)
        assert silu_backward(np.ones(25), x) == pytest.approx(slope, abs=1e-9)


def rotated(x, cos, sin):
    """Element i of a head's first half and of its second are one complex number."""
    turned = torch.complex(*x.chunk(2, dim=-1)) * torch.complex(cos, sin)[:, None, :]
    return torch.cat([turned.real, turned.imag], dim=-1)


class TestRope:
    @given(
        batch=st.integers(1, 3),
        length=st.integers(0, 6),
        heads=st.integers(1, 4),
        half=st.integers(1, 5),
        pos0=st.integers(0, 50),
        seed=seeds,
    )
    @settings(max_examples=30, deadline=None)
    def test_any_shape(self, batch, length, heads, half, pos0, seed):
        cos, sin = rope_angles(np.arange(pos0, pos0 + length), 2 * half, 1e4)
        x, dy = (numbers(batch, length, heads, 2 * half, seed=seed + i) for i in range(2))
        turns = [torch.tensor(value) for value in (cos, sin)]
        expected = gradients(lambda x: rotated(x, *turns), dy, x)
        assert_equal([apply_rope_backward(dy, cos, sin)], expected)


def attention(q, K, V, pos0):
    """torch's own, with each key head repeated for its query heads."""
    T, S, repeats = q.shape[1], K.shape[1], q.shape[2] // K.shape[2]
    visible = torch.arange(S) <= pos0 + torch.arange(T)[:, None]
    K, V = (heads.repeat_interleave(repeats, dim=2) for heads in (K, V))
    out = F.scaled_dot_product_attention(
        *(heads.transpose(1, 2) for heads in (q, K, V)), attn_mask=visible
    )
    return out.transpose(1, 2).flatten(2)


class TestAttention:
    @given(
        batch=st.integers(1, 2),
        length=st.integers(1, 6),
        groups=st.integers(1, 3),
        repeats=st.integers(1, 4),
        half=st.integers(1, 4),
        pos0=st.integers(0, 5),
        spare=st.integers(0, 3),
        scale=st.sampled_from([1.0, 10.0]),
        seed=seeds,
    )
    @settings(max_examples=60, deadline=None)
    def test_any_shape(self, batch, length, groups, repeats, half, pos0, spare, scale, seed):
        H, S, dh = groups * repeats, pos0 + length + spare, 2 * half
        q = scale * numbers(batch, length, H, dh, seed=seed)
        K, V = (numbers(batch, S, groups, dh, seed=seed + i) for i in (1, 2))
        dout = numbers(batch, length, H * dh, seed=seed + 3)
        expected = gradients(lambda q, K, V: attention(q, K, V, pos0), dout, q, K, V)
        assert_equal(attention_core_backward(dout, q, K, V, pos0), expected)

    def test_keys_that_no_query_sees_have_none(self):
        q, K, V = numbers(1, 2, 4, 6), numbers(1, 5, 2, 6, seed=1), numbers(1, 5, 2, 6, seed=2)
        _, dK, dV = attention_core_backward(numbers(1, 2, 24, seed=3), q, K, V, 1)
        assert (dK[:, 3:] == 0).all() and (dV[:, 3:] == 0).all()
        assert (dK[:, :3] != 0).all() and (dV[:, :3] != 0).all()

    def test_no_queries_have_none(self):
        q, K = numbers(1, 0, 4, 6), numbers(1, 5, 2, 6)
        dq, dK, dV = attention_core_backward(np.zeros((1, 0, 24)), q, K, K, 0)
        assert dq.shape == (1, 0, 4, 6)
        assert (dK == 0).all() and (dV == 0).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: rms_norm_backward(np.ones((2, 1)), np.ones((2, 4)), np.ones(4), 1e-5),
            r"dy has shape \(2, 1\); that of the output is \(2, 4\)",
        ),
        (
            lambda: rms_norm_backward(np.ones((2, 4)), np.ones((2, 4)), np.ones(1), 1e-5),
            r"weight has shape \(1,\); rows .* have 4 elements",
        ),
        (
            lambda: silu_backward(np.ones(4), np.ones((2, 4))),
            r"dy has shape \(4,\); that of the output is \(2, 4\)",
        ),
        (
            lambda: apply_rope_backward(np.ones((1, 3, 2, 4)), np.ones((2, 2)), np.ones((2, 2))),
            r"cos has shape \(2, 2\); .* needs \(3, 2\)",
        ),
        (
            lambda: attention_core_backward(
                np.ones((1, 2, 4, 4)), np.ones((1, 2, 4, 4)), *[np.ones((1, 2, 2, 4))] * 2, 0
            ),
            r"dout has shape \(1, 2, 4, 4\); that of the output is \(1, 2, 16\)",
        ),
        (
            lambda: attention_core_backward(
                np.ones((1, 2, 12)), np.ones((1, 2, 3, 4)), *[np.ones((1, 2, 2, 4))] * 2, 0
            ),
            "3 query heads .* 2 KV heads",
        ),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
