"""The counted NumPy head: right, and its counts equal to the formulas, element by element."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assignments.flash_attention import oracle
from tests.assignments.loading import load

HOUSE = Path(__file__).resolve().parents[3]


lab = load(HOUSE / "solutions/flash_attention/flash_lab.py")
IO = lab.IO


def head(Nq, Nk, d, *, seed=0, spread=1.0):
    """Q, K, V and dO in float64; `spread` multiplies Q, and so the scores."""
    rng = np.random.default_rng(seed)
    Q, K, V, dO = (rng.standard_normal((rows, d)) for rows in (Nq, Nk, Nk, Nq))
    return Q * spread, K, V, dO


def assert_near(got, expected, *, units=500):
    """Within `units` roundings of float64, of the largest finite number that is expected."""
    expected = np.asarray(expected)
    assert got.shape == expected.shape
    assert got.dtype == np.float64
    assert not np.isnan(got).any()
    finite = np.isfinite(expected)
    assert (np.isfinite(got) == finite).all()
    assert (got[~finite] == expected[~finite]).all()
    size = max(np.abs(expected[finite]).max(initial=0), 1)
    assert np.abs(got[finite] - expected[finite]).max(initial=0) <= units * 2.2e-16 * size


def definition(Q, K, V, causal=False):
    """O and L."""
    return oracle.attention(*map(torch.from_numpy, (Q, K, V)), causal)


def gradients(Q, K, V, dO, causal=False):
    """dQ, dK and dV by autograd; without keys there is no graph to go through, and all are 0."""
    if not len(K):
        return np.zeros_like(Q), np.zeros_like(K), np.zeros_like(V)
    return oracle.gradients(*map(torch.from_numpy, (Q, K, V, dO)), causal)


@st.composite
def problems(draw):
    """Q, K, V, dO, (Br, Bc) and causal; more queries than keys, and none of either, included."""
    shape = draw(st.integers(0, 24)), draw(st.integers(0, 24)), draw(st.integers(1, 12))
    tensors = head(*shape, seed=draw(st.integers(0, 1000)))
    blocks = draw(st.integers(1, 30)), draw(st.integers(1, 30))
    return tensors, blocks, draw(st.booleans())


class TestNumbers:
    @given(problems())
    @settings(deadline=None, max_examples=80)
    def test_against_the_definition(self, problem):
        (Q, K, V, dO), (Br, Bc), causal = problem
        O_right, L_right = definition(Q, K, V, causal)
        o, P, _ = lab.standard_attention(Q, K, V, causal)
        assert_near(o, O_right)
        seen = oracle.visible(len(Q), len(K), causal).numpy()
        assert not P[~seen].any()
        assert_near(P.sum(axis=1), seen.any(axis=1).astype(float))
        for order in ("fa1", "fa2"):
            o, L, _ = lab.flash_fwd(Q, K, V, Br, Bc, causal, order)
            assert_near(o, O_right)
            assert_near(L, L_right)
        expected = gradients(Q, K, V, dO, causal)
        for got, right in zip(
            lab.standard_attention_bwd(Q, K, V, P, dO)[:3], expected, strict=True
        ):
            assert_near(got, right)
        for got, right in zip(
            lab.flash_bwd(Q, K, V, o, dO, L, Br, Bc, causal)[:3], expected, strict=True
        ):
            assert_near(got, right)

    @pytest.mark.parametrize("order", ["fa1", "fa2"])
    @pytest.mark.parametrize("spread", [30, 300], ids="scores × {}".format)
    def test_large_scores(self, order, spread):
        Q, K, V, dO = head(97, 113, 40, spread=spread)
        o, L, _ = lab.flash_fwd(Q, K, V, 16, 32, order=order)
        O_right, L_right = definition(Q, K, V)
        assert_near(o, O_right, units=100 * spread)
        assert_near(L, L_right)
        got = lab.flash_bwd(Q, K, V, o, dO, L, 16, 32)[:3]
        for ours, right in zip(got, gradients(Q, K, V, dO), strict=True):
            assert_near(ours, right, units=100 * spread)

    @pytest.mark.parametrize("N", [97, 113, 257, 1025])
    @pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
    def test_lengths_that_no_block_divides(self, N, causal):
        Q, K, V, dO = head(N, N, 59)
        O_right, L_right = definition(Q, K, V, causal)
        for order in ("fa1", "fa2"):
            o, L, _ = lab.flash_fwd(Q, K, V, 64, 48, causal, order)
            assert_near(o, O_right)
            assert_near(L, L_right)
        got = lab.flash_bwd(Q, K, V, o, dO, L, 64, 48, causal)[:3]
        for ours, right in zip(got, gradients(Q, K, V, dO, causal), strict=True):
            assert_near(ours, right)

    def test_one_new_query_sees_all_cached_keys(self):
        Q, K, V, _ = head(1, 1000, 111)
        causal, full = (lab.flash_fwd(Q, K, V, 64, 128, c)[0] for c in (True, False))
        assert_near(causal, full)

    @pytest.mark.parametrize("order", ["fa1", "fa2"])
    @pytest.mark.parametrize(("Br", "Bc"), [(1, 1), (3, 4), (4, 3), (64, 64)])
    def test_rows_without_a_visible_key(self, order, Br, Bc):
        """12 queries, 7 keys: the first 5 see none. They are 0 and −inf exactly, whatever dO is."""
        Q, K, V, dO = head(12, 7, 6)
        dO[:5] = 1e30
        o, L, _ = lab.flash_fwd(Q, K, V, Br, Bc, True, order)
        standard, P, _ = lab.standard_attention(Q, K, V, True)
        for found in (o, standard, P):
            assert not found[:5].any()
        assert (L[:5] == -np.inf).all()
        for dQ, dK, dV, _ in (
            lab.flash_bwd(Q, K, V, o, dO, L, Br, Bc, True),
            lab.standard_attention_bwd(Q, K, V, P, dO),
        ):
            assert not dQ[:5].any()
            assert np.abs(np.concatenate([dQ, dK, dV])).max() < 100

    def test_inputs_stay_as_they_are_and_any_dtype_is_computed_in_float64(self):
        Q, K, V, dO = (t.astype(np.float32) for t in head(9, 9, 4))
        before = [t.copy() for t in (Q, K, V, dO)]
        o, P, _ = lab.standard_attention(Q, K, V, True)
        o, L, _ = lab.flash_fwd(Q, K, V, 4, 4, True)
        found = lab.flash_bwd(Q, K, V, o, dO, L, 4, 4, True)[:3]
        for got, right in zip(found, gradients(Q, K, V, dO, True), strict=True):
            assert_near(got, right)
        assert P.dtype == np.float64
        assert all(np.array_equal(*pair) for pair in zip(before, (Q, K, V, dO), strict=True))


class TestCounts:
    """Equal to the formulas: no tolerance, and read, written and computed each on its own."""

    @given(problems())
    @settings(deadline=None, max_examples=80)
    def test_without_a_mask(self, problem):
        (Q, K, V, dO), (Br, Bc), _ = problem
        (Nq, d), Nk = Q.shape, len(K)
        Tr, Tc = math.ceil(Nq / Br), math.ceil(Nk / Bc)
        o, P, io = lab.standard_attention(Q, K, V)
        assert io == IO(
            read=2 * Nq * Nk + Nq * d + 2 * Nk * d,
            write=2 * Nq * Nk + Nq * d,
            flops=4 * Nq * Nk * d,
        )
        assert lab.standard_attention(Q, K, V, causal=True)[2] == io
        _, _, io = lab.flash_fwd(Q, K, V, Br, Bc, order="fa1")
        assert io == IO(
            read=2 * Nk * d + Tc * (2 * Nq * d + 2 * Nq),
            write=Tc * (Nq * d + 2 * Nq),
            flops=4 * Nq * Nk * d,
        )
        _, L, io = lab.flash_fwd(Q, K, V, Br, Bc, order="fa2")
        assert io == IO(read=Nq * d + Tr * 2 * Nk * d, write=Nq * d + Nq, flops=4 * Nq * Nk * d)
        *_, io = lab.standard_attention_bwd(Q, K, V, P, dO)
        assert io == IO(
            read=5 * Nq * Nk + 3 * Nq * d + 2 * Nk * d,
            write=2 * Nq * Nk + 2 * Nq * d + 2 * Nk * d,
            flops=8 * Nq * Nk * d,
        )
        *_, io = lab.flash_bwd(Q, K, V, o, dO, L, Br, Bc)
        assert io == IO(
            read=2 * Nq * d + 2 * Nk * d + Tc * (3 * Nq * d + 2 * Nq),
            write=Nq + Nq * d + 2 * Nk * d + Tc * Nq * d,
            flops=10 * Nq * Nk * d,
        )

    @given(problems())
    @settings(deadline=None, max_examples=80)
    def test_causal_tiles_are_charged_if_a_query_sees_a_key(self, problem):
        (Q, K, V, dO), (Br, Bc), _ = problem
        (Nq, d), Nk = Q.shape, len(K)
        tiles = list(oracle.tiles(Nq, Nk, Br, Bc, causal=True))  # (br, bc) of each
        rows, columns = sum(br for br, _ in tiles), sum(bc for _, bc in tiles)
        pairs = sum(br * bc for br, bc in tiles)
        _, _, io = lab.flash_fwd(Q, K, V, Br, Bc, True, "fa1")
        assert io == IO(
            read=2 * Nk * d + rows * (2 * d + 2), write=rows * (d + 2), flops=4 * pairs * d
        )
        o, L, io = lab.flash_fwd(Q, K, V, Br, Bc, True, "fa2")
        assert io == IO(read=Nq * d + 2 * columns * d, write=Nq * d + Nq, flops=4 * pairs * d)
        *_, io = lab.flash_bwd(Q, K, V, o, dO, L, Br, Bc, True)
        assert io == IO(
            read=2 * Nq * d + 2 * Nk * d + rows * (3 * d + 2),
            write=Nq + Nq * d + 2 * Nk * d + rows * d,
            flops=10 * pairs * d,
        )

    @pytest.mark.parametrize("M", [1, 16, 300, 4096])
    @pytest.mark.parametrize(("N", "d"), [(1, 1), (40, 8), (97, 16), (130, 59)])
    @pytest.mark.parametrize("order", ["fa1", "fa2"])
    def test_the_formula_foretells_the_count(self, order, N, d, M):
        Q = np.ones((N, d))
        _, _, io = lab.flash_fwd(Q, Q, Q, *lab.block_sizes(M, d), order=order)
        assert io.total == lab.fa_io_formula(N, d, M, order)

    def test_counts_are_whole_numbers(self):
        Q = np.ones((3, 2))
        o, P, standard = lab.standard_attention(Q, Q, Q)
        _, L, flash = lab.flash_fwd(Q, Q, Q, 2, 2)
        for io in (
            standard,
            flash,
            lab.standard_attention_bwd(Q, Q, Q, P, Q)[3],
            lab.flash_bwd(Q, Q, Q, o, Q, L, 2, 2)[3],
        ):
            assert {type(n) for n in (io.read, io.write, io.flops, io.total)} == {int}
        assert type(lab.fa_io_formula(3, 2, 100, "fa1")) is int

    def test_io(self):
        assert IO() == IO(read=0, write=0, flops=0)
        total = IO(1, 2, 3) + IO(10, 20, 30)
        assert (total.read, total.write, total.flops, total.total) == (11, 22, 33, 33)


class TestBlocks:
    def test_the_papers_a100(self):
        """100 KB in 16-bit numbers, d = 64."""
        assert lab.block_sizes(51_200, 64) == (64, 200)

    @given(st.integers(1, 200_000), st.integers(1, 256))
    @settings(deadline=None)
    def test_sizes(self, M, d):
        Br, Bc = lab.block_sizes(M, d)
        assert 4 * d * (Bc - 1) < M <= 4 * d * Bc  # the ceiling
        assert Br == min(Bc, d)

    @pytest.mark.parametrize("order", ["fa1", "fa2"])
    def test_moves_grow_as_theorem_2_says(self, order):
        """Θ(N²d²/M): for FA2's order while Br is not capped at d, which is M ≤ 4d²."""
        N, d = 65_536, 128
        unit = {M: N * N * d * d / M for M in (8192, 16_384, 32_768, 65_536)}
        ratios = [lab.fa_io_formula(N, d, M, order) / unit[M] for M in unit]
        low, high = {"fa1": (12, 13), "fa2": (8, 8.5)}[order]
        assert all(low <= ratio <= high for ratio in ratios)

    def test_fa2s_order_gains_nothing_from_more_memory_once_br_is_d(self):
        N, d = 4096, 64
        assert lab.fa_io_formula(N, d, 4 * d * d, "fa2") == lab.fa_io_formula(N, d, 10**6, "fa2")
        assert lab.fa_io_formula(N, d, 10**6, "fa1") < lab.fa_io_formula(N, d, 4 * d * d, "fa1")


