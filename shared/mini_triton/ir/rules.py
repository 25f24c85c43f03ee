"""What operands, attributes and results of each operation must be: `rule_of(name)(op)`.

The rules are those of Triton's and MLIR's own verifiers, which a program made by Triton's front end
has passed. A forged one has not; and the handlers that execute an operation rely on them.
"""

from __future__ import annotations

from collections.abc import Callable

from mini_triton.ir.program import Op
from mini_triton.ir.types import Type

#: Raises `Violation`, which says what is wrong with an operation of that name.
Rule = Callable[[Op], None]


class Violation(Exception):
    """What is wrong with an operation, as words."""


def need(holds: bool, what: str) -> None:
    """Raises `Violation` unless `holds`."""
    if not holds:
        raise Violation(what)


def shapes_of(kinds: tuple[Type, ...]) -> set[tuple[int, ...]]:
    """Their shapes."""
    return {kind.shape for kind in kinds}


def is_float(kind: Type) -> bool:
    """A float, of 8 bits too."""
    return not kind.is_pointer and kind.is_float


def is_int(kind: Type) -> bool:
    """An integer of any width, a truth value or an index."""
    return not kind.is_pointer and not kind.is_float


def is_truth(kind: Type) -> bool:
    """One bit."""
    return kind.element == "i1"


def whole(op: Op, name: str) -> int:
    """An attribute that is an integer."""
    value = op.attrs.get(name)
    need(type(value) is int, f"its attribute {name} is no integer")
    assert isinstance(value, int)
    return value


def axis_of(op: Op) -> int:
    """The attribute `axis`, within the rank of the first operand."""
    axis = whole(op, "axis")
    need(0 <= axis < len(op.operand_types[0].shape), f"it has no axis {axis}")
    return axis


def operands(op: Op, fewest: int, most: int | None = None) -> tuple[Type, ...]:
    """The operands' types, of which there are so many."""
    count = len(op.operands)
    need(fewest <= count <= (fewest if most is None else most), f"it takes no {count} operands")
    return op.operand_types


def one_result(op: Op) -> Type:
    """The type of its one result."""
    need(len(op.types) == 1, f"it has one result, not {len(op.types)}")
    return op.types[0]


def no_results(op: Op) -> None:
    """Has no results."""
    need(not op.types, f"it has no result, and here {len(op.types)}")


def result_is(op: Op, kind: Type) -> None:
    """Its one result is of that type."""
    found = one_result(op)
    need(found == kind, f"its result is {kind}, not {found}")


def all_alike(kinds: tuple[Type, ...]) -> None:
    """The types are one and the same."""
    for kind in kinds[1:]:
        need(kind == kinds[0], f"its operands differ: {kinds[0]} and {kind}")


# -------------------------------------------------------------------- arithmetic
def same(count: int, of: Callable[[Type], bool], results: int = 1) -> Rule:
    """`count` operands and `results` results of one type, which is `of` a kind."""

    def rule(op: Op) -> None:
        kinds = operands(op, count)
        need(of(kinds[0]), f"it does not take {kinds[0]}")
        all_alike((*kinds, *op.types))
        need(len(op.types) == results, f"it has {results} results, not {len(op.types)}")

    return rule


_INTEGER_ORDER = {f"{sign}{order}" for sign in "su" for order in ("lt", "le", "gt", "ge")}
_FLOAT_ORDER = {
    f"{nan}{order}" for nan in "ou" for order in ("eq", "ne", "lt", "le", "gt", "ge")
} | {"ord", "uno", "true", "false"}


def _comparison(of: Callable[[Type], bool], predicates: set[str]) -> Rule:
    def rule(op: Op) -> None:
        kinds = operands(op, 2)
        need(of(kinds[0]), f"it does not take {kinds[0]}")
        all_alike(kinds)
        predicate = op.keywords[0] if op.keywords else ""
        need(predicate in predicates, f"there is no predicate {predicate!r}")
        result_is(op, Type("i1", kinds[0].shape))

    return rule


def _conversion(source: Callable[[Type], bool], target: Callable[[Type], bool], way: int) -> Rule:
    """Lane by lane from one kind to another, `way` (1: wider, −1: narrower, 0: any width)."""

    def rule(op: Op) -> None:
        (kind,), result = operands(op, 1), one_result(op)
        need(source(kind) and target(result), f"it makes no {result} of {kind}")
        need(kind.shape == result.shape, f"it makes no {result} of {kind}")
        if way:
            gained = result.itemsize - kind.itemsize or is_truth(kind) - is_truth(result)
            need(gained * way > 0, f"it makes no {result} of {kind}")

    return rule


