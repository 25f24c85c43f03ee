"""Counts: exact per tensor and line, whatever the chunk size and the number of threads."""

import mini_triton
import pytest
import torch
import triton
import triton.language as tl
from mini_triton.execute.machine import Machine

from tests.mini_triton.comparing import assert_same, integers, line_of, normal
from tests.mini_triton.execute import test_control
from tests.mini_triton.execute.operations import test_reduce


class ChunkedDevice:
    """Executes launches in chunks of a given size."""

    def __init__(self, chunk_elements):
        self.chunk_elements = chunk_elements

    def launch(self, launch):
        machine = Machine(launch, self.chunk_elements)
        machine.run()
        record = mini_triton.LaunchRecord(launch.kernel, launch.grid)
        for (where, position, kind, size), elements in machine.counts.items():
            record.add(launch.arg_names[position], where, kind, elements, size)
        return record


@pytest.fixture
def chunked():
    """Sets the chunk size of the launches that follow."""
    previous = mini_triton.current_device()
    yield lambda elements: mini_triton.set_device(ChunkedDevice(elements))
    mini_triton.set_device(previous)


def traffic(launch):
    """{tensor: (loaded, stored)}."""
    return {name: (t.loaded, t.stored) for name, t in launch.tensors.items()}


def by_line(launch):
    """{file:line: (loaded, stored)}."""
    return {f"{file}:{line}": (t.loaded, t.stored) for (file, line), t in launch.lines.items()}


@triton.jit
def helper(x_ptr, i, mask):
    return tl.load(x_ptr + i, mask=mask, other=0.0)


@triton.jit
def counted_kernel(x_ptr, w_ptr, n_ptr, out_ptr, N: tl.constexpr, BLOCK: tl.constexpr):
    """Row pid of x has n[pid] elements, read in blocks; rows past the tenth are not read at all."""
    pid = tl.program_id(0)
    n = tl.load(n_ptr + pid)
    w = tl.load(w_ptr)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        total += helper(x_ptr + pid * N, i, i < n)
    if pid < 10:
        if n > 8:
            tl.store(out_ptr + pid, tl.sum(total) * w)
        else:
            tl.store(out_ptr + pid, tl.max(tl.load(x_ptr + tl.arange(0, 4))))


def launched(profile):
    (launch,) = profile.launches
    return launch


@pytest.mark.parametrize("elements", [1, 24, 64, 1 << 16])
def test_counts_of_divergent_programs(chunked, elements):
    chunked(elements)
    n = torch.tensor([0, 1, 8, 9, 16, 17, 5, 30, 8, 12, 3, 20], dtype=torch.int32)
    x, w, out = normal(12, 30), torch.ones(1), torch.zeros(12)
    with mini_triton.profile() as p:
        counted_kernel[(12,)](x, w, n, out, N=30, BLOCK=8)
    long = int((n[:10] > 8).sum())
    assert traffic(launched(p)) == {
        "n_ptr": (12, 0),
        "w_ptr": (12, 0),
        "x_ptr": (int(n.sum()) + 4 * (10 - long), 0),
        "out_ptr": (0, 10),
    }
    assert by_line(launched(p)) == {
        line_of(counted_kernel, "tl.load(n_ptr"): (12, 0),
        line_of(counted_kernel, "tl.load(w_ptr"): (12, 0),
        line_of(counted_kernel, "helper(x_ptr"): (int(n.sum()), 0),
        line_of(counted_kernel, "tl.sum(total)"): (0, long),
        line_of(counted_kernel, "tl.max(tl.load"): (4 * (10 - long), 10 - long),
    }
    assert (p.loaded_bytes, p.stored_bytes) == (4 * p.loaded, 4 * p.stored)


