"""The compiler: Triton's own front end and TTIR passes, and nothing after them.

Options, dialects, dot shape rules and module map are those of the NVIDIA backend for sm_90, so that
a kernel that compiles here compiles there. Counting happens *after* these passes: they fold equal
loads and drop dead ones, as they would for hardware.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

import triton
from triton._C.libtriton import ir, passes
from triton.backends.compiler import BaseBackend, GPUTarget

#: Part of the compile cache's key: raise it when the stages below change.
STAGES_VERSION = "2"
#: The GPU whose language the simulator speaks.
SM90 = GPUTarget("cuda", 90, 32)


def _smallest_dot(lhs: Any, rhs: Any) -> tuple[int, int, int]:
    """Smallest (M, N, K) of `tl.dot`, as on NVIDIA hardware."""
    return (1, 1, 32) if lhs.scalar.primitive_bitwidth == 8 else (1, 1, 16)


class MiniTritonBackend(BaseBackend):
    """Compiles a kernel to TTIR text, which is what the simulator executes."""

    binary_ext = "ttir"

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        """True for the simulator's own target."""
        return bool(target.backend == "mini_triton")

    @functools.lru_cache  # noqa: B019 - backends live as long as the process; Triton does the same
    def hash(self) -> str:
        """Identifies this compiler in Triton's compile cache."""
        return f"mini_triton-{STAGES_VERSION}-{triton.__version__}"

    def parse_options(self, options: dict[str, Any]) -> Any:
        """Those of the NVIDIA backend, its defaults and its errors; what only steers code
        generation has no effect on results or counts."""
        from triton.backends.nvidia.compiler import CUDABackend

        return CUDABackend(SM90).parse_options(options)

    def pack_metadata(self, metadata: Any) -> tuple[int, int, int]:
        """What the launcher gets besides arguments."""
        return metadata.num_warps, metadata.num_ctas, metadata.shared

    def get_codegen_implementation(self, options: Any) -> dict[str, Any]:
        """Casts of 8-bit floats and dot's shape rule, from the NVIDIA backend."""
        from triton.language.extra import cuda

        return {
            "convert_custom_types": cuda.convert_custom_float8_sm80,
            "min_dot_size": _smallest_dot,
        }

    def get_module_map(self) -> dict[str, ModuleType]:
        """`tl.extra.libdevice` is NVIDIA's, by name."""
        from triton.language.extra.cuda import libdevice

        return {"triton.language.extra.libdevice": libdevice}

    def load_dialects(self, context: Any) -> None:
        """Only Triton's own dialects are needed: nothing is lowered further."""

    def add_stages(self, stages: dict[str, Any], options: Any, language: Any = None) -> None:
        """One stage: TTIR after Triton's own passes, as text with source locations."""
        stages["ttir"] = lambda module, metadata: _ttir(module, metadata)


def _ttir(module: Any, metadata: dict[str, Any]) -> bytes:
    """Runs the passes of every Triton backend's `make_ttir` and prints the module."""
    manager = ir.pass_manager(module.context)
    manager.enable_debug()
    passes.common.add_inliner(manager)
    passes.ttir.add_rewrite_tensor_pointer(manager)
    passes.ttir.add_rewrite_tensor_descriptor_to_pointer(manager)
    passes.common.add_canonicalizer(manager)
    passes.ttir.add_combine(manager)
    passes.ttir.add_reorder_broadcast(manager)
    passes.common.add_cse(manager)
    passes.common.add_symbol_dce(manager)
    passes.ttir.add_loop_unroll(manager)
    manager.run(module, "make_ttir")
    metadata["name"] = module.get_entry_func_name()
    metadata["shared"] = 0
    return module.str().encode() if hasattr(module, "str") else str(module).encode()
