"""`tl.device_print` and `tl.device_assert`."""

import mini_triton
import pytest
import torch
import triton
import triton.language as tl

from tests.mini_triton.comparing import shown_place


@triton.jit
def printing_kernel(x_ptr, N: tl.constexpr):
    pid = tl.program_id(0)
    x = tl.load(x_ptr + pid * N + tl.arange(0, N))
    if pid != 1:
        tl.device_print("a row", x, pid)


def test_print_shows_each_program_in_grid_order(capsys):
    printing_kernel[(3,)](torch.arange(6, dtype=torch.int32), N=2)
    assert capsys.readouterr().out.splitlines() == [
        "pid (0, 0, 0) a row: [0, 1] 0",
        "pid (2, 0, 0) a row: [4, 5] 2",
    ]


@triton.jit
def printing_much_kernel(x_ptr, N: tl.constexpr):
    tl.device_print("x", tl.load(x_ptr + tl.arange(0, N)))


def test_a_device_may_take_what_is_printed_and_of_a_large_tile_the_first_elements(capsys):
    lines = []
    before = mini_triton.set_device(mini_triton.LocalDevice(lines.append))
    try:
        printing_much_kernel[(2,)](torch.zeros(4096, dtype=torch.int32), N=4096)
    finally:
        mini_triton.set_device(before)
    zeros = ", ".join(["0"] * 1000)
    assert lines == [f"pid ({n}, 0, 0) x: [{zeros}, … 4,096 elements]" for n in range(2)]
    assert capsys.readouterr().out == ""


@triton.jit
def printing_floats_kernel(x_ptr, y_ptr, N: tl.constexpr):
    lanes = tl.arange(0, N)
    tl.device_print("x", tl.load(x_ptr + lanes), tl.load(y_ptr + lanes))


def test_floats_are_printed_with_the_digits_that_they_have(capsys):
    x = torch.tensor([0.1, -1.0, float("inf"), 1e20])
    printing_floats_kernel[(1,)](x, x.double(), N=4)
    assert capsys.readouterr().out == (
        "pid (0, 0, 0) x: [0.1, -1.0, inf, 1e+20] "
        "[0.10000000149011612, -1.0, inf, 1.0000000200408773e+20]\n"
    )


@triton.jit
def printing_as_kernel(x_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.device_print("hex", x, x > 0, hex=True)
    tl.device_print("unsigned", x.to(tl.uint16), x, x.to(tl.uint32, bitcast=True))
    tl.device_print("pointer", x_ptr)
    tl.device_print("nothing")


def test_print_in_hexadecimal_of_unsigned_integers_and_of_pointers(capsys):
    x = torch.tensor([-1, 2], dtype=torch.int32)
    printing_as_kernel[(1,)](x, N=2)
    assert capsys.readouterr().out.splitlines() == [
        "pid (0, 0, 0) hex: [0xffffffff, 0x00000002] [False, True]",
        "pid (0, 0, 0) unsigned: [65535, 2] [-1, 2] [4294967295, 2]",
        f"pid (0, 0, 0) pointer: {x.data_ptr():#x}",
        "pid (0, 0, 0) nothing",
    ]


@triton.jit
def printing_what_is_the_same_kernel(x_ptr):
    tl.device_print("x", tl.full((2, 2), 7, tl.int32), x_ptr + tl.zeros((2,), tl.int32))


def test_a_tile_of_equal_lanes_is_printed_whole(capsys):
    x = torch.zeros(1)
    printing_what_is_the_same_kernel[(1,)](x)
    address = f"{x.data_ptr():#x}"
    assert capsys.readouterr().out.splitlines() == [
        f"pid (0, 0, 0) x: [[7, 7], [7, 7]] [{address}, {address}]"
    ]


@triton.jit
def asserting_kernel(x_ptr, out_ptr, N: tl.constexpr):
    pid, i = tl.program_id(0), tl.arange(0, N)
    x = tl.load(x_ptr + pid * N + i)
    tl.store(out_ptr + pid * N + i, x)
    tl.device_assert(x < 10, "x must be small")


def test_an_assertion_that_fails_names_the_place_and_changes_nothing():
    x, out = torch.arange(16, dtype=torch.int32), torch.zeros(16, dtype=torch.int32)
    with pytest.raises(mini_triton.DeviceAssertion) as caught:
        asserting_kernel[(4,)](x, out, N=4, debug=True)
    message = str(caught.value)
    assert message.startswith(
        "device_assert failed: x must be small\n"
        + shown_place(asserting_kernel, "tl.device_assert")
    )
    assert "^^^^^^^^^^^^^^^^ is false in program (2, 0, 0), lane [2] of the tile\n" in message
    assert not out.any()


def test_assertions_that_hold_and_assertions_switched_off():
    x, out = torch.arange(16, dtype=torch.int32), torch.zeros(16, dtype=torch.int32)
    asserting_kernel[(2,)](x, out, N=4, debug=True)
    assert out.tolist() == [*range(8), *[0] * 8]
    asserting_kernel[(4,)](x, out, N=4)
    assert out.tolist() == list(range(16))


@triton.jit
def hints_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    tl.assume(n > 0)
    i = tl.max_contiguous(tl.multiple_of(tl.arange(0, BLOCK), 8), 8)
    x = tl.load(x_ptr + i, cache_modifier=".cg", eviction_policy="evict_last")
    tl.debug_barrier()
    tl.static_assert(BLOCK == 8)
    tl.store(out_ptr + i, x, cache_modifier=".wb", eviction_policy="evict_first")


def test_hints_change_nothing():
    x, out = torch.arange(8.0), torch.zeros(8)
    hints_kernel[(1,)](x, out, 8, BLOCK=8)
    assert torch.equal(x, out)
