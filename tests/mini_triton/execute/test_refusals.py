"""What the simulator does not have is named as the author wrote it, with its line and a way out."""

import mini_triton
import pytest
import torch
import triton
import triton.language as tl
from mini_triton.execute.prepare import prepare

from tests.mini_triton.comparing import shown_place


@triton.jit
def assembly_kernel(x_ptr):
    i = tl.arange(0, 4)
    add: tl.constexpr = "add.u32 $0, $1, 1;"
    one = tl.inline_asm_elementwise(add, "=r,r", [i], dtype=tl.int32, is_pure=True, pack=1)
    tl.store(x_ptr + i, one)


@triton.jit
def assembly_of_two_kernel(x_ptr):
    x = tl.load(x_ptr + tl.arange(0, 4))
    both: tl.constexpr = "add.u32 $0, $2, $2; mul.lo.u32 $1, $2, $2;"
    sums, products = tl.inline_asm_elementwise(both, "=r,=r,r", [x], (tl.int32, tl.int32), True, 1)
    tl.store(x_ptr + tl.arange(0, 4), sums + products)


@triton.jit
def place_kernel(x_ptr):
    tl.store(x_ptr, tl.extra.cuda.smid())


@triton.jit
def clock_kernel(x_ptr):
    tl.store(x_ptr, tl.extra.cuda.globaltimer())


@pytest.mark.parametrize(
    ("kernel", "line", "name", "way_out"),
    [
        (
            assembly_kernel,
            "elementwise(add",
            "tl.inline_asm_elementwise: PTX",
            "write this line with",
        ),
        (
            assembly_of_two_kernel,
            "elementwise(both",
            "tl.inline_asm_elementwise: PTX",
            "write this line with",
        ),
        (place_kernel, "smid", "tl.extra.cuda.smid: only hardware knows which", "leave it out"),
        (
            clock_kernel,
            "globaltimer",
            "tl.extra.cuda.globaltimer: only hardware",
            "leave it out",
        ),
    ],
    ids=["assembly", "assembly of two", "smid", "globaltimer"],
)
def test_refusals(kernel, line, name, way_out):
    x = torch.zeros(4, dtype=torch.int32)
    with pytest.raises(mini_triton.UnsupportedOp) as caught:
        kernel[(1,)](x)
    message = str(caught.value)
    assert message.startswith(f"not supported: {name}")
    assert shown_place(kernel, line) in message
    assert f"note: nothing was run\n  do: {way_out}" in message
    assert not x.any()


def test_an_operation_that_nobody_knows():
    text = "module {\n tt.func public @k() {\n tt.dream\n tt.return\n }\n}"
    with pytest.raises(mini_triton.UnsupportedOp, match=r"tt\.dream, an operation that the simu"):
        prepare(text, "k")
