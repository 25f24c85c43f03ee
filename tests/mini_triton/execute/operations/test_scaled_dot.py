"""tl.dot_scaled in every format, with factors that float64 multiplies exactly."""

import itertools

import mini_triton
import pytest
import torch
import triton
import triton.language as tl
from mini_triton.execute.prepare import prepare

from tests.mini_triton.comparing import assert_same, integers, normal, run, simulator_only

M, N, K = 32, 16, 64
E2M1 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]


@triton.jit
def scaled_kernel(
    a_ptr, a_scale_ptr, b_ptr, b_scale_ptr, out_ptr,
    A: tl.constexpr, B: tl.constexpr, A_ROWS: tl.constexpr, A_COLUMNS: tl.constexpr,
    B_ROWS: tl.constexpr, B_COLUMNS: tl.constexpr, GROUPS: tl.constexpr,
    A_SCALED: tl.constexpr, B_SCALED: tl.constexpr, A_K: tl.constexpr, B_K: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    a = tl.load(a_ptr + tl.arange(0, A_ROWS)[:, None] * A_COLUMNS + tl.arange(0, A_COLUMNS))
    b = tl.load(b_ptr + tl.arange(0, B_ROWS)[:, None] * B_COLUMNS + tl.arange(0, B_COLUMNS))
    a_scale = None
    b_scale = None
    if A_SCALED:
        at = tl.arange(0, M)[:, None] * GROUPS + tl.arange(0, GROUPS)
        a_scale = tl.load(a_scale_ptr + at)
    if B_SCALED:
        at = tl.arange(0, N)[:, None] * GROUPS + tl.arange(0, GROUPS)
        b_scale = tl.load(b_scale_ptr + at)
    start = tl.full((M, N), 1.0, tl.float32)
    result = tl.dot_scaled(a, a_scale, A, b, b_scale, B, acc=start, lhs_k_pack=A_K, rhs_k_pack=B_K)
    tl.store(out_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N), result)


def factor(kind, shape, pack, seed):
    """(what the kernel loads, the numbers that it stands for)."""
    if kind == "e2m1":
        codes = integers(*shape, low=0, high=16, seed=seed).long()
        values = torch.tensor(E2M1 + [-v for v in E2M1])[codes]
        first, second = (codes.movedim(pack, -1)[..., k::2] for k in (0, 1))
        packed = (first | second << 4).movedim(-1, pack)
        return packed.to(torch.uint8).contiguous(), values
    dtype = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2, "bf16": torch.bfloat16,
             "fp16": torch.float16}[kind]  # fmt: skip
    values = (integers(*shape, low=-8, high=9, seed=seed) / 4).to(dtype)
    return values, values.float()


