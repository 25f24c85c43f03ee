"""Watches a launch: counts sectors as accesses go by, and keeps what the caches will need.

A tile whose offsets are a formula looks the same in every program, but for where it starts. So it
is looked at once for each way in which its start lies in a sector, and kept as starts and one
pattern; only tiles of irregular offsets are kept lane by lane.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
import torch

from mini_triton.execute.memory.observe import Access
from mini_triton.execute.tiles.affine import Affine
from mini_triton.execute.tiles.values import Buffer
from mini_triton.hardware.access_map import Touched
from mini_triton.hardware.coalescing import modelled
from mini_triton.hardware.compiled_ops import Instruction
from mini_triton.hardware.gpu import SECTOR
from mini_triton.hardware.sectors import Requests, count, lanes_of
from mini_triton.ir.program import Op

Array = np.ndarray

#: Sectors of irregular tiles that are kept for the caches: 8 bytes each.
MOST_KEPT = 1 << 25
#: Programs with partial masks of one access that are each looked at as a pattern of its own.
_MOST_MASKS = 8
#: torch allocates device memory in units of this; so tensors begin here.
_ALIGNMENT = 512


@dataclass(eq=False)
class Site:
    """One operation on one tensor, and what its accesses came to.

    Attributes:
        moved: per instruction that carries it out.
        touched: distinct sectors, summed over the operation's executions in each program: what L2
            is asked for if L1 keeps a tile just for the time of its own access.
    """

    op: Op
    kind: str  # "load", "store" or "atomic"
    buffer: Buffer
    item: int
    instructions: list[Instruction]
    moved: list[Requests] = field(default_factory=list)
    touched: int = 0


@dataclass(frozen=True)
class Event:
    """One access by programs that ran together, for the caches.

    Attributes:
        programs: linear ids, int64 (P,).
        step: which of its program's accesses it is, int64 (P,).
        first: first sector of each program's tile, int64 (P,), and
        pattern: the tile's sectors, counted from there; or, if the tiles are irregular,
        lengths: how many sectors each program touches, int64 (P,), with all of them in `pattern`.
    """

    site: Site
    programs: Array
    step: Array
    first: Array
    pattern: Array
    lengths: Array | None = None

    def sectors(self, rows: Array) -> Array:
        """What the programs at positions `rows` touch, each one's sectors once."""
        if self.lengths is None:
            return (self.first[rows, None] + self.pattern).reshape(-1)
        ends = np.cumsum(self.lengths)
        parts = [self.pattern[ends[row] - self.lengths[row] : ends[row]] for row in rows.tolist()]
        return np.concatenate(parts) if parts else self.pattern[:0]


@dataclass(frozen=True)
class _Pattern:
    requests: list[Requests]
    sectors: Array
    lanes: Array  # offsets of the active elements, from the first one


