"""What differs between the versions of Triton that the simulator runs on, 3.6 to 3.9."""

from __future__ import annotations

import importlib
import os
from typing import Any

import triton


def stand_alone_if_asked_for() -> None:
    """Makes `TRITON_DEFAULT_BACKEND=mini_triton` choose the simulator on Triton 3.6, too.

    3.6 does not read that variable: with a GPU beside the simulator it finds two active drivers and
    refuses both. There the other backends are told that they are not active.
    """
    if os.environ.get("TRITON_DEFAULT_BACKEND") != "mini_triton":
        return
    if not triton.__version__.startswith("3.6."):
        return
    for name, driver in (("nvidia", "CudaDriver"), ("amd", "HIPDriver")):
        try:
            module = importlib.import_module(f"triton.backends.{name}.driver")
        except ImportError:  # a build of Triton without it
            continue
        getattr(module, driver).is_active = staticmethod(lambda: False)


def rewrite_block_pointers(manager: Any) -> None:
    """`tl.make_block_ptr` becomes pointers; from 3.9 on there is none, nor a pass for it."""
    from triton._C.libtriton import passes

    add = getattr(passes.ttir, "add_rewrite_tensor_pointer", None)
    if add is not None:
        add(manager)


def place_of(function: Any) -> tuple[str, int]:
    """(file, line of its `def`) of a `JITFunction`; what counts that is private from 3.9 on."""
    line: int = function.starting_line_number
    for above, text in enumerate(function.raw_src):
        if text.strip().startswith("def "):
            return function.fn.__code__.co_filename, line + above
    return function.fn.__code__.co_filename, line
