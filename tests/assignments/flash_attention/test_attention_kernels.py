"""The torch tiles: against the definition in float64, against autograd, and on their own terms."""

from __future__ import annotations

import itertools
import math
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from assignments.flash_attention import oracle
from tests.assignments.loading import load

HOUSE = Path(__file__).resolve().parents[3]
REFERENCE = HOUSE.parent / "shared" / "reference" / "attention_kernels.py"


kernels = load(HOUSE / "solutions/flash_attention/attention_kernels.py")
lab = load(HOUSE / "solutions/flash_attention/flash_lab.py")


@cache
def reference() -> ModuleType:
    if not REFERENCE.is_file():
        pytest.skip("the reference document attention_kernels.py is not beside this checkout")
    return load(REFERENCE)


F64 = torch.float64


def inputs(batch, Nq, Nk, d, *, dtype=F64, seed=0, spread=1.0):
    """q, k, v and dO; `spread` multiplies q, and so the scores."""
    generator = torch.Generator().manual_seed(seed)
    q, k, v, dO = (
        torch.randn(*batch, rows, d, dtype=dtype, generator=generator) for rows in (Nq, Nk, Nk, Nq)
    )
    return q * spread, k, v, dO


def assert_near(got, expected, *, units=200):
    """Within `units` roundings of got's dtype, of the largest finite number that is expected."""
    assert got.shape == expected.shape
    assert not got.isnan().any()
    assert torch.equal(got.isinf(), expected.isinf())
    finite = expected.isfinite()
    size = max(float(expected[finite].abs().amax()) if finite.any() else 0.0, 1.0)
    error = (got[finite].double() - expected[finite].double()).abs()
    bound = units * torch.finfo(got.dtype).eps * size
    assert not error.numel() or float(error.amax()) <= bound


def autograd(q, k, v, dO, *options):
    """dQ, dK and dV by autograd; without keys there is no graph to go through, and all are 0."""
    if k.shape[-2] == 0:
        return tuple(torch.zeros_like(t, dtype=F64) for t in (q, k, v))
    return oracle.gradients(q, k, v, dO, *options)


@st.composite
def problems(draw):
    """Arguments of every function, also masks without a visible key and tensors without rows."""
    batch = draw(st.sampled_from([(), (2,), (2, 3), (0,)]))
    Nq, Nk = draw(st.integers(0, 24)), draw(st.integers(0, 24))
    return {
        "tensors": inputs(
            batch,
            Nq,
            Nk,
            draw(st.integers(1, 12)),
            dtype=draw(st.sampled_from([F64, torch.float32])),
            seed=draw(st.integers(0, 1000)),
        ),
        "blocks": (draw(st.integers(1, 30)), draw(st.integers(1, 30))),
        "causal": draw(st.booleans()),
        "q_start": draw(st.integers(-30, 30)),
        "scale": draw(st.sampled_from([None, 0.0, 0.3, -1.0])),
    }