def scales(rows, seed, groups=K // 32):
    """e8m0, around 1."""
    return integers(rows, groups, low=124, high=131, seed=seed).to(torch.uint8)


def expected(a, b, a_scale, b_scale):
    """1 + A·B in float64, with scales of the rows of A and the columns of B."""
    left, right = a.double(), b.double()
    if a_scale is not None:
        left = left * torch.exp2(a_scale.double() - 127).repeat_interleave(32, 1)
    if b_scale is not None:
        right = right * torch.exp2(b_scale.double() - 127).repeat_interleave(32, 1).T
    return (1 + left @ right).float()


def launched(a, a_scale, b, b_scale, kinds, a_k=True, b_k=True):
    out = torch.empty(M, N)
    run(
        scaled_kernel, a, a_scale, b, b_scale, out, *kinds, *a.shape, *b.shape, K // 32,
        a_scale is not None, b_scale is not None, a_k, b_k, M, N,
    )  # fmt: skip
    return out


FORMATS = ["e2m1", "e4m3", "e5m2", "bf16", "fp16"]


@pytest.mark.parametrize(
    "kinds",
    [k for k in itertools.product(FORMATS, FORMATS) if {*k} != {"bf16", "fp16"}],
    ids="-".join,
)
def test_formats_with_scales(kinds):
    """Small factors and scales: every product and sum is exact in float32."""
    (a, a_values), (b, b_values) = (
        factor(kinds[0], (M, K), 1, seed=0), factor(kinds[1], (K, N), 0, seed=1)
    )  # fmt: skip
    wide = ("bf16", "fp16")
    a_scale = None if kinds[0] in wide else scales(M, seed=2)
    b_scale = None if kinds[1] in wide else scales(N, seed=3)
    found = launched(a, a_scale, b, b_scale, kinds)
    assert_same(found, expected(a_values, b_values, a_scale, b_scale))


@pytest.mark.parametrize("kinds", [("e2m1", "e2m1"), ("e4m3", "e5m2")], ids="-".join)
def test_no_scales(kinds):
    (a, a_values), (b, b_values) = (
        factor(kinds[0], (M, K), 1, seed=0), factor(kinds[1], (K, N), 0, seed=1)
    )  # fmt: skip
    found = launched(a, None, b, None, kinds)
    assert_same(found, expected(a_values, b_values, None, None))


@simulator_only("Triton 3.6 does not compile them for a GPU")
@pytest.mark.parametrize("a_k", [True, False])
@pytest.mark.parametrize("b_k", [True, False])
def test_packed_along_either_axis(a_k, b_k):
    a, a_values = factor("e2m1", (M, K), 1 if a_k else 0, seed=0)
    b, b_values = factor("e2m1", (K, N), 0 if b_k else 1, seed=1)
    given = (scales(M, seed=2), scales(N, seed=3))
    found = launched(a, given[0], b, given[1], ("e2m1", "e2m1"), a_k, b_k)
    assert_same(found, expected(a_values, b_values, *given))


def test_the_scale_that_is_not_a_number():
    a, a_values = factor("e4m3", (M, K), 1, seed=0)
    b, b_values = factor("e4m3", (K, N), 0, seed=1)
    a_scale, b_scale = scales(M, seed=2), scales(N, seed=3)
    whole = expected(a_values, b_values, a_scale, b_scale)
    a_scale[3, 1] = 255
    found = launched(a, a_scale, b, b_scale, ("e4m3", "e4m3"))
    whole[3] = torch.nan
    assert_same(found, whole)


def test_bits_of_integers_are_read_as_the_format_says():
    x = normal(M, K).to(torch.float8_e5m2)
    y = normal(K, N, seed=1).to(torch.float8_e5m2)
    kinds = ("e5m2", "e5m2")
    found = launched(x.view(torch.uint8), None, y.view(torch.uint8), None, kinds)
    assert_same(found, launched(x, None, y, None, kinds))


FORGED = """
module {{
  tt.func public @k(%p: !tt.ptr<i8>) {{
    %a = arith.constant dense<0> : tensor<{a}xi8>
    %s = arith.constant dense<127> : tensor<{s}xi8>
    %b = arith.constant dense<0> : tensor<{b}xi8>
    %c = arith.constant dense<0.0> : tensor<{c}xf32>
    %d = tt.dot_scaled %a scale %s, %b, %c lhs = {lhs} rhs = e4m3 {{fastMath = false}} : \
tensor<{a}xi8>, tensor<{s}xi8> * tensor<{b}xi8> -> tensor<{c}xf32>
    tt.return
  }}
}}
"""
RIGHT = {"a": "32x64", "s": "32x2", "b": "64x16", "c": "32x16", "lhs": "e4m3"}


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        ({"s": "32x128"}, "does not scale 64 factors"),
        ({"s": "16x2"}, "does not scale 64 factors"),
        ({"s": "64"}, "it does not take"),
        ({"b": "32x16"}, "there is no product"),
        ({"c": "32x32"}, "there is no product"),
        ({"lhs": "e2m1"}, "there is no product"),
        ({"lhs": "bf16"}, "is no bf16"),
        ({"lhs": "fp16"}, "is no fp16"),
    ],
    ids=str,
)
def test_forged_shapes_are_refused(wrong, what):
    prepare(FORGED.format(**RIGHT), "k")
    with pytest.raises(mini_triton.BadProgram, match=what):
        prepare(FORGED.format(**RIGHT | wrong), "k")