def _bitcast(op: Op) -> None:
    (kind,), result = operands(op, 1), one_result(op)
    both = kind.is_pointer == result.is_pointer and kind.shape == result.shape
    alike = kind.is_pointer or (
        kind.itemsize == result.itemsize and is_truth(kind) == is_truth(result)
    )
    need(both and alike, f"it makes no {result} of {kind}")


def _select(op: Op) -> None:
    condition, a, b = operands(op, 3)
    need(is_truth(condition) and condition.shape in ((), a.shape), f"it chooses by {condition}")
    all_alike((a, b, one_result(op)))


def _constant(op: Op) -> None:
    operands(op, 0)
    kind = one_result(op)
    need(not kind.is_pointer, "pointers are no constants")
    value = op.attrs.get("value")
    if isinstance(value, list):
        need(_is_listed(value, kind.shape), f"its numbers do not fill a {kind}")
    else:
        need(isinstance(value, bool | int | float), "it has no number")


def _is_listed(value: object, shape: tuple[int, ...]) -> bool:
    """Whether nested lists have a shape."""
    if not shape:
        return isinstance(value, bool | int | float)
    return (
        isinstance(value, list)
        and len(value) == shape[0]
        and all(_is_listed(item, shape[1:]) for item in value)
    )


# -------------------------------------------------------------------- shapes
def _range(op: Op) -> None:
    operands(op, 0)
    start, end = whole(op, "start"), whole(op, "end")
    need(0 <= start < end < 2**31, f"there is no range from {start} to {end}")
    result_is(op, Type("i32", (end - start,)))


def _splat(op: Op) -> None:
    (kind,), result = operands(op, 1), one_result(op)
    need(not kind.shape and bool(result.shape), f"it makes no {result} of {kind}")
    result_is(op, kind.with_shape(result.shape))


def _unsplat(op: Op) -> None:
    (kind,) = operands(op, 1)
    need(bool(kind.shape) and kind.numel == 1, f"it takes a tile of one element, not {kind}")
    result_is(op, kind.with_shape(()))


def _broadcast(op: Op) -> None:
    (kind,), result = operands(op, 1), one_result(op)
    fits = len(kind.shape) == len(result.shape) and all(
        m in (1, n) for m, n in zip(kind.shape, result.shape, strict=True)
    )
    need(fits and kind.with_shape(result.shape) == result, f"it makes no {result} of {kind}")


def _expand_dims(op: Op) -> None:
    (kind,), axis = operands(op, 1), whole(op, "axis")
    need(0 <= axis <= len(kind.shape) and bool(kind.shape), f"{kind} gets no axis {axis}")
    result_is(op, kind.with_shape((*kind.shape[:axis], 1, *kind.shape[axis:])))


def _reshape(op: Op) -> None:
    (kind,), result = operands(op, 1), one_result(op)
    tiles = bool(kind.shape) and bool(result.shape)
    need(tiles and kind.numel == result.numel, f"it makes no {result} of {kind}")
    result_is(op, kind.with_shape(result.shape))


def _transpose(op: Op) -> None:
    (kind,), order = operands(op, 1), op.attrs.get("order")
    need(
        isinstance(order, list) and sorted(map(str, order)) == _names(len(kind.shape)),
        f"{order} is no order of the axes of {kind}",
    )
    assert isinstance(order, list)
    need(all(type(axis) is int for axis in order), f"{order} is no order")
    result_is(op, kind.with_shape(tuple(kind.shape[axis] for axis in order)))


def _names(rank: int) -> list[str]:
    return sorted(map(str, range(rank)))


def _concatenate(op: Op) -> None:
    a, b = operands(op, 2)
    need(bool(a.shape) and bool(b.shape), "it takes tiles")
    need(a.with_shape(b.shape) == b and a.shape[1:] == b.shape[1:], f"{a} and {b} do not fit")
    result_is(op, a.with_shape((a.shape[0] + b.shape[0], *a.shape[1:])))


def _join(op: Op) -> None:
    a, b = operands(op, 2)
    all_alike((a, b))
    need(not a.is_pointer, f"it does not take {a}")
    result_is(op, a.with_shape((*a.shape, 2)))


