"""Matrix products: every operand dtype and precision, accumulators, batches, the library's own."""

import pytest
import torch
import triton
import triton.language as tl
from mini_triton import settings
from mini_triton.execute.operations.dot import to_tf32

from tests.mini_triton.comparing import assert_same, integers, normal, run, simulator_only

E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2


@triton.jit
def dot_kernel(
    a_ptr, b_ptr, c_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
    PRECISION: tl.constexpr, OUT: tl.constexpr,
):  # fmt: skip
    """out = c + a·b for one tile a (M, K), b (K, N) a program."""
    pid = tl.program_id(0)
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(a_ptr + pid * M * K + m[:, None] * K + k[None, :])
    b = tl.load(b_ptr + pid * K * N + k[:, None] * N + n[None, :])
    at = pid * M * N + m[:, None] * N + n[None, :]
    out = tl.dot(a, b, tl.load(c_ptr + at), input_precision=PRECISION, out_dtype=OUT)
    tl.store(out_ptr + at, out)


def product(a, b, c, precision="ieee", out=tl.float32):
    """c + a·b through the kernel; a (P, M, K), b (P, K, N), c (P, M, N)."""
    result = torch.empty_like(c)
    programs, m, k = a.shape
    run(
        dot_kernel, a, b, c, result, grid=(programs,), M=m, N=b.shape[2], K=k,
        PRECISION=precision, OUT=out,
    )  # fmt: skip
    return result


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
def test_small_integers_are_exact_in_every_precision(dtype):
    a = integers(3, 16, 32, low=-8, high=9, dtype=dtype)
    b = integers(3, 32, 16, low=-8, high=9, seed=1, dtype=dtype)
    c = integers(3, 16, 16, low=-99, high=99, seed=2, dtype=torch.float32)
    for precision in ("tf32", "ieee", "tf32x3"):
        assert_same(product(a, b, c, precision), c + a.float() @ b.float(), precision)


def test_float32_is_kept_by_ieee_and_cut_by_tf32():
    """1 + 2⁻¹² needs more than TF32's 10 bits of mantissa, 1 + 2⁻¹⁰ does not."""
    a = torch.zeros(1, 16, 16)
    a[0, :, 0] = 1 + 2.0**-12
    a[0, :, 1] = 2.0**-10 + 1
    b = torch.zeros(1, 16, 16)
    b[0, 0, 0], b[0, 1, 1] = 1.0, 1.0
    zero = torch.zeros(1, 16, 16)
    assert_same(product(a, b, zero, "ieee")[0, :, :2], a[0, :, :2])
    short = product(a, b, zero, "tf32")[0, 0, :2]
    assert short.tolist() == [1.0, 1 + 2.0**-10]


@simulator_only("hardware rounds to TF32 whatever a setting says")
def test_rounding_to_tf32_can_be_switched_off():
    a, b = normal(2, 16, 32), normal(2, 32, 16, seed=1)
    zero = torch.zeros(2, 16, 16)
    whole = product(a, b, zero, "ieee")
    with settings.use(tf32=False):
        assert_same(product(a, b, zero, "tf32"), whole)
    assert not torch.equal(product(a, b, zero, "tf32"), whole)


def test_float32_ieee_is_within_float32_of_float64():
    a, b = normal(2, 32, 64), normal(2, 64, 32, seed=1)
    c = normal(2, 32, 32, seed=2)
    exact = c.double() + a.double() @ b.double()
    torch.testing.assert_close(product(a, b, c).double(), exact, rtol=1e-5, atol=1e-5)
    rough = product(a, b, c, "tf32").double()
    assert 1e-4 < (rough - exact).abs().max() < 5e-2


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, E4M3, E5M2], ids=str)
def test_narrow_operands_are_accumulated_in_float32(dtype):
    a, b = normal(1, 32, 64).to(dtype), normal(1, 64, 32, seed=1).to(dtype)
    c = normal(1, 32, 32, seed=2)
    exact = c.double() + a.double() @ b.double()
    error = (product(a, b, c, "tf32").double() - exact).abs().max()
    assert error < 2e-5  # float16 sums would be 100 times worse


def test_float16_accumulator():
    a = integers(1, 16, 16, low=0, high=8, dtype=torch.float16)
    b = integers(1, 16, 16, low=0, high=8, seed=1, dtype=torch.float16)
    c = torch.full((1, 16, 16), 2048.0, dtype=torch.float16)
    right = c.float() + a.float() @ b.float()
    assert_same(product(a, b, c, "tf32", tl.float16), right.half())


