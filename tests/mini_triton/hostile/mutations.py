"""Mutations of TTIR text: tokens, numbers, types, operands, lines, brackets."""

from __future__ import annotations

import re

from hypothesis import strategies as st

NUMBERS = (
    *("0", "1", "-1", "2", "3", "7", "-8", "16", "64", "255", "1000"),
    *("2147483647", "-2147483648", "4294967295", "9223372036854775807", "-9223372036854775808"),
    *("18446744073709551616", "1048576", "1073741824", "9" * 40, "9" * 5000),
    *("1.0", "-0.0", "1.0e+308", "1.0e-320", "0x7F800000", "0xFFC00000", "0x7FF0000000000000"),
    *("true", "false", "nan"),
)
TYPES = (
    *("i1", "i8", "i16", "i32", "i64", "index", "f16", "bf16", "f32", "f64", "f8E5M2", "f8E4M3FN"),
    *(
        "!tt.ptr<f32>",
        "!tt.ptr<i32>",
        "!tt.ptr<i1>",
        "!tt.ptr<!tt.ptr<f32>>",
        "!tt.tensordesc<f32>",
    ),
    *("i0", "i33", "f80", "none", "tensor<32xf32>", "tensor<1xi32>", "tensor<32x1xi1>"),
    *("tensor<4x8x!tt.ptr<f32>>", "tensor<1073741824xf32>", "tensor<0xf32>", "tensor<3xi32>"),
    *("tensor<32xtensor<4xf32>>", "()", "(i32, f32)"),
)
WORDS = (
    *("slt", "ult", "eq", "oeq", "uno", "x", "y", "w", "add", "fadd", "umax", "exch", "rtz"),
    *("tf32", "dense", "loc", "do", "else", "to", "step", "iter_args", "unsigned", "attributes"),
)
OPERATIONS = (
    *("tt.load", "tt.store", "tt.addptr", "tt.splat", "tt.broadcast", "tt.reshape", "tt.trans"),
    *("tt.dot", "tt.reduce", "tt.scan", "tt.gather", "tt.cat", "tt.join", "tt.split"),
    *("tt.atomic_rmw", "tt.atomic_cas", "tt.int_to_ptr", "tt.ptr_to_int", "tt.bitcast"),
    *("arith.addi", "arith.muli", "arith.divsi", "arith.remui", "arith.shli", "arith.addf"),
    *("arith.select", "arith.extsi", "arith.trunci", "arith.truncf", "arith.sitofp"),
    *("arith.constant", "math.exp2", "math.fma", "tt.fp_to_fp", "tt.expand_dims", "tt.unsplat"),
    *(
        "scf.for",
        "scf.if",
        "scf.while",
        "scf.yield",
        "cf.br",
        "tt.return",
        "tt.call",
        "tt.histogram",
    ),
    *("tt.print", "tt.assert", "ub.poison", "tt.make_range", "tt.get_program_id", "no.such"),
)
_SORTS: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = (
    (re.compile(r"(?<![\w.%#])-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])"), NUMBERS),
    (re.compile(r"(?<=[<x])\d+(?=x)"), NUMBERS[:20]),
    (re.compile(r"tensor<[^>]*>+|!tt\.ptr<[^>]*>+|\b(?:i|f|bf)\d+\b"), TYPES),
    (re.compile(r"%[\w$.#]+"), ()),
    (re.compile(r"\b(?:arith|math|tt|scf|cf)\.[\w.]+"), OPERATIONS),
    (re.compile(r"\b(?:[su]l[te]|[su]g[te]|[ou](?:eq|ne|lt|gt)|eq|ne|x|add|max|fadd)\b"), WORDS),
    (re.compile(r"[\w.%@^#!]+|[^\s\w]"), WORDS),
)

#: Choices of one mutation: what to do, where (twice, in thousandths of the text), with what.
Choice = tuple[int, int, int, int]
choices = st.tuples(
    st.integers(0, 11), st.integers(0, 9999), st.integers(0, 9999), st.integers(0, 9999)
)


def mutated(text: str, choice: Choice) -> str:
    """The text with one change."""
    sort, place, other, what = choice
    if sort < len(_SORTS):
        pattern, replacements = _SORTS[sort]
        found = [match.span() for match in pattern.finditer(text)]
        if not found:
            return text
        start, end = found[place * len(found) // 10_000]
        others = replacements or tuple({text[a:b]: None for a, b in found})
        return text[:start] + others[what * len(others) // 10_000] + text[end:]
    lines = text.split("\n")
    first, second = (at * len(lines) // 10_000 for at in (place, other))
    if sort == 7:
        lines[first], lines[second] = lines[second], lines[first]
    elif sort == 8:
        lines.insert(second, lines[first])
    elif sort == 9:
        del lines[first]
    elif sort == 10:
        length = 1 + what % 4
        lines[second:second] = lines[first : first + length]
    else:
        del lines[min(first, second) : min(first, second) + 1 + what % 6]
    return "\n".join(lines)
