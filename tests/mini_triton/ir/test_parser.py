"""The parser: modules, regions and what has some, and errors that name the line of the TTIR."""

import pytest
import torch
from mini_triton.errors import BadProgram
from mini_triton.ir.parser import parse
from mini_triton.ir.types import Type

from tests.mini_triton.ir.reading import body_of


def test_results_of_several_values():
    text = """
        %t = tt.splat %x : i32 -> tensor<4x2xi32>
        %a, %b = tt.split %t : tensor<4x2xi32> -> tensor<4xi32>
        %r:2 = "tt.reduce"(%a, %b) <{axis = 0 : i32}> ({
        ^bb0(%i: i32, %j: i32, %k: i32, %l: i32):
          %s = arith.addi %i, %k : i32
          tt.reduce.return %s, %l : i32, i32
        }) : (tensor<4xi32>, tensor<4xi32>) -> (i32, i32)
        %u = arith.addi %r#0, %r#1 : i32
    """
    _, split, reduce, total = body_of(text)
    assert split.types == (Type("i32", (4,)),) * 2
    assert reduce.attrs == {"axis": 0}
    assert len(reduce.regions[0].entry.args) == 4
    assert total.operands == reduce.results


def test_control_flow():
    text = """
        %c0 = arith.constant 0 : i32
        %r:2 = scf.for %i = %c0 to %x step %x iter_args(%a = %x, %q = %p) -> (i32, !P)  : i32 {
          %n = arith.addi %a, %i : i32
          scf.yield %n, %q : i32, !P
        } {tt.num_stages = 3 : i32}
        %c = arith.cmpi eq, %x, %c0 : i32
        %s = scf.if %c -> (i32) {
          scf.yield %x : i32
        } else {
          scf.yield %c0 : i32
        }
        scf.for %i = %c0 to %x step %x  : i32 {
        }
        scf.while : () -> () {
          scf.condition(%c)
        } do {
          scf.yield
        }
        %w = scf.while (%a = %x) : (i32) -> i32 {
          scf.condition(%c) %a : i32
        } do {
        ^bb0(%b: i32):
          scf.yield %b : i32
        }
    """
    text = text.replace("!P", "!tt.ptr<f32>")
    _, loop, _, branch, empty, spin, repeat = body_of(text)
    assert loop.attrs["tt.num_stages"] == 3
    assert loop.types[1].pointee == Type("f32")
    assert len(loop.regions[0].entry.args) == 3
    assert len(branch.regions) == 2
    assert empty.regions[0].entry.ops[-1].name == "scf.yield"
    assert len(spin.regions) == len(repeat.regions) == 2
    assert repeat.types == (Type("i32"),)


def test_blocks_and_calls():
    program = parse(
        """module {
          tt.func public @k(%x: i32 {a = 16 : i32} loc("x"(#loc))) attributes {b = false} {
            %c = arith.cmpi slt, %x, %x : i32
            cf.cond_br %c, ^bb1, ^bb2(%x : i32)
          ^bb1:
            tt.return
          ^bb2(%y: i32):
            %r = tt.call @helper(%y) : (i32) -> i32
            tt.return
          }
          tt.func private @helper(%z: i32) -> i32 {
            tt.return %z : i32
          }
        }
        #loc = loc("a.py":1:1)"""
    )
    first, second, third = program.kernel.body.blocks
    assert first.ops[-1].successors == (("^bb1", ()), ("^bb2", first.ops[0].operands[:1]))
    assert (second.label, third.label, len(third.args)) == ("^bb1", "^bb2", 1)
    assert third.ops[0].attrs["callee"] == "helper"
    assert set(program.functions) == {"k", "helper"}
    assert program.functions["helper"].result_types == (Type("i32"),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("%a = arith.addi %x, %nope : i32", "line 3: value %nope is used but not defined"),
        ("%a, %b = arith.addi %x, %x : i32", "line 3: arith.addi gives 1 results"),
        ("%a = arith.constant dense<0x1F> : tensor<4xf32, #blocked>", "line 3: a layout encoding"),
    ],
)
def test_errors_name_the_line(text, message):
    with pytest.raises(BadProgram, match=message):
        body_of(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected 'module'"),
        ("module {", "expected 'tt.func', found ''"),
        ("module {\n}", "has one public function, this one has 0"),
        ("module {\n tt.func public @k() {\n tt.return\n", "ends too early"),
        ("module {\n wrong\n}", "line 2: expected 'tt.func', found 'wrong'"),
    ],
)
def test_text_that_is_no_module(text, message):
    with pytest.raises(BadProgram, match=message):
        parse(text)


def test_text_that_nests_without_end():
    deep = "%a = arith.constant dense<" + "[" * 100_000 + " : tensor<4xi32>"
    with pytest.raises(BadProgram, match="nested too deeply"):
        body_of(deep)


def test_types():
    assert str(Type("f32", (4, 8))) == "tensor<4x8xf32>"
    assert str(Type("ptr", (4,), Type("i8"))) == "tensor<4x!tt.ptr<i8>>"
    assert (Type("f32", (4, 8)).numel, Type("i1").numel, Type("i16").bits) == (32, 1, 16)
    assert Type("bf16").is_float
    assert Type("f8E5M2").is_float
    assert not Type("i32").is_float
    assert Type("f8E4M3FN").dtype == torch.float8_e4m3fn
