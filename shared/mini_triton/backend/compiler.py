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
from triton import knobs
from triton._C.libtriton import ir, passes
from triton.backends.compiler import BaseBackend, GPUTarget

from mini_triton.backend import versions
from mini_triton.backend.target import SM90, kernels_see_sm90

#: Part of the compile cache's key: raise it when the stages below change.
STAGES_VERSION = "4"

#: Bytes of shared memory that sm_90 keeps for itself of every block; how much a kernel takes beside
#: is only known after code generation. Not 0, since programs divide by it for an occupancy.
_SHARED = 1024
_AMDS_OPTIONS = {"waves_per_eu", "matrix_instr_nonkdim", "kpack", "allow_flush_denorm"}


class MiniTritonBackend(BaseBackend):
    """Compiles a kernel to TTIR text, which is what the simulator executes."""

    #: `asm["ttir"]` is text, as of every backend; the "binary" is the same text as bytes.
    binary_ext = "simulated"

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
        generation has no effect on results or counts.

        Options of AMD's backend are taken as well: programs that ask whether the GPU is NVIDIA's
        give those if it is not, as Triton's own tutorials do.
        """
        # Said outright, since 3.9 warns of a change to come otherwise.
        fusion = {"enable_fp_fusion": knobs.language.default_fp_fusion}
        parsed = _nvidia().parse_options(fusion | options)
        for name in options.keys() & _AMDS_OPTIONS - vars(parsed).keys():
            object.__setattr__(parsed, name, options[name])  # frozen, and not shared yet
        return parsed

    def pack_metadata(self, metadata: Any) -> tuple[int, int, int]:
        """What the launcher gets besides arguments."""
        return metadata.num_warps, metadata.num_ctas, metadata.shared

    def get_codegen_implementation(self, options: Any) -> dict[str, Any]:
        """Casts of 8-bit floats and dot's shape rule: the NVIDIA backend's."""
        kernels_see_sm90()
        return dict(_nvidia().get_codegen_implementation(options))

    def get_module_map(self) -> dict[str, ModuleType]:
        """`tl.extra.libdevice` is NVIDIA's, by name."""
        return dict(_nvidia().get_module_map())

    def load_dialects(self, context: Any) -> None:
        """Only Triton's own dialects are needed: nothing is lowered further."""

    def add_stages(self, stages: dict[str, Any], options: Any, language: Any = None) -> None:
        """TTIR after Triton's own passes, and its text with source locations."""
        stages["ttir"] = lambda module, metadata: _ttir(module)
        stages[self.binary_ext] = _text


@functools.cache
def _nvidia() -> Any:
    """NVIDIA's backend for the GPU whose language the simulator speaks."""
    from triton.backends.nvidia.compiler import CUDABackend  # Triton imports it while it imports us

    return CUDABackend(SM90)


def _ttir(module: Any) -> Any:
    """Runs the passes of every Triton backend's `make_ttir`."""
    manager = ir.pass_manager(module.context)
    manager.enable_debug()
    passes.common.add_inliner(manager)
    versions.rewrite_block_pointers(manager)
    passes.ttir.add_rewrite_tensor_descriptor_to_pointer(manager)
    passes.common.add_canonicalizer(manager)
    passes.ttir.add_combine(manager)
    passes.ttir.add_reorder_broadcast(manager)
    passes.common.add_cse(manager)
    passes.common.add_symbol_dce(manager)
    passes.ttir.add_loop_unroll(manager)
    manager.run(module, "make_ttir")
    return module


def _text(module: Any, metadata: dict[str, Any]) -> bytes:
    """The module as text, with locations."""
    metadata["name"] = module.get_entry_func_name()
    metadata["shared"] = _SHARED
    text: str = module.str() if hasattr(module, "str") else str(module)
    return text.encode()