class TestAgainstTheDefinition:
    @given(problems())
    @settings(deadline=None, max_examples=60)
    def test_standard(self, problem):
        q, k, v, _ = problem["tensors"]
        masked = problem["causal"], problem["q_start"]
        expected = oracle.attention(q, k, v, *masked, problem["scale"])
        for got, right in zip(
            kernels.standard_attention(q, k, v, *masked, problem["scale"]), expected, strict=True
        ):
            assert got.dtype == q.dtype
            assert_near(got, right)

    @given(problems())
    @settings(deadline=None, max_examples=100)
    def test_flash_forward_and_backward(self, problem):
        q, k, v, dO = problem["tensors"]
        causal, start, scale = problem["causal"], problem["q_start"], problem["scale"]
        o, L = kernels.flash_forward(q, k, v, *problem["blocks"], causal, start, scale)
        for got, right in zip((o, L), oracle.attention(q, k, v, causal, start, scale), strict=True):
            assert got.dtype == q.dtype
            assert_near(got, right)
        gradients = kernels.flash_backward(
            q, k, v, o, L, dO, *problem["blocks"], causal, scale, q_start=start
        )
        expected = autograd(q, k, v, dO, causal, start, scale)
        for got, right in zip(gradients, expected, strict=True):
            assert got.dtype == q.dtype
            assert_near(got, right)

    @given(problems(), st.integers(1, 30))
    @settings(deadline=None, max_examples=60)
    def test_decode(self, problem, n_split):
        q, k, v, _ = problem["tensors"]
        o, parts = kernels.flash_decode(q, k, v, n_split, problem["scale"])
        expected, L = oracle.attention(q, k, v, scale=problem["scale"])
        assert o.dtype == q.dtype
        assert_near(o, expected)
        assert len(parts) == n_split
        m, ell, _ = oracle.joined([(part.m, part.l, part.o) for part in parts])
        assert_near((m + torch.log(ell)).to(q.dtype), L)

    @pytest.mark.parametrize("spread", [30, 300], ids="scores × {}".format)
    def test_large_scores_lose_no_more_than_standard_attention_does(self, spread):
        """Compared with float64, the error is that of the scores' rounding, whatever the order."""
        exact = inputs((4,), 97, 113, 40, spread=spread)
        q, k, v, dO = (t.float() for t in exact)
        o, L = oracle.attention(q, k, v)
        expected = (o, *oracle.gradients(q, k, v, dO))
        leaves = [t.clone().requires_grad_() for t in (q, k, v)]
        o, _ = kernels.standard_attention(*leaves)
        standard = (o.detach(), *torch.autograd.grad(o, leaves, dO))
        o, L = kernels.flash_forward(q, k, v, 16, 32)
        flash = (o, *kernels.flash_backward(q, k, v, o, L, dO, 16, 32))
        decoded, _ = kernels.flash_decode(q, k, v, 5)
        for got, ours, right in zip(standard, flash, expected, strict=True):
            error, bound = (float((t.double() - right).abs().amax()) for t in (ours, got))
            assert error <= 3 * bound + 1e-6
        assert (
            float((decoded - expected[0]).abs().amax())
            <= 3 * float((standard[0] - expected[0]).abs().amax()) + 1e-6
        )

    @pytest.mark.parametrize("N", [97, 113, 257, 1025])
    @pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
    def test_lengths_that_no_block_divides(self, N, causal):
        q, k, v, dO = inputs((), N, N, 59)
        o, L = kernels.flash_forward(q, k, v, causal=causal)
        expected = oracle.attention(q, k, v, causal)
        gradients = kernels.flash_backward(q, k, v, o, L, dO, causal=causal)
        assert_near(o, expected[0])
        assert_near(L, expected[1])
        for got, right in zip(gradients, oracle.gradients(q, k, v, dO, causal), strict=True):
            assert_near(got, right)

    def test_expanded_gradient_and_any_strides(self):
        """`O.sum().backward()` hands over one number, with strides 0; q, k and v are views."""
        q, k, v, _ = inputs((2, 3), 21, 34, 10)
        q, k, v = q.mT.contiguous().mT, k.flip(-2), v.transpose(0, 1).contiguous().transpose(0, 1)
        dO = torch.ones((), dtype=F64).expand(q.shape)
        before = [t.clone() for t in (q, k, v)]
        o, L = kernels.flash_forward(q, k, v, 8, 8)
        gradients = kernels.flash_backward(q, k, v, o, L, dO, 8, 8)
        for got, right in zip(gradients, oracle.gradients(q, k, v, dO), strict=True):
            assert_near(got, right)
        assert all(torch.equal(*pair) for pair in zip(before, (q, k, v), strict=True))

    def test_key_heads_that_query_heads_share(self):
        """Grouped-query attention: k and v are expanded, and their gradients summed up."""
        q, _, _, dO = inputs((2, 6), 9, 14, 8)
        _, k, v, _ = inputs((2, 2), 9, 14, 8, seed=1)
        wide_k, wide_v = (t[:, :, None].expand(2, 2, 3, 14, 8).reshape(2, 6, 14, 8) for t in (k, v))
        o, L = kernels.flash_forward(q, wide_k, wide_v, 4, 4, causal=True, q_start=5)
        dQ, dK, dV = kernels.flash_backward(
            q, wide_k, wide_v, o, L, dO, 4, 4, causal=True, q_start=5
        )
        expected = oracle.gradients(q, k, v, dO, True, 5)
        assert_near(dQ, expected[0])
        assert_near(dK.view(2, 2, 3, 14, 8).sum(2), expected[1])
        assert_near(dV.view(2, 2, 3, 14, 8).sum(2), expected[2])

    def test_pytorchs_own_attention(self):
        q, k, v, dO = inputs((2, 3), 33, 33, 16)
        leaves = [t.clone().requires_grad_() for t in (q, k, v)]
        right = torch.nn.functional.scaled_dot_product_attention(*leaves, is_causal=True)
        o, L = kernels.flash_forward(q, k, v, 8, 16, causal=True)
        assert_near(o, right.detach())
        gradients = kernels.flash_backward(q, k, v, o, L, dO, 8, 16, causal=True)
        for got, expected in zip(gradients, torch.autograd.grad(right, leaves, dO), strict=True):
            assert_near(got, expected)


