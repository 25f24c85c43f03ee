"""Prints, as JSON, the bytes that PyTorch's own compiler counts for three programs, fused.

A script, since it sets torch up for good: Inductor counts only where its metrics are logged, and
not for what it takes from a cache.
"""

import json
import sys
import warnings
from collections.abc import Callable

import torch
from torch._inductor import config, metrics
from torch.nn.functional import silu

config.force_disable_caches = True
# Only the count is wanted: no vector instructions are tried out, and no headers compiled for later.
config.cpp.vec_isa_ok = False
config.cpp_cache_precompile_headers = False
config.compile_threads = 1


def rms_norm(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """x · (mean x² + ε)^(−1/2) · w."""
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * w


def softmax(x: torch.Tensor) -> torch.Tensor:
    """Over the rows."""
    return torch.softmax(x, -1)


def swiglu(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """silu(gate) · up."""
    return silu(gate) * up


def counted(fn: Callable[..., torch.Tensor], *shapes: tuple[int, ...]) -> int:
    """Bytes that the kernels which Inductor makes of a program load and store, by its own count."""
    torch._dynamo.reset()
    metrics.reset()
    torch.compile(fn)(*(torch.ones(shape) for shape in shapes))
    return metrics.num_bytes_accessed


if __name__ == "__main__":
    rows, width = map(int, sys.argv[1:])
    x = (rows, width)
    torch._logging.set_logs(inductor_metrics=True)
    warnings.simplefilter("ignore")  # that caches are off
    found = {
        "rms_norm": counted(rms_norm, x, (width,)),
        "softmax": counted(softmax, x),
        "swiglu": counted(swiglu, x, x),
    }
    print(json.dumps(found))
