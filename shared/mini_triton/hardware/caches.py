"""L2 and L1 over waves of programs: what DRAM gives and takes, and what L2 is asked for.

The model. Programs are resident SMs × occupancy at a time, in grid order, in *waves*; a wave's
programs go in lockstep, access by access (`step`), spread over the SMs in turn. A cache holds lines
of 128 bytes, filled by sectors of 32, and throws out the line that was used longest ago; lines used
in the same step are equally old. L2 begins empty, takes stores without reading the rest of the
sector first, and writes a dirty sector when its line is thrown out, or when more than half of the
cache would be dirty, those written longest ago first. What is dirty at the end is counted apart,
since it is written after the launch if ever. L1 holds what loads brought, by SM; stores pass it by.
Between L1 and L2 requests of several SMs for one sector are merged, at most `MOST_MERGED` of them
into one: how many really are depends on how close in time they come.

Half of the cache, and four, are what an H200 showed (`tests/benchmarks/measured_h200.json`): six
kernels that stream ended with 19 to 26 MB dirty in L2, whatever they had stored; and what all 132
SMs load at the start of a kernel arrived at L2 33 times.

What it leaves out: real programs drift apart; a real L2 is not fully associative, its two halves
may both hold a line, and its replacement is not published; the compiler's cache hints; other
launches. Where everything fits, none of this matters: each distinct sector is read once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mini_triton.hardware.gpu import LINE, SECTOR
from mini_triton.hardware.trace import Event

Array = np.ndarray

_PER_LINE = LINE // SECTOR
#: Requests of different SMs for a sector that may arrive at L2 as one.
MOST_MERGED = 4
#: SMs whose L1 is modelled, evenly spaced; the others are taken to fare as they do.
MOST_SMS = 12


@dataclass(frozen=True)
class Part:
    """The programs of one event that belong to one step of one wave."""

    event: Event
    rows: Array  # positions in `event.programs`


class Lru:
    """A cache of whole lines filled by sectors, over sector numbers 0 to `sectors` − 1.

    Args:
        sectors: how many there are.
        capacity: bytes.
        most_dirty: bytes that may be dirty at once.
    """

    def __init__(self, sectors: int, capacity: int, most_dirty: int | None = None) -> None:
        lines = -(-sectors // _PER_LINE)
        self._valid = np.zeros((lines, _PER_LINE), bool)
        self._dirty = np.zeros((lines, _PER_LINE), bool)
        self._used = np.full(lines, -1, dtype=np.int64)  # when; −1: not resident
        self._queue: deque[tuple[int, Array]] = deque()
        self._most = max(1, capacity // LINE)
        self._written = np.full(lines, -1, dtype=np.int64)  # when last
        self._writes: deque[tuple[int, Array]] = deque()
        self._most_dirty = (capacity if most_dirty is None else most_dirty) // SECTOR
        self._resident = 0
        self._now = 0
        self.dirty = 0
        self.written_back = 0

    def read(self, sectors: Array) -> int:
        """Reads distinct sectors at once; how many were missing."""
        valid = self._valid.reshape(-1)
        missing = len(sectors) - int(valid[sectors].sum())
        valid[sectors] = True
        self._touch(sectors)
        return missing

    def write(self, sectors: Array) -> None:
        """Writes distinct sectors at once."""
        self._valid.reshape(-1)[sectors] = True
        dirty = self._dirty.reshape(-1)
        self.dirty += len(sectors) - int(dirty[sectors].sum())
        dirty[sectors] = True
        lines = _lines(sectors)
        self._written[lines] = self._now
        self._writes.append((self._now, lines))
        self._touch(sectors)
        while self.dirty > self._most_dirty:
            when, oldest = self._writes.popleft()
            idle = oldest[self._written[oldest] == when]
            ends = np.cumsum(self._dirty[idle].sum(axis=1))
            enough = int(np.searchsorted(ends, self.dirty - self._most_dirty)) + 1
            if enough < len(idle):
                self._writes.appendleft((when, idle[enough:]))
            self._clean(idle[:enough])

    def _clean(self, lines: Array) -> None:
        count = int(self._dirty[lines].sum())
        self.written_back += count
        self.dirty -= count
        self._dirty[lines] = False

    def _touch(self, sectors: Array) -> None:
        lines = _lines(sectors)
        self._resident += int((self._used[lines] < 0).sum())
        self._used[lines] = self._now
        self._queue.append((self._now, lines))
        self._now += 1
        while self._resident > self._most:
            when, oldest = self._queue.popleft()
            idle = oldest[self._used[oldest] == when]
            surplus = self._resident - self._most
            if len(idle) > surplus:
                self._queue.appendleft((when, idle[surplus:]))
                idle = idle[:surplus]
            self._evict(idle)

    def _evict(self, lines: Array) -> None:
        self._clean(lines)
        self._valid[lines] = False
        self._used[lines] = self._written[lines] = -1
        self._resident -= len(lines)


def _lines(sectors: Array) -> Array:
    """The distinct lines of sectors that ascend."""
    lines = sectors // _PER_LINE
    return lines[np.r_[True, lines[1:] != lines[:-1]]] if len(lines) else lines


@dataclass(frozen=True)
class Dram:
    """Bytes between L2 and DRAM: read, written during the launch, and dirty in L2 at its end."""

    read: int
    written: int
    left: int


def dram(events: list[Event], sectors: int, wave: int, l2_bytes: int) -> Dram:
    """Through an L2 of `l2_bytes`, with `wave` programs at a time, on `sectors` of memory."""
    cache = Lru(sectors, l2_bytes, l2_bytes // 2)
    missing = 0
    for parts in by_step(events, wave):
        for reads, writes, touched in _by_kind(parts):
            if reads:
                missing += cache.read(touched)
            if writes:
                cache.write(touched)
    return Dram(missing * SECTOR, cache.written_back * SECTOR, cache.dirty * SECTOR)


def _by_kind(parts: list[Part]) -> Iterator[tuple[bool, bool, Array]]:
    """(reads, writes, distinct sectors) of a step: loads, then stores, then atomics."""
    for kind in ("load", "store", "atomic"):
        touched = [part.event.sectors(part.rows) for part in parts if part.event.site.kind == kind]
        if touched:
            # An atomic update is done in L2, which needs the sector.
            yield kind != "store", kind != "load", distinct(np.concatenate(touched))


def by_step(events: list[Event], wave: int) -> Iterator[list[Part]]:
    """The parts of each step of each wave, in the order in which they happen."""
    if not events:
        return
    of_event = np.repeat(np.arange(len(events)), [len(e.programs) for e in events])
    row = np.concatenate([np.arange(len(e.programs)) for e in events])
    waves = np.concatenate([e.programs for e in events]) // wave
    step = np.concatenate([e.step for e in events])
    order = np.lexsort((of_event, step, waves))
    of_event, row, waves, step = of_event[order], row[order], waves[order], step[order]
    new_step = (waves[1:] != waves[:-1]) | (step[1:] != step[:-1])
    new_part = new_step | (of_event[1:] != of_event[:-1])
    starts = np.r_[0, np.flatnonzero(new_part) + 1, len(row)].tolist()
    begins_step = np.r_[True, new_step][starts[:-1]].tolist()
    parts: list[Part] = []
    for begin, end, fresh in zip(starts[:-1], starts[1:], begins_step, strict=True):
        if fresh and parts:
            yield parts
            parts = []
        parts.append(Part(events[of_event[begin]], row[begin:end]))
    yield parts


def l1_misses(
    events: list[Event], wave: int, sms: int, capacity: int
) -> dict[int, tuple[int, int]]:
    """id(site) → (sectors that L1 lacked, sectors looked up), of the SMs that are modelled.

    Only for loads; each access looks its sectors up once.
    """
    loads = [e for e in events if any(i.through_l1 for i in e.site.instructions)]
    chosen = sorted({round(n * sms / min(sms, MOST_SMS)) for n in range(min(sms, MOST_SMS))})
    found: dict[int, tuple[int, int]] = {}
    for sm in chosen:
        own = []
        for event in loads:
            rows = np.flatnonzero(event.programs % wave % sms == sm)
            if len(rows):
                own.append(_cut(event, rows))
        if not own:
            continue
        # Lines are numbered anew, so that a cache is no larger than what its SM touches.
        lines = distinct(np.concatenate([distinct(e.sectors(_all(e)) // _PER_LINE) for e in own]))
        cache = Lru(len(lines) * _PER_LINE, capacity)
        for parts in by_step(own, wave):
            for part in parts:
                touched = part.event.sectors(part.rows)
                sectors = distinct(touched)
                renamed = (
                    np.searchsorted(lines, sectors // _PER_LINE) * _PER_LINE + sectors % _PER_LINE
                )
                missing, looked_up = found.get(id(part.event.site), (0, 0))
                found[id(part.event.site)] = (
                    missing + cache.read(renamed),
                    looked_up + len(touched),
                )
    return found


def distinct(values: Array) -> Array:
    """The distinct of some whole numbers, in order: `np.unique`, faster where they lie close."""
    if len(values) == 0:
        return values
    low, high = int(values.min()), int(values.max())
    if high - low > 16 * len(values):
        return np.unique(values)
    there = np.zeros(high - low + 1, bool)
    there[values - low] = True
    return np.flatnonzero(there) + low


def distinct_by_site(events: list[Event], sectors: int) -> dict[int, int]:
    """id(site) → distinct sectors that it touches in the whole launch: L2 sees each of them."""
    found: dict[int, Array] = {}
    for event in events:
        there = found.setdefault(id(event.site), np.zeros(sectors, bool))
        there[event.sectors(_all(event))] = True
    return {site: int(there.sum()) for site, there in found.items()}


def _cut(event: Event, rows: Array) -> Event:
    """The event of some of its programs."""
    lengths = event.lengths
    return Event(
        event.site,
        event.programs[rows],
        event.step[rows],
        event.first[rows],
        event.pattern if lengths is None else event.sectors(rows),
        None if lengths is None else lengths[rows],
    )


def _all(event: Event) -> Array:
    return np.arange(len(event.programs))