class TestRowsWithoutAVisibleKey:
    """They are 0, −inf and 0, exactly, and touch nothing else: whatever dO is there."""

    def test_negative_start(self):
        q, k, v, dO = inputs((2,), 12, 20, 6)
        dO[:, :5] = 1e30
        masked = {"causal": True, "q_start": -5}
        o, L = kernels.standard_attention(q, k, v, **masked)
        for Br, Bc in ((1, 1), (3, 4), (4, 3), (12, 20), (64, 64)):
            tiled_O, tiled_L = kernels.flash_forward(q, k, v, Br, Bc, **masked)
            assert_near(tiled_O, o)
            assert_near(tiled_L, L)
            assert not tiled_O[:, :5].any()
            assert torch.equal(tiled_L[:, :5], torch.full((2, 5), -math.inf, dtype=F64))
            dQ, dK, dV = kernels.flash_backward(q, k, v, o, L, dO, Br, Bc, **masked)
            assert not dQ[:, :5].any()
            assert float(torch.cat([dQ, dK, dV], dim=1).abs().amax()) < 100
        assert not o[:, :5].any()

    def test_no_keys_at_all(self):
        q, k, v, dO = inputs((2,), 3, 0, 4)
        for o, L in (kernels.standard_attention(q, k, v), kernels.flash_forward(q, k, v)):
            assert torch.equal(o, torch.zeros(2, 3, 4, dtype=F64))
            assert torch.equal(L, torch.full((2, 3), -math.inf, dtype=F64))
            gradients = kernels.flash_backward(q, k, v, o, L, dO)
            assert [t.shape for t in gradients] == [q.shape, k.shape, v.shape]
            assert not gradients[0].any()
        o, parts = kernels.flash_decode(q, k, v, 3)
        assert not o.any()
        assert [part.m.isneginf().all().item() for part in parts] == [True] * 3


