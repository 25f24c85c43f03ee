"""What Triton's front end can emit, operation by operation, and what becomes of it here.

One entry a method of Triton's `ir.builder`: `language` makes the table in docs/language.md of them.
Whether an operation is executed is not said here but looked up where handlers are registered.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """A builder's method.

    Attributes:
        builder: the method of `ir.builder`, without `create_`; several that do alike.
        written: what the author of a kernel writes.
        ttir: the operations that arrive here; none of what Triton's passes write out in others.
        limits: what differs from hardware, or is left out.
    """

    builder: tuple[str, ...]
    written: str
    ttir: tuple[str, ...] = ()
    limits: str = ""


def _entry(builder: str, written: str, ttir: str = "", limits: str = "") -> Entry:
    return Entry(tuple(builder.split()), written, tuple(ttir.split()), limits)


_POINTERS = "written out as pointers, masks and loads by Triton's own passes"
_HINTS = "cache modifiers and eviction policies change nothing"
_LOAD_HINTS = (
    "cache modifiers and eviction policies change nothing; `volatile` changes no value, but "
    "programs of a kernel that loops on a volatile load run in turn"
)
_UPDATES = (
    "one lane after the other, in grid order; `sem` and `scope` change nothing, since every "
    "program sees all that programs before it have done"
)
_FLOATS = "16-bit and 8-bit floats are computed in float32 and rounded after each operation"

GROUPS: dict[str, tuple[Entry, ...]] = {
    "Programs and control flow": (
        _entry("get_program_id", "`tl.program_id`", "tt.get_program_id"),
        _entry("get_num_programs", "`tl.num_programs`", "tt.get_num_programs"),
        _entry(
            "for_op",
            "`for … in range(…)`, `tl.range`",
            "scf.for",
            "options of `tl.range` that steer pipelining change nothing; a step that is not "
            "positive is an error; `tl.static_range` and `loop_unroll_factor` are unrolled by "
            "Triton",
        ),
        _entry("while_op condition_op", "`while`", "scf.while"),
        _entry("if_op yield_op", "`if`, conditional expressions", "scf.if"),
        _entry(
            "branch cond_branch",
            "`return` before the end",
            "",
            "programs that part are run one group after the other and merged",
        ),
        _entry("assume", "`tl.assume`", "llvm.intr.assume", "believed, not checked"),
        _entry(
            "barrier",
            "`tl.debug_barrier`",
            "ttg.barrier",
            "changes nothing: a program's operations run one after the other, each on its tile",
        ),
        _entry("assert", "`tl.device_assert`", "tt.assert", "with `debug=True`, as on a GPU"),
        _entry(
            "print",
            "`tl.device_print`, `print`",
            "tt.print",
            "one line a program, in grid order, not one a lane; of a tile the first 1,000 numbers",
        ),
    ),
    "Memory": (
        _entry("load masked_load", "`tl.load`", "tt.load", _LOAD_HINTS),
        _entry("store masked_store", "`tl.store`", "tt.store", _HINTS),
        _entry(
            "atomic_rmw",
            "`tl.atomic_add`, `…_max`, `…_min`, `…_and`, `…_or`, `…_xor`, `…_xchg`",
            "tt.atomic_rmw",
            _UPDATES,
        ),
        _entry("atomic_cas", "`tl.atomic_cas`", "tt.atomic_cas", _UPDATES),
        _entry(
            "int_to_ptr ptr_to_int",
            "`x.to(tl.pointer_type(…))`, `ptr.to(tl.int64)`",
            "tt.int_to_ptr tt.ptr_to_int",
            "addresses of tensors that are arguments, or whose `data_ptr()` is in an argument",
        ),
        _entry("addptr", "`ptr + offset`", "tt.addptr"),
        _entry(
            "make_block_ptr advance tensor_pointer_load tensor_pointer_store",
            "`tl.make_block_ptr`, `tl.advance`",
            "",
            _POINTERS,
        ),
        _entry(
            "make_tensor_descriptor descriptor_load descriptor_store descriptor_gather "
            "descriptor_scatter descriptor_reduce",
            "`tl.make_tensor_descriptor`, `TensorDescriptor` as an argument, and their methods",
            "",
            _POINTERS,
        ),
    ),
    "Shapes": (
        _entry("make_range", "`tl.arange`", "tt.make_range"),
        _entry("splat unsplat", "`tl.full`, scalars with tiles", "tt.splat tt.unsplat"),
        _entry("broadcast", "`tl.broadcast_to`, mixed shapes", "tt.broadcast"),
        _entry("expand_dims", "`tl.expand_dims`, `x[:, None]`", "tt.expand_dims"),
        _entry("reshape", "`tl.reshape`, `tl.view`, `tl.ravel`", "tt.reshape", "never reorders"),
        _entry("trans", "`tl.trans`, `tl.permute`", "tt.trans"),
        _entry("cat", "`tl.cat`", "tt.cat", "in the order of the operands"),
        _entry("join split", "`tl.join`, `tl.split`, `tl.interleave`", "tt.join tt.split"),
        _entry("gather", "`tl.gather`", "tt.gather", "an index outside the axis is an error"),
        _entry("select", "`tl.where`", "arith.select"),
    ),
    "Across lanes": (
        _entry(
            "reduce",
            "`tl.sum`, `tl.max`, `tl.argmax`, `tl.xor_sum`, `tl.reduce`, …",
            "tt.reduce",
            "any function; float32 sums add in torch's order, others as a tree",
        ),
        _entry(
            "scan",
            "`tl.cumsum`, `tl.cumprod`, `tl.associative_scan`",
            "tt.scan",
            "any function; float32 sums add up in float64, others as a tree",
        ),
        _entry(
            "histogram", "`tl.histogram`", "tt.histogram", "what lies outside is counted nowhere"
        ),
        _entry("map_elementwise", "`tl.map_elementwise`", "tt.map_elementwise"),
        _entry(
            "dot",
            "`tl.dot`",
            "tt.dot",
            "`tf32` rounds float32 factors (`Settings.tf32`); `tf32x3`, `bf16x3` and `bf16x6` are "
            "as `ieee`; sums are float32, `max_num_imprecise_acc` changes nothing; integers wrap",
        ),
        _entry(
            "dot_scaled",
            "`tl.dot_scaled`",
            "tt.dot_scaled",
            "as on hardware without such products: in bfloat16, or float16 if a factor is that",
        ),
    ),
    "Integers": (
        _entry("add sub mul", "`+`, `-`, `*`", "arith.addi arith.subi arith.muli", "wrap"),
        _entry(
            "sdiv udiv srem urem",
            "`//`, `%`",
            "arith.divsi arith.divui arith.remsi arith.remui",
            "truncate; by zero, what an H200 gives",
        ),
        _entry("and or xor", "`&`, `\\|`, `^`, `~`", "arith.andi arith.ori arith.xori"),
        _entry("shl ashr lshr", "`<<`, `>>`", "arith.shli arith.shrsi arith.shrui"),
        _entry(
            "maxsi maxui minsi minui",
            "`tl.maximum`, `tl.minimum`",
            "arith.maxsi arith.maxui arith.minsi arith.minui",
        ),
        _entry("iabs", "`tl.abs`", "math.absi"),
        _entry("umulhi", "`tl.umulhi`, `tl.rand`, `tl.randn`, `tl.randint`", "tt.mulhiui"),
        _entry(
            "icmpEQ icmpNE icmpSGE icmpSGT icmpSLE icmpSLT icmpUGE icmpUGT icmpULE icmpULT",
            "`==`, `<`, …",
            "arith.cmpi",
        ),
    ),
    "Floats": (
        _entry(
            "fadd fsub fmul",
            "`+`, `-`, `*`",
            "arith.addf arith.subf arith.mulf",
            _FLOATS + "; `a * b + c` is not fused unless written as `tl.fma`",
        ),
        _entry(
            "fdiv frem precise_divf",
            "`/`, `%`, `tl.fdiv`, `tl.div_rn`",
            "arith.divf arith.remf tt.precise_divf",
            "rounded correctly; a GPU's `/` may be 2 units in the last place away",
        ),
        _entry("fma", "`tl.fma`", "math.fma", "rounded once"),
        _entry(
            "maximumf maxnumf minimumf minnumf clampf",
            "`tl.maximum`, `tl.minimum`, `tl.clamp`",
            "arith.maximumf arith.maxnumf arith.minimumf arith.minnumf tt.clampf",
            "NaN as `propagate_nan` says",
        ),
        _entry(
            "fcmpOEQ fcmpOGE fcmpOGT fcmpOLE fcmpOLT fcmpONE fcmpUEQ fcmpUGE fcmpUGT fcmpULE "
            "fcmpULT fcmpUNE",
            "`==`, `<`, …",
            "arith.cmpf",
        ),
        _entry(
            "fabs ceil floor", "`tl.abs`, `tl.ceil`, `tl.floor`", "math.absf math.ceil math.floor"
        ),
        _entry(
            "sqrt precise_sqrt rsqrt",
            "`tl.sqrt`, `tl.sqrt_rn`, `tl.rsqrt`",
            "math.sqrt tt.precise_sqrt math.rsqrt",
            "`sqrt` is rounded correctly",
        ),
        _entry(
            "exp exp2 log log2 sin cos erf",
            "`tl.exp`, `tl.exp2`, `tl.log`, `tl.log2`, `tl.sin`, `tl.cos`, `tl.erf`",
            "math.exp math.exp2 math.log math.log2 math.sin math.cos math.erf",
            "more accurate than a GPU's, so not its bits",
        ),
        _entry(
            "extern_elementwise",
            "`tl.extra.libdevice.…`",
            "tt.extern_elementwise",
            "libdevice only: {libdevice} functions, those that hardware computes exactly are exact",
        ),
        _entry(
            "inline_asm",
            "`tl.inline_asm_elementwise`",
            "tt.elementwise_inline_asm",
            "**refused**, but for the PTX of Triton's own library (`tl.float8e4b15`, `gdc_wait`); "
            "`tl.extra.cuda.smid` and `globaltimer` are refused by their names",
        ),
    ),
    "Conversions": (
        _entry(
            "fp_ext fp_trunc fp_to_fp",
            "`x.to(…)`",
            "arith.extf arith.truncf tt.fp_to_fp",
            "to nearest even, or toward zero where asked for; 8-bit floats saturate: "
            "`float8e4nv`, `float8e5`, `float8e4b15` (Triton has the other two for AMD only)",
        ),
        _entry(
            "si_to_fp ui_to_fp fp_to_si fp_to_ui",
            "`x.to(…)`",
            "arith.sitofp arith.uitofp arith.fptosi arith.fptoui",
            "floats that no integer holds saturate, as on hardware",
        ),
        _entry("int_cast", "`x.to(…)`", "arith.extsi arith.extui arith.trunci"),
        _entry("bitcast", "`x.to(…, bitcast=True)`", "tt.bitcast arith.bitcast"),
        _entry(
            "poison",
            "a variable that some path leaves without a value",
            "ub.poison",
            "zero",
        ),
    ),
}

#: Methods of the builder that make parts of a program, not operations of it.
PARTS = frozenset(
    {
        "block",
        "block_with_parent",
        "loc",
        "map_elementwise_ret",
        "module",
        "name_loc",
        "reduce_ret",
        "scan_ret",
        "tensor_descriptor_type",
    }
)