def _split(op: Op) -> None:
    (kind,) = operands(op, 1)
    need(not kind.is_pointer and kind.shape[-1:] == (2,), f"it does not take {kind}")
    need(len(op.types) == 2, f"it has two results, not {len(op.types)}")
    all_alike((kind.with_shape(kind.shape[:-1]), *op.types))


def _gather(op: Op) -> None:
    source, index = operands(op, 2)
    axis = axis_of(op)
    need(is_int(index) and not is_truth(index), f"{index} is no index")
    need(not source.is_pointer, f"it does not take {source}")
    others = [s for a, s in enumerate(source.shape) if a != axis]
    need(
        len(index.shape) == len(source.shape)
        and others == [s for a, s in enumerate(index.shape) if a != axis],
        f"{index} does not fit {source}",
    )
    result_is(op, source.with_shape(index.shape))


# -------------------------------------------------------------------- memory
def pointee(kind: Type) -> Type:
    """What a pointer, or tile of pointers, points to, in its shape."""
    need(kind.is_pointer and kind.pointee is not None, f"{kind} is no pointer")
    assert kind.pointee is not None
    return kind.pointee.with_shape(kind.shape)


def mask(kind: Type, shape: tuple[int, ...]) -> None:
    """A truth value for each lane; one for all of a tile will do."""
    need(is_truth(kind) and kind.shape in ((), shape), f"{kind} is no mask for {shape}")


def _load(op: Op) -> None:
    kinds = operands(op, 1, 3)
    value = pointee(kinds[0])
    if len(kinds) > 1:
        mask(kinds[1], value.shape)
    if len(kinds) > 2:
        need(kinds[2] == value, f"its other is {kinds[2]}, not {value}")
    result_is(op, value)


def _store(op: Op) -> None:
    kinds = operands(op, 2, 3)
    value = pointee(kinds[0])
    need(kinds[1] == value, f"it stores {kinds[1]} through {kinds[0]}")
    if len(kinds) > 2:
        mask(kinds[2], value.shape)
    no_results(op)


_ATOMICS: dict[str, Callable[[Type], bool]] = {
    "fadd": is_float,
    **dict.fromkeys(("add", "and", "or", "xor", "max", "min", "umax", "umin"), is_int),
    "exch": lambda kind: not kind.is_pointer,
}


def _read_modify_write(op: Op) -> None:
    kinds = operands(op, 2, 3)
    kind = op.keywords[0] if op.keywords else ""
    need(kind in _ATOMICS, f"there is no atomic {kind!r}")
    value = pointee(kinds[0])
    need(_ATOMICS[kind](value) and kinds[1] == value, f"it takes no {kinds[1]}")
    need(not is_truth(value), "it does not take truth values")
    if len(kinds) > 2:
        mask(kinds[2], value.shape)
    result_is(op, value)


def _compare_and_swap(op: Op) -> None:
    kinds = operands(op, 3)
    value = pointee(kinds[0])
    all_alike((value, *kinds[1:]))
    need(not value.is_pointer, f"it does not take {value}")
    result_is(op, value)


def _advance(op: Op) -> None:
    pointer, step = operands(op, 2)
    need(pointer.is_pointer, f"{pointer} is no pointer")
    need(is_int(step) and step.shape == pointer.shape, f"{pointer} takes no steps of {step}")
    result_is(op, pointer)


def _pointer_to_int(op: Op) -> None:
    (kind,) = operands(op, 1)
    need(kind.is_pointer, f"{kind} is no pointer")
    result_is(op, Type("i64", kind.shape))


def _int_to_pointer(op: Op) -> None:
    (kind,), result = operands(op, 1), one_result(op)
    need(kind == Type("i64", result.shape) and result.is_pointer, f"{kind} is no {result}")


# -------------------------------------------------------------------- products, reductions
def _dot(op: Op) -> None:
    a, b, c = operands(op, 3)
    result_is(op, c)
    fits = (
        len(a.shape) == len(b.shape) == len(c.shape) in (2, 3)
        and a.shape[:-2] == b.shape[:-2] == c.shape[:-2]
        and (a.shape[-2], b.shape[-1]) == c.shape[-2:]
        and a.shape[-1] == b.shape[-2]
    )
    need(fits, f"there is no product of {a} and {b} that is {c}")
    alike = a.element == b.element or (is_float(a) and is_float(b) and a.itemsize == b.itemsize)
    numbers = not (a.is_pointer or b.is_pointer or c.is_pointer or is_truth(a) or is_truth(c))
    need(alike and numbers and is_float(a) == is_float(c), f"{a} and {b} give no {c}")


