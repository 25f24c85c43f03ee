"""A launch that never ends can be interrupted, on one thread and on two, and says where it was."""

import signal
import subprocess
import sys

import pytest

SCRIPT = """
import torch
import triton
import triton.language as tl

@triton.jit
def endless_kernel(x, y, n, least, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    i = 0
    while i >= least:
        total += tl.load(x + offsets, mask=offsets < n, other=0.0)
        i = tl.where(i > 5, 0, i + 1)
    tl.store(y + offsets, total, mask=offsets < n)

x = torch.ones(1 << 20)
y = torch.empty_like(x)
endless_kernel[(1024,)](x, y, 1 << 20, 3, BLOCK=1024)  # compiles, and ends
print("begins", flush=True)
endless_kernel[(1024,)](x, y, 1 << 20, -3, BLOCK=1024)
"""


@pytest.mark.parametrize("threads", ["1", "2"])
def test_an_endless_loop_is_interrupted(tmp_path, monkeypatch, threads):
    monkeypatch.setenv("MINI_TRITON_THREADS", threads)
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    process = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "begins\n"
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(3)
        process.send_signal(signal.SIGINT)
        errors = process.communicate(timeout=60)[1]
    finally:
        process.kill()
    assert "KeyboardInterrupt" in errors
    assert "here kernel endless_kernel, grid (1024, 1, 1), was interrupted" in errors
    assert f"{script}:1" in errors  # lines 12 to 14
