"""The values of a set of programs that run together, and how that set narrows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from mini_triton.execute.tiles.values import Value, dense, expand, narrow

if TYPE_CHECKING:
    from mini_triton.execute.machine import Machine
    from mini_triton.ir.program import Op


class Frame:
    """Values by slot for the programs `programs` (linear ids, int64).

    When programs part ways (a branch, loops of different lengths), each group continues in a child
    frame, which takes a value over from its parent, cut to its own programs, when it is first used.
    """

    __slots__ = ("_index", "_parent", "machine", "programs", "values")

    def __init__(
        self,
        machine: Machine,
        programs: torch.Tensor,
        parent: Frame | None = None,
        index: torch.Tensor | None = None,
    ) -> None:
        self.machine = machine
        self.programs = programs
        self.values: dict[int, Value] = {}
        self._parent = parent
        self._index = index

    @property
    def count(self) -> int:
        """How many programs run in this frame."""
        return self.programs.shape[0]

    def __getitem__(self, slot: int) -> Value:
        value = self.values.get(slot)
        if value is None:
            assert self._parent is not None and self._index is not None, f"slot {slot} has no value"
            value = self.values[slot] = narrow(self._parent[slot], self._index)
        return value

    def __setitem__(self, slot: int, value: Value) -> None:
        self.values[slot] = value

    def tensor(self, slot: int) -> torch.Tensor:
        """The lanes of a slot that holds no pointers."""
        value = dense(self[slot])
        assert isinstance(value, torch.Tensor)
        return value

    def tiles(self, op: Op) -> list[torch.Tensor]:
        """The lanes of an operation's operands, (1 or P, *shape) with all axes of the tile full."""
        return [
            expand(self.tensor(slot), kind.shape)
            for slot, kind in zip(op.operands, op.operand_types, strict=True)
        ]

    def operands(self, op: Op) -> list[Value]:
        """The values of an operation's operands."""
        return [self[slot] for slot in op.operands]

    def child(self, index: torch.Tensor) -> Frame:
        """A frame of the programs at the positions `index` of this one."""
        return Frame(self.machine, self.programs.index_select(0, index), self, index)