def _dot_scaled(op: Op) -> None:
    """Two factors, each followed by its scale if it has one, and a sum."""
    scaled = op.attrs.get("scaled", (False, False))
    kinds = list(operands(op, 3 + sum(scaled)))
    a = kinds.pop(0)
    a_scale = kinds.pop(0) if scaled[0] else None
    b = kinds.pop(0)
    b_scale = kinds.pop(0) if scaled[1] else None
    (c,) = kinds
    result_is(op, c)
    rank = len(c.shape)
    need(rank in (2, 3) and c.element == "f32", f"{c} is no tile of sums")
    for kind in (a, b, a_scale, b_scale):
        if kind is not None:
            batch = not kind.is_pointer and kind.shape[:-2] == c.shape[:-2]
            need(len(kind.shape) == rank and batch, f"it does not take {kind}")
    (a_rows, a_depth), (b_depth, b_columns) = _unpacked(op, a, 0), _unpacked(op, b, 1)
    fits = a_depth == b_depth and (a_rows, b_columns) == c.shape[-2:]
    need(fits, f"there is no product of {a} and {b} that is {c}")
    for scale, rows in ((a_scale, a_rows), (b_scale, b_columns)):
        if scale is not None:
            groups = scale.shape[-1]
            need(
                scale.shape[-2] == rows and groups > 0 and a_depth % groups == 0,
                f"{scale} does not scale {a_depth} factors of {rows}",
            )


def _unpacked(op: Op, kind: Type, side: int) -> tuple[int, int]:
    """Rows and columns of a factor; one of e2m1 holds two numbers a byte."""
    name = "lr"[side] + "hs"
    rows, columns = kind.shape[-2:]
    if op.attrs.get(name) != "e2m1":
        wide = {"bf16": "bf16", "fp16": "f16"}.get(str(op.attrs.get(name)))
        fits = kind.element == wide if wide else kind.itemsize == 1
        need(fits, f"{kind} is no {op.attrs.get(name)}")
        return rows, columns
    need(kind.element == "i8", f"{kind} does not hold e2m1")
    along_depth = op.attrs.get(f"{name}_k_pack", True)
    return (rows, 2 * columns) if along_depth == (side == 0) else (2 * rows, columns)


def _lanewise(op: Op) -> None:
    """Operands and results of one shape."""
    kinds = (*op.operand_types, *op.types)
    need(bool(op.types) and len(shapes_of(kinds)) == 1, "its shapes differ")
    need(not any(kind.is_pointer for kind in kinds), "it does not take pointers")


def along_axis(op: Op) -> int:
    """Operands of a reduction or scan: tiles of one shape, with the axis."""
    kinds = op.operand_types
    need(bool(kinds) and len(shapes_of(kinds)) == 1, "its operands have several shapes")
    need(not any(kind.is_pointer for kind in kinds), "it does not take pointers")
    return axis_of(op)


def _reduce(op: Op) -> None:
    axis = along_axis(op)
    rest = tuple(n for a, n in enumerate(op.operand_types[0].shape) if a != axis)
    found = tuple(kind.with_shape(rest) for kind in op.operand_types)
    need(op.types == found, "its results are not its operands without that axis")
    combines(op)


def _scan(op: Op) -> None:
    along_axis(op)
    need(op.types == op.operand_types, "its results are not like its operands")
    combines(op)


def combines(op: Op) -> None:
    """One region, of two numbers for each operand."""
    need(len(op.regions) == 1, "it has one region")
    wanted = [kind.with_shape(()) for kind in op.operand_types]
    arguments = op.regions[0].entry.args
    need(len(arguments) == 2 * len(wanted), "its region takes two numbers for each operand")


def _histogram(op: Op) -> None:
    kinds = operands(op, 1, 2)
    need(is_int(kinds[0]) and len(kinds[0].shape) == 1, f"it does not take {kinds[0]}")
    if len(kinds) > 1:
        mask(kinds[1], kinds[0].shape)
    result = one_result(op)
    need(is_int(result) and len(result.shape) == 1 and not is_truth(result), f"{result}")


# -------------------------------------------------------------------- programs, messages
def _program(op: Op) -> None:
    operands(op, 0)
    need(op.keywords in (("x",), ("y",), ("z",)), "it has no axis x, y or z")
    result_is(op, Type("i32"))


