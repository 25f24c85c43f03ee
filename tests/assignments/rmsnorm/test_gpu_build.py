"""The solution's kernels, built for a GPU by Triton's own compiler, which needs none to be there.

What they do on one has to be run on one; that they compile, and that a row's worth of registers
suffices, can be known here.
"""

import re
import subprocess
from pathlib import Path

import pytest
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

HOPPER = GPUTarget("cuda", 90, 32)
CUOBJDUMP = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
FLOAT32 = ("r_ptr", "dg_ptr")


def build(kernel, N: int, element: str, warps: int) -> bytes:
    """A kernel as a cubin for tensors of `element` ("bf16", "fp32")."""
    block = triton.next_power_of_2(N)
    signature = {}
    for name in kernel.arg_names:
        if name.endswith("_ptr"):
            signature[name] = "*fp32" if name in FLOAT32 else f"*{element}"
        else:
            signature[name] = {"BLOCK": "constexpr", "eps": "fp32"}.get(name, "i32")
    # What the launcher finds out by itself for aligned tensors and sizes divisible by 16.
    aligned = {
        (place,): [["tt.divisibility", 16]]
        for place, name in enumerate(kernel.arg_names)
        if name not in ("BLOCK", "eps")
    }
    source = ASTSource(kernel, signature, {"BLOCK": block}, aligned)
    return triton.compile(source, target=HOPPER, options={"num_warps": warps}).asm["cubin"]


@pytest.mark.parametrize("element", ["bf16", "fp32"])
@pytest.mark.parametrize("N", [1024, 8192])
@pytest.mark.parametrize(
    ("name", "rows"),
    [("rmsnorm_fwd_kernel", 2), ("rmsnorm_bwd_kernel", 3), ("rmsnorm_bwd_persistent_kernel", 4)],
)
def test_no_registers_spill(solution, tmp_path, name, rows, N, element):
    cubin = tmp_path / "kernel.cubin"
    cubin.write_bytes(build(getattr(solution, name), N, element, solution.warps_for(N, rows)))
    usage = subprocess.run(
        [CUOBJDUMP, "--dump-resource-usage", cubin], capture_output=True, text=True, check=True
    ).stdout
    assert re.search(r"\bREG:\d+ STACK:0 .*\bLOCAL:0\b", usage), usage
