"""Launches modelled whole: what the compiled program says, and what follows for memory."""

import json
from dataclasses import replace

import mini_triton
import pytest
import torch
import triton
import triton.language as tl
from mini_triton.execute.machine import Machine
from mini_triton.hardware import GPUS, HardwareRecord
from mini_triton.hardware.model import Model

from tests.kernels import matmul
from tests.mini_triton.comparing import normal

#: The PTX of Triton 3.9 names other places than its TTGIR: there widths are taken from layouts.
EXACT = tuple(map(int, triton.__version__.split(".")[:2])) < (3, 9)


@triton.jit
def scale_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2, mask=i < n)


@triton.jit
def column_kernel(x_ptr, y_ptr, stride, BLOCK: tl.constexpr):
    column = tl.program_id(0)
    rows = tl.arange(0, BLOCK)
    tl.store(y_ptr + column * BLOCK + rows, tl.load(x_ptr + rows * stride + column))


@triton.jit
def gather_kernel(x_ptr, index_ptr, y_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + tl.load(index_ptr + i)))


@triton.jit
def sum_kernel(x_ptr, total_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(total_ptr, tl.sum(tl.load(x_ptr + i)))


def modelled(launch, gpu="H200"):
    """The record of the one launch."""
    with mini_triton.profile(host=False, hardware=gpu, check=()) as p:
        launch()
    (record,) = p.launches
    return record


def by_tensor(record):
    return {access.tensor: access for access in record.hardware.accesses}


def test_a_contiguous_kernel_asks_for_the_bytes_that_are_counted():
    x, y = normal(8192), torch.empty(8192)
    record = modelled(lambda: scale_kernel[(8,)](x, y, 8192, BLOCK=1024))
    hardware = record.hardware
    assert 32 * hardware.sectors("ld") == record.loaded_bytes == 4 * 8192
    assert 32 * hardware.sectors("st") == record.stored_bytes == 4 * 8192
    assert 32 * hardware.l2_sectors() == 8 * 8192
    assert hardware.efficiency == 1
    assert hardware.dram_read_bytes == hardware.unique_loaded_bytes == 4 * 8192
    assert (hardware.dram_written_bytes, hardware.dram_left_bytes) == (0, 4 * 8192)
    assert {access.width for access in hardware.accesses} == {16}
    assert not EXACT or all(access.exact for access in hardware.accesses)
    assert hardware.resources.compiled and hardware.resources.registers > 0
    assert torch.equal(y, x * 2)


def test_a_mask_that_may_cut_anywhere_takes_wide_loads_away():
    """1000 is no multiple of 16: each of a thread's four elements is a load of its own."""
    x, y = normal(1000), torch.empty(1000)
    record = modelled(lambda: scale_kernel[(1,)](x, y, 1000, BLOCK=1024))
    access = by_tensor(record)["x_ptr"]
    assert (access.width, access.sectors, access.ideal) == (4, 500, 128)
    assert access.l2_sectors == 125  # L1 serves the other three elements
    assert record.hardware.unique_loaded_bytes == 4000


def test_a_column_wastes_sectors_and_l2_may_save_them():
    x, y = normal(256, 64), torch.empty(64, 256)
    record = modelled(lambda: column_kernel[(64,)](x, y, 64, BLOCK=256))
    access = by_tensor(record)["x_ptr"]
    assert (access.sectors, access.ideal, access.efficiency) == (64 * 256, 64 * 32, 1 / 8)
    assert record.hardware.dram_read_bytes == 4 * x.numel()
    assert by_tensor(record)["y_ptr"].efficiency == 1


def test_what_all_programs_load_may_be_merged_before_l2():
    """Sixteen programs, each on an SM of its own, load one row: 512 bytes, 16 sectors each."""

    @triton.jit
    def add_row(x_ptr, row_ptr, y_ptr, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        at = tl.program_id(0) * BLOCK + i
        tl.store(y_ptr + at, tl.load(x_ptr + at) + tl.load(row_ptr + i))

    x, row, y = normal(16, 128), normal(128), torch.empty(16, 128)
    found = by_tensor(modelled(lambda: add_row[(16,)](x, row, y, BLOCK=128)))
    assert (found["row_ptr"].l2_sectors, found["row_ptr"].least_l2_sectors) == (16 * 16, 4 * 16)
    assert found["x_ptr"].least_l2_sectors == found["x_ptr"].l2_sectors == 16 * 16
    assert found["y_ptr"].least_l2_sectors == found["y_ptr"].l2_sectors


def test_an_l2_too_small_reads_again():
    """Sixteen programs at a time: each sector of 32 one-byte elements is needed in two waves."""
    x = torch.ones(256, 64, dtype=torch.int8)
    y = torch.empty(64, 256, dtype=torch.int8)
    large = replace(GPUS["H200"], sms=1)
    for gpu, times in ((large, 1), (replace(large, l2_bytes=16 * 128), 2)):
        hardware = modelled(lambda: column_kernel[(64,)](x, y, 64, BLOCK=256), gpu).hardware
        assert hardware.wave == 16
        assert hardware.dram_read_bytes == times * x.numel()


def test_irregular_accesses_are_counted_lane_by_lane():
    x, y = normal(4096), torch.empty(256)
    index = torch.arange(256, dtype=torch.int32) * 16
    record = modelled(lambda: gather_kernel[(2,)](x, index, y, BLOCK=128))
    access = by_tensor(record)["x_ptr"]
    assert (access.sectors, access.ideal) == (256, 32)
    assert record.hardware.tensors["x_ptr"].unique_loaded_bytes == 4 * 256
    assert record.hardware.dram_read_bytes == 256 * 32 + 4 * 256


def test_atomics_of_a_program_are_one_request():
    x, total = torch.ones(1024), torch.zeros(1)
    record = modelled(lambda: sum_kernel[(8,)](x, total, BLOCK=128))
    access = by_tensor(record)["total_ptr"]
    assert (access.kind, access.instruction, access.requests, access.sectors) == (
        "atomic",
        "atom",
        8,
        8,
    )
    assert record.hardware.tensors["total_ptr"].unique_stored_bytes == 4
    assert total.item() == 1024


def test_products_are_pipelined_and_counted():
    a = normal(128, 128, dtype=torch.float16)
    record = modelled(lambda: matmul.matmul(a, a.clone()))
    hardware, found = record.hardware, by_tensor(record)
    assert hardware.products == {"fp16": 2 * 128**3}
    assert found["a_ptr"].instruction == found["b_ptr"].instruction == "ldgsts"
    assert hardware.resources.shared == 24_576
    assert 32 * hardware.sectors("ldgsts") == record.loaded_bytes
    assert hardware.bound in hardware.times
    assert hardware.time == max(hardware.times.values())


def test_what_does_not_fit_is_said_in_tritons_words():
    a, c = normal(64, 64, dtype=torch.float16), torch.empty(64, 64, dtype=torch.float16)
    launch = matmul.matmul_kernel[(1,)]
    sizes = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64, "GROUP_M": 1, "PRECISION": "ieee"}
    strides = (64, 1, 64, 1, 64, 1)
    hardware = modelled(
        lambda: launch(a, a, c, 64, 64, 64, *strides, **sizes, num_stages=15)
    ).hardware
    assert not hardware.fits
    assert hardware.resources.error == (
        f"out of resource: shared memory, Required: {hardware.resources.shared}, Hardware limit: "
        "232448. Reducing block sizes or `num_stages` may help."
    )
    assert hardware.resources.programs == 0


def test_without_its_source_a_launch_is_modelled_from_its_accesses():
    """As a message has it; for what is contiguous and aligned it comes to the same."""
    seen = []

    class Blind:
        def launch(self, launch):
            seen.append(launch)
            launch.source = None
            return mini_triton.LocalDevice().launch(launch)

    x, y = normal(8192), torch.empty(8192)
    exact = modelled(lambda: scale_kernel[(8,)](x, y, 8192, BLOCK=1024)).hardware
    before = mini_triton.set_device(Blind())
    try:
        hardware = modelled(lambda: scale_kernel[(8,)](x, y, 8192, BLOCK=1024)).hardware
    finally:
        mini_triton.set_device(before)
    assert not hardware.resources.compiled
    assert not any(access.exact for access in hardware.accesses)
    for mine, theirs in zip(hardware.accesses, exact.accesses, strict=True):
        assert replace(mine, exact=theirs.exact) == theirs
    assert hardware.dram_read_bytes == exact.dram_read_bytes
    assert len(seen) == 1


def test_counts_do_not_depend_on_how_programs_are_chunked():
    """One program at a time, as a launch whose programs wait for each other runs."""
    x, y = normal(3000), torch.empty(3000)

    def run(chunk_elements):
        launches = []

        class Chunked:
            def launch(self, launch):
                model = Model(launch, GPUS["H200"])
                Machine(launch, chunk_elements, observers=model.observers).run()
                launches.append(model.record())
                return mini_triton.LaunchRecord(launch.kernel, launch.grid)

        before = mini_triton.set_device(Chunked())
        try:
            scale_kernel[(12,)](x, y, 3000, BLOCK=256)
        finally:
            mini_triton.set_device(before)
        return launches

    assert run(1 << 19) == run(1)


def test_records_are_plain_data():
    x, y = normal(1000), torch.empty(1000)
    record = modelled(lambda: scale_kernel[(1,)](x, y, 1000, BLOCK=1024))
    data = json.loads(json.dumps(record.to_dict()))
    again = mini_triton.LaunchRecord.from_dict(data)
    assert again == record
    assert isinstance(again.hardware, HardwareRecord)


def test_nothing_is_modelled_unless_asked_for():
    x, y = normal(64), torch.empty(64)
    with mini_triton.profile() as p:
        scale_kernel[(1,)](x, y, 64, BLOCK=64)
        with mini_triton.profile(hardware="sm_90"):
            scale_kernel[(1,)](x, y, 64, BLOCK=64)
        scale_kernel[(1,)](x, y, 64, BLOCK=64)
    assert [launch.hardware and launch.hardware.gpu for launch in p.launches] == [
        None,
        "H100",
        None,
    ]


def test_views_of_one_tensor_share_their_sectors():
    """x[4:] and y lie in one storage: what both touch is read once."""
    memory = normal(4096)
    x, y = memory[:2048], memory[1024:3072]

    @triton.jit
    def add(x_ptr, y_ptr, z_ptr, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(z_ptr + i, tl.load(x_ptr + i) + tl.load(y_ptr + i))

    record = modelled(lambda: add[(1,)](x, y, torch.empty(2048), BLOCK=2048))
    assert record.hardware.dram_read_bytes == 3072 * 4
    assert record.hardware.unique_loaded_bytes == 2 * 2048 * 4


def test_a_gpu_that_is_not_known_is_refused():
    with pytest.raises(ValueError, match=r"hardware='V100' is no GPU .* sm_90.* H100"):
        mini_triton.profile(hardware="V100").__enter__()