class TestStats:
    def test_tiles_without_a_mask(self):
        q, k, v, dO = inputs((2, 3), 10, 14, 4)
        stats: dict[str, int] = {}
        o, L = kernels.flash_forward(q, k, v, 4, 5, stats=stats)
        assert (stats["tiles"], stats["skipped"]) == (3 * 3, 0)
        kernels.flash_backward(q, k, v, o, L, dO, 4, 5, stats=stats)
        assert stats["dq_atomic_adds"] == 3 * 10 * 4  # each block of keys adds to all of dQ
        assert set(stats) == {"tiles", "skipped", "rescales", "dq_atomic_adds"}

    @given(problems())
    @settings(deadline=None, max_examples=60)
    def test_causal_tiles_are_those_with_a_visible_key(self, problem):
        q, k, v, dO = problem["tensors"]
        (Nq, d), Nk, (Br, Bc) = q.shape[-2:], k.shape[-2], problem["blocks"]
        stats: dict[str, int] = {}
        o, L = kernels.flash_forward(
            q, k, v, Br, Bc, causal=True, q_start=problem["q_start"], stats=stats
        )
        kernels.flash_backward(
            q, k, v, o, L, dO, Br, Bc, causal=True, q_start=problem["q_start"], stats=stats
        )
        visited = list(oracle.tiles(Nq, Nk, Br, Bc, True, problem["q_start"]))
        every = math.ceil(Nq / Br) * math.ceil(Nk / Bc)
        assert (stats["tiles"], stats["skipped"]) == (len(visited), every - len(visited))
        assert stats["dq_atomic_adds"] == sum(rows for rows, _ in visited) * d

    def test_rescales_are_rows_whose_maximum_grew(self):
        """With q = 1 and d = 1 the scores are the keys: 1 2 | 2 3 | 9 | 4, in blocks of two."""
        k = torch.tensor([1.0, 2, 2, 3, 9, 4])[:, None]
        q = torch.ones(5, 2, 1)  # five heads of two queries
        stats: dict[str, int] = {}
        k = k.expand(5, 6, 1)
        kernels.flash_forward(q, k, k, 2, 2, scale=1.0, stats=stats)
        assert stats == {"tiles": 3, "skipped": 0, "rescales": 10 * 2}  # 2 → 3 → 9
        kernels.flash_forward(q, k.flip(1), k, 2, 2, scale=1.0, stats=stats)
        assert stats == {"tiles": 6, "skipped": 0, "rescales": 20}  # 9 first: nothing grows

    def test_a_first_visible_key_rescales_nothing(self):
        q, k = torch.ones(4, 1), torch.zeros(4, 1)
        stats: dict[str, int] = {}
        kernels.flash_forward(q, k, k, 4, 1, causal=True, stats=stats)
        assert stats == {"tiles": 4, "skipped": 0, "rescales": 0}


class LargestTile(TorchDispatchMode):
    """Sees the result of every operation: the most columns that one with `rows` rows has."""

    def __init__(self, d):
        super().__init__()
        self.d, self.columns = d, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor) and result.dim() >= 2 and result.shape[-1] != self.d:
            self.columns = max(self.columns, result.shape[-2] * result.shape[-1])
        return result


def test_no_tile_is_larger_than_it_may_be():
    """Of S, P, dP and dS no more than Br × Bc is ever there; the definition has them in full."""
    q, k, v, dO = inputs((), 100, 120, 7)
    with LargestTile(7) as seen:
        o, L = kernels.standard_attention(q, k, v)
    assert seen.columns == 100 * 120
    with LargestTile(7) as seen:
        kernels.flash_forward(q, k, v, 16, 24, causal=True)
    # A slice of k, transposed, is (7, 24).
    assert seen.columns == 16 * 24
    with LargestTile(7) as seen:
        kernels.flash_backward(q, k, v, o, L, dO, 16, 24)
    assert seen.columns == 16 * 24


