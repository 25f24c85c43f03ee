"""Exact comparison, and launches on the simulator or on a GPU.

`BYTEWISE_TEST_DEVICE=cuda` runs the tests that launch through `run` on a real GPU, where the same
expectations must hold (execute/ test_integer, test_floating, test_cast, test_reduce, test_dot,
test_shape, test_control, test_scan, test_histogram, test_map_elementwise, test_libdevice,
test_directed, test_scaled_dot, test_inline_asm; test_standard_library): that is how the oracles are
themselves tested. Last done on an H200 with Triton 3.6, all alike.
"""

import inspect
import os

import numpy as np
import pytest
import torch
import triton

DEVICE = os.environ.get("BYTEWISE_TEST_DEVICE", "cpu")


def simulator_only(reason):
    """Marks a test that says nothing of a GPU, and why."""
    return pytest.mark.skipif(DEVICE != "cpu", reason=reason)


TRITON = tuple(int(part) for part in triton.__version__.split(".")[:2])


def from_triton(first, reason):
    """Marks a test of what earlier versions of Triton have not, and says what that is."""
    return pytest.mark.skipif(first > TRITON, reason=f"Triton {triton.__version__}: {reason}")


def until_triton(last, reason):
    """Marks a test of what later versions of Triton have not, and says what that is."""
    return pytest.mark.skipif(last < TRITON, reason=f"Triton {triton.__version__}: {reason}")


def run(kernel, *args, grid=(1,), **constants):
    """Launches with tensors moved to the device under test and what was written moved back."""
    moved = [a.to(DEVICE) if isinstance(a, torch.Tensor) else a for a in args]
    kernel[grid](*moved, **constants)
    if DEVICE != "cpu":
        for mine, theirs in zip(args, moved, strict=True):
            if isinstance(mine, torch.Tensor):
                mine.copy_(theirs)


def assert_same(actual, expected, name="result"):
    """Same dtype, shape and value everywhere; NaN equals NaN, and −0 equals 0."""
    actual, expected = (
        torch.from_numpy(t) if isinstance(t, np.ndarray) else t for t in (actual, expected)
    )
    assert actual.dtype == expected.dtype, f"{name}: {actual.dtype}, expected {expected.dtype}"
    assert actual.shape == expected.shape, f"{name}: {actual.shape}, expected {expected.shape}"
    if actual.dtype.is_floating_point and actual.dtype.itemsize == 1:
        actual, expected = actual.float(), expected.float()
    same = actual == expected
    if actual.dtype.is_floating_point:
        same |= torch.isnan(actual) & torch.isnan(expected)
    if not same.all():
        first = tuple((~same).nonzero()[0].tolist())
        raise AssertionError(
            f"{name}: {int((~same).sum())} of {same.numel()} differ, first at {first}: "
            f"{actual[first].item()!r}, expected {expected[first].item()!r}"
        )


def normal(*shape, seed=0, dtype=torch.float32):
    """Standard normal values from a seed."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def integers(*shape, low, high, seed=0, dtype=torch.int32):
    """Integers in [low, high) from a seed."""
    make = torch.Generator().manual_seed(seed)
    return torch.randint(low, high, shape, generator=make, dtype=torch.int64).to(dtype)


def line_of(kernel, text):
    """file:line of the only source line of a jit function that holds `text`."""
    source, first = inspect.getsourcelines(kernel.fn)
    (offset,) = (n for n, line in enumerate(source) if text in line)
    return f"{inspect.getsourcefile(kernel.fn)}:{first + offset}"


def shown_place(kernel, text):
    """As `line_of`, as an error shows the line of a kernel."""
    return f"  --> {line_of(kernel, text).rpartition('/')[2]}, kernel {kernel.__name__}\n"