@triton.jit
def sizes_kernel(a_ptr, b_ptr, c_ptr, flags_ptr, out_ptr, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    a, b = tl.load(a_ptr + i), tl.load(b_ptr + i).to(tl.float64)
    flags = tl.load(flags_ptr + i)
    c = tl.load(c_ptr + tl.arange(0, N)[:, None] * 0 + tl.arange(0, N)[None, :])
    tl.store(out_ptr + i, a + b + tl.sum(c, axis=0), mask=flags)


def test_bytes_are_elements_times_their_size():
    """A broadcast load asks for every lane of its tile; a boolean is one byte."""
    flags = torch.tensor([True, False] * 8)
    args = normal(16).half(), normal(16).double(), normal(8), flags, torch.zeros(16).double()
    with mini_triton.profile() as p:
        sizes_kernel[(2,)](*args, N=8)
    tensors = launched(p).tensors
    assert {name: t.loaded_bytes for name, t in tensors.items() if t.loaded} == {
        "a_ptr": 16 * 2, "b_ptr": 16 * 8, "c_ptr": 2 * 64 * 4, "flags_ptr": 16,
    }  # fmt: skip
    assert (tensors["out_ptr"].stored, tensors["out_ptr"].stored_bytes) == (8, 64)


@triton.jit
def library_kernel(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    desc = tl.make_tensor_descriptor(out_ptr, [N], [1], [N])
    desc.store([0], tl.flip(x, 0))


def test_traffic_of_library_functions_belongs_to_the_callers_line():
    x, out = normal(8), torch.zeros(8)
    with mini_triton.profile() as p:
        library_kernel[(1,)](x, out, N=8)
    assert by_line(launched(p)) == {
        line_of(library_kernel, "x = tl.load"): (8, 0),
        line_of(library_kernel, "desc.store"): (0, 8),
    }
    assert_same(out, x.flip(0))


@triton.jit
def folded_kernel(x_ptr, out_ptr, N: tl.constexpr):
    """Triton's passes drop loads that nobody uses."""
    i = tl.arange(0, N)
    unused = tl.load(x_ptr + i)
    tl.store(out_ptr + i, tl.load(x_ptr + i) + 0 * tl.load(x_ptr + N + i))
    unused += 1


def test_loads_that_the_compiler_drops_are_not_counted():
    x, out = normal(16), torch.zeros(8)
    with mini_triton.profile() as p:
        folded_kernel[(1,)](x, out, N=8)
    assert traffic(launched(p)) == {"x_ptr": (16, 0), "out_ptr": (0, 8)}


@triton.jit
def aliases_kernel(a_ptr, b_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(b_ptr + i, tl.load(a_ptr + i) + 1)


def test_aliases_are_counted_by_the_argument_they_are_reached_through():
    x = normal(8)
    with mini_triton.profile() as p:
        aliases_kernel[(1,)](x, x, N=8)
    assert traffic(launched(p)) == {"a_ptr": (8, 0), "b_ptr": (0, 8)}


@triton.jit
def columns_kernel(x_ptr, out_ptr, M, N: tl.constexpr):
    """The sum of a column each: programs lie next to each other in memory, lanes do not."""
    pid = tl.program_id(0)
    x = tl.load(x_ptr + tl.arange(0, N) * M + pid)
    tl.store(out_ptr + pid, tl.sum(x * x))


@triton.jit
def functions_kernel(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, tl.exp2(x) + tl.exp(x) * tl.sin(x) - tl.rsqrt(x) * tl.log(x) * tl.erf(x))


def everything():
    """Results and counts of some very different kernels."""
    results = []
    with mini_triton.profile() as p:
        n = torch.tensor([0, 3, 5, 3, 1, 7, 7] * 3, dtype=torch.int32)
        out = torch.empty(21, dtype=torch.int32)
        test_control.nested_kernel[(21,)](n, n.flip(0), out)
        results.append(out)
        x, flags = normal(21, 8), integers(21, low=-1, high=3)
        out, other = torch.zeros(42, 8), torch.zeros(21, dtype=torch.int32)
        test_control.branches_kernel[(21,)](x, flags, out, other, N=8)
        results += [out, other]
        x, out = normal(30, 4, 64), torch.empty(3, 30, 4)
        test_reduce.custom_kernel[(30,)](x, out, M=4, N=64)
        results.append(out)
        for dtype in (torch.float32, torch.float16):
            x = normal(20, 4096, dtype=dtype)
            out = torch.empty(3, 20, dtype=dtype)
            test_reduce.float_kernel[(20,)](x, out, N=4096)
            results.append(out)
        x, out = normal(256, 37), torch.empty(37)
        columns_kernel[(37,)](x, out, 37, N=256)
        results.append(out)
        x, out = normal(77, 4).abs(), torch.empty(77, 4)
        functions_kernel[(77,)](x, out, N=4)
        results.append(out)
        x, out = normal(3, 1 << 17), torch.empty(3, 3)
        test_reduce.float_kernel[(3,)](x, out, N=1 << 17)
        results.append(out)
        x, rows, cols, total = normal(256, 512), *(torch.empty(k) for k in (256, 512, 1))
        test_reduce.rows_and_columns_kernel[(1,)](x, rows, cols, total, M=256, N=512)
        results += [rows, cols, total]
    return results, [(launch.tensors, launch.lines) for launch in p.launches]


def test_neither_results_nor_counts_depend_on_the_chunk_size(chunked):
    """Bit for bit, float sums too."""
    expected, counts = everything()
    for elements in (1, 100, 4096, 20_000, 1 << 24):
        chunked(elements)
        results, now = everything()
        assert now == counts
        for result, right in zip(results, expected, strict=True):
            assert_same(result, right, f"chunks of {elements}")


def test_neither_results_nor_counts_depend_on_threads():
    expected, counts = everything()
    threads = torch.get_num_threads()
    try:
        for number in (1, 2, 3):
            torch.set_num_threads(number)
            results, now = everything()
            assert now == counts
            for result, right in zip(results, expected, strict=True):
                assert_same(result, right, f"{number} threads")
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("grid", [(2**31,), (1, 65_536), (1, 1, 65_536)])
def test_a_grid_beyond_the_hardwares_is_refused(grid):
    with pytest.raises(mini_triton.BadLaunch, match=r"grid .* has \d+ programs along [xyz]"):
        aliases_kernel[grid](normal(8), normal(8), N=8)


def test_arguments_that_the_simulator_cannot_take():
    with pytest.raises(mini_triton.BadLaunch, match=r"tensor b_ptr is .*meta"):
        aliases_kernel[(1,)](normal(8), torch.empty(8, device="meta"), N=8)
    launch = mini_triton.Launch("k", "", (1, 1, 1), [], [])
    with pytest.raises(mini_triton.BadProgram, match="TTIR line 1"):
        mini_triton.LocalDevice().launch(launch)
