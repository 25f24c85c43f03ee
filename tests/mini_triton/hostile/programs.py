"""Programs that are well formed, of random operations, with values that are not well meant."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from mini_triton.ir.types import Type

INTEGERS = ("i1", "i8", "i16", "i32", "i64")
FLOATS = ("f16", "bf16", "f32", "f64", "f8E5M2", "f8E4M3FN")
SHAPES = ((), (1,), (4,), (8,), (32,), (4, 8), (8, 4), (2, 4, 4), (1, 8), (16, 16))
HOSTILE_INTEGERS = (
    *(0, 1, -1, 2, 3, 5, 31, 32, 33, 63, 64, 65, 255, 1000),
    *(2**31 - 1, -(2**31), 2**32 - 1, 2**62, 2**63 - 1, -(2**63)),
)
HOSTILE_FLOATS = ("0.0", "-0.0", "1.0", "0.5", "-3.0", "1.0e+38", "1.0e-310", "6.0e+4")
BITS = {"f16": ("0x7C00", "0x7E00"), "bf16": ("0x7F80", "0xFFC0"), "f32": ("0x7F800000",)}
TWO_INTEGERS = (
    *("addi", "subi", "muli", "andi", "ori", "xori", "divsi", "floordivsi", "ceildivsi", "remsi"),
    *("divui", "remui", "shli", "shrsi", "shrui", "maxsi", "minsi", "maxui", "minui"),
)
TWO_FLOATS = (
    *("addf", "subf", "mulf", "divf", "remf", "maximumf", "minimumf", "maxnumf", "minnumf"),
)
ONE_FLOAT = (
    *("absf", "floor", "ceil", "exp", "exp2", "log", "log2", "sin", "cos", "sqrt", "rsqrt", "erf"),
)
PARAMETERS = (("f32", 64), ("i32", 64), ("f16", 33), ("i8", 7), ("i64", 16))


@dataclass
class Program:
    """A program in the making: its lines, and the values in scope at the last of them."""

    choose: random.Random
    lines: list[str] = field(default_factory=list)
    values: list[tuple[str, Type]] = field(default_factory=list)
    names: int = 0
    depth: int = 0

    def new(self, kind: Type, text: str) -> str:
        """Adds an operation with one result."""
        name = self.fresh()
        self.lines.append(f"{name} = {text}")
        self.values.append((name, kind))
        return name

    def fresh(self) -> str:
        """A name that no value has."""
        self.names += 1
        return f"%v{self.names}"

    def some(self, fits: Callable[[Type], bool]) -> tuple[str, Type] | None:
        """A value in scope, later ones rather."""
        found = [value for value in self.values if fits(value[1])]
        if not found:
            return None
        return found[max(self.choose.randrange(len(found)) for _ in range(2))]

    def of(self, kind: Type) -> str:
        """A value of a type: one in scope, or a constant."""
        found = self.some(lambda other: other == kind) if self.choose.random() < 0.8 else None
        return found[0] if found else self.constant(kind)

    def constant(self, kind: Type) -> str:
        """A new constant, or a pointer."""
        if kind.is_pointer:
            whole = self.constant(Type("i64", kind.shape))
            return self.new(kind, f"tt.int_to_ptr {whole} : {Type('i64', kind.shape)} -> {kind}")
        if kind.is_float:
            text = self.choose.choice((*HOSTILE_FLOATS, *BITS.get(kind.element, ())))
        else:
            text = str(self.choose.choice(HOSTILE_INTEGERS))
            text = self.choose.choice(("true", "false")) if kind.element == "i1" else text
        return self.new(kind, f"arith.constant {f'dense<{text}>' if kind.shape else text} : {kind}")


def _number(kind: Type) -> bool:
    return not kind.is_pointer


def _is_float(kind: Type) -> bool:
    return not kind.is_pointer and kind.is_float


def _is_integer(kind: Type) -> bool:
    return not kind.is_pointer and not kind.is_float


def _kind(p: Program, elements: tuple[str, ...] = INTEGERS + FLOATS) -> Type:
    found = p.some(lambda kind: kind.element in elements) if p.choose.random() < 0.8 else None
    return found[1] if found else Type(p.choose.choice(elements), p.choose.choice(SHAPES))


def arithmetic(p: Program) -> None:
    """Two operands of one type."""
    kind = _kind(p)
    names = TWO_FLOATS if kind.is_float else TWO_INTEGERS
    p.new(kind, f"arith.{p.choose.choice(names)} {p.of(kind)}, {p.of(kind)} : {kind}")


def function(p: Program) -> None:
    """A function of one float."""
    kind = _kind(p, FLOATS)
    p.new(kind, f"math.{p.choose.choice(ONE_FLOAT)} {p.of(kind)} : {kind}")


def comparison(p: Program) -> None:
    """Of integers or floats."""
    kind = _kind(p)
    if kind.is_float:
        text = "arith.cmpf " + p.choose.choice(("oeq", "une", "olt", "uge", "ord", "uno"))
    else:
        text = "arith.cmpi " + p.choose.choice(("eq", "ne", "slt", "sge", "ult", "uge"))
    p.new(Type("i1", kind.shape), f"{text}, {p.of(kind)}, {p.of(kind)} : {kind}")


def select(p: Program) -> None:
    """By a scalar or lane by lane."""
    kind = _kind(p)
    scalar = p.choose.random() < 0.3
    condition = Type("i1", () if scalar else kind.shape)
    types = f"{kind}" if scalar else f"{condition}, {kind}"
    p.new(kind, f"arith.select {p.of(condition)}, {p.of(kind)}, {p.of(kind)} : {types}")


def conversion(p: Program) -> None:
    """Between numbers of any two kinds, as far as there is an operation for it."""
    kind = _kind(p)
    to = Type(p.choose.choice(INTEGERS + FLOATS), kind.shape)
    if kind.is_float and to.is_float:
        text, arrow = "tt.fp_to_fp", "->"
    elif kind.is_float or to.is_float:
        sign = p.choose.choice("su")
        text = f"arith.fpto{sign}i" if kind.is_float else f"arith.{sign}itofp"
        arrow = "to"
    elif kind.bits == to.bits:
        text, arrow = "tt.bitcast", "->"
    else:
        text = "arith.trunci" if kind.bits > to.bits else f"arith.ext{p.choose.choice('su')}i"
        arrow = "to"
    p.new(to, f"{text} {p.of(kind)} : {kind} {arrow} {to}")


def tile(p: Program) -> None:
    """A range, or one value in all lanes."""
    if p.choose.random() < 0.5:
        start, size = p.choose.choice((0, 0, 1, 1000, 2**31 - 64)), p.choose.choice((1, 4, 8, 32))
        kind = Type("i32", (size,))
        text = f"end = {start + size} : i32, start = {start} : i32"
        p.new(kind, f"tt.make_range {{{text}}} : {kind}")
    elif scalar := p.some(lambda kind: not kind.shape):
        kind = scalar[1].with_shape(p.choose.choice(SHAPES[1:]))
        p.new(kind, f"tt.splat {scalar[0]} : {scalar[1]} -> {kind}")


def reshaped(p: Program) -> None:
    """Another shape of a tile."""
    found = p.some(lambda kind: bool(kind.shape))
    if not found:
        return
    value, kind = found
    shape, sort = list(kind.shape), p.choose.randrange(6)
    if sort == 0:
        axis = p.choose.randrange(len(shape) + 1)
        to = kind.with_shape((*shape[:axis], 1, *shape[axis:]))
        p.new(to, f"tt.expand_dims {value} {{axis = {axis} : i32}} : {kind} -> {to}")
    elif sort == 1:
        to = kind.with_shape(tuple(4 if n == 1 else n for n in shape))
        p.new(to, f"tt.broadcast {value} : {kind} -> {to}")
    elif sort == 2:
        to = kind.with_shape((kind.numel,) if len(shape) > 1 else (1, kind.numel))
        p.new(to, f"tt.reshape {value} allow_reorder : {kind} -> {to}")
    elif sort == 3:
        order = p.choose.sample(range(len(shape)), len(shape))
        to = kind.with_shape(tuple(shape[axis] for axis in order))
        text = ", ".join(map(str, order))
        p.new(to, f"tt.trans {value} {{order = array<i32: {text}>}} : {kind} -> {to}")
    elif sort == 4 and _number(kind):
        to = kind.with_shape((*shape, 2))
        joined = p.new(to, f"tt.join {value}, {p.of(kind)} : {kind} -> {to}")
        low, high = p.fresh(), p.fresh()
        p.lines.append(f"{low}, {high} = tt.split {joined} : {to} -> {kind}")
        p.values += [(low, kind), (high, kind)]
    elif sort == 5 and _number(kind):
        axis = p.choose.randrange(len(shape))
        index = Type("i32", kind.shape)
        where = p.of(index)
        text = f"{{axis = {axis} : i32}} : ({kind}, {index}) -> {kind}"
        p.new(kind, f"tt.gather {value}[{where}] {text}")


def pointer(p: Program) -> None:
    """Pointer arithmetic, casts, and pointers made of numbers."""
    found = p.some(lambda kind: kind.is_pointer)
    if not found:
        return
    value, kind = found
    sort = p.choose.randrange(5)
    if sort < 3:
        step = Type(p.choose.choice(("i32", "i64")), kind.shape)
        p.new(kind, f"tt.addptr {value}, {p.of(step)} : {kind}, {step}")
    elif sort == 3:
        to = Type("ptr", kind.shape, Type(p.choose.choice(INTEGERS + FLOATS)))
        p.new(to, f"tt.bitcast {value} : {kind} -> {to}")
    else:
        whole = Type("i64", kind.shape)
        number = p.new(whole, f"tt.ptr_to_int {value} : {kind} -> {whole}")
        p.new(kind, f"tt.int_to_ptr {number} : {whole} -> {kind}")


def access(p: Program) -> None:
    """A load, a store or an atomic operation, with a mask or without."""
    found = p.some(lambda kind: kind.is_pointer)
    if not found or found[1].pointee is None:
        return
    pointers, kind = found
    value, mask = kind.pointee.with_shape(kind.shape), Type("i1", kind.shape)
    masked = p.choose.random() < 0.7
    sort = p.choose.randrange(4)
    if sort == 0:
        more = f", {p.of(mask)}" if masked else ""
        more += f", {p.of(value)}" if masked and p.choose.random() < 0.5 else ""
        p.new(value, f"tt.load {pointers}{more} : {kind}")
    elif sort == 1:
        stored = p.of(value)
        more = f", {p.of(mask)}" if masked else ""
        p.lines.append(f"tt.store {pointers}, {stored}{more} : {kind}")
    elif sort == 2 and value.element != "i1":
        names = ("fadd", "exch") if value.is_float else ("add", "xor", "max", "umin", "exch")
        operand, on = p.of(value), p.of(mask)
        text = f"{p.choose.choice(names)}, acq_rel, gpu, {pointers}, {operand}, {on}"
        p.new(value, f"tt.atomic_rmw {text} : ({kind}, {value}, {mask}) -> {value}")
    elif sort == 3:
        expected, new = p.of(value), p.of(value)
        text = f"acq_rel, gpu, {pointers}, {expected}, {new} : ({kind}, {value}, {value})"
        p.new(value, f"tt.atomic_cas {text} -> {value}")


def product(p: Program) -> None:
    """A dot of small tiles."""
    element = p.choose.choice(("f16", "f32", "i8", "f8E5M2"))
    a, b = Type(element, (4, 8)), Type(element, (8, 4))
    c = Type("i32" if element == "i8" else "f32", (4, 4))
    p.new(c, f"tt.dot {p.of(a)}, {p.of(b)}, {p.of(c)} : {a} * {b} -> {c}")


def reduction(p: Program) -> None:
    """A reduction or scan with a region of a few operations."""
    found = p.some(lambda kind: _number(kind) and bool(kind.shape))
    if not found:
        return
    value, kind = found
    axis, scalar = p.choose.randrange(len(kind.shape)), kind.with_shape(())
    name = p.choose.choice(("tt.reduce", "tt.scan"))
    to = kind.with_shape((*kind.shape[:axis], *kind.shape[axis + 1 :]))
    to = to if name == "tt.reduce" else kind
    a, b = p.fresh(), p.fresh()
    body = _nested(p, [(a, scalar), (b, scalar)], (arithmetic, select, conversion), own=True)
    end = f"{name}.return {body.of(scalar)} : {scalar}"
    reverse = ", reverse = false" if name == "tt.scan" else ""
    p.names = body.names
    lines = [f"^bb0({a}: {scalar}, {b}: {scalar}):", *body.lines, end]
    text = f'"{name}"({value}) <{{axis = {axis} : i32{reverse}}}> ({{\n' + "\n".join(lines)
    p.new(to, f"{text}\n}}) : ({kind}) -> {to}")


def _nested(
    p: Program, arguments: list[tuple[str, Type]], makers: tuple[Maker, ...], own: bool = False
) -> Program:
    """A region's operations, which see their arguments and (unless `own`) what is around them."""
    inner = Program(p.choose, [], [*([] if own else p.values), *arguments], p.names, p.depth + 1)
    for _ in range(p.choose.randrange(4)):
        p.choose.choice(makers)(inner)
    return inner


