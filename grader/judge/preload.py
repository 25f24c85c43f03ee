"""Imports what all processes of a grading run share, once, before any of them is forked."""

from __future__ import annotations

import gc
import importlib
import os
import tempfile
from unittest import mock

import mini_triton
import torch

from grader.judge import rank_worker, warmup

#: What submissions import of shared/, and the process of a rank: no worker has to read it again.
_SHARED = (
    *("comm_sim", "graph_ir", "hw_specs", "llm_math", "spmd", "transformer_lab"),
    rank_worker.__name__,
    "sympy",  # torch imports it at its first derivative of some operations: 45 MB in every rank
)


def preload() -> None:
    """Imports torch, Triton and the simulator, single-threaded, and compiles one kernel.

    The kernel makes Triton import what it imports late, so that no worker has to.
    """
    torch.set_num_threads(1)
    for name in _SHARED:
        importlib.import_module(name)
    with (
        tempfile.TemporaryDirectory() as cache,
        mock.patch.dict(os.environ, TRITON_CACHE_DIR=cache, TRITON_DEFAULT_BACKEND="mini_triton"),
    ):
        before = mini_triton.set_device(mini_triton.LocalDevice())
        try:
            warmup.run()
        finally:
            mini_triton.set_device(before)
    # Collecting garbage writes to every object there is, and so takes a copy of the memory that all
    # processes share. What is there by now is not garbage.
    gc.collect()
    gc.freeze()