@pytest.mark.parametrize("start", [0, 2**31 - 70_000], ids=["small", "near the end of int32"])
def test_int8_products_are_exact_and_wrap(start):
    """No product is lost to rounding; tiles of 64 rows, as those of 16 saturate on a GPU."""
    a = integers(2, 64, 128, low=-128, high=128, dtype=torch.int8)
    b = integers(2, 128, 16, low=-128, high=128, seed=1, dtype=torch.int8)
    c = integers(2, 64, 16, low=start, high=start + 70_000, seed=2)
    wide = c.long() + a.long() @ b.long()
    assert bool((wide > 2**31 - 1).any()) == (start > 0)
    assert_same(product(a, b, c, "tf32", tl.int32), wide.to(torch.int32))


@triton.jit
def batched_kernel(a_ptr, b_ptr, out_ptr, B: tl.constexpr, S: tl.constexpr):
    z, i, j = tl.arange(0, B)[:, None, None], tl.arange(0, S)[:, None], tl.arange(0, S)[None, :]
    at = z * S * S + i[None, :, :] * S + j[None, :, :]
    a, b = tl.load(a_ptr + at), tl.load(b_ptr + at)
    tl.store(out_ptr + at, tl.dot(a, b, input_precision="ieee"))


def test_batches_of_tiles():
    a, b = (integers(4, 16, 16, low=-9, high=9, seed=s, dtype=torch.float32) for s in (0, 1))
    out = torch.empty_like(a)
    run(batched_kernel, a, b, out, B=4, S=16)
    assert_same(out, a @ b)


@triton.jit
def shared_operand_kernel(a_ptr, out_ptr, S: tl.constexpr):
    """b is the same constant tile for all programs, a the same tile for all rows."""
    i = tl.arange(0, S)
    a = tl.load(a_ptr + tl.program_id(0) * S + i)[None, :] + tl.zeros((S, S), tl.float32)
    b = tl.full((S, S), 2.0, tl.float32)
    out = tl.dot(a, b, input_precision="ieee")
    tl.store(out_ptr + tl.program_id(0) * S * S + i[:, None] * S + i[None, :], out)


def test_operands_that_are_the_same_in_all_rows_or_programs():
    a = integers(3, 16, low=0, high=50, dtype=torch.float32)
    out = torch.empty(3, 16, 16)
    run(shared_operand_kernel, a, out, grid=(3,), S=16)
    assert_same(out, (2 * a.sum(1))[:, None, None].expand(3, 16, 16))


@triton.jit
def chained_kernel(q_ptr, k_ptr, v_ptr, out_ptr, S: tl.constexpr):
    i, j = tl.arange(0, S)[:, None], tl.arange(0, S)[None, :]
    q, k, v = (tl.load(q_ptr + i * S + j), tl.load(k_ptr + i * S + j), tl.load(v_ptr + i * S + j))
    scores = tl.dot(q, tl.trans(k))
    tl.store(out_ptr + i * S + j, tl.dot(scores.to(v.dtype), v))


def test_transposed_operands_and_chains():
    q, k, v = (integers(16, 16, low=-2, high=3, seed=s, dtype=torch.float16) for s in range(3))
    out = torch.empty(16, 16)
    run(chained_kernel, q, k, v, out, S=16)
    assert_same(out, (q.float() @ k.float().T) @ v.float())


def test_nan_and_infinity_pass_through():
    a = torch.ones(1, 16, 16)
    a[0, 1, 3], a[0, 2, 4] = torch.nan, torch.inf
    b, c = torch.ones(1, 16, 16), torch.zeros(1, 16, 16)
    for precision in ("ieee", "tf32"):
        out = product(a, b, c, precision)[0]
        assert torch.isnan(out[1]).all()
        assert (out[2] == torch.inf).all()
        assert (out[3:] == 16).all()


def test_tf32_keeps_what_is_no_number():
    """NaN whose last bits are all that it has, infinities of both signs, and what rounds to one."""
    bits = torch.tensor([0x7F800001, 0x7FFFFFFF, -1, 0x7F800000, -0x800000, 0x7F7FFFFF])
    x = bits.to(torch.int32).view(torch.float32)
    rounded = to_tf32(x)
    assert torch.isnan(rounded[:3]).all()
    assert rounded[3:].tolist() == [torch.inf, -torch.inf, torch.inf]
    for plain in (torch.tensor([1 + 2.0**-11, -(2.0**-20)]), x[3:5]):
        assert to_tf32(plain).tolist() == to_tf32(torch.cat([plain, x]))[:2].tolist()
