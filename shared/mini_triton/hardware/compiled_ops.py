"""The memory instructions that each load and store of a kernel has become, in the compiled program.

The simulator runs TTIR; the GPU's compiler goes on from there: TTGIR gives each access a layout, or
makes it an asynchronous copy; PTX says how many bytes a thread moves with one instruction. The
three texts are matched by source location, line and column, of which inlining keeps the whole
chain. A loop that was pipelined has its loads again before the loop; they are the same ones.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath

from mini_triton.hardware.layouts import Layout, aliases, parsed, scalar
from mini_triton.ir.program import Op, Program, Region

#: Instructions: a load, an asynchronous copy to shared memory, a copy by the tensor memory
#: accelerator, a store, an atomic update.
KINDS = ("ld", "ldgsts", "tma", "st", "atom")
ACCESSES = (
    *("tt.load", "tt.store", "tt.atomic_load", "tt.atomic_store"),
    *("tt.atomic_rmw", "tt.atomic_cas"),
)


@dataclass(frozen=True)
class Instruction:
    """How an access is carried out.

    Attributes:
        kind: one of KINDS.
        layout: who holds which element; None for `tma`, which no thread carries out.
        width: bytes that a thread moves at a time.
        exact: read from the compiled program, not modelled.
    """

    kind: str
    layout: Layout | None
    width: int
    exact: bool = True

    @property
    def through_l1(self) -> bool:
        """Whether L1 may serve it: loads, and asynchronous copies of less than 16 bytes."""
        return self.kind == "ld" or (self.kind == "ldgsts" and self.width < 16)

    @property
    def copies_too(self) -> bool:
        """Whether threads that hold copies take part: only in loads."""
        return self.kind == "ld"


def instructions(
    program: Program, ttir: str, ttgir: str, ptx: str, num_warps: int
) -> dict[int, list[Instruction]]:
    """id(operation) → its instructions, for the operations of `program` that were found."""
    places = [place for name, place, _ in _text_ops(ttir) if name in ACCESSES]
    ops = [op for op in in_text_order(program) if op.name in ACCESSES]
    if len(places) != len(ops):
        return {}
    carried_out = _by_place(ttgir, ptx, num_warps)
    found = {}
    for op, place in zip(ops, places, strict=True):
        kinds = _KINDS_OF[op.name]
        of_op = [i for i in carried_out.get(place, ()) if i.kind in kinds]
        shape = op.operand_types[0].shape
        of_op = [i for i in of_op if i.layout is None or i.layout.shape == shape]
        if place and of_op:
            found[id(op)] = of_op
    return found


_KINDS_OF = {
    "tt.load": ("ld", "ldgsts", "tma"),
    "tt.store": ("st", "tma"),
    "tt.atomic_load": ("ld",),
    "tt.atomic_store": ("st",),
    "tt.atomic_rmw": ("atom",),
    "tt.atomic_cas": ("atom",),
}


def in_text_order(program: Program) -> Iterator[Op]:
    """All operations as they stand in the text."""
    for function in program.functions.values():
        yield from _in_region(function.body)


def _in_region(region: Region) -> Iterator[Op]:
    for block in region.blocks:
        for op in block.ops:
            yield op
            for inner in op.regions:
                yield from _in_region(inner)


# -------------------------------------------------------------------- TTIR and TTGIR
_TTG = {
    "tt.load": "ld",
    "tt.store": "st",
    "tt.atomic_load": "ld",
    "tt.atomic_store": "st",
    "tt.atomic_rmw": "atom",
    "tt.atomic_cas": "atom",
    "ttg.async_copy_global_to_local": "ldgsts",
    "ttng.async_tma_copy_global_to_local": "tma",
    "ttng.async_tma_copy_local_to_global": "tma",
}
_OP = re.compile(
    r"^\s*(?:%[\w#:]+(?:, %[\w#:]+)* = )?(tt[ng]*\.\w+)\b(.*) loc\(([^()]*|.*)\)$", re.MULTILINE
)
_POINTEE = re.compile(r"!tt\.ptr<[a-z]+(\d+)")
#: Bytes of the widest access of a thread.
_WIDEST = 16
_TILE = re.compile(r"tensor<((?:\d+x)+)!tt\.ptr<(\w+)(?:, \d+)?>, ")


def _text_ops(text: str) -> Iterator[tuple[str, str, str]]:
    """(name, place, the rest of the line) of every memory operation, in order."""
    places = _Places(text)
    for match in _OP.finditer(text):
        if match[1] in _TTG:
            yield match[1], places.chain(match[3]), match[2]


def _by_place(ttgir: str, ptx: str, num_warps: int) -> dict[str, list[Instruction]]:
    named, widths = aliases(ttgir), _widths(ptx)
    found: dict[str, list[Instruction]] = defaultdict(list)
    for name, place, rest in _text_ops(ttgir):
        kind = _TTG[name]
        layout: Layout | None = None
        pointee = _POINTEE.search(rest)
        item = max(1, int(pointee[1]) // 8) if pointee else 8
        if kind != "tma":
            tile = _TILE.search(rest)
            if tile is None:
                layout = scalar(num_warps)
            else:
                shape = tuple(map(int, tile[1][:-1].split("x")))
                layout = parsed(_balanced(rest[tile.end() :]), shape, named)
            if layout is None:
                continue
        there = widths.get((place, kind), [])
        if there or layout is None:
            instruction = Instruction(kind, layout, _width(there, layout))
        else:  # PTX may name another place, as Triton 3.9's does: as wide as the layout can be
            width = min(_WIDEST, item * layout.contiguous)
            instruction = Instruction(kind, layout, width, exact=False)
        if instruction not in found[place]:
            found[place].append(instruction)
    return found


def _balanced(text: str) -> str:
    """`text` up to the bracket that closes what is around it."""
    depth = 0
    for position, character in enumerate(text):
        depth += (character in "<{[") - (character in ">}]")
        if depth < 0:
            return text[:position]
    return text


# -------------------------------------------------------------------- PTX
_PTX = re.compile(
    r"^\s*\.loc\s[^\n]*// (?P<loc>[^\n]*)$"
    r"|\bld\.global[\w.:]*?(?:\.v(?P<ld_v>\d))?\.[bfsu](?P<ld>\d+) "
    r"|\bst\.global[\w.:]*?(?:\.v(?P<st_v>\d))?\.[bfsu](?P<st>\d+) "
    r"|\bcp\.async\.c[ag]\.shared\.global \[[^\]]*\], \[[^\]]*\], (?P<cp>0x[0-9a-f]+|\d+)"
    r"|\b(?:atom|red)\.[\w.:]*?(?:\.v(?P<atom_v>\d))?\.(?:noftz\.)?b?[bfsu](?P<atom>\d+)"
    r"(?P<pair>x2)?[ .]",
    re.MULTILINE,
)


def _widths(ptx: str) -> dict[tuple[str, str], list[int]]:
    """(place, kind) → bytes a thread of the instructions there."""
    found: dict[tuple[str, str], list[int]] = defaultdict(list)
    place = ""
    for match in _PTX.finditer(ptx):
        if match["loc"] is not None:
            place = match["loc"].replace(" ]", "").replace(" @[ ", "@").strip()
        elif match["cp"]:
            found[place, "ldgsts"].append(int(match["cp"], 0))
        else:
            kind = "ld" if match["ld"] else "st" if match["st"] else "atom"
            width = int(match[kind]) // 8 * int(match[f"{kind}_v"] or 1)
            found[place, kind].append(width * (2 if match["pair"] else 1))
    return found


def _width(there: list[int], layout: Layout | None) -> int:
    """Of the widths found at a place, the widest that the layout can have; else 1 element."""
    if layout is None or not there:
        return 0
    if not layout.shape or len(set(there)) == 1:
        return there[0]
    return max(there) if layout.contiguous > 1 else min(there)


# -------------------------------------------------------------------- places
_ALIAS = re.compile(r"^(#loc\d*) = loc\((.*)\)$", re.MULTILINE)
_FILE = re.compile(r'^"((?:[^"\\]|\\.)*)":(\d+):(\d+)')
_NAMED = re.compile(r'^"(?:[^"\\]|\\.)*"\((.*)\)$')
_CALL = re.compile(r"^callsite\((.+) at (.+)\)$")


class _Places:
    """The locations of one module, as PTX comments write them: `f.py:3:4@g.py:9:8`."""

    def __init__(self, text: str) -> None:
        self._aliases = dict(_ALIAS.findall(text))

    def chain(self, body: str, depth: int = 0) -> str:
        """The call chain, innermost first, with files by name; empty if it is unknown."""
        if depth > 64:
            return ""
        if body.startswith("#"):
            return self.chain(self._aliases.get(body, ""), depth + 1)
        if match := _FILE.match(body):
            return f"{PurePath(match[1]).name}:{match[2]}:{match[3]}"
        if match := _NAMED.match(body):
            return self.chain(match[1], depth + 1)
        if match := _CALL.match(body):
            parts = [self.chain(part, depth + 1) for part in match.groups()]
            return "@".join(parts) if all(parts) else ""
        return ""
