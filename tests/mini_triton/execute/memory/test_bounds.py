"""Accesses outside a tensor: the exact message, and no memory changed whatever ran before."""

import mini_triton
import pytest
import torch
import triton
import triton.language as tl

from tests.mini_triton.comparing import assert_same, line_of, normal


@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.store(y_ptr + i, x, mask=i < n)


def test_a_load_without_a_mask():
    x, y = normal(20), torch.zeros(20)
    with pytest.raises(mini_triton.OutOfBounds) as caught:
        copy_kernel[(3,)](x, y, 20, BLOCK=8)
    line = line_of(copy_kernel, "tl.load(x_ptr").rpartition(":")[2]
    assert str(caught.value).splitlines() == [
        "out of bounds: program (2, 0, 0) loads element 20 of x_ptr, after its last, element 19",
        f"  --> test_bounds.py:{line}, kernel copy_kernel",
        f"    {line} |     x = tl.load(x_ptr + i)",
        "       |         ^^^^^^^ lane [4] of the tile; 4 of its 8 lanes are outside, up to "
        "element 23",
        "  x_ptr: shape (20,), strides (1,): its pointer reaches elements 0 to 19",
        "  note: no memory was changed",
        "  do: the access has no mask: give it one that is true only inside the tensor",
    ]
    assert (caught.value.finding.tensor, caught.value.finding.index) == ("x_ptr", (20,))
    assert caught.value.finding.programs == ((2, 0, 0),)
    assert isinstance(caught.value, mini_triton.KernelError)
    assert_same(y, torch.zeros(20))


def test_a_store_whose_mask_lets_too_much_through():
    x, y = normal(24), torch.zeros(20)
    with pytest.raises(mini_triton.OutOfBounds) as caught:
        copy_kernel[(3,)](x, y, 24, BLOCK=8)
    message = str(caught.value)
    assert message.startswith("out of bounds: program (2, 0, 0) stores element 20 of y_ptr, after")
    assert message.endswith(
        "\n  do: the mask lets this lane through: compare it with the tensor's sizes and strides"
    )
    assert_same(y, torch.zeros(20))


def test_masked_off_lanes_may_point_anywhere():
    x, y = normal(24), torch.zeros(20)
    copy_kernel[(3,)](x, y, 20, BLOCK=8)
    assert_same(y, x[:20])


@triton.jit
def several_stores_kernel(x_ptr, first_ptr, second_ptr, bad, BLOCK: tl.constexpr):
    """Stores to two tensors and in place, then goes wrong in one program."""
    pid = tl.program_id(0)
    i = pid * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.store(first_ptr + i, x + 1)
    tl.store(x_ptr + i, -x)
    tl.atomic_add(second_ptr + i % 4, x)
    tl.store(second_ptr + i + tl.where(pid == bad, -1000000000, 0), x)


@pytest.mark.parametrize("programs", [1, 6, 20_000])
def test_nothing_is_changed_in_any_tensor(programs):
    """Also when the programs of earlier chunks had stored: the last program goes wrong."""
    x, first, second = normal(8 * programs), normal(8 * programs), normal(8 * programs)
    before = [t.clone() for t in (x, first, second)]
    with pytest.raises(
        mini_triton.OutOfBounds, match=rf"program \({programs - 1}, 0, 0\)"
    ) as caught:
        several_stores_kernel[(programs,)](x, first, second, programs - 1, BLOCK=8)
    assert f"element {8 * (programs - 1) - 10**9} of second_ptr, before its" in str(caught.value)
    for now, then in zip((x, first, second), before, strict=True):
        assert_same(now, then)


def test_views_of_a_failed_launch_keep_their_surroundings():
    whole = normal(40, 16)
    before = whole.clone()
    x, first = whole[:, 0], whole[:, 1]
    with pytest.raises(mini_triton.OutOfBounds, match=r"shape \(40,\), strides \(16,\)"):
        several_stores_kernel[(80,)](x, first, whole, -1, BLOCK=8)
    assert_same(whole, before)


@triton.jit
def tile_kernel(x_ptr, out_ptr, M, N, stride, BM: tl.constexpr, BN: tl.constexpr):
    m = tl.program_id(1) * BM + tl.arange(0, BM)[:, None]
    n = tl.program_id(0) * BN + tl.arange(0, BN)[None, :]
    x = tl.load(x_ptr + m * stride + n, mask=(m < M) & (n < N))
    tl.store(out_ptr, tl.sum(x))