def _assert(op: Op) -> None:
    (condition,) = operands(op, 1)
    need(is_truth(condition), f"it does not take {condition}")
    no_results(op)


def _poison(op: Op) -> None:
    operands(op, 0)
    one_result(op)


def _nothing(op: Op) -> None:
    no_results(op)


_TWO_INTS = """addi subi muli andi ori xori divsi floordivsi ceildivsi remsi divui remui shli shrsi
    shrui maxsi minsi maxui minui"""
_TWO_FLOATS = "addf subf mulf divf remf maximumf minimumf maxnumf minnumf"
_ONE_FLOAT = """absf ceil floor trunc round roundeven sqrt rsqrt exp exp2 expm1 log log2 log10 log1p
    sin cos tan asin acos atan sinh cosh tanh erf"""

RULES: dict[str, Rule] = {
    **{f"arith.{name}": same(2, is_int) for name in _TWO_INTS.split()},
    **{f"arith.{name}": same(2, is_float) for name in _TWO_FLOATS.split()},
    **{f"math.{name}": same(1, is_float) for name in _ONE_FLOAT.split()},
    **{f"math.{name}": same(2, is_float) for name in ("atan2", "powf", "copysign")},
    "arith.negf": same(1, is_float),
    "math.absi": same(1, is_int),
    "math.fma": same(3, is_float),
    "tt.clampf": same(3, is_float),
    "tt.precise_divf": same(2, is_float),
    "tt.precise_sqrt": same(1, is_float),
    "tt.mulhiui": same(2, is_int),
    "arith.mului_extended": same(2, is_int, results=2),
    "arith.mulsi_extended": same(2, is_int, results=2),
    "arith.cmpi": _comparison(is_int, _INTEGER_ORDER | {"eq", "ne"}),
    "arith.cmpf": _comparison(is_float, _FLOAT_ORDER),
    "arith.truncf": _conversion(is_float, is_float, -1),
    "arith.extf": _conversion(is_float, is_float, 1),
    "tt.fp_to_fp": _conversion(is_float, is_float, 0),
    "arith.sitofp": _conversion(is_int, is_float, 0),
    "arith.uitofp": _conversion(is_int, is_float, 0),
    "arith.fptosi": _conversion(is_float, is_int, 0),
    "arith.fptoui": _conversion(is_float, is_int, 0),
    "arith.extsi": _conversion(is_int, is_int, 1),
    "arith.extui": _conversion(is_int, is_int, 1),
    "arith.trunci": _conversion(is_int, is_int, -1),
    "arith.index_cast": _conversion(is_int, is_int, 0),
    "arith.index_castui": _conversion(is_int, is_int, 0),
    "arith.bitcast": _bitcast,
    "tt.bitcast": _bitcast,
    "arith.select": _select,
    "arith.constant": _constant,
    "ub.poison": _poison,
    "tt.make_range": _range,
    "tt.splat": _splat,
    "tt.unsplat": _unsplat,
    "tt.broadcast": _broadcast,
    "ttg.convert_layout": same(1, lambda kind: True),
    "tt.expand_dims": _expand_dims,
    "tt.reshape": _reshape,
    "tt.trans": _transpose,
    "tt.cat": _concatenate,
    "tt.join": _join,
    "tt.split": _split,
    "tt.gather": _gather,
    "tt.load": _load,
    "tt.store": _store,
    "tt.atomic_rmw": _read_modify_write,
    "tt.atomic_cas": _compare_and_swap,
    "tt.addptr": _advance,
    "tt.ptr_to_int": _pointer_to_int,
    "tt.int_to_ptr": _int_to_pointer,
    "tt.dot": _dot,
    "tt.dot_scaled": _dot_scaled,
    "tt.extern_elementwise": _lanewise,
    "tt.elementwise_inline_asm": _lanewise,
    "tt.map_elementwise": _lanewise,
    "tt.reduce": _reduce,
    "tt.scan": _scan,
    "tt.histogram": _histogram,
    "tt.get_program_id": _program,
    "tt.get_num_programs": _program,
    "tt.assert": _assert,
    "tt.print": _nothing,
    **dict.fromkeys(("gpu.barrier", "ttg.barrier", "llvm.intr.assume"), _nothing),
    **{f"tt.grid_dependency_{what}": _nothing for what in ("wait", "launch_dependents")},
}
