"""Layouts: which element of a tile each register of each thread of each warp holds.

A layout is linear: a hardware index (register, lane, warp) is written in bits, and the element's
coordinates are the XOR of one *basis* per bit that is set. A basis of zeros means that the element
does not depend on the bit: registers, lanes or warps then hold copies.
Source: Triton's include/triton/Tools/LinearLayout.h and lib/Dialect/TritonGPU/IR/
LinearLayoutConversions.cpp, of which this is the part that memory operations need.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

Array = np.ndarray
Bases = tuple[tuple[int, ...], ...]  # one coordinate tuple per bit, lowest bit first


@dataclass(frozen=True)
class Layout:
    """Bases of the bits of register, lane and warp index, over a tile of `shape`.

    `order`: axes of the tile, the one that neighbouring registers walk first, first.
    """

    shape: tuple[int, ...]
    register: Bases
    lane: Bases
    warp: Bases

    @cached_property
    def elements(self) -> Array:
        """Flat index (row-major) of the element held, int64 (warps, registers, lanes).

        Registers that hold what an earlier one holds are left out, as code generation does.
        """
        weights = np.cumprod((1, *self.shape[:0:-1]), dtype=np.int64)[::-1]
        parts = []
        for bases in (self.warp, self.register, self.lane):
            flat = [int(np.dot(basis, weights)) if basis else 0 for basis in bases]
            if bases is self.register:
                flat = [step for step in flat if step]
            index = np.zeros(1, dtype=np.int64)
            for step in flat:
                index = np.concatenate([index, index ^ step])
            parts.append(index)
        warp, register, lane = parts
        return warp[:, None, None] ^ register[None, :, None] ^ lane[None, None, :]

    @property
    def first_copies(self) -> Array:
        """Which threads hold no copy of another thread's elements, bool (warps, 1, lanes)."""
        unique = []
        for bases in (self.warp, self.lane):
            index = np.arange(1 << len(bases))
            zero = sum(1 << bit for bit, basis in enumerate(bases) if not any(basis))
            unique.append((index & zero) == 0)
        return unique[0][:, None, None] & unique[1][None, None, :]

    @property
    def contiguous(self) -> int:
        """Elements of the last axis that stand in successive registers."""
        run = 1
        for basis in self.register:
            if any(basis[:-1]) or not basis or basis[-1] != run:
                break
            run *= 2
        return run


def scalar(num_warps: int) -> Layout:
    """A scalar: all threads have it."""
    return Layout((), (), ((),) * 5, ((),) * _bits(num_warps))


def blocked(
    shape: tuple[int, ...],
    per_thread: tuple[int, ...],
    threads: tuple[int, ...],
    warps: tuple[int, ...],
    order: tuple[int, ...],
) -> Layout:
    """`#ttg.blocked`: blocks of `per_thread`, over the threads of a warp, over warps, repeated.

    What sticks out of the tile are copies; what is left of the tile are more registers.
    """
    rank = len(shape)
    reached = [1] * rank
    parts: list[list[tuple[int, ...]]] = [[], [], []]
    for part, sizes in zip(parts, (per_thread, threads, warps), strict=True):
        for axis in order:
            for _ in range(_bits(sizes[axis])):
                inside = reached[axis] < shape[axis]
                step = reached[axis] if inside else 0
                part.append(tuple(step if a == axis else 0 for a in range(rank)))
                reached[axis] *= 2 if inside else 1
    for axis in order:
        while reached[axis] < shape[axis]:
            parts[0].append(tuple(reached[axis] if a == axis else 0 for a in range(rank)))
            reached[axis] *= 2
    register, lane, warp = map(tuple, parts)
    return Layout(shape, register, lane, warp)


def sliced(parent: Layout, axis: int) -> Layout:
    """`#ttg.slice`: a tile laid out like the parent's with `axis` (of size 1 there) left out."""

    def cut(bases: Bases) -> Bases:
        return tuple((*basis[:axis], *basis[axis + 1 :]) for basis in bases)

    shape = (*parent.shape[:axis], *parent.shape[axis + 1 :])
    return Layout(shape, cut(parent.register), cut(parent.lane), cut(parent.warp))


# -------------------------------------------------------------------- as TTGIR prints them
_ALIAS = re.compile(r"^(#\w+) = (#ttg\.(?:blocked|linear|slice)<.*>)$", re.MULTILINE)
_SLICE = re.compile(r"#ttg\.slice<\{dim = (\d+), parent = (.*)\}>$")
_LIST = re.compile(r"(\w+) = (\[[\d,\s\[\]]*\])")


def aliases(ttgir: str) -> dict[str, str]:
    """The layouts that a module names: `#blocked` → its text."""
    return dict(_ALIAS.findall(ttgir))


def parsed(text: str, shape: tuple[int, ...], named: Mapping[str, str]) -> Layout | None:
    """The layout of a tile of `shape`; None for a sort that is not known here."""
    text = named.get(text, text)
    if match := _SLICE.match(text):
        axis = int(match[1])
        parent = parsed(match[2], (*shape[:axis], 1, *shape[axis:]), named)
        return parent and sliced(parent, axis)
    lists = {name: _numbers(body) for name, body in _LIST.findall(text)}
    if text.startswith("#ttg.blocked<"):
        keys = ("sizePerThread", "threadsPerWarp", "warpsPerCTA", "order")
        if any(len(lists.get(key, ())) != len(shape) for key in keys):
            return None
        return blocked(shape, *(tuple(lists[key]) for key in keys))
    if text.startswith("#ttg.linear<") and {"register", "lane", "warp"} <= lists.keys():
        register, lane, warp = (
            tuple(tuple(basis) for basis in lists[key]) for key in ("register", "lane", "warp")
        )
        return Layout(shape, register, lane, warp)
    return None


def _numbers(body: str) -> list[Any]:
    """Of whole numbers, or of lists of them."""
    found: list[Any] = json.loads(body)
    return found


def _bits(size: int) -> int:
    return size.bit_length() - 1
