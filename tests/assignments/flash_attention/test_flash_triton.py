"""The Triton kernels against the definition in float64, and their bytes against the formulas."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import mini_triton
import pytest
import torch

from tests.assignments.loading import load

HOUSE = Path(__file__).resolve().parents[3]
DTYPES = (torch.float32, torch.bfloat16, torch.float16)
SHAPES = [  # B, H, G, Nq, Nk, d
    (2, 2, 2, 64, 64, 32),
    (1, 4, 2, 97, 97, 40),
    (1, 2, 1, 1, 1025, 59),
    (1, 1, 1, 113, 257, 64),
    (1, 6, 2, 150, 50, 111),
    (1, 3, 1, 16, 33, 1),
    (2, 1, 1, 1, 1, 256),
    (1, 2, 2, 7, 0, 16),
]


flash = load(HOUSE / "solutions/flash_attention/flash_triton.py")


def inputs(shape, dtype=torch.float32, *, seed=0, spread=1.0):
    """q, k, v and do; `spread` multiplies q, and so the scores."""
    B, H, G, Nq, Nk, d = shape
    generator = torch.Generator().manual_seed(seed)

    def randn(*sizes):
        return torch.randn(*sizes, generator=generator)

    q, k, v, do = randn(B, H, Nq, d), randn(B, G, Nk, d), randn(B, G, Nk, d), randn(B, H, Nq, d)
    return [t.to(dtype) for t in (q * spread, k, v, do)]


def exact(q, k, v, do, causal=False, scale=None):
    """o, lse, dq, dk and dv in float64, from the definition by autograd."""
    (Nq, d), (G, Nk) = q.shape[2:], k.shape[1:3]
    q, k, v = (t.detach().double().requires_grad_() for t in (q, k, v))
    k_all, v_all = (t.repeat_interleave(q.shape[1] // G, dim=1) for t in (k, v))
    s = q @ k_all.transpose(2, 3) * (1 / math.sqrt(d) if scale is None else scale)
    seen = torch.ones(Nq, Nk, dtype=torch.bool)
    seen = seen.tril(Nk - Nq) if causal else seen
    s = s.masked_fill(~seen, -math.inf)
    lse = torch.logsumexp(s, dim=-1)
    o = torch.exp(s - lse.where(seen.any(1), 0)[..., None]) @ v_all
    return [t.detach() for t in (o, lse, *torch.autograd.grad(o, (q, k, v), do.double()))]


def assert_near(name, actual, expected, dtype, units=None):
    """Within some roundings of dtype, of each element and of the root mean square of all.

    float32 sums hundreds of products; in 16 bits P and dS are rounded, but all sums are float32.
    Where all of a gradient is 0, as that of a single score is, differences of numbers near 1 are.
    """
    assert actual.shape == expected.shape, name
    assert not actual.isnan().any(), name
    assert torch.equal(actual.isinf(), expected.isinf()), name
    if not expected.numel():
        return
    finite = expected.where(expected.isfinite(), 0)
    size = finite.abs() + (finite.square().mean().sqrt() if finite.any() else 1.0)
    error = (actual.double().where(expected.isfinite(), 0) - finite).abs()
    units = units or (100 if dtype == torch.float32 else 8)
    assert (error <= units * torch.finfo(dtype).eps * size).all(), f"{name}: {error.max():.1e}"


def visited(Nq, Nk, Br, Bc, causal):
    """K_rows and Q_rows of one head, by looking at every block whether one of its pairs is seen."""
    K_rows = Q_rows = 0
    for i, j in itertools.product(range(0, Nq, Br), range(0, Nk, Bc)):
        queries, keys = range(i, min(i + Br, Nq)), range(j, min(j + Bc, Nk))
        if not causal or any(key <= Nk - Nq + query for query in queries for key in keys[:1]):
            K_rows += len(keys)
            Q_rows += len(queries)
    return K_rows, Q_rows


def forward_bytes(B, H, G, Nq, Nk, d, s, Br, Bc, causal):
    K_rows, _ = visited(Nq, Nk, Br, Bc, causal)
    return B * H * (Nq + 2 * K_rows) * d * s, B * H * Nq * (d * s + 4)


def backward_bytes(B, H, G, Nq, Nk, d, s, Br, Bc, causal):
    K_rows, Q_rows = visited(Nq, Nk, Br, Bc, causal)
    loaded = {
        "delta": 2 * B * H * Nq * d * s,
        "dk, dv": B * G * 2 * Nk * d * s + B * H * Q_rows * (2 * d * s + 8),
        "dq": B * H * (Nq * (2 * d * s + 8) + 2 * K_rows * d * s),
    }
    stored = 4 * B * H * Nq + B * G * 2 * Nk * d * s + B * H * Nq * d * s
    return sum(loaded.values()), stored


def decode_bytes(B, H, G, Nq, Nk, d, s, n_split):
    parts = n_split * B * H * Nq * (d + 2) * 4
    split = B * G * 2 * Nk * d * s + n_split * B * H * Nq * d * s
    return split + parts, parts + B * H * Nq * (d * s + 4)


def counted(function, *args):
    """The function's results, and (bytes loaded, bytes stored)."""
    with mini_triton.profile(host=False) as p:
        results = function(*args)
    return results, (p.loaded_bytes, p.stored_bytes)


