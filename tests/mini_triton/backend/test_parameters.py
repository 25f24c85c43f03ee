"""Arguments beyond tensors and numbers: tuples, descriptors, constants, wide integers."""

from typing import NamedTuple

import mini_triton
import pytest
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from tests.mini_triton.comparing import assert_same, integers, normal


@triton.jit
def square(x):
    return x * x


@triton.jit
def double(x):
    return x + x


class Bundle(NamedTuple):
    x: torch.Tensor
    one: int
    shift: tl.constexpr
    factor: int


@triton.jit
def tuple_kernel(values, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out_ptr + i, tl.load(values[0] + i) * values[1][0] + values[1][1])


def test_nested_tuples_of_tensors_and_numbers():
    x, out = normal(16), torch.empty(16)
    with mini_triton.profile() as p:
        tuple_kernel[(1,)]((x, (3.0, 4)), out, N=16)
    assert_same(out, x * 3.0 + 4)
    assert p.launches[0].tensors["values[0]"].loaded == 16


@triton.jit
def bundle_kernel(bundle, f: tl.constexpr, nothing, absent, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    result = f(tl.load(bundle.x + i)) * bundle.factor + bundle.shift + bundle.one
    if nothing[0] is not None:
        result = tl.zeros_like(result)
    if absent is not None:
        result = tl.zeros_like(result)
    tl.store(out_ptr + i, result)


@pytest.mark.parametrize(("f", "expected"), [(square, torch.square), (double, lambda x: x + x)])
def test_a_named_tuple_functions_and_none(f, expected):
    """A constant in a tuple, an integer 1, a function and None are no parameters of the TTIR."""
    x, out = normal(16), torch.empty(16)
    with mini_triton.profile() as p:
        bundle_kernel[(1,)](Bundle(x, 1, tl.constexpr(3), 7), f, (None,), None, out, N=16)
    assert_same(out, expected(x) * 7 + 3 + 1)
    assert p.launches[0].tensors["bundle.x"].loaded == 16


@triton.jit
def tuple_of_outputs_kernel(outs, n):
    for k in tl.static_range(len(outs)):
        tl.store(outs[k] + tl.program_id(0), n + k)


def test_a_tuple_of_tensors_that_are_written():
    outs = tuple(torch.zeros(3, dtype=torch.int64) for _ in range(3))
    tuple_of_outputs_kernel[(3,)](outs, 2**40)
    for k, out in enumerate(outs):
        assert_same(out, torch.full((3,), 2**40 + k))


@triton.jit
def wide_kernel(n, out_ptr):
    tl.store(out_ptr, n // 3)
    tl.store(out_ptr + 1, n >> 1)


@triton.jit(do_not_specialize=["n"])
def unspecialized_kernel(n, out_ptr):
    tl.store(out_ptr, n // 3)
    tl.store(out_ptr + 1, n >> 1)


@pytest.mark.parametrize("n", [2**64 - 1, 2**63, 2**63 - 1, 2**40, 2**31, -1, -(2**31), -(2**63)])
def test_integers_are_as_wide_as_they_must_be(n):
    """From 2⁶³ they are unsigned, as in Triton's signatures."""
    out = torch.empty(2, dtype=torch.int64)
    wide_kernel[(1,)](n, out)
    third = n // 3 if n >= 0 else -(-n // 3)  # division truncates
    wrapped = [(v + 2**63) % 2**64 - 2**63 for v in (third, n >> 1)]
    assert out.tolist() == wrapped


@pytest.mark.parametrize("n", [1, 16, 7])
def test_arguments_that_are_not_specialized(n):
    out = torch.empty(2, dtype=torch.int32)
    unspecialized_kernel[(1,)](n, out)
    assert out.tolist() == [n // 3, n >> 1]
    assert len(unspecialized_kernel.device_caches[0][0]) == 1  # one program for all of them


@triton.jit
def copy_kernel(source, target, at, H: tl.constexpr, W: tl.constexpr):
    row = tl.program_id(0) * H
    target.store([row, at], source.load([row, at]))


@pytest.mark.parametrize("padding", ["zero", "nan"])
def test_descriptors_made_on_the_host(padding):
    """Bounds are the descriptor's; what lies outside is padding and not counted."""
    x, out = normal(10, 24), torch.full((10, 24), 9.0)
    # the source has 9 rows of 22 columns, the target all 10 of 24
    source = TensorDescriptor(x, [9, 22], [24, 1], [4, 16], padding)
    target = TensorDescriptor.from_tensor(out, [4, 16])
    with mini_triton.profile() as p:
        copy_kernel[(3,)](source, target, 16, H=4, W=16)
    expected = torch.full((10, 24), 9.0)
    expected[:, 16:] = 0.0 if padding == "zero" else torch.nan
    expected[:9, 16:22] = x[:9, 16:22]
    assert_same(out, expected)
    assert p.launches[0].tensors["source"].loaded == 9 * 6
    assert p.launches[0].tensors["target"].stored == 10 * 8


@pytest.mark.skipif(
    "round_f32_to_tf32" not in TensorDescriptor.__dataclass_fields__,
    reason="descriptors of Triton 3.6 do not round",
)
def test_a_descriptor_that_rounds_to_tf32():
    x, out = normal(4, 16), torch.empty(4, 16)
    source = TensorDescriptor.from_tensor(x, [4, 16], round_f32_to_tf32=True)
    copy_kernel[(1,)](source, TensorDescriptor.from_tensor(out, [4, 16]), 0, H=4, W=16)
    bits = out.view(torch.int32)
    assert not (bits & 0x1FFF).any()
    assert not torch.equal(out, x)
    assert torch.allclose(out, x, rtol=2**-11, atol=0)


def test_a_descriptor_larger_than_its_tensor_is_out_of_bounds():
    x, out = normal(4, 16), torch.zeros(4, 16)
    source = TensorDescriptor(x, [8, 16], [16, 1], [4, 16])
    with pytest.raises(mini_triton.OutOfBounds, match=r"loads element 64 of source"):
        copy_kernel[(2,)](source, TensorDescriptor.from_tensor(out, [4, 16]), 0, H=4, W=16)
    assert not out.any()


@triton.jit
def five_kernel(source, target):
    at = tl.program_id(0)
    target.store([at, 0, 0, 0, 0], source.load([at, 0, 0, 0, 0]) + 1)


def test_a_descriptor_of_rank_five():
    x = integers(3, 2, 4, 2, 8, low=-99, high=99)
    out = torch.zeros_like(x)
    block = [1, 2, 4, 2, 8]
    five_kernel[(3,)](
        TensorDescriptor.from_tensor(x, block), TensorDescriptor.from_tensor(out, block)
    )
    assert_same(out, x + 1)


@triton.jit
def gather_kernel(source, target, rows_ptr, N: tl.constexpr):
    rows = tl.load(rows_ptr + tl.arange(0, N))
    target.scatter(source.gather(rows, 4), rows, 8)


def test_descriptors_gather_and_scatter_rows():
    """Rows outside read as zero and are not written."""
    x, out = normal(12, 16), torch.zeros(12, 16)
    rows = torch.tensor([3, 0, 11, 7, 12, -1, 5, 99], dtype=torch.int32)
    with mini_triton.profile() as p:
        gather_kernel[(1,)](
            TensorDescriptor.from_tensor(x, [1, 8]),
            TensorDescriptor.from_tensor(out, [1, 8]),
            rows,
            N=8,
        )
    inside = [3, 0, 11, 7, 5]
    expected = torch.zeros(12, 16)
    expected[inside, 8:] = x[inside, 4:12]
    assert_same(out, expected)
    assert p.launches[0].tensors["source"].loaded == 5 * 8


@triton.jit
def reductions_kernel(add, low, high, both, either, odd, v_ptr):
    i = tl.arange(0, 4)[:, None] * 4 + tl.arange(0, 4)[None, :]
    v = tl.load(v_ptr + i)
    add.atomic_add([0, 0], v)
    low.atomic_min([0, 0], v)
    high.atomic_max([0, 0], v)
    both.atomic_and([0, 0], v)
    either.atomic_or([0, 0], v)
    odd.atomic_xor([0, 0], v)


def test_reductions_through_descriptors():
    v = integers(4, 4, low=-9, high=9)
    start = [integers(3, 4, low=-9, high=9, seed=k + 1) for k in range(6)]
    found = [t.clone() for t in start]
    reductions_kernel[(1,)](*(TensorDescriptor.from_tensor(t, [4, 4]) for t in found), v)
    expected = (torch.add, torch.minimum, torch.maximum, torch.bitwise_and, torch.bitwise_or)
    for t, before, f in zip(found, start, (*expected, torch.bitwise_xor), strict=True):
        assert_same(t, f(before, v[:3]), f.__name__)


@triton.jit
def nested_descriptor_kernel(pair, factor):
    pair[1].store([0, 0], pair[0].load([0, 0]) * factor)


def test_descriptors_in_a_tuple():
    x, out = normal(4, 16), torch.empty(4, 16)
    pair = tuple(TensorDescriptor.from_tensor(t, [4, 16]) for t in (x, out))
    nested_descriptor_kernel[(1,)](pair, 2.0)
    assert_same(out, x * 2.0)
