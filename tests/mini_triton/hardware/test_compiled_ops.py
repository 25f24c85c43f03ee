"""Loads and stores of TTIR found again in TTGIR and PTX."""

import triton
import triton.language as tl
from mini_triton.execute.prepare import prepare
from mini_triton.hardware.compiled_ops import ACCESSES, Instruction, instructions
from mini_triton.hardware.layouts import blocked, scalar

_LOCS = """
#loc = loc("/somewhere/k.py":1:0)
#loc1 = loc("/somewhere/k.py":5:16)
#loc2 = loc("/somewhere/helper.py":2:8)
#loc3 = loc("/somewhere/k.py":6:4)
#loc4 = loc("x"(#loc1))
#loc5 = loc(callsite(#loc2 at #loc3))
"""
_TTIR = (
    """\
module {
  tt.func public @k(%x: !tt.ptr<f32> loc(#loc), %y: !tt.ptr<f32> loc(#loc)) {
    %0 = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32> loc(#loc)
    %1 = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>> loc(#loc)
    %2 = tt.addptr %1, %0 : tensor<64x!tt.ptr<f32>>, tensor<64xi32> loc(#loc)
    %3 = tt.load %2 : tensor<64x!tt.ptr<f32>> loc(#loc4)
    %4 = tt.load %x : !tt.ptr<f32> loc(#loc5)
    tt.store %2, %3 : tensor<64x!tt.ptr<f32>> loc(#loc5)
    tt.return loc(#loc)
  } loc(#loc)
} loc(#loc)
"""
    + _LOCS
)
_BLOCKED = (
    "#ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>"
)
_TTGIR = (
    f"""\
#blocked = {_BLOCKED}
module {{
  tt.func public @k(%x: !tt.ptr<f32> loc(#loc), %y: !tt.ptr<f32> loc(#loc)) {{
    %a = ttg.async_copy_global_to_local %2, %7 mask %m : tensor<64x!tt.ptr<f32>, #blocked> -> \
<64xf32, #shared, #smem, mutable> loc(#loc4)
    %b = ttg.async_copy_global_to_local %2, %8 mask %m : tensor<64x!tt.ptr<f32>, #blocked> -> \
<64xf32, #shared, #smem, mutable> loc(#loc4)
    %4 = tt.load %x : !tt.ptr<f32> loc(#loc5)
    tt.store %2, %3 : tensor<64x!tt.ptr<f32>, #blocked> loc(#loc5)
  }} loc(#loc)
}} loc(#loc)
"""
    + _LOCS
)
_PTX = """\
	.loc	1 5 16                          // k.py:5:16
	cp.async.ca.shared.global [ %r1 + 0 ], [ %rd1 + 0 ], 0x8, %r2;
	.loc	2 2 8                           // helper.py:2:8 @[ k.py:6:4 ]
	@%p1 ld.global.b32 { %r9 }, [ %rd2 + 0 ];
	@%p2 st.global.v2.b32 [ %rd3 + 0 ], { %r1, %r2 };
"""


def test_places_are_matched_through_calls_and_pipelining():
    program = prepare(_TTIR, "k").program
    found = instructions(program, _TTIR, _TTGIR, _PTX, 1)
    line = blocked((64,), (2,), (32,), (1,), (0,))
    by_name = {
        (op.name, op.operand_types[0].shape): found.get(id(op))
        for op in program.walk()
        if op.name in ACCESSES
    }
    assert by_name["tt.load", (64,)] == [Instruction("ldgsts", line, 8)]
    assert by_name["tt.load", ()] == [Instruction("ld", scalar(1), 4)]
    assert by_name["tt.store", (64,)] == [Instruction("st", line, 8)]
    assert len(found) == 3


def test_a_program_that_does_not_match_is_left_alone():
    program = prepare(_TTIR, "k").program
    assert instructions(program, "module {}", _TTGIR, _PTX, 1) == {}
    assert instructions(program, _TTIR, "", "", 1) == {}


def test_only_narrow_copies_may_be_served_by_l1():
    served = [Instruction(kind, scalar(1), width).through_l1 for kind, width in (
        ("ld", 16), ("ldgsts", 4), ("ldgsts", 16), ("st", 4), ("atom", 4), ("tma", 0),
    )]  # fmt: skip
    assert served == [True, True, False, False, False, False]


@triton.jit
def _twice(x_ptr, y_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    w = tl.load(y_ptr + i[:, None] * 16 + tl.arange(0, 16)[None, :])
    tl.store(x_ptr + i, x + tl.sum(w, 1))
    tl.atomic_add(y_ptr + i, x)


def test_a_load_that_the_compiler_does_twice_is_two_instructions():
    import torch

    from tests.mini_triton.hardware.test_model import by_tensor, modelled

    x, y = torch.ones(32), torch.ones(512)
    record = modelled(lambda: _twice[(1,)](x, y, BLOCK=32))
    loads = [a for a in record.hardware.accesses if a.tensor == "x_ptr" and a.kind == "load"]
    assert len(loads) == 2
    assert {a.requests for a in loads} == {4}
    assert by_tensor(record)["y_ptr"].instruction == "atom"