def test_the_lane_of_a_tile_of_two_axes():
    """Rows fit, but the stride given is one too large: the last row's end is outside."""
    x, out = normal(8, 10), torch.zeros(1)
    with pytest.raises(mini_triton.OutOfBounds) as caught:
        tile_kernel[(2, 2)](x, out, 8, 10, 11, BM=4, BN=8)
    message = str(caught.value)
    assert "program (0, 1, 0) loads element 80 of x_ptr" in message
    assert "lane [3, 3] of the tile; 5 of its 32 lanes are outside, up to element 84" in message
    assert "x_ptr: shape (8, 10), strides (10, 1): " in message
    assert message.count("; element 80 would be x_ptr[8, 0]") == 1


@triton.jit
def scalar_kernel(x_ptr, out_ptr):
    pid = tl.program_id(0)
    tl.store(out_ptr + pid, tl.load(x_ptr + pid - 2))


def test_a_scalar_access_before_the_first_element():
    x, out = normal(8), torch.zeros(8)
    with pytest.raises(
        mini_triton.OutOfBounds,
        match=r"program \(0, 0, 0\) loads element -2 of x_ptr, before its first, element 0\n",
    ):
        scalar_kernel[(8,)](x[2:], out)
    assert_same(out, torch.zeros(8))


@triton.jit
def helper(x_ptr, i):
    return tl.load(x_ptr + i)


@triton.jit
def helped_kernel(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out_ptr + i, helper(x_ptr, i))


def test_the_line_is_the_helpers():
    with pytest.raises(mini_triton.OutOfBounds, match="called at line") as caught:
        helped_kernel[(1,)](normal(10), torch.zeros(16), N=16)
    assert f"--> {line_of(helper, 'return').rpartition('/')[2]}, kernel" in str(caught.value)


@triton.jit
def lone_program_kernel(x_ptr, flags_ptr, out_ptr):
    pid = tl.program_id(0)
    if tl.load(flags_ptr + pid) > 0:
        for k in range(pid):
            tl.store(out_ptr + pid, tl.load(x_ptr + pid * 10 + k))


def test_the_program_is_named_where_programs_have_parted():
    """Only programs 2, 4 and 5 run the loop; program 4 is the first to leave x."""
    flags = torch.tensor([0, 0, 1, 0, 1, 1], dtype=torch.int32)
    out = torch.zeros(6)
    with pytest.raises(mini_triton.OutOfBounds, match=r"program \(4, 0, 0\).*element 4[0-9]"):
        lone_program_kernel[(6,)](normal(40), flags, out)
    assert_same(out, torch.zeros(6))


@triton.jit
def empty_kernel(x_ptr, out_ptr, n):
    tl.store(out_ptr, tl.load(x_ptr, mask=n > 0, other=5.0))


def test_an_empty_tensor_has_no_element():
    out = torch.zeros(1)
    empty_kernel[(1,)](torch.empty(0), out, 0)
    assert out.item() == 5.0
    with pytest.raises(mini_triton.OutOfBounds, match=r"element 0 of x_ptr, which is empty"):
        empty_kernel[(1,)](torch.empty(0), out, 3)


@triton.jit
def atomic_kernel(out_ptr, N: tl.constexpr):
    tl.atomic_add(out_ptr + tl.program_id(0) * N + tl.arange(0, N), 1)


def test_atomics_are_checked_too():
    out = torch.zeros(20, dtype=torch.int32)
    with pytest.raises(mini_triton.OutOfBounds, match=r"updates element 20 of out_ptr"):
        atomic_kernel[(3,)](out, N=8)
    assert_same(out, torch.zeros(20, dtype=torch.int32))


@triton.jit
def mask_of_another_line_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr, MASKED: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    if MASKED:
        tl.atomic_add(y_ptr + i, 1.0, mask=inside)
    else:
        tl.atomic_add(y_ptr + i, 1.0)


@pytest.mark.parametrize("masked", [True, False])
def test_the_mask_that_lets_a_lane_through_is_named_by_its_line(masked):
    with pytest.raises(mini_triton.OutOfBounds) as caught:
        mask_of_another_line_kernel[(3,)](normal(20), torch.zeros(20), 24, BLOCK=8, MASKED=masked)
    line = line_of(mask_of_another_line_kernel, "inside =").rpartition(":")[2]
    hint = f"the mask of line {line} lets" if masked else "the access has no mask"
    assert hint in str(caught.value)
