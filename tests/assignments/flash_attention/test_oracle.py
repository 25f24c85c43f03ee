"""What the tests expect, against PyTorch's own attention, numerical derivatives and formulas."""

import math

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from assignments.flash_attention import oracle


def randn(*shape: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed + math.prod(shape))
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def assert_equal(got: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(got, expected, rtol=1e-12, atol=1e-12)


class TestAttention:
    @pytest.mark.parametrize(("Nq", "Nk"), [(5, 5), (3, 8), (1, 6)])
    @pytest.mark.parametrize("causal", [False, True])
    @pytest.mark.parametrize("scale", [None, 0.3])
    def test_is_pytorchs(self, Nq, Nk, causal, scale):
        q, k, v = randn(2, 3, Nq, 4), randn(2, 3, Nk, 4), randn(2, 3, Nk, 4, seed=1)
        mask = oracle.visible(Nq, Nk, causal)
        expected = scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)
        assert_equal(oracle.attention(q, k, v, causal, scale=scale)[0], expected)

    def test_log_sum_exp(self):
        q, k = randn(5, 4), randn(7, 4)
        _, L = oracle.attention(q, k, k, scale=0.7)
        assert_equal(L, torch.logsumexp(q @ k.T * 0.7, dim=-1))

    def test_query_heads_share_key_heads_in_order(self):
        q, k, v = randn(2, 6, 5, 4), randn(2, 3, 7, 4), randn(2, 3, 7, 4, seed=1)
        expected = scaled_dot_product_attention(q, k, v, enable_gqa=True)
        assert_equal(oracle.attention(q, k, v)[0], expected)

    def test_alignment(self):
        """By default at the end; with a start, query i is at start + i."""
        aligned = oracle.visible(2, 4, causal=True)
        assert aligned.tolist() == [[True, True, True, False], [True] * 4]
        assert torch.equal(aligned, oracle.visible(2, 4, causal=True, start=2))
        assert oracle.visible(2, 3, causal=True, start=0).tolist() == [
            [True, False, False],
            [True, True, False],
        ]

    @pytest.mark.parametrize(("Nk", "start"), [(5, -2), (5, -9), (0, 0)])
    def test_rows_that_see_nothing(self, Nk, start):
        q, k, v, dO = randn(4, 3), randn(Nk, 3), randn(Nk, 3, seed=1), randn(4, 3, seed=1)
        blind = ~oracle.visible(4, Nk, True, start).any(-1)
        o, L = oracle.attention(q, k, v, True, start)
        assert not o[blind].any()
        assert (L[blind] == -math.inf).all()
        assert L[~blind].isfinite().all()
        dQ, dK, dV = oracle.gradients(q, k, v, dO, True, start)
        assert not dQ[blind].any()
        assert dK.isfinite().all()
        assert dV.isfinite().all()


class TestGradients:
    def test_are_those_of_differences(self):
        inputs = [randn(1, 2, 3, 4), randn(1, 1, 5, 4), randn(1, 1, 5, 4, seed=1)]
        for t in inputs:
            t.requires_grad_()
        assert torch.autograd.gradcheck(
            lambda q, k, v: oracle.attention(q, k, v, causal=True, scale=0.4), inputs
        )

    def test_are_pytorchs(self):
        q, k, v = randn(2, 6, 5, 4), randn(2, 3, 7, 4), randn(2, 3, 7, 4, seed=1)
        dO = randn(2, 6, 5, 4, seed=2)
        leaves = [t.clone().requires_grad_() for t in (q, k, v)]
        scaled_dot_product_attention(*leaves, enable_gqa=True).backward(dO)
        for got, leaf in zip(oracle.gradients(q, k, v, dO), leaves, strict=True):
            assert_equal(got, leaf.grad)


