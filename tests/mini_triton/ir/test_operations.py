"""Operations without regions: the form that most share, and those that are printed in their own."""

import math

import pytest
from mini_triton.errors import BadProgram
from mini_triton.ir.types import Type

from tests.mini_triton.ir.reading import body_of


def constant(text):
    (op,) = body_of(f"%c = arith.constant {text}")
    return op.attrs["value"], op.types[0]


@pytest.mark.parametrize(
    ("text", "value", "kind"),
    [
        ("3 : i32", 3, Type("i32")),
        ("-7 : i64", -7, Type("i64")),
        ("true", True, Type("i1")),
        ("1.500000e+00 : f32", 1.5, Type("f32")),
        ("dense<2> : tensor<8xi32>", 2, Type("i32", (8,))),
        ("dense<0xFF800000> : tensor<8xf32>", -math.inf, Type("f32", (8,))),
        ("0x7E00 : f16", None, Type("f16")),
        ("0x7F80 : bf16", math.inf, Type("bf16")),
        ("dense<0x7F> : tensor<8xf8E4M3FN>", None, Type("f8E4M3FN", (8,))),
        ("0xFC : f8E5M2", -math.inf, Type("f8E5M2")),
        ("0xFFF0000000000000 : f64", -math.inf, Type("f64")),
        ("dense<[1, 2]> : tensor<2xi32>", [1, 2], Type("i32", (2,))),
        ("dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>", [[1.0, 2.0], [3.0, 4.0]], None),
        ("dense<false> : tensor<4x4xi1>", False, Type("i1", (4, 4))),
    ],
)
def test_constants(text, value, kind):
    found, found_kind = constant(text)
    assert found == value or (value is None and math.isnan(found))
    assert kind is None or found_kind == kind


def test_the_common_form():
    """Operands, words and attributes in any order, then types."""
    load, store, compare, reshape = body_of(
        """
        %m = arith.constant true
        %v = tt.load %p, %m {isVolatile = false} policy = last : !tt.ptr<f32> loc("a.py":3:1)
        tt.store %p, %v, %m cacheModifier = cs : !tt.ptr<f32> loc(unknown)
        %c = arith.cmpi slt, %x, %x : i32
        %t = tt.splat %x : i32 -> tensor<4x1xi32>
        """
    )[1:]
    assert load.types == (Type("f32"),)
    assert (load.where.file, load.where.line) == ("a.py", 3)
    assert load.attrs["isVolatile"] is False
    assert (store.types, len(store.operands)) == ((), 3)
    assert (compare.keywords, compare.types) == (("slt",), (Type("i1"),))
    assert reshape.types == (Type("i32", (4, 1)),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('%a = arith.constant dense<"0x00"> : tensor<4xf32>', "packed dense constants"),
        ("%a = arith.constant one : i32", "line 3: 'one' is not a constant of type i32"),
    ],
)
def test_no_constants(text, message):
    with pytest.raises(BadProgram, match=message):
        body_of(text)


def test_scaled_products():
    scaled = "%x scale %x, %x, %x lhs = e2m1 rhs = e4m3 : i32, i32 * i32 -> i32"
    (op,) = body_of(f"%r = tt.dot_scaled {scaled}")
    assert (len(op.operands), op.attrs["scaled"], op.attrs["lhs"]) == (4, (True, False), "e2m1")
    with pytest.raises(BadProgram, match="takes two factors and a sum"):
        body_of("%r = tt.dot_scaled %x scale %x, %x lhs = e2m1 rhs = e4m3 : i32 * i32 -> i32")
