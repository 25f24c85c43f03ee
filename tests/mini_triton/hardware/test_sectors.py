"""Requests and sectors, by hand."""

import numpy as np
from mini_triton.hardware.compiled_ops import Instruction
from mini_triton.hardware.layouts import blocked, scalar
from mini_triton.hardware.sectors import Requests, count, lanes_of


def line(numel, per_thread=1, warps=4):
    return blocked((numel,), (per_thread,), (32,), (warps,), (0,))


def counted(instruction, addresses, item=4, mask=None):
    addresses = np.array(addresses, dtype=np.int64)[None]
    lanes = lanes_of(instruction, addresses.shape[1], item)
    return count(addresses, None if mask is None else np.array(mask)[None], lanes, item)


def test_neighbours_share_sectors():
    found = counted(Instruction("ld", line(128), 4), np.arange(128) * 4)
    assert found == Requests(requests=4, sectors=16, ideal=16)


def test_wide_loads_are_fewer_requests_of_as_many_sectors():
    found = counted(Instruction("ld", line(512, 4), 16), np.arange(512) * 4)
    assert found == Requests(requests=4, sectors=64, ideal=64)


def test_narrow_loads_of_a_wide_layout_waste():
    """A thread's four elements one at a time: lanes are 16 bytes apart, each request spans 512."""
    found = counted(Instruction("ld", line(512, 4), 4), np.arange(512) * 4)
    assert found == Requests(requests=16, sectors=256, ideal=64)


def test_a_column_takes_a_sector_an_element():
    found = counted(Instruction("ld", line(128), 4), np.arange(128) * 4096)
    assert found == Requests(requests=4, sectors=128, ideal=16)


def test_what_is_not_aligned_takes_one_sector_more():
    found = counted(Instruction("ld", line(128), 4), np.arange(128) * 4 + 4)
    assert found == Requests(requests=4, sectors=20, ideal=16)


def test_one_address_for_all_is_one_sector():
    found = counted(Instruction("ld", line(128), 4), np.zeros(128))
    assert found == Requests(requests=4, sectors=4, ideal=4)


def test_a_scalar_is_loaded_by_every_warp_and_stored_by_one_thread():
    assert counted(Instruction("ld", scalar(8), 4), [0]) == Requests(8, 8, 8)
    assert counted(Instruction("st", scalar(8), 4), [0]) == Requests(1, 1, 1)


def test_copies_load_too_but_do_not_store():
    """32 elements in four warps: each warp has them all."""
    addresses = np.arange(32) * 4
    assert counted(Instruction("ld", line(32), 4), addresses) == Requests(4, 16, 16)
    assert counted(Instruction("st", line(32), 4), addresses) == Requests(1, 4, 4)


def test_masked_lanes_ask_for_nothing():
    mask = np.arange(128) < 40
    found = counted(Instruction("ld", line(128), 4), np.arange(128) * 4, mask=mask)
    assert found == Requests(requests=2, sectors=5, ideal=5)


def test_no_thread_carries_out_a_tma_copy():
    found = counted(Instruction("tma", None, 0), np.arange(64) * 2, item=2)
    assert found == Requests(requests=1, sectors=4, ideal=4)


def test_programs_add_up():
    instruction = Instruction("ld", line(128), 4)
    lanes = lanes_of(instruction, 128, 4)
    addresses = np.arange(128) * 4 + np.array([[0], [4], [512]])
    assert count(addresses, None, lanes, 4) == Requests(12, 52, 48)
    total = Requests()
    total.add(Requests(1, 2, 3), 5)
    assert total == Requests(5, 10, 15)
