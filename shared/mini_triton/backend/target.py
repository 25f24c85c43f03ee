"""Which GPU the simulator passes for.

Triton chooses a backend by its target's name, so that of the simulator is its own. What is asked
*within* a kernel is another matter: a kernel should take the way here that it would take on the GPU
whose language the simulator speaks. So `is_cuda()` and `cuda_capability_geq(9)` of
`tl.target_info` are true.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from triton.backends.compiler import GPUTarget

#: Which backend; the numbers are those of `SM90`.
TARGET = GPUTarget("mini_triton", 90, 32)
#: The GPU whose language the simulator speaks.
SM90 = GPUTarget("cuda", 90, 32)


@functools.cache
def kernels_see_sm90() -> None:
    """Lets questions from within kernels be answered for sm_90 where the simulator is active."""
    import triton.language as tl

    info = getattr(tl, "target_info", None)
    if info is not None:
        asked: Callable[[], GPUTarget | None] = info.current_target

        def current_target() -> GPUTarget | None:
            target = asked()
            return SM90 if target == TARGET else target

        current_target.__triton_builtin__ = True  # type: ignore[attr-defined]
        info.current_target = current_target