class TestWrongArguments:
    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"Q": np.ones((2, 4, 6))}, r"Q must be one head, \(Nq, d\).*\(2, 4, 6\)"),
            ({"Q": np.ones((4, 0))}, r"Q must be one head, \(Nq, d\) with d ≥ 1.*\(4, 0\)"),
            ({"K": np.ones((5, 7))}, r"K has shape \(5, 7\); with Q \(4, 6\).*\(Nk, 6\)"),
            ({"K": np.ones(6)}, r"K has shape \(6,\).*must be \(Nk, 6\)"),
            ({"V": np.ones((4, 6))}, r"V has shape \(4, 6\).*K \(5, 6\) it must be \(5, 6\)"),
            ({"O": np.ones((5, 6))}, r"O has shape \(5, 6\).*must be \(4, 6\)"),
            ({"dO": np.ones((4, 5))}, r"dO has shape \(4, 5\).*must be \(4, 6\)"),
            ({"L": np.ones((4, 1))}, r"L has shape \(4, 1\).*must be \(4,\)"),
            ({"Br": 0}, "Br is a number of rows.*at least 1, but is 0"),
            ({"Bc": -1}, "Bc is a number of rows.*at least 1, but is -1"),
        ],
        ids=lambda value: ", ".join(value) if isinstance(value, dict) else "",
    )
    def test_backward(self, change, words):
        q, k = np.ones((4, 6)), np.ones((5, 6))
        arguments = {"Q": q, "K": k, "V": k, "O": q, "dO": q, "L": np.ones(4), "Br": 2, "Bc": 2}
        with pytest.raises(ValueError, match=words):
            lab.flash_bwd(**arguments | change)

    def test_the_others(self):
        q, k = np.ones((4, 6)), np.ones((5, 6))
        with pytest.raises(ValueError, match=r"K has shape \(5, 5\)"):
            lab.standard_attention(q, k[:, :5], k)
        with pytest.raises(ValueError, match=r"P has shape \(5, 4\).*it must be \(4, 5\)"):
            lab.standard_attention_bwd(q, k, k, np.ones((5, 4)), q)
        with pytest.raises(ValueError, match=r"V has shape \(4, 6\)"):
            lab.flash_fwd(q, k, q, 2, 2)
        with pytest.raises(ValueError, match="Bc is a number of rows"):
            lab.flash_fwd(q, k, k, 2, 0)
        for function in (
            lambda: lab.flash_fwd(q, k, k, 2, 2, order="fa3"),
            lambda: lab.fa_io_formula(4, 6, 100, "fa3"),
        ):
            with pytest.raises(ValueError, match="order must be 'fa1' or 'fa2', but is 'fa3'"):
                function()
        with pytest.raises(ValueError, match="M and d must be at least 1, but M = 0 and d = 6"):
            lab.block_sizes(0, 6)
