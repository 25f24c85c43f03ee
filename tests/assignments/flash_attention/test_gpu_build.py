"""The solution's kernels, built for a GPU by Triton's own compiler, which needs none to be there.

What they do on one has to be run on one (tests/benchmarks/on_gpu_flash.py); that they compile, fit
into a multiprocessor's shared memory, and keep what they compute in registers can be known here.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from tests.assignments.loading import load

HOUSE = Path(__file__).resolve().parents[3]
HOPPER = GPUTarget("cuda", 90, 32)
SHARED_MEMORY = 232_448  # bytes that a program can have on it
CUOBJDUMP = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
FLOAT32 = ("lse_ptr", "delta_ptr", "m_ptr", "l_ptr", "acc_ptr")


flash = load(HOUSE / "solutions/flash_attention/flash_triton.py")
KERNELS = {
    "forward": (flash.attention_fwd_kernel, flash.FORWARD_BLOCKS),
    "dk, dv": (flash.attention_dkdv_kernel, flash.DKDV_BLOCKS),
    "dq": (flash.attention_dq_kernel, flash.DQ_BLOCKS),
}


def build(kernel, element: str, constants: dict, warps: int, stages: int):
    """A kernel compiled for tensors of `element` ("bf16", "fp32"), aligned as torch aligns them."""
    signature = {}
    for name in kernel.arg_names:
        if name.endswith("_ptr"):
            signature[name] = "*fp32" if name in FLOAT32 else f"*{element}"
        else:
            signature[name] = "constexpr" if name in constants else "i32"
    if "scale" in signature:
        signature["scale"] = "fp32"
    aligned = {
        (place,): [["tt.divisibility", 16]]
        for place, name in enumerate(kernel.arg_names)
        if name.endswith(("_ptr", "_b", "_h", "_n")) or name in ("Nq", "Nk")
    }
    source = ASTSource(kernel, signature, constants, aligned)
    options = {"num_warps": warps, "num_stages": stages}
    return triton.compile(source, target=HOPPER, options=options)


def spilled(built, folder: Path) -> int:
    """Bytes of memory that a thread keeps for want of registers."""
    cubin = folder / "kernel.cubin"
    cubin.write_bytes(built.asm["cubin"])
    usage = subprocess.run(
        [CUOBJDUMP, "--dump-resource-usage", cubin], capture_output=True, text=True, check=True
    ).stdout
    found = re.search(r"\bREG:\d+ STACK:(\d+) .*\bLOCAL:0\b", usage)
    assert found, usage
    return int(found[1])


def cases():
    """Every choice that a GPU is offered."""
    for name, (_, blocks) in KERNELS.items():
        for width, candidates in blocks.items():
            for candidate in candidates:
                yield name, "bf16", width, True, candidate
            yield name, "bf16", width, False, candidates[0]
        for width, candidates in flash.FLOAT32_BLOCKS.items():
            yield name, "fp32", width, False, candidates[0]


# An H200 is faster with these than with any that fit (forward, no mask: by 5 %). What lies in
# memory is, but for a word, set before a loop and only read in it.
SPILLED = {
    ("forward", 128, (128, 64, 4, 2)): 56,
    ("dk, dv", 128, (64, 64, 4, 2)): 8,
}


@pytest.mark.parametrize(("name", "element", "width", "tma", "blocks"), [*cases()], ids=str)
def test_registers_and_shared_memory_suffice(tmp_path, name, element, width, tma, blocks):
    """Under a causal mask, which takes the most."""
    Br, Bc, warps, stages = blocks
    constants = {"d": width, "BLOCK_D": width, "GROUP": 1, "CAUSAL": True}
    constants |= {"TMA": tma, "Br": Br, "Bc": Bc}
    built = build(KERNELS[name][0], element, constants, warps, stages)
    assert built.metadata.shared <= SHARED_MEMORY
    assert spilled(built, tmp_path) <= SPILLED.get((name, width, blocks), 0)


@pytest.mark.parametrize("d", [64, 128])
def test_small_kernels(tmp_path, d):
    constants = {"d": d, "BLOCK_D": d, "Br": flash.DEFAULT_BLOCK}
    delta = build(flash.attention_delta_kernel, "bf16", constants, 4, 3)
    constants = {"d": d, "BLOCK_D": d, "GROUP": 4, "ROWS": 16, "Bc": flash.DEFAULT_BLOCK}
    split = build(flash.attention_split_kernel, "bf16", constants, 4, 2)
    merge = build(flash.attention_merge_kernel, "bf16", {"d": d, "BLOCK_D": d}, 4, 3)
    for built in (delta, split, merge):
        assert spilled(built, tmp_path) == 0
