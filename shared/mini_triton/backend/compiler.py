"""The compiler: Triton's own front end and TTIR passes, and nothing after them.

Options, dialects, dot shape rules and module map are those of the NVIDIA backend for sm_90, so that
a kernel that compiles here compiles there. Counting happens *after* these passes: they fold equal
loads and drop dead ones, as they would for hardware.
"""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import triton
from triton._C.libtriton import ir, passes
from triton.backends.compiler import BaseBackend, GPUTarget

#: Part of the compile cache's key: raise it when the stages below change.
STAGES_VERSION = "1"


@dataclass(frozen=True)
class Options:
    """Launch options that Triton's front end and users pass; all are accepted as on NVIDIA's
    backend, those that only steer code generation have no effect on results or counts."""

    num_warps: int = 4
    num_ctas: int = 1
    num_stages: int = 3
    warp_size: int = 32
    maxnreg: int | None = None
    enable_fp_fusion: bool = True
    launch_cooperative_grid: bool = False
    launch_pdl: bool = False
    supported_fp8_dtypes: tuple[str, ...] = ("fp8e4b15", "fp8e4nv", "fp8e5")
    deprecated_fp8_dot_operand_dtypes: tuple[str, ...] = ("fp8e4b15",)
    default_dot_input_precision: str = "tf32"
    allowed_dot_input_precisions: tuple[str, ...] = ("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6")
    max_num_imprecise_acc_default: int = 0
    extern_libs: tuple[tuple[str, str], ...] = ()
    debug: bool = False
    backend_name: str = "cuda"
    sanitize_overflow: bool = True
    arch: str = "sm90"
    instrumentation_mode: str = ""

    def __post_init__(self) -> None:
        if self.num_warps <= 0 or self.num_warps & (self.num_warps - 1):
            raise ValueError(f"num_warps must be a power of 2, not {self.num_warps}")

    def hash(self) -> str:
        """Identifies these options in Triton's compile cache."""
        text = repr(sorted(vars(self).items()))
        return hashlib.sha256(text.encode()).hexdigest()


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

    def parse_options(self, options: dict[str, Any]) -> Options:
        """Keeps the options that the front end knows; extern libraries, NVIDIA bitcode, go."""
        known = Options.__dataclass_fields__.keys() - {"extern_libs"}
        return Options(**{key: options[key] for key in known if options.get(key) is not None})

    def pack_metadata(self, metadata: Any) -> tuple[int, int, int]:
        """What the launcher gets besides arguments."""
        return metadata.num_warps, metadata.num_ctas, metadata.shared

    def get_codegen_implementation(self, options: Options) -> dict[str, Any]:
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

    def add_stages(self, stages: dict[str, Any], options: Options, language: Any = None) -> None:
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
