"""Runs a launch again, from the same memory, in other circumstances: do its results stay the same?

All runs are in place, so that arguments that share memory go on to share it. In the end memory
holds what the first run has left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from mini_triton.errors import KernelError
from mini_triton.execute.machine import Machine
from mini_triton.execute.memory.observe import Access
from mini_triton.execute.tiles.values import Buffer
from mini_triton.ir.program import Op
from mini_triton.launch import Launch
from mini_triton.sanitize.shadow import Shadow, bits, touched

#: A run that has made so many times the accesses of the first one, and so many more, is broken off.
_TIMES, _MORE = 4, 1_000


class Endless(KernelError):
    """A run made far more accesses than the first one."""


class Guard:
    """Counts accesses, and breaks a run off that makes too many; an observer."""

    def __init__(self, most: int | None = None) -> None:
        self.accesses = 0
        self._most = most

    def access(self, access: Access) -> None:
        """Counts one."""
        self.accesses += 1
        if self._most is not None and self.accesses > self._most:
            raise Endless(f"{access.op.where}: more than {self._most:,} accesses")

    def successor(self) -> Guard:
        """One for another run."""
        return Guard(_TIMES * self.accesses + _MORE)


@dataclass(frozen=True)
class Difference:
    """An element that another run has left otherwise.

    Attributes:
        buffer: of which tensor.
        offset: how many elements behind its first one.
        count: how many elements of the tensor differ.
        first, second: the values.
    """

    buffer: Buffer
    offset: int
    count: int
    first: Any
    second: Any


class Rerun:
    """A launch that was run once, and can be run again.

    Args:
        launch: the launch.
        machine: that has run it.
        before: what the written buffers held before, in the machine's order.
        guard: that watched.
    """

    def __init__(
        self, launch: Launch, machine: Machine, before: list[torch.Tensor], guard: Guard
    ) -> None:
        self._launch, self._before, self._guard = launch, before, guard
        self.machine = machine
        self.after = [buffer.flat.clone() for buffer in machine.written]

    @contextmanager
    def run(self, observers: tuple[Any, ...] = (), **circumstances: Any) -> Iterator[Machine]:
        """Runs the launch again; in the region, memory holds what that has left.

        Args:
            observers: of this run.
            **circumstances: `order` or `undefined`, of `Machine`.

        Raises:
            KernelError: the run does.
        """
        self._put(self._before)
        try:
            machine = Machine(
                self._launch,
                show=lambda line: None,  # it was printed the first time
                observers=[self._guard.successor(), *observers],
                **circumstances,
            )
            machine.run()
            yield machine
        finally:
            self._put(self.after)

    def _put(self, contents: list[torch.Tensor]) -> None:
        for buffer, content in zip(self.machine.written, contents, strict=True):
            buffer.flat.copy_(content)

    def differences(
        self, same: Callable[[Buffer, torch.Tensor, torch.Tensor], torch.Tensor] | None = None
    ) -> Iterator[Difference]:
        """Where memory now is not as the first run has left it; the first element of each tensor.

        Args:
            same: says which elements count as the same; those of equal bits, if it is not given.
        """
        for buffer, after in zip(self.machine.written, self.after, strict=True):
            other = bits(buffer.flat) != bits(after)
            if same is not None and other.any():
                other &= ~same(buffer, after, buffer.flat)
            if other.any():
                at = int(other.nonzero()[0])
                first, second = after[at].item(), buffer.flat[at].item()
                yield Difference(buffer, at, int(other.sum()), first, second)


class Writers:
    """Keeps the last writer of each element; an observer."""

    def __init__(self) -> None:
        self._ops: dict[int, Op] = {}
        self._shadow: Shadow | None = None

    def access(self, access: Access) -> None:
        """Keeps who writes."""
        if access.kind == "load":
            return
        self._shadow = self._shadow or Shadow(access.frame.machine.buffers)
        now = touched(access, self._shadow)
        self._ops[id(access.op)] = access.op
        now.region.table("writer", 0)[now.at] = id(access.op)
        now.region.table("program", -1)[now.at] = now.programs

    def of(self, difference: Difference) -> tuple[Op | None, int]:
        """The operation, and the linear id of the program, that wrote an element last."""
        if self._shadow is None:
            return None, 0
        buffer = difference.buffer
        region = self._shadow.region(buffer)
        byte = buffer.address - region.start + difference.offset * buffer.flat.element_size()
        units = slice(byte // region.unit, -(-(byte + buffer.flat.element_size()) // region.unit))
        programs = region.table("program", -1)[units]
        written = np.nonzero(programs >= 0)[0]
        if not len(written):
            return None, 0
        last = int(written[0])
        return self._ops.get(int(region.table("writer", 0)[units][last])), int(programs[last])
