"""Operations by the unit that does them."""

from types import SimpleNamespace

import pytest
import torch
import triton
import triton.language as tl
from mini_triton.hardware.arithmetic import Arithmetic
from mini_triton.ir.program import Op
from mini_triton.ir.types import Type

from tests.mini_triton.comparing import normal
from tests.mini_triton.hardware.test_model import modelled


@pytest.mark.parametrize(
    ("element", "precision", "expected"),
    [
        ("f16", "ieee", {"fp16": 1}),
        ("bf16", "ieee", {"bf16": 1}),
        ("f8E5M2", "ieee", {"fp8": 1}),
        ("i8", "ieee", {"int8": 1}),
        ("f64", "ieee", {"fp64": 1}),
        ("f32", "tf32", {"tf32": 1}),
        ("f32", "tf32x3", {"tf32": 3}),
        ("f32", "bf16x6", {"bf16": 6}),
        ("f32", "ieee", {"fp32": 1}),
    ],
)
def test_products_by_precision(element, precision, expected):
    op = Op(
        "tt.dot",
        types=(Type("f32", (16, 32)),),
        operand_types=(Type(element, (16, 64)), Type(element, (64, 32))),
        attrs={"inputPrecision": precision},
    )
    counted = Arithmetic()
    counted.operation(SimpleNamespace(count=5), op)
    size = 2 * 16 * 32 * 64 * 5
    assert counted.products == {name: times * size for name, times in expected.items()}
    assert not counted.others


def test_a_batch_of_products():
    types = (Type("f16", (3, 16, 64)), Type("f16", (3, 64, 16)))
    op = Op("tt.dot", types=(Type("f32", (3, 16, 16)),), operand_types=types)
    counted = Arithmetic()
    counted.operation(SimpleNamespace(count=1), op)
    assert counted.products == {"fp16": 2 * 3 * 16 * 16 * 64}


@pytest.mark.parametrize(
    ("attrs", "precision", "k"),
    [
        ({"lhs": "e2m1", "rhs": "e4m3"}, "bf16", 128),
        ({"lhs": "e2m1", "rhs": "fp16", "lhs_k_pack": False}, "fp16", 64),
        ({"lhs": "e5m2", "rhs": "bf16"}, "bf16", 64),
    ],
)
def test_scaled_products_run_as_wider_ones(attrs, precision, k):
    op = Op(
        "tt.dot_scaled",
        types=(Type("f32", (32, 16)),),
        operand_types=(Type("i8", (32, 64)), Type("i8", (k, 16))),
        attrs=attrs,
    )
    counted = Arithmetic()
    counted.operation(SimpleNamespace(count=1), op)
    assert counted.products == {precision: 2 * 32 * 16 * k}


@triton.jit
def _loop_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for _ in range(n + tl.program_id(0)):
        total += tl.load(x_ptr + i)
    tl.store(y_ptr + i, total * tl.sum(total))


def test_other_operations_are_an_element_each_in_every_iteration():
    """Program 0 adds twice, program 1 three times; a sum of 32 and 32 products in each."""
    record = modelled(lambda: _loop_kernel[(2,)](normal(32), torch.empty(32), 2, BLOCK=32))
    assert record.hardware.others == {"fp32": 32 * (2 + 3) + 2 * 32 + 2 * 32}
    assert record.hardware.products == {}