def loop(p: Program) -> None:
    """`scf.for`, with bounds of any sort."""
    if p.depth > 2:
        return
    kind, index = _kind(p), p.choose.choice((Type("i32"), Type("i64")))
    lower, upper, step, start = p.of(index), p.of(index), p.of(index), p.of(kind)
    counter, carried = p.fresh(), p.fresh()
    body = _nested(p, [(counter, index), (carried, kind)], MAKERS)
    end = f"scf.yield {body.of(kind)} : {kind}"
    p.names = body.names
    head = f"scf.for {counter} = {lower} to {upper} step {step} iter_args({carried} = {start})"
    lines = "\n".join([*body.lines, end])
    p.new(kind, f"{head} -> ({kind}) : {index} {{\n{lines}\n}}")


def branch(p: Program) -> None:
    """`scf.if` with a value."""
    if p.depth > 2:
        return
    kind, condition = _kind(p), p.of(Type("i1"))
    texts = []
    for _ in range(2):
        body = _nested(p, [], MAKERS)
        end = f"scf.yield {body.of(kind)} : {kind}"
        p.names = body.names
        texts.append("\n".join([*body.lines, end]))
    p.new(kind, f"scf.if {condition} -> ({kind}) {{\n{texts[0]}\n}} else {{\n{texts[1]}\n}}")


