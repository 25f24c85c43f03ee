"""The parts, each against its definition."""

import math

import numpy as np
import pytest
from transformer_lab import apply_rope, attention_core, rms_norm, rope_angles, silu


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


class TestRmsNorm:
    def test_each_row_is_divided_by_its_root_mean_square(self):
        x, weight = numbers(2, 3, 5), numbers(5, seed=1)
        y = rms_norm(x, weight, eps=0.0)
        assert np.sqrt(np.mean((y / weight) ** 2, axis=-1)) == pytest.approx(np.ones((2, 3)))
        assert y[1, 2, 4] == pytest.approx(
            x[1, 2, 4] / math.sqrt(sum(v * v for v in x[1, 2]) / 5) * weight[4], rel=1e-14
        )

    def test_eps_is_inside_the_root(self):
        assert rms_norm(np.zeros(4), np.ones(4), eps=1e-5).tolist() == [0.0] * 4
        assert rms_norm(np.full(4, 3.0), np.ones(4), eps=16.0)[0] == pytest.approx(3 / 5)

    def test_weights_of_another_width_are_refused(self):
        with pytest.raises(ValueError, match=r"weight has shape \(1,\); rows .* have 4 elements"):
            rms_norm(np.zeros((2, 4)), np.ones(1), 1e-5)


class TestSilu:
    def test_it_is_x_times_its_logistic_function(self):
        assert silu(np.array([-1.0, 0.0, 2.0])) == pytest.approx(
            [-1 / (1 + math.e), 0, 2 / (1 + math.exp(-2))], rel=1e-15
        )

    def test_large_numbers_neither_overflow_nor_lose_their_digits(self):
        assert silu(np.array([-1e4, 1e4])).tolist() == [0, 1e4]
        assert silu(np.array([-50.0]))[0] == pytest.approx(-50 * math.exp(-50), rel=1e-13)


class TestRope:
    def test_angles_are_position_times_frequency(self):
        cos, sin = rope_angles(np.array([0, 3]), 4, 100.0)
        # Frequencies 100^(−0/4) = 1 and 100^(−2/4) = 1/10.
        assert cos == pytest.approx(np.cos([[0, 0], [3, 0.3]]))
        assert sin == pytest.approx(np.sin([[0, 0], [3, 0.3]]))

    def test_element_i_is_turned_with_element_i_plus_half(self):
        cos, sin = rope_angles(np.array([5]), 4, 100.0)
        x = np.array([1.0, 0, 0, 2]).reshape(1, 1, 1, 4)
        c0, s0, c1, s1 = math.cos(5), math.sin(5), math.cos(0.5), math.sin(0.5)
        assert apply_rope(x, cos, sin).ravel() == pytest.approx([c0, -2 * s1, s0, 2 * c1])

    def test_products_depend_on_the_distance_alone(self):
        q, k = numbers(1, 1, 1, 8), numbers(1, 1, 1, 8, seed=1)

        def product(i, j):
            turned = [
                apply_rope(x, *rope_angles(np.array([p]), 8, 1e4)) for x, p in ((q, i), (k, j))
            ]
            return np.sum(turned[0] * turned[1])

        assert product(3, 1) == pytest.approx(product(40, 38), rel=1e-12)
        assert product(3, 1) != pytest.approx(product(3, 2), rel=1e-2)

    def test_the_input_is_left_as_it_is(self):
        x = numbers(1, 2, 3, 4)
        before = x.copy()
        apply_rope(x, *rope_angles(np.arange(2), 4, 1e4))
        assert np.array_equal(x, before)

    @pytest.mark.parametrize(
        ("call", "message"),
        [
            (lambda: rope_angles(np.arange(2), 3, 1e4), "dh is 3; it is an even number"),
            (lambda: rope_angles(np.arange(2), 4, 0.0), "theta is 0.0; it is more than 0"),
            (lambda: rope_angles(np.zeros((1, 2)), 4, 1e4), r"pos has shape \(1, 2\)"),
            (
                lambda: apply_rope(np.zeros((1, 3, 2, 4)), *rope_angles(np.arange(2), 4, 1e4)),
                r"cos has shape \(2, 2\); x of shape \(1, 3, 2, 4\) needs \(3, 2\)",
            ),
            (
                lambda: apply_rope(np.zeros((3, 4)), *rope_angles(np.arange(3), 4, 1e4)),
                r"x has shape \(3, 4\); it needs four dimensions",
            ),
        ],
    )
    def test_what_does_not_fit_is_refused(self, call, message):
        with pytest.raises(ValueError, match=message):
            call()