class Trace:
    """An observer.

    Args:
        programs: of the grid.
        instructions: operation → how it is carried out, where that is known.
        num_warps: of a program.
    """

    def __init__(
        self, programs: int, instructions: dict[int, list[Instruction]], num_warps: int
    ) -> None:
        self.sites: dict[tuple[int, int], Site] = {}
        self.events: list[Event] = []
        self.touched: dict[int, Touched] = {}
        self.too_much = False
        self._instructions = instructions
        self._num_warps = num_warps
        self._steps = np.zeros(programs, dtype=np.int64)
        self._programs = programs
        self._starts: dict[int, int] = {}
        self._end = 0
        self._patterns: dict[object, _Pattern] = {}
        self._lanes: dict[tuple[int, int], list[tuple[Array, Array]]] = {}
        self._kept = 0

    @property
    def sectors(self) -> int:
        """Sectors of the memory that the launch's tensors lie in."""
        return -(-self._end // SECTOR)

    # ------------------------------------------------------------------ what the machine calls
    def access(self, access: Access) -> None:
        """See `Observer`."""
        buffer, item = access.buffer, access.element_size
        programs = access.programs.numpy()
        numel = 1
        for size in access.shape:
            numel *= size
        if numel == 0 or len(programs) == 0:
            return
        start = self._address(buffer)
        mask = access.mask
        full: Array | None = None
        if mask is not None:
            full = mask.reshape(len(programs), numel).numpy()
        offset = access.pointer.offset
        regular = access.pointer.rest is None
        groups = _by_mask(full, len(programs)) if regular else None
        step = self._steps[programs]
        self._steps[programs] += 1
        if groups is None:
            self._irregular(access, programs, step, full, start, numel, item)
            return
        base = _bases(offset, len(programs))
        for rows, lanes_on in groups:
            self._regular(
                access, offset, programs[rows], step[rows], base[rows], lanes_on, start, item
            )

    def _regular(
        self,
        access: Access,
        offset: Affine,
        programs: Array,
        step: Array,
        base: Array,
        on: Array | None,
        start: int,
        item: int,
    ) -> None:
        first_byte = start + base * item
        site: Site | None = None
        for shift in np.unique(first_byte % SECTOR).tolist():
            rows = np.flatnonzero(first_byte % SECTOR == shift)
            key = (
                id(access.op), offset.steps, offset.sizes, access.shape, item, shift,
                None if on is None else on.tobytes(), access.buffer.position,
            )  # fmt: skip
            tile = offset.with_axes(offset.steps, offset.sizes)
            pattern = self._patterns.get(key)
            if pattern is None:
                relative = Affine(torch.int64, 0, 0, 0, tile.steps, tile.sizes).dense
                lanes = relative.expand(1, *access.shape).reshape(1, -1).numpy()
                pattern = self._pattern(access, lanes, on, shift, item)
                self._patterns[key] = pattern
            site = self._site(access, item, None)
            for moved, one in zip(site.moved, pattern.requests, strict=True):
                moved.add(one, len(rows))
            site.touched += len(pattern.sectors) * len(rows)
            first = (first_byte[rows] - shift) // SECTOR
            self.events.append(Event(site, programs[rows], step[rows], first, pattern.sectors))
            self._touch(access, item).tiles(programs[rows], base[rows], pattern.lanes)

    def _pattern(
        self, access: Access, lanes: Array, on: Array | None, shift: int, item: int
    ) -> _Pattern:
        addresses = lanes * item + shift
        mask = None if on is None else on[None]
        site = self._site(access, item, addresses[0])
        requests = [
            count(addresses, mask, held, item) for held in self._held(site, lanes.shape[1], item)
        ]
        active = lanes[0] if on is None else lanes[0][on]
        return _Pattern(requests, np.unique((active * item + shift) // SECTOR), np.unique(active))

    def _irregular(
        self,
        access: Access,
        programs: Array,
        step: Array,
        mask: Array | None,
        start: int,
        numel: int,
        item: int,
    ) -> None:
        offsets = access.offsets.reshape(len(programs), numel).numpy()
        addresses = offsets * item + start
        site = self._site(access, item, addresses[0])
        for moved, held in zip(site.moved, self._held(site, numel, item), strict=True):
            moved.add(count(addresses, mask, held, item))
        sectors = addresses // SECTOR
        if mask is not None:
            sectors = np.where(mask, sectors, -1)
        sectors = np.sort(sectors, axis=1)
        new = np.ones(sectors.shape, bool)
        new[:, 1:] = sectors[:, 1:] != sectors[:, :-1]
        new &= sectors >= 0
        kept = sectors[new]
        site.touched += len(kept)
        self._kept += len(kept)
        if self._kept > MOST_KEPT:
            self.too_much = True
        if not self.too_much:
            zeros = np.zeros(len(programs), dtype=np.int64)
            self.events.append(Event(site, programs, step, zeros, kept, new.sum(axis=1)))
        self._touch(access, item).lanes(programs, offsets, mask)

    # ------------------------------------------------------------------ what it keeps
    def _site(self, access: Access, item: int, addresses: Array | None) -> Site:
        key = (id(access.op), access.buffer.position)
        site = self.sites.get(key)
        if site is None:
            assert addresses is not None
            kind = {"load": "ld", "store": "st", "atomic": "atom"}[access.kind]
            known = self._instructions.get(id(access.op)) or [
                modelled(kind, addresses, access.shape, item, self._num_warps)
            ]
            site = Site(access.op, access.kind, access.buffer, item, known)
            site.moved = [Requests() for _ in known]
            self.sites[key] = site
        return site

    def _held(self, site: Site, numel: int, item: int) -> list[tuple[Array, Array]]:
        key = (id(site.op), site.buffer.position)
        if key not in self._lanes:
            self._lanes[key] = [lanes_of(i, numel, item) for i in site.instructions]
        return self._lanes[key]

    def _touch(self, access: Access, item: int) -> _Toucher:
        position = access.buffer.position
        if position not in self.touched:
            self.touched[position] = Touched(access.buffer)
        reads = access.kind == "load" or (access.kind == "atomic" and access.op.used)
        return _Toucher(self.touched[position], item, reads, access.kind != "load")

    def _address(self, buffer: Buffer) -> int:
        """Where the buffer begins in device memory, bytes: each storage in a place of its own."""
        storage = buffer.flat.untyped_storage()
        if storage.data_ptr() not in self._starts:
            self._starts[storage.data_ptr()] = self._end
            self._end += -(-storage.nbytes() // _ALIGNMENT) * _ALIGNMENT
        return self._starts[storage.data_ptr()] + buffer.address - storage.data_ptr()


@dataclass(frozen=True)
class _Toucher:
    touched: Touched
    item: int
    reads: bool
    writes: bool

    def tiles(self, programs: Array, base: Array, lanes: Array) -> None:
        """Programs whose tiles begin at `base`: elements `base + lanes`."""
        self.touched.tiles(programs, base, lanes, self.item, self.reads, self.writes)

    def lanes(self, programs: Array, offsets: Array, mask: Array | None) -> None:
        """Programs with offsets of their own, (programs, elements)."""
        rows = np.broadcast_to(np.arange(len(programs))[:, None], offsets.shape)
        on = slice(None) if mask is None else mask
        self.touched.elements(
            programs[rows[on].reshape(-1)],
            offsets[on].reshape(-1),
            self.item,
            self.reads,
            self.writes,
        )


def _bases(offset: Affine, programs: int) -> Array:
    if isinstance(offset.base, int):
        return np.full(programs, offset.base, dtype=np.int64)
    return np.broadcast_to(offset.base.numpy(), (programs,))


def _by_mask(mask: Array | None, programs: int) -> list[tuple[Array, Array | None]] | None:
    """Programs grouped by mask (None: all lanes on); None if there are too many sorts of it."""
    everyone = np.arange(programs)
    if mask is None:
        return [(everyone, None)]
    full = mask.all(axis=1)
    groups: list[tuple[Array, Array | None]] = []
    if full.any():
        groups.append((everyone[full], None))
    partial = everyone[~full & mask.any(axis=1)]
    by_mask: dict[bytes, list[int]] = defaultdict(list)
    for row in partial.tolist():
        by_mask[mask[row].tobytes()].append(row)
        if len(by_mask) > _MOST_MASKS:
            return None
    groups += [(np.array(rows), mask[rows[0]]) for rows in by_mask.values()]
    return groups
