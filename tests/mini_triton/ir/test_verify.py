"""Forged programs are refused by name, each for what is wrong with it."""

import pytest
from mini_triton.errors import BadProgram, UnsupportedOp
from mini_triton.ir.parser import parse
from mini_triton.ir.verify import verify

ARGUMENTS = "%x: !tt.ptr<f32>, %n: i32, %f: f32, %t: tensor<8xf32>, %i: tensor<8xi32>, %c: i1"


def check(body, functions="", arguments=ARGUMENTS):
    text = f"tt.func public @k({arguments}) {{\n{body}\ntt.return\n}}\n{functions}\n"
    verify(parse(f"module {{\n{text}}}\n"), "k")


REFUSED = {
    "operands of two types": ("%a = arith.addf %f, %n : f32", "its operands differ: f32 and i32"),
    "a result of another type": ("%a = arith.addf %f, %f : f64", "its operands differ"),
    "integers as floats": ("%a = arith.addf %n, %n : i32", "it does not take i32"),
    "too few operands": ("%a = arith.addi %n : i32", "it takes no 1 operands"),
    "no such predicate": ("%a = arith.cmpi slower, %n, %n : i32", "there is no predicate 'slower'"),
    "narrower than before": ("%a = arith.extsi %n : i32 to i8", "it makes no i8 of i32"),
    "a cast of another shape": (
        "%a = arith.sitofp %i : tensor<8xi32> to tensor<4xf32>",
        "it makes no tensor<4xf32> of tensor<8xi32>",
    ),
    "a constant that is no tile": (
        "%a = arith.constant dense<[1, 2]> : tensor<4xi32>",
        "its numbers do not fill a tensor<4xi32>",
    ),
    "a range that is no tile": (
        "%a = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<8xi32>",
        "its result is tensor<16xi32>, not tensor<8xi32>",
    ),
    "a broadcast to fewer": (
        "%a = tt.broadcast %t : tensor<8xf32> -> tensor<4xf32>",
        "it makes no tensor<4xf32> of tensor<8xf32>",
    ),
    "an order that is none": (
        "%a = tt.trans %t {order = array<i32: 1>} : tensor<8xf32> -> tensor<8xf32>",
        "is no order of the axes",
    ),
    "an axis beyond the rank": (
        '%a = "tt.reduce"(%t) <{axis = 7 : i32}> ({\n^bb0(%p: f32, %q: f32):\n'
        "tt.reduce.return %p : f32\n}) : (tensor<8xf32>) -> f32",
        "it has no axis 7",
    ),
    "a region of other values": (
        '%a = "tt.reduce"(%t) <{axis = 0 : i32}> ({\n^bb0(%p: f32, %q: i32):\n'
        "tt.reduce.return %p : f32\n}) : (tensor<8xf32>) -> f32",
        "its region takes other values",
    ),
    "a region that returns other values": (
        '%a = "tt.reduce"(%t) <{axis = 0 : i32}> ({\n^bb0(%p: f32, %q: f32):\n'
        "tt.reduce.return %n : i32\n}) : (tensor<8xf32>) -> f32",
        r"has to return \(f32\)",
    ),
    "a load among lanes": (
        '%a = "tt.reduce"(%t) <{axis = 0 : i32}> ({\n^bb0(%p: f32, %q: f32):\n'
        "%v = tt.load %x : !tt.ptr<f32>\ntt.reduce.return %v : f32\n}) : (tensor<8xf32>) -> f32",
        "tt.load stands in a function of lanes",
    ),
    "a load of no pointer": ("%a = tt.store %n, %n : i32", "gives 0 results"),
    "a store of another type": ("tt.store %x, %n : !tt.ptr<f32>", "it stores i32 through"),
    "a mask that is none": ("%a = tt.load %x, %n : !tt.ptr<f32>", "i32 is no mask"),
    "an atomic that is none": (
        "%a = tt.atomic_rmw nand, acq_rel, gpu, %x, %f, %c : (!tt.ptr<f32>, f32, i1) -> f32",
        "there is no atomic 'nand'",
    ),
    "a product that does not fit": (
        "%a = tt.dot %t, %t, %t : tensor<8xf32> * tensor<8xf32> -> tensor<8xf32>",
        "there is no product",
    ),
    "a loop that yields another type": (
        "%a = scf.for %k = %n to %n step %n iter_args(%p = %f) -> (f32) : i32 {\n"
        "scf.yield %n : i32\n}",
        "its body yields other values",
    ),
    "a loop over floats": ("scf.for %k = %f to %f step %f : f32 {\n}", "scf.for: from f32"),
    "an if without else": (
        "%a = scf.if %c -> (f32) {\nscf.yield %f : f32\n}",
        "it has no else",
    ),
    "a branch to nowhere": ("cf.br ^bb7\n^bb1:", "cf.br goes to"),
    "an end in the middle": ("tt.return\n%a = arith.addi %n, %n : i32", "is not the last"),
    "a call of nothing": ("tt.call @g() : () -> ()", "there is no such function"),
    "a tile that is too large": (
        "%a = tt.splat %f : f32 -> tensor<1073741824xf32>",
        "a tile has at most 1,048,576 elements",
    ),
    "a tile of three": ("%a = tt.splat %f : f32 -> tensor<3xf32>", "no powers of two"),
    "a tile of nothing": ("%a = tt.splat %f : f32 -> tensor<0xf32>", "no powers of two"),
    "an axis that is no number": (
        '%a = tt.expand_dims %t {axis = "0"} : tensor<8xf32> -> tensor<1x8xf32>',
        "its attribute axis is no integer",
    ),
    "a fourth axis of the grid": ("%a = tt.get_program_id w : i32", "it has no axis x, y or z"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    body, words = REFUSED[name]
    with pytest.raises(BadProgram, match=words):
        check(body)


def test_errors_name_operation_and_line():
    with pytest.raises(BadProgram) as caught:
        check('%a = arith.addf %f, %n : f32 loc("k.py":7:3)')
    message = str(caught.value)
    assert message.startswith("bad program: arith.addf: ")
    assert "  --> k.py:7, kernel k\n" in message
    assert "Triton's front end makes no such program" in message


def test_a_type_that_the_simulator_does_not_have():
    with pytest.raises(UnsupportedOp, match="values of type i33"):
        check("%a = arith.extsi %n : i32 to i33")


@pytest.mark.parametrize("callee", ["f", "k"])
def test_recursion(callee):
    functions = f"tt.func private @f({ARGUMENTS}) {{\ntt.call @{callee}() : () -> ()\ntt.return\n}}"
    functions = functions.replace(ARGUMENTS, "")
    with pytest.raises(BadProgram, match="calls itself"):
        check("tt.call @f() : () -> ()", functions, arguments="")


@pytest.mark.parametrize("depth", [150, 5_000])
def test_regions_nested_too_deeply(depth):
    with pytest.raises(BadProgram, match="nested too deeply"):
        check("scf.if %c {\n" * depth + "}\n" * depth)


@pytest.mark.parametrize(
    "text",
    [
        "%a = arith.constant " + "9" * 5000 + " : i32",
        "%a = tt.splat %f : f32 -> tensor<" + "9" * 5000 + "xf32>",
        "%a:-1, %b:2 = tt.split %t : tensor<8xf32> -> tensor<4xf32>",
        "%a = arith.addi %n, %n : i32\n%a = arith.addi %n, %n : i32",
        "%a = arith.constant dense<[[1, 2], 3]> : tensor<4xi32>",
        "scf.for %k = %n to",
    ],
)
def test_text_that_cannot_be_read(text):
    with pytest.raises(BadProgram):
        check(text)


def test_a_function_twice():
    with pytest.raises(BadProgram, match="there is a second function f"):
        check("", "tt.func private @f() {\ntt.return\n}\n" * 2)


def test_sound_programs_pass():
    check("", "", "")
    check(
        "%k = scf.while (%p = %n) : (i32) -> i32 {\nscf.condition(%c) %p : i32\n} do {\n"
        "^bb0(%q: i32):\nscf.yield %q : i32\n}\n"
        "cf.cond_br %c, ^bb1, ^bb2(%k : i32)\n^bb1:\ntt.return\n^bb2(%m: i32):"
    )


REDUCTION = (
    '%a = "tt.reduce"(%t) <{axis = 0 : i32}> ({\n^bb0(%p: f32, %q: f32):\n'
    "%r = tt.call @f(%p) : (f32) -> f32\ntt.reduce.return %r : f32\n}) : (tensor<8xf32>) -> f32"
)


def test_calls_on_lanes():
    head, end = "tt.func private @f(%v: f32) -> f32 {\n", "tt.return %v : f32\n}"
    check(REDUCTION, head + end)
    with pytest.raises(BadProgram, match=r"tt\.call: tt\.print is called in a function of lanes"):
        check(REDUCTION, head + 'tt.print "v" : %v : f32\n' + end)