class TestStates:
    @given(
        st.lists(st.floats(-50, 50) | st.just(-math.inf), max_size=12),
        st.lists(st.integers(0, 12), min_size=2, max_size=2),
        st.permutations([0, 1, 2]),
    )
    @settings(deadline=None)
    def test_any_pieces_in_any_order(self, scores, cuts, order):
        """Three pieces, empty ones too, merged from the left or the right: the whole's state."""
        s = torch.tensor(scores, dtype=F64)[None]  # (1, n)
        v = torch.arange(2.0 * len(scores), dtype=F64).view(-1, 2).sin()
        edges = [0, *sorted(min(cut, len(scores)) for cut in cuts), len(scores)]
        pieces = [kernels.state_of_scores(s[:, a:b], v[a:b]) for a, b in itertools.pairwise(edges)]
        a, b, c = (pieces[i] for i in order)
        m, ell, summed = oracle.state(s, v)
        for merged in (
            kernels.merge_states(kernels.merge_states(a, b), c),
            kernels.merge_states(a, kernels.merge_states(b, c)),
        ):
            assert_near(merged.m, m)
            assert_near(merged.l, ell)
            assert_near(merged.o, summed)

    def test_shapes(self):
        s, v = torch.randn(2, 3, 5), torch.randn(2, 5, 4)
        state = kernels.state_of_scores(s, v)
        assert (state.m.shape, state.l.shape, state.o.shape) == ((2, 3), (2, 3), (2, 3, 4))
        assert kernels.state_of_scores(s).o is None
        assert_near(state.m + state.l.log(), torch.logsumexp(s, -1))
        assert_near(state.o / state.l[..., None], s.softmax(-1) @ v)

    def test_no_scores_are_the_neutral_state(self):
        s, v = torch.randn(3, 5), torch.randn(5, 4)
        some = kernels.state_of_scores(s, v)
        for nothing in (
            kernels.state_of_scores(s[:, :0], v[:0]),
            kernels.state_of_scores(torch.full((3, 5), -math.inf), v),
        ):
            assert nothing.m.isneginf().all()
            assert not nothing.l.any()
            assert not nothing.o.any()
            for merged in (
                kernels.merge_states(some, nothing),
                kernels.merge_states(nothing, some),
            ):
                assert torch.equal(merged.m, some.m)
                assert torch.equal(merged.l, some.l)
                assert torch.equal(merged.o, some.o)
            both = kernels.merge_states(nothing, nothing)
            assert both.m.isneginf().all()
            assert not both.l.any()
            assert not both.o.any()

    def test_without_an_output_there_is_none(self):
        s, v = torch.randn(3, 5), torch.randn(5, 4)
        with_o, without = kernels.state_of_scores(s, v), kernels.state_of_scores(s)
        assert kernels.merge_states(with_o, without).o is None
        assert kernels.merge_states(without, with_o).o is None
        assert_near(kernels.merge_states(without, with_o).l, 2 * with_o.l)

    def test_huge_scores_do_not_overflow(self):
        a = kernels.state_of_scores(torch.tensor([[1e4, 1e4]]))
        b = kernels.state_of_scores(torch.tensor([[1e4 + 1, -1e4]]))
        merged = kernels.merge_states(a, b)
        assert merged.m.item() == 1e4 + 1
        assert merged.l.item() == pytest.approx(1 + 2 / math.e, rel=1e-3)

    @pytest.mark.parametrize("n_split", [1, 2, 5, 7, 11])
    def test_pieces_of_decoding_are_as_equal_as_can_be_and_in_order(self, n_split):
        """With q = 0 every score is 0, so that l counts a piece's keys, and o sums their values."""
        Nk = 7
        v = torch.arange(float(Nk))[:, None]
        _, parts = kernels.flash_decode(torch.zeros(1, 1), torch.ones(Nk, 1), v, n_split)
        lengths = [int(part.l) for part in parts]
        assert sum(lengths) == Nk
        assert max(lengths) - min(lengths) <= 1
        edges = [0, *itertools.accumulate(lengths)]
        assert [part.o.item() for part in parts] == [
            sum(range(a, b)) for a, b in itertools.pairwise(edges)
        ]


