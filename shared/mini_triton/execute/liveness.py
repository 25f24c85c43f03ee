"""How much memory the values of one program take at most: what chunks are sized by.

Counted are the tiles that are alive at once, each with all its lanes, though most integers and
pointers are formulas and take none: so the bound also holds where they are not.
"""

from __future__ import annotations

from collections import Counter

from mini_triton.errors import OverBudget
from mini_triton.finding import Place
from mini_triton.ir.program import Block, Op, Program, Region
from mini_triton.ir.types import Type
from mini_triton.location import UNKNOWN, Location

#: Bytes an element of the largest tile at hand that an operation may take while it runs: a gather
#: has offsets and masked offsets in int64 beside what it loads; no operation has more.
_SCRATCH = 32
#: Operations after which programs that go different ways hold copies of what they share.
_PARTING = {"cf.cond_br", "scf.if", "scf.while"}
#: Lines of tiles that a refusal names.
_MOST_NAMED = 3


def peak_bytes(program: Program) -> int:
    """Bytes that executing one program takes at most: its values, and what operations need."""
    copies = 2 if any(op.name in _PARTING for op in program.walk()) else 1
    return copies * _Peak(program, _SCRATCH).of_region(program.kernel.body, depth=0)


def tile_bytes(program: Program) -> int:
    """Bytes of the values of one program that are alive at once, at most."""
    return _Peak(program, scratch=0).of_region(program.kernel.body, depth=0)


def check_tiles(program: Program, kernel: str, needed: int, memory: int) -> None:
    """Raises `OverBudget`, which names the largest tiles, where `needed` is more than `memory`."""
    if needed <= memory:
        return
    tiles = Counter((kind, op.where) for op in program.walk() for kind in op.types if kind.shape)
    largest: dict[Location, Type] = {}  # of each line
    for kind, where in sorted(tiles, key=lambda tile: -_size(tile[0])):
        largest.setdefault(where, kind)
    places = [
        Place.of(where, "", in_words(kind) + _how_often(tiles[kind, where]))
        for where, kind in list(largest.items())[:_MOST_NAMED]
    ]
    error = OverBudget.at(
        UNKNOWN,
        kernel,
        f"the tiles of a single program take {needed:,} bytes at once, and a launch may take "
        f"{memory:,}",
        also=places,
        why="no multiprocessor holds so much: these lines make the largest tiles",
        hint="choose smaller BLOCK sizes, and go through a long axis block by block in a loop",
    )
    error.setting = f"MINI_TRITON_MEMORY to {needed} or more"
    raise error


def _how_often(count: int) -> str:
    return f", {count} times" if count > 1 else ""


def _size(kind: Type) -> int:
    return kind.numel * kind.itemsize


def in_words(kind: Type) -> str:
    """A tile's type and its size: `64 × 32 float32, 8,192 bytes`."""
    element = "pointers" if kind.is_pointer else str(kind.dtype).removeprefix("torch.")
    shape = " × ".join(f"{n:,}" for n in kind.shape) or "one"
    return f"{shape} {element}, {_size(kind):,} bytes"


class _Peak:
    #: Calls nested deeper than this are recursive, which Triton does not have.
    _DEEPEST = 32

    def __init__(self, program: Program, scratch: int) -> None:
        self._program = program
        self._scratch = scratch
        self._called: dict[str, int] = {}
        self._bytes = {
            slot: kind.numel * kind.itemsize for slot, kind in program.slot_types.items()
        }

    def of_region(self, region: Region, depth: int) -> int:
        """Of several blocks all values may live on."""
        return sum(self._of_block(block, depth) for block in region.blocks)

    def _of_block(self, block: Block, depth: int) -> int:
        live = peak = sum(self._bytes.get(slot, 0) for slot in block.args)
        for op in block.ops:
            made = sum(self._bytes.get(slot, 0) for slot in op.results)
            peak = max(peak, live + made + self._inside(op, depth))
            live += made - sum(self._bytes.get(slot, 0) for slot in op.dead)
        return peak

    def _inside(self, op: Op, depth: int) -> int:
        if op.regions:
            return max(self.of_region(region, depth) for region in op.regions)
        if op.name == "tt.call" and depth < self._DEEPEST:
            name = op.attrs["callee"]
            if name not in self._called:  # once each: calls of calls may be many
                body = self._program.functions[name].body
                self._called[name] = self.of_region(body, depth + 1)
            return self._called[name]
        largest = max((kind.numel for kind in (*op.types, *op.operand_types)), default=1)
        return largest * self._scratch