@pytest.mark.parametrize("causal", [False, True], ids=["no mask", "causal"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
class TestEverything:
    """Forward and backward: right, and counted to the byte."""

    @pytest.mark.parametrize("dtype", DTYPES, ids=str)
    @pytest.mark.parametrize("blocks", [(64, 64), (16, 32), (32, 16)], ids=str)
    def test_blocks(self, shape, causal, dtype, blocks):
        q, k, v, do = inputs(shape, dtype)
        size = (*shape, q.element_size(), *blocks, causal)
        (o, lse), moved = counted(flash.attention_forward, q, k, v, causal, None, *blocks)
        assert moved == forward_bytes(*size)
        gradients, moved = counted(
            flash.attention_backward, q, k, v, o, lse, do, causal, None, *blocks
        )
        assert moved == backward_bytes(*size)
        expected = exact(q, k, v, do, causal)
        assert_near("lse", lse, expected.pop(1), torch.float32)
        for name, actual, right in zip(
            ("o", "dq", "dk", "dv"), (o, *gradients), expected, strict=True
        ):
            assert actual.dtype == dtype
            assert actual.is_contiguous()
            assert_near(name, actual, right, dtype)

    def test_other_ways_to_the_same(self, shape, causal, monkeypatch):
        """Without blocks asked for; and by tensor descriptors, as on Hopper: same results, bytes"""

        def run(*blocks):
            forward = counted(flash.attention_forward, q, k, v, causal, None, *blocks)
            backward = counted(
                flash.attention_backward, q, k, v, *forward[0], do, causal, None, *blocks
            )
            return [*forward[0], *backward[0]], forward[1], backward[1]

        q, k, v, do = inputs(shape, torch.bfloat16)
        asked, *asked_moved = run(64, 64)
        chosen, *chosen_moved = run()
        options = {"TMA": True, "Br": 64, "Bc": 64}
        monkeypatch.setattr(flash, "choose", lambda kernel, *_: (kernel, options))
        fetched, *fetched_moved = run()
        assert all(map(torch.equal, asked, chosen))
        assert all(map(torch.equal, asked, fetched))
        assert asked_moved == chosen_moved == fetched_moved


@pytest.mark.parametrize("seed", range(40))
def test_bytes_of_any_shape(seed):
    generator = torch.Generator().manual_seed(seed)

    def pick(*choices):
        return choices[int(torch.randint(len(choices), (), generator=generator))]

    G, group, d = pick(1, 2), pick(1, 2, 3), pick(8, 24, 64)
    Nq, Nk = (int(torch.randint(1, 200, (), generator=generator)) for _ in range(2))
    shape = (pick(1, 2), G * group, G, Nq, Nk, d)
    blocks, causal, dtype = (pick(16, 32, 64), pick(16, 32, 64)), pick(False, True), pick(*DTYPES)
    q, k, v, do = inputs(shape, dtype)
    size = (*shape, q.element_size(), *blocks, causal)
    (o, lse), moved = counted(flash.attention_forward, q, k, v, causal, None, *blocks)
    assert moved == forward_bytes(*size)
    _, moved = counted(flash.attention_backward, q, k, v, o, lse, do, causal, None, *blocks)
    assert moved == backward_bytes(*size)


class TestNumbers:
    @pytest.mark.parametrize("causal", [False, True], ids=["no mask", "causal"])
    @pytest.mark.parametrize("dtype", DTYPES, ids=str)
    def test_large_scores(self, dtype, causal):
        """Scores up to ±150: no overflow, and each row is nearly one value."""
        q, k, v, do = inputs((1, 2, 1, 97, 113, 64), dtype, spread=30.0)
        o, lse = flash.attention_forward(q, k, v, causal)
        actual = (o, lse, *flash.attention_backward(q, k, v, o, lse, do, causal))
        expected = exact(q, k, v, do, causal)
        # A score of 150 is known to 150 roundings of float32, and so is exp of it.
        units = 400 if dtype == torch.float32 else 30
        for name, a, e in zip(("o", "lse", "dq", "dk", "dv"), actual, expected, strict=True):
            assert_near(name, a, e, dtype, units)

    @pytest.mark.parametrize("scale", [0.01, 1.0, 3.0])
    def test_scale(self, scale):
        q, k, v, do = inputs((1, 2, 2, 40, 50, 24))
        o, lse = flash.attention_forward(q, k, v, True, scale)
        actual = (o, lse, *flash.attention_backward(q, k, v, o, lse, do, True, scale))
        expected = exact(q, k, v, do, True, scale)
        decoded = flash.attention_decode(q, k, v, 3, scale)
        for a, e in zip(actual, expected, strict=True):
            assert_near("with scale", a, e, torch.float32)
        for a, e in zip(decoded, exact(q, k, v, do, False, scale)[:2], strict=True):
            assert_near("decoded with scale", a, e, torch.float32)

    def test_a_query_that_sees_nothing(self):
        """Nq > Nk: the first Nq − Nk queries have o = 0, lse = −∞ and no gradient."""
        q, k, v, do = inputs((1, 1, 1, 40, 10, 16))
        o, lse = flash.attention_forward(q, k, v, True)
        assert not o[:, :, :30].any()
        assert (lse[:, :, :30] == -math.inf).all()
        dq, dk, dv = flash.attention_backward(q, k, v, o, lse, do, True)
        assert not dq[:, :, :30].any()
        do[:, :, :30] = 1e6  # their do reaches nobody
        assert torch.equal(dv, flash.attention_backward(q, k, v, o, lse, do, True)[2])
        assert torch.equal(dk, flash.attention_backward(q, k, v, o, lse, do, True)[1])

    def test_a_group_is_its_heads_with_keys_repeated(self):
        q, k, v, do = inputs((2, 6, 2, 50, 70, 32))
        k_all, v_all = (t.repeat_interleave(3, dim=1) for t in (k, v))
        o, lse = flash.attention_forward(q, k, v, True)
        assert torch.equal(o, flash.attention_forward(q, k_all, v_all, True)[0])
        dq, dk, dv = flash.attention_backward(q, k, v, o, lse, do, True)
        each = flash.attention_backward(q, k_all, v_all, o, lse, do, True)
        assert torch.equal(dq, each[0])
        for together, apart in zip((dk, dv), each[1:], strict=True):
            torch.testing.assert_close(together, apart.view(2, 2, 3, 70, 32).sum(2))


class TestStrides:
    """What need not be contiguous is not; results are the same to the bit."""

    @staticmethod
    def spread_out(t):
        """The same numbers with heads inside of rows, as a projection leaves them, and a margin."""
        B, H, N, d = t.shape
        return torch.full((B, N, H, d + 8), math.nan)[..., 4 : 4 + d].transpose(1, 2).copy_(t)

    def test_rows_apart(self):
        q, k, v, do = inputs((2, 4, 2, 50, 70, 24))
        o, lse = flash.attention_forward(q, k, v, True)
        gradients = flash.attention_backward(q, k, v, o, lse, do, True)
        decoded = flash.attention_decode(q, k, v, 3)
        q, k, v, do, o_apart = (self.spread_out(t) for t in (q, k, v, do, o))
        assert all(map(torch.equal, (o, lse), flash.attention_forward(q, k, v, True)))
        again = flash.attention_backward(q, k, v, o_apart, lse, do, True)
        assert all(map(torch.equal, gradients, again))
        assert all(map(torch.equal, decoded, flash.attention_decode(q, k, v, 3)))

    def test_expanded(self):
        """One sequence of keys for all batches and heads; one row of do for all queries."""
        q, k, v, do = inputs((2, 2, 1, 20, 30, 16))
        k, v = (t[:1].expand(2, 2, 30, 16) for t in (k, v))
        do = do[:, :, :1].expand(2, 2, 20, 16)
        o, lse = flash.attention_forward(q, k, v)
        expected = flash.attention_forward(q, k.contiguous(), v.contiguous())
        assert all(map(torch.equal, (o, lse), expected))
        actual = flash.attention_backward(q, k, v, o, lse, do)
        expected = flash.attention_backward(
            q, k.contiguous(), v.contiguous(), o, lse, do.contiguous()
        )
        assert all(map(torch.equal, actual, expected))


class TestNothing:
    @pytest.mark.parametrize(
        "shape",
        [(0, 2, 1, 5, 6, 16), (2, 0, 1, 5, 6, 16), (2, 0, 0, 5, 6, 16), (2, 2, 1, 0, 6, 16)],
        ids=["B = 0", "H = 0", "H = G = 0", "Nq = 0"],
    )
    def test_no_queries(self, shape):
        q, k, v, do = inputs(shape, torch.float16)
        o, lse = flash.attention_forward(q, k, v, True)
        assert (o.shape, o.dtype) == (q.shape, q.dtype)
        assert (lse.shape, lse.dtype) == (q.shape[:3], torch.float32)
        dq, dk, dv = flash.attention_backward(q, k, v, o, lse, do, True)
        assert (dq.shape, dk.shape, dv.shape) == (q.shape, k.shape, v.shape)
        assert not dk.any()
        assert not dv.any()
        assert flash.attention_decode(q, k, v, 2)[0].shape == q.shape

    def test_no_keys(self):
        q, k, v, do = inputs((1, 2, 1, 5, 0, 16))
        for o, lse in (flash.attention_forward(q, k, v), flash.attention_decode(q, k, v, 2)):
            assert not o.any()
            assert (lse == -math.inf).all()
        dq, dk, dv = flash.attention_backward(q, k, v, o, lse, do)
        assert not dq.any()
        assert dk.shape == dv.shape == k.shape


@pytest.mark.parametrize("n_split", [1, 2, 3, 7, 40])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(
    "shape",
    [
        (2, 8, 2, 1, 300, 64),
        (1, 4, 4, 1, 257, 59),
        (1, 6, 2, 5, 33, 40),
        (1, 2, 1, 64, 100, 32),
        (1, 1, 1, 1, 0, 16),
    ],
    ids=str,
)
class TestDecode:
    """Also with more parts than keys."""

    def test_right_and_counted(self, shape, dtype, n_split):
        q, k, v, do = inputs(shape, dtype)
        (o, lse), moved = counted(flash.attention_decode, q, k, v, n_split)
        assert moved == decode_bytes(*shape, q.element_size(), n_split)
        assert (o.dtype, o.is_contiguous(), lse.dtype) == (dtype, True, torch.float32)
        expected = exact(q, k, v, do)
        assert_near("o", o, expected[0], dtype)
        assert_near("lse", lse, expected[1], torch.float32)


def test_decode_of_more_queries_than_a_tile_has_rows():
    q, k, v, do = inputs((1, 6, 2, 50, 70, 24))  # 150 rows a key head
    o, lse = flash.attention_decode(q, k, v, 3)
    expected = exact(q, k, v, do)
    assert_near("o", o, expected[0], torch.float32)
    assert_near("lse", lse, expected[1], torch.float32)


class TestTuning:
    def test_tuned_kernels_give_the_same(self, monkeypatch):
        """The autotuner, which a GPU would get, with the blocks that it tries there."""

        def choose(kernel, blocks, Br, Bc, *fetched):
            used.append(flash.tuned(kernel, tuple(blocks[64]), 8))
            return used[-1], {}

        used = []
        q, k, v, do = inputs((1, 2, 1, 150, 170, 40), torch.bfloat16)
        monkeypatch.setattr(flash, "choose", choose)
        o, lse = flash.attention_forward(q, k, v, True)
        actual = (o, lse, *flash.attention_backward(q, k, v, o, lse, do, True))
        expected = exact(q, k, v, do, True)
        for name, a, e in zip(("o", "lse", "dq", "dk", "dv"), actual, expected, strict=True):
            assert_near(name, a, e, torch.bfloat16)
        assert [len(kernel.cache) for kernel in used] == [1, 1, 1]

    def test_descriptors_are_for_gpus(self):
        q, k, _, _ = inputs((1, 1, 1, 2048, 2048, 64))
        assert not flash.use_tma(q, k)


class TestAutograd:
    @pytest.mark.parametrize("causal", [False, True], ids=["no mask", "causal"])
    @pytest.mark.parametrize("dtype", DTYPES, ids=str)
    def test_gradients(self, dtype, causal):
        q, k, v, do = inputs((2, 4, 2, 33, 47, 40), dtype)
        leaves = [t.requires_grad_() for t in (q, k, v)]
        o = flash.FlashAttention.apply(q, k, v, causal, 0.3)
        expected = exact(q, k, v, do, causal, 0.3)
        assert_near("o", o.detach(), expected[0], dtype)
        for actual, right in zip(torch.autograd.grad(o, leaves, do), expected[2:], strict=True):
            assert actual.dtype == dtype
            assert_near("gradient", actual, right, dtype)

    def test_any_strides(self):
        """The last axis anywhere, and the one number with strides 0 that `sum` sends back."""
        q, k, v, _ = inputs((1, 2, 1, 20, 30, 16))
        plain = [t.clone().requires_grad_() for t in (q, k, v)]
        turned = [
            t.transpose(2, 3).contiguous().transpose(2, 3).requires_grad_() for t in (q, k, v)
        ]
        results = []
        for leaves in (plain, turned):
            o = flash.flash_attention(*leaves, causal=True)
            results.append([o.detach(), *torch.autograd.grad(o.sum(), leaves)])
        assert all(map(torch.equal, *results))

    def test_defaults(self):
        q, k, v, _ = inputs((1, 2, 1, 20, 30, 16))
        o = flash.flash_attention(q, k, v)
        assert torch.equal(o, flash.attention_forward(q, k, v, False, 0.25)[0])

    def test_only_one_of_three_wants_a_gradient(self):
        q, k, v, _ = inputs((1, 1, 1, 4, 6, 16))
        flash.flash_attention(q, k.requires_grad_(), v).sum().backward()
        assert q.grad is None and v.grad is None
        assert k.grad is not None

    def test_a_second_derivative_is_refused_rather_than_wrong(self):
        q, k, v, _ = inputs((1, 1, 1, 4, 6, 16))
        loss = flash.flash_attention(q.requires_grad_(), k, v).square().sum()
        (dq,) = torch.autograd.grad(loss, q, create_graph=True)
        with pytest.raises(RuntimeError, match="once_differentiable"):
            dq.sum().backward()

    @pytest.mark.parametrize("which", ["q", "o"])
    def test_a_tensor_changed_between_the_passes_is_noticed(self, which):
        q, k, v, _ = inputs((1, 1, 1, 4, 6, 16))
        o = flash.flash_attention(q, k, v.requires_grad_())
        loss = o.sum()
        with torch.no_grad():
            {"q": q, "o": o}[which].add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()


class TestWrongArguments:
    """Each is refused before anything is launched, by name and shape."""

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"q": torch.ones(4, 5, 16)}, r"q must be \(B, H, Nq, d\).*\(4, 5, 16\)"),
            ({"q": torch.ones(1, 4, 5, 257)}, r"q must be .* d from 1 to 256.*257\)"),
            ({"q": torch.ones(1, 4, 5, 0)}, r"q must be .* d from 1 to 256.*0\)"),
            ({"k": torch.ones(6, 16)}, r"k must be \(B, G, Nk, d\).*\(6, 16\)"),
            ({"q": torch.ones(1, 3, 5, 16)}, r"q has H = 3 heads and k has G = 2.*multiple"),
            ({"k": torch.ones(1, 0, 6, 16)}, r"q has H = 4 heads and k has G = 0.*multiple"),
            ({"k": torch.ones(1, 2, 6, 8)}, r"k has shape \(1, 2, 6, 8\).*must be \(1, 2, 6, 16\)"),
            ({"k": torch.ones(3, 2, 6, 16)}, r"k has shape \(3, .*must be \(1, 2, 6, 16\)"),
            ({"v": torch.ones(1, 2, 7, 16)}, r"v has shape .*must be \(1, 2, 6, 16\)"),
            ({"o": torch.ones(1, 4, 6, 16)}, r"o has shape .*must be \(1, 4, 5, 16\)"),
            ({"lse": torch.ones(1, 4, 5, 1)}, r"lse has shape .*must be \(1, 4, 5\)"),
            ({"lse": torch.ones(1, 4, 5).double()}, r"lse .* is torch\.float64.*float32"),
            ({"lse": torch.ones(1, 5, 4).mT}, r"lse \(1, 4, 5\) has strides.*lse\.contiguous"),
            ({"do": torch.ones(1, 4, 5, 16).half()}, r"do .* is torch\.float16.*float32, like q"),
            ({"do": torch.ones(1).expand(1, 4, 5, 16)}, r"do .* has strides \(0, 0, 0, 0\)"),
            ({"v": torch.ones(1, 2, 16, 6).mT}, r"v \(1, 2, 6, 16\) has strides.*v\.contiguous"),
            ({"q": torch.ones(1, 4, 5, 16).double()}, r"q .* is torch\.float64.*bfloat16"),
            ({"k": torch.ones(1, 2, 6, 16, device="meta")}, r"k .* is on meta, but q is on cpu"),
            ({"scale": 0.0}, r"scale must be a finite number above 0, but is 0\.0"),
            ({"scale": -1.0}, r"scale must be a finite number above 0, but is -1\.0"),
            ({"scale": math.nan}, r"scale must be a finite number above 0, but is nan"),
            ({"Br": 48}, r"Br must be a power of two, at least 16, but is 48"),
            ({"Bc": 8}, r"Bc must be a power of two, at least 16, but is 8"),
            ({"Bc": 0}, r"Bc must be a power of two, at least 16, but is 0"),
        ],
        ids=lambda value: ", ".join(value) if isinstance(value, dict) else "",
    )
    def test_launchers(self, change, words):
        arguments = {
            "q": torch.ones(1, 4, 5, 16),
            "k": torch.ones(1, 2, 6, 16),
            "v": torch.ones(1, 2, 6, 16),
            "o": torch.ones(1, 4, 5, 16),
            "lse": torch.ones(1, 4, 5),
            "do": torch.ones(1, 4, 5, 16),
        } | change
        with pytest.raises(ValueError, match=words):
            flash.attention_backward(**arguments)
        if not change.keys() & {"o", "lse", "do"}:
            for name in ("o", "lse", "do"):
                del arguments[name]
            with pytest.raises(ValueError, match=words):
                flash.attention_forward(**arguments)

    def test_decode(self):
        q, k, v, _ = inputs((1, 1, 1, 4, 6, 16))
        with pytest.raises(ValueError, match="n_split must be at least 1, but is 0"):
            flash.attention_decode(q, k, v, 0)
        with pytest.raises(ValueError, match="v has shape"):
            flash.attention_decode(q, k, v[:, :, :5], 1)