class TestFormulas:
    @pytest.mark.parametrize(("N", "d"), [(1, 1), (40, 8), (97, 59), (256, 64)])
    def test_flops(self, N, d):
        product = 2 * N * N * d
        for causal, share in ((False, 2), (True, 1)):
            for recompute in (False, True):
                options = {"causal": causal, "recompute": recompute}
                assert 2 * kernels.attention_flops(N, d, **options) == share * 2 * product
                backward = kernels.attention_flops(N, d, backward=True, **options)
                assert 2 * backward == share * (4 + recompute) * product

    @pytest.mark.parametrize(
        ("N", "d", "Br"), [(1, 1, 1), (40, 8, 16), (97, 59, 32), (256, 64, 64)]
    )
    def test_elements_are_those_that_the_counted_loops_move(self, N, d, Br):
        Q = torch.ones(N, d).numpy()
        _, _, standard = lab.standard_attention(Q, Q, Q)
        assert kernels.io_standard(N, d) == standard.total
        assert kernels.attention_flops(N, d) == standard.flops
        for Bc in (1, 16, 1000):
            _, L, flash = lab.flash_fwd(Q, Q, Q, Br, Bc)
            assert kernels.io_flash(N, d, Br) == flash.total
        assert kernels.io_flash(N, d, Br, kv_cached=True) == 4 * N * d + N
        _, _, _, backward = lab.flash_bwd(Q, Q, Q, Q, Q, L, Br, Br)
        assert kernels.attention_flops(N, d, backward=True) == backward.flops
        _, _, _, backward = lab.standard_attention_bwd(Q, Q, Q, Q @ Q.T, Q)
        assert kernels.attention_flops(N, d, backward=True, recompute=False) == backward.flops

    def test_they_are_whole_numbers(self):
        for number in (
            kernels.attention_flops(3, 5, causal=True, backward=True),
            kernels.io_standard(3, 5),
            kernels.io_flash(3, 5, 2),
        ):
            assert type(number) is int

    def test_br(self):
        with pytest.raises(ValueError, match=r"Br is a number of rows.*is 0"):
            kernels.io_flash(10, 4, 0)


class TestAgainstTheReferenceDocument:
    """Function by function, on what its own text allows: every query sees a key."""

    @pytest.mark.parametrize("seed", range(8))
    @pytest.mark.parametrize("with_v", [True, False], ids=["with v", "without v"])
    def test_states(self, seed, with_v):
        s, t, _, _ = inputs((2,), 5, 5, 4, seed=seed)  # (2, 5, 4): two pieces of scores
        v, w, _, _ = inputs((2,), 4, 4, 6, seed=seed + 100) if with_v else (None,) * 4

        def states(module):
            a, b = module.state_of_scores(s, v), module.state_of_scores(t, w)
            return a, b, module.merge_states(a, b)

        for ours, theirs in zip(states(kernels), states(reference()), strict=True):
            assert_near(ours.m, theirs.m)
            assert_near(ours.l, theirs.l)
            assert (ours.o is None) == (theirs.o is None) == (not with_v)
            if with_v:
                assert_near(ours.o, theirs.o)

    @pytest.mark.parametrize("seed", range(12))
    def test_attention(self, seed):
        generator = torch.Generator().manual_seed(seed)
        Nq, Nk, d, Br, Bc, q_start = (
            int(torch.randint(low, high, (), generator=generator))
            for low, high in ((1, 40), (1, 40), (1, 20), (1, 20), (1, 20), (0, 30))
        )
        dtype = (F64, torch.float32)[seed % 2]
        q, k, v, _ = inputs((2, 2), Nq, Nk, d, dtype=dtype, seed=seed)
        theirs = reference()
        for causal in (False, True):
            options = {"causal": causal, "q_start": q_start, "scale": (None, 0.5)[seed % 2]}
            stats: tuple[dict, dict] = ({}, {})
            for ours, right in zip(
                kernels.standard_attention(q, k, v, **options),
                theirs.standard_attention(q, k, v, **options),
                strict=True,
            ):
                assert_near(ours, right)
            o, L = theirs.flash_forward(q, k, v, Br, Bc, **options, stats=stats[0])
            ours = kernels.flash_forward(q, k, v, Br, Bc, **options, stats=stats[1])
            assert_near(ours[0], o)
            assert_near(ours[1], L)
            assert {name: count for name, count in stats[1].items() if count} == {
                name: count for name, count in stats[0].items() if count
            }
        decoded, parts = kernels.flash_decode(q, k, v, 3)
        right, their_parts = theirs.flash_decode(q, k, v, 3)
        assert_near(decoded, right)
        assert len(parts) == len(their_parts)

    @pytest.mark.parametrize("seed", range(8))
    def test_backward(self, seed):
        """It has no q_start, and begins at 0."""
        q, k, v, dO = inputs((2,), 20 + seed, 30 - 3 * seed, 6, seed=seed)
        theirs = reference()
        for causal in (False, True):
            o, L = kernels.standard_attention(q, k, v, causal)
            stats: tuple[dict, dict] = ({}, {})
            arguments = (q, k, v, o, L, dO, 7, 5, causal, 0.4)
            expected = theirs.flash_backward(*arguments, stats[0])
            for ours, right in zip(
                kernels.flash_backward(*arguments, stats[1]), expected, strict=True
            ):
                assert_near(ours, right)
            assert stats[0] == stats[1]

    @pytest.mark.parametrize(("N", "d", "Br"), [(1, 1, 1), (40, 8, 16), (1024, 64, 128)])
    def test_formulas(self, N, d, Br):
        theirs = reference()
        for flags in itertools.product((False, True), repeat=3):
            assert kernels.attention_flops(N, d, *flags) == theirs.attention_flops(N, d, *flags)
        assert kernels.io_standard(N, d) == theirs.io_standard(N, d)
        for cached in (False, True):
            assert kernels.io_flash(N, d, Br, cached) == theirs.io_flash(N, d, Br, cached)


