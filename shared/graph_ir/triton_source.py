"""Writes the Triton source of one kernel; `graph_ir.emit` says what it looks like, and runs it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field

from graph_ir.dtypes import promote
from graph_ir.graph import Node
from graph_ir.index_maps import IndexMap, IndexMaps
from graph_ir.kernels import Kernel
from graph_ir.layout import layout
from graph_ir.sizes import numel

_TYPES = {"f64": "tl.float64", "bool": "tl.int1"}
_STORED = {
    "bf16": "tl.bfloat16",
    "f16": "tl.float16",
    "f32": "tl.float32",
    "f64": "tl.float64",
    "bool": "tl.int1",
}


def _power_of_two(n: int) -> int:
    return 1 << (n - 1).bit_length()


@dataclass(frozen=True)
class _Operand:
    """How an operand from outside is read: through which map, once a row or once an element."""

    root: int
    index: IndexMap
    by_row: bool


@dataclass
class _Scope:
    """Names of what has been computed, as far as it can be seen from here."""

    values: dict[object, str] = field(default_factory=dict)


class Writer:
    """Writes one kernel. Full values are tiles [ROWS, COLS], values of rows [ROWS, 1].

    A kernel without rows is written as one of a single long row, cut into tiles: [1, COLS].

    Args:
        kernel, tile, programs, side, maps: as of `graph_ir.emit.emit`.

    Attributes:
        function: the name of the function.
        programs: how many have to be launched.
        loads: elements that it loads of each input, once `source` has written it.
    """

    def __init__(
        self, kernel: Kernel, tile: int, programs: int | None, side: int, maps: IndexMaps
    ) -> None:
        self.kernel, self.graph, self.maps = kernel, kernel.graph, maps
        self.where = layout(kernel, maps)
        self.flat = self.where.width is None
        self.width = self.where.size if self.where.width is None else self.where.width
        whole = any(node.op == "rot_pairs" for node in kernel.nodes)
        self.wide = not self.flat and self.width > tile and not whole
        self.cols = tile if self.flat or self.wide else _power_of_two(self.width)
        self.cols = min(self.cols, _power_of_two(self.width))
        self.rows = 1 if self.flat or self.wide else max(1, tile // self.cols)
        rows = 1 if self.flat else self.where.rows
        self.tiles = -(-self.width // self.cols) if self.flat else -(-rows // self.rows)
        self.lines: list[str] = []
        self.depth = 1
        self.fresh = itertools.count()
        self.types: dict[str, str] = {}
        self.inside = {node.id: node for node in kernel.nodes}
        self.operands = self._operands()
        self.aside = self._aside(side)
        self.programs = programs or (1 if self.aside else self.tiles)
        self.loads = dict.fromkeys(kernel.inputs, 0)
        self.row_scope, self.tile_scope = _Scope(), _Scope()
        self.function = "_".join(["fused", *dict.fromkeys(node.op for node in kernel.nodes)])[:60]

    # -- what is read how ---------------------------------------------------------------------

    def _operands(self) -> dict[tuple[int, int], _Operand]:
        found = {}
        for node in self.kernel.nodes:
            reads_full = node.kind == "reduction" or self.where.spaces[node.id] == "full"
            for k, i in enumerate(node.inputs):
                root = self.graph.root(i)
                if root in self.inside or self.graph[root].op == "scalar":
                    continue
                index = self.maps.operand(node.id, k)
                by_row = not reads_full
                if reads_full and not self.flat:
                    of_rows = index.of_rows(self.width)
                    if of_rows is not None and self.width > 1:
                        index, by_row = of_rows, True
                found[node.id, k] = _Operand(root, index, by_row)
        return found

    def _aside(self, side: int) -> dict[int, str]:
        """Inputs that each program loads as a whole, and the names of where it keeps them."""
        ways: dict[int, set[_Operand]] = {}
        for operand in self.operands.values():
            ways.setdefault(operand.root, set()).add(operand)
        return {
            root: f"side{place}"
            for place, root in enumerate(self.kernel.inputs)
            if numel(self.graph[root].shape) <= side
            and (len(ways[root]) > 1 or any(way.index.repeats for way in ways[root]))
        }

    # -- writing ------------------------------------------------------------------------------

    def _line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def _name(self, expression: str, stem: str = "at", of: str = "") -> str:
        """Writes an assignment to a new name; `of` is the type that the value has."""
        name = f"{stem}{next(self.fresh)}"
        self._line(f"{name} = {expression}")
        self.types[name] = of
        return name

    def source(self) -> str:
        """All of it."""
        ins = [f"in{place}" for place in range(len(self.kernel.inputs))]
        outs = [f"out{place}" for place in range(len(self.kernel.outputs))]
        self.pointers = dict(zip(self.kernel.inputs, ins, strict=True))
        self.stores = dict(zip(self.kernel.outputs, outs, strict=True))
        self._load_aside()
        if not self.flat:
            self._line(f"cols = tl.arange(0, {self.cols})[None, :]")
        self._line(f"for tile in range(tl.program_id(0), {self.tiles}, {self.programs}):")
        self.depth += 1
        if self.flat:
            self._line(f"e = tile * {self.cols} + tl.arange(0, {self.cols})[None, :]")
            self._line(f"inside = e < {self.width}")
            self._tile(list(self.kernel.nodes), set(self.kernel.outputs))
        else:
            self._line(f"rows = tile * {self.rows} + tl.arange(0, {self.rows})[:, None]")
            self._line(f"row_inside = rows < {self.where.rows}")
            if self.wide:
                self._passes()
            else:
                self._at_column("0")
                self._tile(list(self.kernel.nodes), set(self.kernel.outputs))
        head = [f'"""{self.kernel.label}."""', "", "import triton", "import triton.language as tl"]
        head += ["", "", *(_LARGER if any("_larger" in line for line in self.lines) else ())]
        head += ["@triton.jit", f"def {self.function}({', '.join(ins + outs)}):"]
        return "\n".join([*head, *self.lines, ""])

    def _load_aside(self) -> None:
        for root, name in self.aside.items():
            size = numel(self.graph[root].shape)
            self.loads[root] += size * self.programs
            pointer = self.pointers[root]
            self.types[name] = _type(self.graph[root].dtype)
            if size == 1:
                self._line(f"{name} = {self._wider(f'tl.load({pointer})', root)}")
                continue
            block = _power_of_two(size)
            self._line(f"at_{name} = tl.arange(0, {block})")
            mask = f"mask=at_{name} < {size}, other=0"
            loaded = self._wider(f"tl.load({pointer} + at_{name}, {mask})", root)
            self._line(f"{name} = {loaded}")

    def _at_column(self, first: str) -> None:
        self._line(f"c = {first} + cols")
        self._line(f"e = rows * {self.width} + c")
        self._line(f"inside = row_inside & (c < {self.width})")

    def _tile(self, nodes: list[Node], outputs: set[int]) -> None:
        """Computes nodes one after the other, and stores those that are outputs."""
        for node in nodes:
            full = self.where.spaces[node.id] == "full"
            value = self._compute(node)
            (self.tile_scope if full else self.row_scope).values[node.id] = value
            if node.id in outputs:
                self._store(node, value)

    def _passes(self) -> None:
        """A row in pieces. In pass s are the reductions that need s reductions before them."""
        stage: dict[int, int] = {}
        for node in self.kernel.nodes:
            before = [self.graph.root(i) for i in node.inputs]
            stage[node.id] = max((stage.get(root, 0) for root in before), default=0)
            if node.kind == "reduction":
                stage[node.id] += 1
        spaces, outputs = self.where.spaces, set(self.kernel.outputs)
        full_outputs = [i for i in outputs if spaces[i] == "full"]
        reductions = [node for node in self.kernel.nodes if node.kind == "reduction"]
        rows = [n for n in self.kernel.nodes if spaces[n.id] == "row" and n.kind != "reduction"]
        last = max([stage[n.id] for n in self.kernel.nodes])
        for s in range(last + 1):
            self._tile([node for node in rows if stage[node.id] == s], outputs)
            ending = [node for node in reductions if stage[node.id] == s + 1]
            stored = {i for i in full_outputs if stage[i] == s}
            if ending or stored:
                self._pass(ending, stored)
            for node in ending:
                if node.id in outputs:
                    self._store(node, self.row_scope.values[node.id])

    def _pass(self, reductions: list[Node], stored: set[int]) -> None:
        """Once along a row: the sums and maxima that end with it, and what can be stored."""
        needed = self._full_ancestors([node.inputs[0] for node in reductions], stored)
        for node in reductions:
            start = "0.0" if node.op == "sum" else 'float("-inf")'
            shape = f"[{self.rows}, {self.cols}]"
            self._line(f"acc{node.id} = tl.full({shape}, {start}, {_type(node.dtype)})")
        # What a whole row shares is loaded before: within the loop nobody after it could see it.
        for node in [*needed, *reductions]:
            for k in range(len(node.inputs)):
                operand = self.operands.get((node.id, k))
                if operand is not None and operand.by_row:
                    self._load(operand)
        self._line(f"for piece in range({-(-self.width // self.cols)}):")
        self.depth += 1
        self.tile_scope = _Scope()
        self._at_column(f"piece * {self.cols}")
        self._tile(needed, stored)
        for node in reductions:
            value = self._masked(node)
            acc = f"acc{node.id}"
            joined = f"{acc} + {value}" if node.op == "sum" else f"_larger({acc}, {value})"
            self._line(f"{acc} = {joined}")
        self.depth -= 1
        self.tile_scope = _Scope()
        for node in reductions:
            self.row_scope.values[node.id] = self._reduced(node, f"acc{node.id}")

    def _full_ancestors(self, ends: list[int], stored: set[int]) -> list[Node]:
        """The nodes with full values that have to be computed for these, in order."""
        found: set[int] = set()
        ahead = [self.graph.root(i) for i in ends] + list(stored)
        while ahead:
            i = ahead.pop()
            if i in self.inside and i not in found and self.where.spaces[i] == "full":
                found.add(i)
                ahead += [self.graph.root(k) for k in self.graph[i].inputs]
        return [node for node in self.kernel.nodes if node.id in found]

    # -- operands -----------------------------------------------------------------------------

    def _value(self, node: Node, k: int, of: str) -> str:
        """An operand in type `of`."""
        i = node.inputs[k]
        root = self.graph.root(i)
        if self.graph[i].op == "scalar":
            return _literal(self.graph[i].attrs["value"], of)
        for scope in (self.tile_scope, self.row_scope):
            if root in scope.values:
                value = scope.values[root]
                break
        else:
            value = self._load(self.operands[node.id, k])
        return value if self.types[value] == of else f"{value}.to({of})"

    def _load(self, operand: _Operand) -> str:
        scope = self.row_scope if operand.by_row else self.tile_scope
        if operand in scope.values:
            return scope.values[operand]
        root, pointer = operand.root, self.pointers[operand.root]
        element, mask = ("rows", "row_inside") if operand.by_row else ("e", "inside")
        of = _type(self.graph[root].dtype)
        if root in self.aside and numel(self.graph[root].shape) == 1:
            return self.aside[root]
        place = self._address(operand.index, element)
        if root in self.aside:
            cols = 1 if operand.by_row else self.cols
            here = self._name(f"tl.reshape(tl.where({mask}, {place}, 0), [{self.rows * cols}])")
            picked = f"tl.gather({self.aside[root]}, {here}, 0)"
            value = self._name(f"tl.reshape({picked}, [{self.rows}, {cols}])", "x", of)
        else:
            self.loads[root] += operand.index.size
            loaded = f"tl.load({pointer} + {place}, mask={mask}, other=0)"
            value = self._name(self._wider(loaded, root), "x", of)
        scope.values[operand] = value
        return value

    def _address(self, index: IndexMap, element: str) -> str:
        """Where element `element` of a view lies: the digits of `IndexMap`, written out."""
        for digits in reversed(index.layers):
            terms, inner = [], 1
            for place, (size, stride) in reversed(list(enumerate(digits))):
                term = element if inner == 1 else f"({element} // {inner})"
                if place:
                    term = f"({term} % {size})"
                inner *= size
                if stride:
                    terms.append(term if stride == 1 else f"{term} * {stride}")
            element = self._name(" + ".join(terms) if terms else f"{element} * 0")
        return element

    def _wider(self, loaded: str, root: int) -> str:
        """A loaded value in the type in which it is computed with."""
        dtype = self.graph[root].dtype
        return f"({loaded} != 0)" if dtype == "bool" else f"{loaded}.to({_type(dtype)})"

    # -- operations ---------------------------------------------------------------------------

    def _compute(self, node: Node) -> str:
        if node.kind == "reduction":
            return self._reduced(node, self._masked(node))
        of = _type(node.dtype)
        dtypes = tuple(self.graph[i].dtype for i in node.inputs)
        if node.op == "rot_pairs":
            return self._rotated(self._value(node, 0, of), of)
        if node.op == "cast":
            value = self._value(node, 0, _type(dtypes[0]))
            return self._name(_cast(value, dtypes[0], node.dtype), "v", of)
        if node.op == "where":
            values = [self._value(node, 0, "tl.int1")]
            values += [self._value(node, k, of) for k in (1, 2)]
        else:
            inner = _type(promote(dtypes))  # of a comparison the operands' type, not the result's
            values = [self._value(node, k, inner) for k in range(len(dtypes))]
        return self._name(_EXPRESSIONS[node.op](*values), "v", of)

    def _rotated(self, value: str, of: str) -> str:
        half, shape = self.width // 2, f"[{self.rows}, {self.cols}]"
        whole = self._name(f"tl.broadcast_to({value}, {shape})", "x")
        other = f"tl.where(c < {half}, c + {half}, tl.where(c < {self.width}, c - {half}, c))"
        here = self._name(f"tl.broadcast_to({other}, {shape})")
        moved = self._name(f"tl.gather({whole}, {here}, 1)", "x")
        return self._name(f"tl.where(c < {half}, {moved} * -1.0, {moved})", "v", of)

    def _masked(self, node: Node) -> str:
        """A reduction's operand, and outside of the row what changes nothing."""
        of = _type(node.dtype)
        outside = "0.0" if node.op == "sum" else 'float("-inf")'
        return self._name(f"tl.where(inside, {self._value(node, 0, of)}, {outside})", "x", of)

    def _reduced(self, node: Node, value: str) -> str:
        how = "tl.sum({}, axis=1" if node.op == "sum" else "tl.reduce({}, 1, _larger"
        return self._name(f"{how.format(value)}, keep_dims=True)", "v", _type(node.dtype))

    def _store(self, node: Node, value: str) -> None:
        full = self.where.spaces[node.id] == "full"
        place, mask = ("e", "inside") if full else ("rows", "row_inside")
        shape = f"[{self.rows}, {self.cols if full else 1}]"
        stored = f"tl.broadcast_to({value}, {shape}).to({_STORED[node.dtype]})"
        self._line(f"tl.store({self.stores[node.id]} + {place}, {stored}, mask={mask})")


