"""The caches against a plain one, and by hand."""

from collections import OrderedDict
from dataclasses import dataclass, field

import hypothesis.strategies as st
import numpy as np
from hypothesis import given, settings
from mini_triton.hardware.caches import (
    Lru,
    by_step,
    distinct,
    distinct_by_site,
    dram,
    l1_misses,
)
from mini_triton.hardware.compiled_ops import Instruction
from mini_triton.hardware.layouts import scalar
from mini_triton.hardware.trace import Event


class Plain:
    """A least-recently-used cache of lines of four sectors, one access at a time."""

    def __init__(self, lines, most_dirty):
        self.lines, self.most = OrderedDict(), lines
        self.wrote, self.most_dirty = OrderedDict(), most_dirty
        self.missing = self.written = 0

    def access(self, sector, write):
        line = self.lines.pop(sector // 4, None) or {}
        self.lines[sector // 4] = line
        if not write and sector % 4 not in line:
            self.missing += 1
        line[sector % 4] = line.get(sector % 4, False) or write
        if write:
            self.wrote.pop(sector // 4, None)
            self.wrote[sector // 4] = line
        if len(self.lines) > self.most:
            number, out = self.lines.popitem(last=False)
            self.wrote.pop(number, None)
            self.written += sum(out.values())
        while self.dirty > self.most_dirty:
            _, oldest = self.wrote.popitem(last=False)
            self.written += sum(oldest.values())
            oldest.update(dict.fromkeys(oldest, False))

    @property
    def dirty(self):
        return sum(sum(line.values()) for line in self.lines.values())


@settings(max_examples=200, deadline=None)
@given(
    accesses=st.lists(st.tuples(st.integers(0, 63), st.booleans()), max_size=120),
    lines=st.integers(1, 12),
    most_dirty=st.integers(1, 30),
)
def test_one_access_at_a_time_it_is_a_plain_cache(accesses, lines, most_dirty):
    mine, plain = Lru(64, lines * 128, most_dirty * 32), Plain(lines, most_dirty)
    missing = 0
    for sector, write in accesses:
        plain.access(sector, write)
        if write:
            mine.write(np.array([sector]))
        else:
            missing += mine.read(np.array([sector]))
    assert (missing, mine.written_back, mine.dirty) == (plain.missing, plain.written, plain.dirty)


@dataclass(eq=False)
class Place:
    kind: str = "load"
    instructions: list = field(default_factory=lambda: [Instruction("ld", scalar(1), 4)])


def event(programs, step, first, pattern, site=None):
    programs, first = np.asarray(programs), np.asarray(first)
    steps = np.full(len(programs), step)
    return Event(site or Place(), programs, steps, first, np.asarray(pattern))


def test_everything_that_fits_is_read_once():
    row = np.arange(16)
    events = [event(range(8), 0, np.arange(8) * 16, row), event(range(8), 1, np.zeros(8, int), row)]
    assert dram(events, 128, 2, 1 << 20).read == 128 * 32


def test_what_does_not_fit_is_read_again():
    """Two waves walk the same 64 lines: through a cache of 32 each line is gone when it is due."""
    events = [event([0], s, [16 * s], np.arange(16)) for s in range(16)]
    events += [event([1], s, [16 * s], np.arange(16)) for s in range(16)]
    assert dram(events, 256, 1, 32 * 128).read == 2 * 256 * 32
    assert dram(events, 256, 1, 64 * 128).read == 256 * 32
    assert dram(events, 256, 2, 32 * 128).read == 256 * 32  # side by side, they share


def test_stores_are_written_when_their_line_is_thrown_out():
    store, load = Place("store"), Place()
    events = [event([p], 0, [4 * p], np.arange(4), store) for p in range(3)]
    events += [event([p], 0, [4 * p], np.arange(4), load) for p in range(3, 10)]
    found = dram(events, 40, 1, 8 * 128)
    assert (found.read, found.written, found.left) == (7 * 128, 2 * 128, 128)


def test_half_of_l2_may_be_dirty():
    store = Place("store")
    events = [event([p], 0, [4 * p], np.arange(4), store) for p in range(10)]
    found = dram(events, 40, 1, 20 * 128)
    assert (found.read, found.written, found.left) == (0, 0, 10 * 128)
    found = dram(events, 40, 1, 16 * 128)
    assert (found.read, found.written, found.left) == (0, 2 * 128, 8 * 128)


def test_sectors_of_a_site_are_told_apart_once():
    site = Place()
    events = [event(range(4), 0, [0, 2, 4, 0], [0, 1, 2], site), event([0], 0, [9], [0])]
    assert distinct_by_site(events, 16)[id(site)] == 7


def test_an_atomic_update_reads_and_writes():
    found = dram([event([0], 0, [0], [0, 1], Place("atomic"))], 4, 1, 1 << 20)
    assert (found.read, found.written, found.left) == (64, 0, 64)


def test_steps_come_wave_by_wave():
    a, b = event(range(4), 0, np.arange(4), [0]), event(range(4), 1, np.arange(4), [0])
    seen = [
        [(part.event is b, part.event.programs[part.rows].tolist()) for part in parts]
        for parts in by_step([a, b], 2)
    ]
    assert seen == [[(False, [0, 1])], [(True, [0, 1])], [(False, [2, 3])], [(True, [2, 3])]]
    assert list(by_step([], 2)) == []


def test_l1_serves_the_programs_of_its_own_multiprocessor():
    """Four programs on two SMs read the same sectors: each SM misses once."""
    site = Place()
    found = l1_misses([event(range(4), 0, np.zeros(4, int), [0, 1, 2], site)], 2, 2, 1 << 10)
    assert found == {id(site): (2 * 3, 4 * 3)}


def test_l1_that_is_too_small_serves_nothing():
    site = Place()
    events = [event([0], 0, [0], [0], site), event([0], 1, [4], [0], site)] * 1
    events += [event([0], 2, [0], [0], site)]
    assert l1_misses(events, 1, 1, 128) == {id(site): (3, 3)}
    assert l1_misses(events, 1, 1, 256) == {id(site): (2, 3)}


def test_wide_copies_pass_l1_by():
    site = Place(instructions=[Instruction("ldgsts", scalar(1), 16)])
    assert l1_misses([event([0], 0, [0], [0], site)], 1, 1, 256) == {}


@given(values=st.lists(st.integers(0, 1000)))
def test_distinct_is_unique(values):
    array = np.array(values, dtype=np.int64)
    assert distinct(array).tolist() == sorted(set(values))
