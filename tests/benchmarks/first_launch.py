"""What a launch costs beside its work: the first of a new kernel, and a small one.

A kernel's first launch is timed from the end of Triton's own front end (`make_ttir`) until it
returns: storing TTIR in the compile cache, reading it, preparing it, running it. Each kernel has a
process of its own, in which the vector addition was launched before. A later launch, of the same
few programs, is what is left when all of that is known; of it, Triton's own share is that of a
launch whose driver does nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

RUNS = 200


def small_cases() -> dict[str, Callable[[], object]]:
    """name → a launch (or what few it takes) of 1 to 8 programs."""
    import torch
    from cases import solution

    from tests.kernels import (
        cross_entropy,
        flash_attention,
        layer_norm_backward,
        matmul,
        persistent_matmul,
        softmax,
        vector_add,
    )

    rmsnorm = solution("rmsnorm", "rmsnorm")
    flash_triton = solution("flash_attention", "flash_triton")
    x, w = torch.randn(8, 64), torch.randn(64)
    a = torch.randn(64, 64)
    q = torch.randn(1, 2, 128, 64)
    o, lse = flash_triton.attention_forward(q, q, q)
    target = torch.arange(8)
    mean, rstd = layer_norm_backward.statistics(x)
    return {
        "vector add, 1 program": lambda: vector_add.add(w, w, block=64),
        "vector add, 4 programs": lambda: vector_add.add(x.view(-1), x.view(-1), block=128),
        "softmax 8×64": lambda: softmax.softmax(x),
        "RMSNorm forward 8×64": lambda: rmsnorm.rmsnorm_forward(x, w, 1e-5),
        "layer norm backward 8×64": lambda: layer_norm_backward.layer_norm_backward(
            x, w, mean, rstd, x
        ),
        "cross-entropy 8×64": lambda: cross_entropy.cross_entropy(x, target, block=64),
        "matmul 64³, tiles 32×32×16": lambda: matmul.matmul(a, a, (32, 32, 16)),
        "persistent matmul 64³": lambda: persistent_matmul.persistent_matmul(
            a, a, (32, 32, 16), programs=2
        ),
        "flash forward 2×128×64 causal": lambda: flash_attention.flash_forward(
            q[0], q[0], q[0], causal=True
        ),
        "flash backward 2×128×64 causal (3 kernels)": lambda: flash_triton.attention_backward(
            q, q, q, o, lse, q, causal=True
        ),
    }


def timed_in_this_process(name: str) -> dict[str, float]:
    """Seconds: of the first launch after the front end, of a later one, of Triton's own share."""
    import triton
    from mini_triton.backend import compiler, driver

    cases = small_cases()
    cases["vector add, 1 program"]()
    front_end = [0.0]
    stage = compiler._ttir

    def noted(*arguments: Any) -> bytes:
        text = stage(*arguments)
        front_end.append(time.perf_counter())
        return text

    compiler._ttir = noted
    launches: list[float] = []
    call = driver.Launcher.__call__

    def ended(*arguments: Any) -> None:
        call(*arguments)
        launches.append(time.perf_counter() - front_end[-1])

    driver.Launcher.__call__ = ended  # type: ignore[method-assign, assignment]
    run = cases[name]
    run()
    first = max(launches)
    driver.Launcher.__call__ = call  # type: ignore[method-assign]
    later = best(run)
    driver.Launcher.__call__ = lambda *arguments: None  # type: ignore[method-assign]
    assert triton.runtime.driver.active.launcher_cls is driver.Launcher
    return {"first": first, "later": later, "floor": best(run)}


def best(run: Callable[[], object]) -> float:
    """The median of the faster half of many runs: what is above it is the machine's noise."""
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(sorted(times)[: RUNS // 2])


def timed(name: str, threads: int) -> dict[str, float]:
    """`timed_in_this_process` in a new one, with an empty compile cache."""
    here = Path(__file__)
    paths = f"{here.parent}{os.pathsep}{here.parents[2]}"
    with tempfile.TemporaryDirectory() as cache:
        env = {"PYTHONPATH": paths, "TRITON_CACHE_DIR": cache, "MINI_TRITON_THREADS": str(threads)}
        ran = subprocess.run(
            [sys.executable, str(here), "--one", name],
            env=os.environ | env,
            stdout=subprocess.PIPE,
            check=True,
            text=True,
        )
    found: dict[str, float] = json.loads(ran.stdout)
    return found


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--one", help="time one case in this process; print it as JSON")
    parser.add_argument("--only", default="", help="cases whose name holds this text")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(timed_in_this_process(options.one)))
        return
    os.environ["MINI_TRITON_THREADS"] = str(options.threads)
    table = Table(title=f"launches of few programs, best of {options.rounds} processes")
    table.add_column("kernel", no_wrap=True)
    headings = ("first, beyond the front end, ms", "later µs", "of that Triton's own µs")
    for heading in headings:
        table.add_column(heading, justify="right")
    for name in [*small_cases()][1:]:
        if options.only in name:
            runs = [timed(name, options.threads) for _ in range(options.rounds)]
            first, later, floor = (min(r[key] for r in runs) for key in ("first", "later", "floor"))
            table.add_row(name, f"{first * 1e3:.1f}", f"{later * 1e6:,.0f}", f"{floor * 1e6:,.0f}")
    console = Console()
    (console if console.is_terminal else Console(width=120)).print(table)


if __name__ == "__main__":
    main()