def while_loop(p: Program) -> None:
    """`scf.while`, which may well have no end."""
    if p.depth > 2:
        return
    kind = _kind(p)
    start, carried, passed = p.of(kind), p.fresh(), p.fresh()
    before = _nested(p, [(carried, kind)], MAKERS)
    condition = before.of(Type("i1"))
    ends = f"scf.condition({condition}) {before.of(kind)} : {kind}"
    p.names = before.names
    after = _nested(p, [(passed, kind)], MAKERS)
    yields = f"scf.yield {after.of(kind)} : {kind}"
    p.names = after.names
    first = "\n".join([*before.lines, ends])
    second = "\n".join([f"^bb0({passed}: {kind}):", *after.lines, yields])
    head = f"scf.while ({carried} = {start}) : ({kind}) -> {kind}"
    p.new(kind, f"{head} {{\n{first}\n}} do {{\n{second}\n}}")


Maker = Callable[[Program], None]
MAKERS: tuple[Maker, ...] = (
    *(arithmetic, arithmetic, function, comparison, select, conversion, conversion),
    *(tile, tile, reshaped, reshaped, pointer, pointer, pointer, access, access, access, access),
    *(product, reduction, loop, branch, while_loop),
)


def program(seed: int) -> str:
    """The TTIR text of a kernel with the parameters `PARAMETERS`, then n: i32 and s: f32."""
    p = Program(random.Random(seed))
    pointers = [(f"%p{n}", Type("ptr", (), Type(e))) for n, (e, _) in enumerate(PARAMETERS)]
    p.values = [*pointers, ("%n", Type("i32")), ("%s", Type("f32"))]
    head = ", ".join(f"{name}: {kind}" for name, kind in p.values)
    p.new(Type("i32"), "tt.get_program_id x : i32")
    for n, (_, kind) in enumerate(pointers):  # ways into the tensors that are often right
        if p.choose.random() < 0.6:
            at, tiles = p.choose.choice((4, 8, 32)), ""
            tiles = str(kind.with_shape((at,)))
            splat = p.new(kind.with_shape((at,)), f"tt.splat %p{n} : {kind} -> {tiles}")
            line = Type("i32", (at,))
            steps = p.new(line, f"tt.make_range {{end = {at} : i32, start = 0 : i32}} : {line}")
            p.new(kind.with_shape((at,)), f"tt.addptr {splat}, {steps} : {tiles}, {line}")
    for _ in range(p.choose.randrange(5, 40)):
        p.choose.choice(MAKERS)(p)
    body = "\n".join([*p.lines, "tt.return"])
    return f"module {{\ntt.func public @forged({head}) {{\n{body}\n}}\n}}\n"
