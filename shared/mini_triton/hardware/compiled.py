"""Triton's real compile for a GPU that is not there: what the kernel takes of an SM, or why not.

The launch's own source, signature, constants, attributes and options go through Triton's CUDA
backend and `ptxas`; the wheel's `cuobjdump` then tells registers and stack. It takes 0.2 to 1.4 s
for a new kernel and is kept in Triton's compile cache as any other.

Only for kernels of this process: a compiler is no sandbox, and a message carries no source.
"""

from __future__ import annotations

import contextlib
import functools
import io
import re
import subprocess
import tempfile
from dataclasses import dataclass
from typing import Any

from mini_triton.hardware.gpu import WARP, Gpu
from mini_triton.ir.relocate import relocated
from mini_triton.launch import Launch

_USAGE = re.compile(r"REG:(\d+) STACK:(\d+) .*?LOCAL:(\d+)")


@dataclass(frozen=True)
class Compiled:
    """One kernel, compiled for one GPU.

    Attributes:
        num_warps, num_stages: as the compiler took them.
        registers: of a thread; 0 if there is no program.
        spills: 32-bit words of a thread that went to memory for lack of registers.
        shared: bytes of shared memory of a program.
        error: why it cannot run there, in Triton's words; empty if it can.
        ttgir, ptx: the compiled program's text; empty if there is none.
    """

    num_warps: int
    num_stages: int
    registers: int = 0
    spills: int = 0
    shared: int = 0
    error: str = ""
    ttgir: str = ""
    ptx: str = ""


def compiled(launch: Launch, gpu: Gpu) -> Compiled | None:
    """The launch's kernel compiled for `gpu`; None if it came without its source."""
    if launch.source is None:
        return None
    options = tuple(sorted(launch.options.items()))
    return _compiled(_Keyed(launch.source, launch.source.hash()), options, gpu)


@dataclass(frozen=True)
class _Keyed:
    """A source, compared by what Triton knows it by."""

    source: Any
    key: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Keyed) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


@functools.lru_cache(maxsize=256)
def _compiled(keyed: _Keyed, options: tuple[tuple[str, Any], ...], gpu: Gpu) -> Compiled:
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    from triton.runtime.errors import OutOfResources

    source, given = keyed.source, dict(options)
    asked = Compiled(given.get("num_warps", 4), given.get("num_stages", 3))
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # a failing ptxas prints the whole program
            kernel = triton.compile(
                ASTSource(source.fn, source.signature, source.constants, source.attrs),
                target=GPUTarget("cuda", gpu.capability, WARP),
                options=given,
            )
    except Exception as error:  # whatever any stage of the compiler objects to is the answer
        return Compiled(asked.num_warps, asked.num_stages, error=str(error).strip())
    registers, spills = _usage(kernel.asm["cubin"])
    shared = int(kernel.metadata.shared or 0)
    too_much = ""
    if shared > gpu.most_shared_bytes:
        too_much = str(OutOfResources(shared, gpu.most_shared_bytes, "shared memory"))
    return Compiled(
        num_warps=int(kernel.metadata.num_warps),
        num_stages=asked.num_stages,
        registers=registers,
        spills=spills,
        shared=shared,
        error=too_much,
        ttgir=relocated(kernel.asm["ttgir"], source.fn),
        ptx=kernel.asm["ptx"],
    )


def _usage(cubin: bytes) -> tuple[int, int]:
    """(registers, spilled words) of a thread; Triton takes them from the driver, from this file."""
    from triton import knobs

    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        told = subprocess.run(
            [knobs.nvidia.cuobjdump.path, "--dump-resource-usage", file.name],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    usage = [tuple(map(int, match)) for match in _USAGE.findall(told)]
    registers, stack, local = max(usage, default=(0, 0, 0))
    return registers, max(stack, local) // 4