class TestWrongArguments:
    """Each is refused by name and shape, before anything is computed."""

    ONES = torch.ones(2, 4, 6)

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"q": torch.ones(6)}, r"q must be \(\.\.\., Nq, d\) with d ≥ 1.*\(6,\)"),
            ({"q": torch.ones(2, 4, 0)}, r"q must be \(\.\.\., Nq, d\).*\(2, 4, 0\)"),
            ({"k": torch.ones(2, 4, 5)}, r"k has shape \(2, 4, 5\).*must be \(2, Nk, 6\)"),
            ({"k": torch.ones(4, 6)}, r"k has shape \(4, 6\).*must be \(2, Nk, 6\)"),
            ({"v": torch.ones(2, 5, 6)}, r"v has shape \(2, 5, 6\).*must be \(2, 4, 6\)"),
            ({"O": torch.ones(2, 5, 6)}, r"O has shape \(2, 5, 6\).*must be \(2, 4, 6\)"),
            ({"L": torch.ones(2, 4, 1)}, r"L has shape \(2, 4, 1\).*must be \(2, 4\)"),
            ({"dO": torch.ones(4, 6)}, r"dO has shape \(4, 6\).*must be \(2, 4, 6\)"),
            ({"q": ONES.half()}, r"q is torch\.float16.*float32 or float64"),
            ({"k": ONES.double()}, r"k is torch\.float64, but q is torch\.float32"),
            ({"L": torch.ones(2, 4).double()}, r"L is torch\.float64, but q is torch\.float32"),
            ({"v": ONES.to("meta")}, r"v is on meta, but q is on cpu"),
            ({"Br": 0}, "Br is a number of rows.*at least 1, but is 0"),
            ({"Bc": -2}, "Bc is a number of rows.*at least 1, but is -2"),
        ],
        ids=lambda value: ", ".join(value) if isinstance(value, dict) else "",
    )
    def test_backward(self, change, words):
        arguments = {"q": self.ONES, "k": self.ONES, "v": self.ONES, "O": self.ONES}
        arguments |= {"L": torch.ones(2, 4), "dO": self.ONES, "Br": 2, "Bc": 2}
        with pytest.raises(ValueError, match=words):
            kernels.flash_backward(**arguments | change)

    def test_the_others(self):
        q, short = self.ONES, torch.ones(2, 4, 5)
        for function in (kernels.standard_attention, kernels.flash_forward):
            with pytest.raises(ValueError, match=r"k has shape \(2, 4, 5\)"):
                function(q, short, short)
        with pytest.raises(ValueError, match="Bc is a number of rows"):
            kernels.flash_forward(q, q, q, Bc=0)
        with pytest.raises(ValueError, match=r"k has shape \(2, 4, 5\)"):
            kernels.flash_decode(q, short, short, 2)
        with pytest.raises(ValueError, match="n_split must be at least 1, but is 0"):
            kernels.flash_decode(q, q, q, 0)
