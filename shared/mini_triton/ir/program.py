"""The typed IR: functions of blocks of operations over numbered values (slots).

Slots are unique in a program, so that a nested region needs no environment of its own. `dead` lists
the slots whose last use an operation is: their tiles are freed there, which keeps a chunk in cache.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from mini_triton.ir.types import Type
from mini_triton.location import UNKNOWN, Location


@dataclass
class Op:
    """One operation: `name` as in TTIR, slots in and out, attributes and nested regions."""

    name: str
    operands: tuple[int, ...] = ()
    results: tuple[int, ...] = ()
    types: tuple[Type, ...] = ()  # of the results
    operand_types: tuple[Type, ...] = ()
    attrs: dict[str, Any] = field(default_factory=dict)
    keywords: tuple[str, ...] = ()  # bare words: predicates, axes, atomic kinds
    regions: tuple[Region, ...] = ()
    successors: tuple[tuple[str, tuple[int, ...]], ...] = ()  # (block label, arguments)
    where: Location = UNKNOWN
    dead: tuple[int, ...] = ()
    uses: tuple[int, ...] = ()  # operands, and what regions use
    framed: Any = None  # handlers, bound when the program is prepared (`execute.registry`)
    lazy: Any = None
    pure: Any = None
    over: Any = None
    used: bool = True  # whether any result is used (an unused atomic returns nothing)
    shares: bool = False  # the result goes into products only (`execute.dot`)
    accumulates: bool = False  # a product that is added, in a loop, to the one before


@dataclass
class Block:
    """A label, its arguments and a straight line of operations."""

    label: str
    args: tuple[int, ...]
    ops: list[Op]


@dataclass
class Region:
    """Blocks; all but a function's body have exactly one."""

    blocks: list[Block]

    @property
    def entry(self) -> Block:
        """The first block."""
        return self.blocks[0]


@dataclass
class Function:
    """A `tt.func`: argument slots and types, body, result types."""

    name: str
    args: tuple[int, ...]
    arg_types: tuple[Type, ...]
    body: Region
    result_types: tuple[Type, ...] = ()
    where: Location = UNKNOWN


@dataclass
class Program:
    """A parsed module: the kernel (its one public function) and the functions that it calls."""

    kernel: Function
    functions: dict[str, Function]
    slot_types: dict[int, Type]

    def walk(self) -> list[Op]:
        """All operations of all functions, outer before inner."""
        found: list[Op] = []
        pending = [f.body for f in self.functions.values()]
        while pending:
            for block in pending.pop(0).blocks:
                for op in block.ops:
                    found.append(op)
                    pending.extend(op.regions)
        return found

    @cached_property
    def largest_tile(self) -> int:
        """Elements of the largest value of the program: what chunking is sized by."""
        return max((t.numel for t in self.slot_types.values()), default=1)