def attention_by_definition(q, K, V, pos0):
    """One query, one head and one key at a time."""
    B, T, H, dh = q.shape
    repeats = H // K.shape[2]
    out = np.zeros((B, T, H, V.shape[3]))
    for b, t, h in np.ndindex(B, T, H):
        g = h // repeats
        visible = range(pos0 + t + 1)
        weights = [math.exp(q[b, t, h] @ K[b, s, g] / math.sqrt(dh)) for s in visible]
        for s in visible:
            out[b, t, h] += weights[s] / sum(weights) * V[b, s, g]
    return out.reshape(B, T, -1)


class TestAttention:
    @pytest.mark.parametrize(("heads", "groups"), [(6, 1), (6, 2), (6, 3), (6, 6)])
    @pytest.mark.parametrize(("length", "pos0", "spare"), [(5, 0, 0), (1, 6, 0), (3, 2, 4)])
    def test_it_is_its_definition(self, heads, groups, length, pos0, spare):
        keys = pos0 + length + spare
        q = numbers(2, length, heads, 4)
        K, V = numbers(2, keys, groups, 4, seed=1), numbers(2, keys, groups, 4, seed=2)
        out = attention_core(q, K, V, pos0)
        assert out.shape == (2, length, heads * 4)
        assert out == pytest.approx(attention_by_definition(q, K, V, pos0), rel=1e-12)

    def test_large_scores_do_not_overflow(self):
        q, K = numbers(1, 3, 2, 4), numbers(1, 3, 2, 4, seed=1)
        V = numbers(1, 3, 2, 4, seed=2)
        out = attention_core(1e4 * q, K, V, 0)
        assert np.isfinite(out).all()
        assert out[0, 0] == pytest.approx(V[0, 0].ravel())  # the first query sees one key

    @pytest.mark.parametrize(
        ("shapes", "pos0", "message"),
        [
            (((1, 2, 3, 4), (1, 2, 2, 4)), 0, "3 query heads .* 2 KV heads"),
            (((1, 2, 1, 4), (1, 2, 2, 4)), 0, "1 query head.* 2 KV heads"),
            (((1, 2, 4, 4), (1, 5, 2, 4)), 4, "up to position 5, but K has 5 positions"),
            (((1, 2, 4, 4), (1, 5, 2, 4)), -1, "pos0 is -1"),
            (((1, 2, 4, 4), (2, 2, 2, 4)), 0, "batch"),
            (((1, 2, 4, 4), (1, 2, 2, 6)), 0, "d_head"),
            (((1, 2, 16), (1, 2, 2, 4)), 0, r"q has shape \(1, 2, 16\); it needs four dimensions"),
        ],
    )
    def test_what_does_not_fit_is_refused(self, shapes, pos0, message):
        q, K = map(np.zeros, shapes)
        with pytest.raises(ValueError, match=message):
            attention_core(q, K, K.copy(), pos0)

    def test_keys_and_values_of_different_shapes_are_refused(self):
        q = np.zeros((1, 2, 2, 4))
        with pytest.raises(ValueError, match=r"V has shape \(1, 3, 2, 4\), K \(1, 2, 2, 4\)"):
            attention_core(q, q, np.zeros((1, 3, 2, 4)), 0)
