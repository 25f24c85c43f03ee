"""Bytes of fused kernels, against what PyTorch's own compiler counts for the same programs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from graph_ir import trace
from graph_ir.kernels import total_bytes
from graph_ir.trace import rms_norm, silu, softmax

from tests.graph_ir.solution import lab

ROWS, WIDTH = 24, 40
SCRIPT = Path(__file__).with_name("inductor_bytes.py")
PROGRAMS = {
    "rms_norm": (lambda p, x: rms_norm(x, p["w"], 1e-5), ("x",)),
    "softmax": (lambda p, x: softmax(x), ("x",)),
    "swiglu": (lambda p, gate, up: silu(gate) * up, ("gate", "up")),
}


@pytest.fixture(scope="module")
def inductor(tmp_path_factory) -> dict[str, int]:
    if not (shutil.which("g++") or shutil.which("clang++")):
        pytest.skip("Inductor needs a C++ compiler")
    home = str(tmp_path_factory.mktemp("inductor"))
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(ROWS), str(WIDTH)],
        capture_output=True,
        text=True,
        env={**os.environ, "TORCHINDUCTOR_CACHE_DIR": home},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", PROGRAMS)
def test_fused_kernels_move_the_bytes_that_inductor_counts(name: str, inductor) -> None:
    fn, inputs = PROGRAMS[name]
    shapes = dict.fromkeys(inputs, (ROWS, WIDTH))
    graph = trace(fn, shapes, {"w": np.ones(WIDTH)}, dtype="f32")
    kernels = lab.fuse(lab.decompose(graph))
    assert len(kernels) == 1
    assert total_bytes(kernels) == inductor[name]


def test_unfused_kernels_move_more(inductor) -> None:
    for name, (fn, inputs) in PROGRAMS.items():
        graph = trace(fn, dict.fromkeys(inputs, (ROWS, WIDTH)), {"w": np.ones(WIDTH)}, dtype="f32")
        assert total_bytes(lab.fuse(lab.decompose(graph), enable=False)) > 2 * inductor[name]
