"""Requests and 32-byte sectors: how a warp's lanes fall together into transactions.

One instruction of one warp is a request. It moves the distinct sectors that its active lanes touch;
at best they are as many as its distinct bytes fill. L1's counters count just these sectors
(`l1tex__t_sectors_pipe_lsu_mem_global_op_ld` and `_st`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mini_triton.hardware.compiled_ops import Instruction
from mini_triton.hardware.gpu import SECTOR

Array = np.ndarray


@dataclass
class Requests:
    """Of one access.

    Attributes:
        requests: instructions of a warp with an active lane.
        sectors: that they touch.
        ideal: that they would touch if their bytes lay side by side.
    """

    requests: int = 0
    sectors: int = 0
    ideal: int = 0

    def add(self, other: Requests, times: int = 1) -> None:
        """Adds another's, `times` over."""
        self.requests += times * other.requests
        self.sectors += times * other.sectors
        self.ideal += times * other.ideal


def lanes_of(instruction: Instruction, numel: int, item: int) -> tuple[Array, Array]:
    """(elements, active) of each request of a program, both (requests, elements of a request)."""
    if instruction.layout is None:  # one request for the whole tile
        return np.arange(numel)[None], np.ones((1, numel), bool)
    held = instruction.layout.elements  # (warps, registers, lanes)
    active = np.broadcast_to(
        True if instruction.copies_too else instruction.layout.first_copies, held.shape
    )
    warps, registers, lanes = held.shape
    together = math.gcd(max(1, instruction.width // item), registers)
    shape = (warps * (registers // together), together * lanes)
    return held.reshape(shape), active.reshape(shape)


def count(addresses: Array, mask: Array | None, lanes: tuple[Array, Array], item: int) -> Requests:
    """Over programs: `addresses` in bytes and `mask`, both (programs, elements of the tile)."""
    held, active = lanes
    taken = addresses[:, held]
    on = np.broadcast_to(active, taken.shape) if mask is None else mask[:, held] & active
    any_on = on.any(axis=-1)
    sectors = _distinct(np.where(on, taken // SECTOR, -1))
    elements = _distinct(np.where(on, taken, -1))
    ideal = -(-elements * item // SECTOR)
    return Requests(int(any_on.sum()), int(sectors.sum()), int(ideal.sum()))


def _distinct(values: Array) -> Array:
    """How many distinct numbers that are not negative stand along the last axis."""
    values = np.sort(values, axis=-1)
    new = values[..., 1:] != values[..., :-1]
    return (new & (values[..., 1:] >= 0)).sum(axis=-1) + (values[..., 0] >= 0)
