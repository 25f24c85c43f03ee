"""Random programs against numpy: the kernels are small machines whose code is data.

Each program of a launch runs its own code, so that they part at nearly every step, and nothing
has to be compiled anew for an example.
"""

import mini_triton
import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.mini_triton.comparing import assert_same, integers, normal

LANES = 8


@triton.jit
def machine_kernel(
    code_ptr, lengths_ptr, x_ptr, y_ptr, out_ptr, MOST: tl.constexpr, N: tl.constexpr
):
    """Runs code (P, MOST, 2) of instructions (operation, operand) on two registers of N lanes."""
    pid, i = tl.program_id(0), tl.arange(0, N)
    x, y = tl.load(x_ptr + pid * N + i), tl.load(y_ptr + pid * N + i)
    for k in range(tl.load(lengths_ptr + pid)):
        at = code_ptr + (pid * MOST + k) * 2
        operation, operand = tl.load(at), tl.load(at + 1)
        if operation == 0:
            x = x + y
        elif operation == 1:
            x = x * operand - y
        elif operation == 2:
            x, y = y, x
        elif operation == 3:
            x = tl.where(x > operand, y, x)
        elif operation == 4:
            y = tl.sum(x, axis=0) + i * operand
        elif operation == 5:
            tl.store(out_ptr + pid * N + i, x, mask=i < operand)
        elif operation == 6:
            while tl.max(x, axis=0) > 1000:
                x = x // 3
        elif operation == 7:
            y = tl.load(x_ptr + pid * N + (i + operand) % N, mask=i != operand, other=-7)
        else:
            for step in range(operand):
                x = x ^ (y >> step)
    tl.store(out_ptr + pid * N + i, x ^ y)


def run_machine(code, x, y, row):
    """One program in numpy; `row` is what its stores change."""
    start, i = x.copy(), np.arange(LANES, dtype=np.int32)
    for operation, operand in code:
        operand = np.int32(operand)
        if operation == 0:
            x = x + y
        elif operation == 1:
            x = x * operand - y
        elif operation == 2:
            x, y = y, x
        elif operation == 3:
            x = np.where(x > operand, y, x)
        elif operation == 4:
            y = np.add.reduce(x, dtype=np.int32) + i * operand
        elif operation == 5:
            row[: max(0, operand)] = x[: max(0, operand)]
        elif operation == 6:
            while x.max() > 1000:
                x = (np.sign(x) * (abs(x.astype(np.int64)) // 3)).astype(np.int32)
        elif operation == 7:
            at = (i + operand) - np.int32(LANES) * np.trunc((i + operand) / LANES).astype(np.int32)
            y = np.where(i != operand, start[at], np.int32(-7))
        else:
            for step in range(operand):
                x = x ^ (y >> np.int32(step))
    row[:] = x ^ y


instructions = st.tuples(st.integers(0, 8), st.integers(0, 12))
codes = st.lists(st.lists(instructions, max_size=10), min_size=1, max_size=9)


@given(codes=codes, seed=st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_programs_of_their_own(codes, seed):
    programs = len(codes)
    code = torch.zeros((programs, 10, 2), dtype=torch.int32)
    for program, instructions_ in enumerate(codes):
        for k, instruction in enumerate(instructions_):
            code[program, k] = torch.tensor(instruction)
    lengths = torch.tensor([len(c) for c in codes], dtype=torch.int32)
    x, y = (integers(programs, LANES, low=-2000, high=2000, seed=seed + s) for s in (0, 1))
    out = torch.zeros((programs, LANES), dtype=torch.int32)
    with mini_triton.profile(host=False) as p:
        machine_kernel[(programs,)](code, lengths, x, y, out, MOST=10, N=LANES)
    expected = np.zeros((programs, LANES), dtype=np.int32)
    with np.errstate(over="ignore"):
        for program in range(programs):
            run_machine(codes[program], x[program].numpy(), y[program].numpy(), expected[program])
    assert_same(out, expected)
    tensors = p.launches[0].tensors
    everything = [instruction for c in codes for instruction in c]
    partial = sum(min(LANES, operand) for operation, operand in everything if operation == 5)
    assert tensors["out_ptr"].stored == programs * LANES + partial
    assert ("code_ptr" in tensors) == bool(everything)
    if everything:
        assert tensors["code_ptr"].loaded == 2 * len(everything)
    reread = sum(LANES - (operand < LANES) for operation, operand in everything if operation == 7)
    assert tensors["x_ptr"].loaded == programs * LANES + reread


@triton.jit
def views_kernel(
    x_ptr,
    out_ptr,
    offset,
    stride_p,
    stride_m,
    stride_n,
    rows,
    cols,
    M: tl.constexpr,
    N: tl.constexpr,
):
    """Copies a masked window with any strides; column sums beside it."""
    pid = tl.program_id(0)
    m, n = tl.arange(0, M), tl.arange(0, N)
    mask = (m < rows)[:, None] & (n < cols)[None, :]
    at = offset + pid * stride_p + m[:, None] * stride_m + n[None, :] * stride_n
    x = tl.load(x_ptr + at, mask=mask, other=-1.0)
    tl.store(out_ptr + (pid * (M + 1) + m[:, None]) * N + n[None, :], x)
    tl.store(out_ptr + (pid * (M + 1) + M) * N + n, tl.sum(tl.where(mask, x, 0.0), axis=0))


@given(
    programs=st.integers(1, 5),
    rows=st.integers(0, 4),
    cols=st.integers(0, 8),
    strides=st.tuples(st.integers(-9, 9), st.integers(-40, 40), st.integers(-5, 5)),
    offset=st.integers(-20, 200),
)
@settings(max_examples=150, deadline=None)
def test_windows_of_any_offset_and_stride(programs, rows, cols, strides, offset):
    """Right where all lanes are inside; refused, naming the first lane that is not, elsewhere."""
    x = normal(200)
    out = torch.full((programs, 5, 8), 9.0)
    p, m, n = torch.meshgrid(
        torch.arange(programs), torch.arange(4), torch.arange(8), indexing="ij"
    )
    at = offset + p * strides[0] + m * strides[1] + n * strides[2]
    mask = (m < rows) & (n < cols)
    outside = mask & ((at < 0) | (at >= 200))
    arguments = (x, out, offset, *strides, rows, cols)
    if bool(outside.any()):
        program, *lane = outside.nonzero()[0].tolist()
        with pytest.raises(mini_triton.OutOfBounds) as caught:
            views_kernel[(programs,)](*arguments, M=4, N=8)
        message = str(caught.value)
        assert f"program ({program}, 0, 0) loads element {at[program, *lane]} of x_ptr" in message
        count = int(outside[program].sum())
        assert f"lane {lane} of the tile; {count} of its 32 lanes are outside" in message
        assert_same(out, torch.full((programs, 5, 8), 9.0))
        return
    with mini_triton.profile(host=False) as profile:
        views_kernel[(programs,)](*arguments, M=4, N=8)
    right = torch.where(mask, x[at.clamp(0, 199)], -1.0)
    assert_same(out[:, :4], right)
    torch.testing.assert_close(out[:, 4], torch.where(mask, right, 0.0).sum(1))
    assert profile.loaded == programs * rows * cols
