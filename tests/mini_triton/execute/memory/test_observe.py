"""Observers are told every access: which lanes of which tensor, by which programs, in order."""

from __future__ import annotations

import mini_triton
import torch
import triton
import triton.language as tl
from mini_triton.execute.machine import Machine
from mini_triton.execute.memory.observe import Access
from mini_triton.launch import Launch, LaunchRecord


class _Seen:
    def __init__(self) -> None:
        self.accesses: list[tuple[str, str, list[int], list[list[int]], object]] = []

    def access(self, access: Access) -> None:
        mask = None if access.mask is None else access.mask.tolist()
        self.accesses.append(
            (
                access.kind,
                access.buffer.name,
                access.programs.tolist(),
                access.offsets.tolist(),
                mask,
            )
        )


class _Observed:
    def __init__(self) -> None:
        self.seen = _Seen()

    def launch(self, launch: Launch) -> LaunchRecord:
        Machine(launch, observers=[self.seen]).run()
        return LaunchRecord(launch.kernel, launch.grid)


@triton.jit
def _scaled(x, y, total, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    value = tl.load(x + offsets, mask=mask)
    tl.store(y + offsets, value * 2, mask=mask)
    tl.atomic_add(total, tl.program_id(0))


def test_every_access_is_told_before_the_next() -> None:
    x, y = torch.arange(6.0), torch.zeros(6)
    total = torch.zeros(1, dtype=torch.int32)
    device = _Observed()
    before = mini_triton.set_device(device)
    try:
        _scaled[(2,)](x, y, total, 6, BLOCK=4)
    finally:
        mini_triton.set_device(before)
    lanes = [[0, 1, 2, 3], [4, 5, 6, 7]]
    mask = [[True] * 4, [True, True, False, False]]
    assert device.seen.accesses == [
        ("load", "x", [0, 1], lanes, mask),
        ("store", "y", [0, 1], lanes, mask),
        ("atomic", "total", [0, 1], [0, 0], None),
    ]
    assert y.tolist() == [0, 2, 4, 6, 8, 10]
    assert total.item() == 1