#: The larger of two, NaN if either is: `tl.max` passes NaN over.
_LARGER = (
    "@triton.jit",
    "def _larger(a, b):",
    "    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)",
    "",
    "",
)
#: −x is written x · (−1): Triton's minus is 0 − x, which makes +0 of +0.
_EXPRESSIONS: dict[str, Callable[..., str]] = {
    "neg": lambda x: f"{x} * -1.0",
    "exp": lambda x: f"tl.exp({x})",
    "log": lambda x: f"tl.log({x})",
    "abs": lambda x: f"tl.abs({x})",
    "sqrt": lambda x: f"tl.sqrt({x})",
    "rsqrt": lambda x: f"1.0 / tl.sqrt({x})",
    "add": lambda a, b: f"{a} + {b}",
    "sub": lambda a, b: f"{a} - {b}",
    "mul": lambda a, b: f"{a} * {b}",
    "div": lambda a, b: f"{a} / {b}",
    "maximum": lambda a, b: f"tl.maximum({a}, {b}, propagate_nan=tl.PropagateNan.ALL)",
    "minimum": lambda a, b: f"tl.minimum({a}, {b}, propagate_nan=tl.PropagateNan.ALL)",
    "less": lambda a, b: f"{a} < {b}",
    "where": lambda c, a, b: f"tl.where({c}, {a}, {b})",
}


def _type(dtype: str) -> str:
    """The type in which a value of this dtype is computed with."""
    return _TYPES.get(dtype, "tl.float32")


def _literal(value: float, of: str) -> str:
    """A literal number. Triton reads one as float32 unless it is said to be more, and −0 as +0."""
    if value == 0 and math.copysign(1, value) < 0:
        return f"(tl.full([1, 1], 0.0, {of}) * -1.0)"
    number = repr(value) if math.isfinite(value) else f'float("{value}")'
    return number if of == "tl.float32" else f"tl.full([1, 1], {number}, {of})"


def _cast(value: str, old: str, new: str) -> str:
    if old == new:
        return value
    if new == "bool":
        return f"{value} != 0"
    rounded = f"{value}.to({_STORED[new]})"
    return rounded if new in ("f32", "f64") else f"{rounded}.to({_type(new)})"
