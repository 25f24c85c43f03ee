"""Two copies of a kernel in two folders share Triton's compile cache, but not their paths."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path

import mini_triton
import torch

KERNEL = """
import triton
import triton.language as tl


@triton.jit
def own_helper(x):
    return x + 1


@triton.jit
def kernel(x_ptr, BLOCK: tl.constexpr):
    lane = tl.arange(0, BLOCK)
    tl.store(x_ptr + lane, own_helper(tl.load(x_ptr + lane)))
"""


def loaded_from(folder: Path) -> set[str]:
    """The files that a launch of the copy in `folder` is said to have moved bytes in."""
    folder.mkdir()
    path = folder / "copied_kernel.py"
    path.write_text(KERNEL)
    spec = importlib.util.spec_from_file_location("copied_kernel", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["copied_kernel"] = module
    spec.loader.exec_module(module)
    with mini_triton.profile() as p:
        module.kernel[(1,)](torch.zeros(16), BLOCK=16)
    return {file for file, _ in p.lines}


def test_bytes_are_those_of_the_file_that_ran(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    assert loaded_from(first) == {str(first / "copied_kernel.py")}
    shutil.rmtree(first)
    assert loaded_from(second) == {str(second / "copied_kernel.py")}