class TestCounts:
    @pytest.mark.parametrize(("Nq", "Nk", "Br", "Bc"), [(64, 48, 16, 16), (37, 53, 16, 32)])
    def test_without_a_mask(self, Nq, Nk, Br, Bc):
        assert oracle.key_rows(Nq, Nk, Br, Bc) == -(-Nq // Br) * Nk
        assert oracle.query_rows(Nq, Nk, Br, Bc) == -(-Nk // Bc) * Nq
        assert sum(rows * columns for rows, columns in oracle.tiles(Nq, Nk, Br, Bc)) == Nq * Nk

    def test_a_triangle_of_tiles(self):
        """With equal blocks, a causal mask leaves the tiles on and below the diagonal."""
        assert oracle.key_rows(64, 64, 16, 16, causal=True) == 16 * (1 + 2 + 3 + 4)
        assert oracle.query_rows(64, 64, 16, 16, causal=True) == 16 * (1 + 2 + 3 + 4)

    def test_queries_that_see_no_key_load_none(self):
        assert oracle.key_rows(48, 16, 16, 16, causal=True) == 16
        assert oracle.query_rows(48, 16, 16, 16, causal=True) == 16


class TestStates:
    def test_of_scores(self):
        s, v = randn(3, 5), randn(5, 2)
        m, ell, o = oracle.state(s, v)
        assert_equal(m + ell.log(), torch.logsumexp(s, dim=-1))
        assert_equal(o / ell[..., None], torch.softmax(s, dim=-1) @ v)

    def test_joined_pieces_are_the_whole(self):
        s, v = randn(3, 6), randn(6, 2)
        s[0, :4] = s[1, 4:] = -math.inf
        pieces = [oracle.state(s[:, i:j], v[i:j]) for i, j in ((0, 4), (4, 4), (4, 6))]
        for got, expected in zip(oracle.joined(pieces), oracle.state(s, v), strict=True):
            assert_equal(got, expected)

    def test_of_nothing(self):
        for s, v in ((randn(2, 0), randn(0, 3)), (torch.full((2, 4), -math.inf), randn(4, 3))):
            m, ell, o = oracle.state(s, v)
            assert (m == -math.inf).all()
            assert not ell.any()
            assert not o.any()


@pytest.mark.parametrize(
    ("dtype", "unit"), [(torch.bfloat16, 2.0**-8), (torch.float16, 2.0**-11), (torch.float32, None)]
)
def test_roundings(dtype, unit):
    """A number is off by at most one rounding after it is rounded to a 16-bit format."""
    assert oracle.roundings(dtype, 1) == unit
    if unit is not None:
        x = randn(1000)
        assert ((x.to(dtype).double() - x).abs() <= unit * x.abs()).all()
        assert oracle.roundings(dtype, 3) == 3 * unit


def test_rescales_are_growing_maxima():
    q, k = torch.ones(1, 1).double(), torch.tensor([1.0, 3.0, 2.0, 5.0, 5.0, 4.0]).double()[:, None]
    assert oracle.rescales(q, k, Bc=1) == 2  # 1 → 3 → 5: to have a maximum at all is none
    assert oracle.rescales(q, k, Bc=2) == 1
    assert oracle.rescales(q, k, Bc=6) == 0
    assert oracle.rescales(q, k, Bc=1, scale=-0.5) == 0  # the first is the largest now
    assert oracle.rescales(q, k, Bc=1, causal=True, start=1) == 1
    assert oracle.rescales(q, k, Bc=1, causal=True, start=-1) == 0


def test_miscounts_in_words():
    right = {"read": 100, "write": 10}
    assert oracle.miscounts("f", right, right) == ""
    assert oracle.miscounts("f", {"read": 124, "write": 9}, right, {"N·d": 12}) == (
        "f: read = 124, expected 100: 24 too many, 2·N·d\nf: write = 9, expected 10: 1 too few"
    )
    for odd in (None, "100", math.nan, math.inf, 10**30, torch.ones(2)):
        assert oracle.miscounts("f", {"read": odd, "write": 10}, right) == ""
