"""What more threads gain: launches of growing size, with one thread and with more, paired.

    python tests/benchmarks/threads.py [--threads 2]

`_WORTH_A_THREAD` in `mini_triton/execute/machine.py` was chosen by its table, all thresholds set to
1 for that: from where on a launch is faster with more.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from cases import flash_attention, layer_norm, matmul, softmax, vector_add
from mini_triton import settings
from mini_triton.execute import machine
from rich.console import Console
from rich.progress import track
from rich.table import Table


def launches(elements: int) -> dict[str, Callable[[], object]]:
    """By name: launches on tensors of about so many elements."""
    x, weight = torch.randn(elements // 1024, 1024), torch.randn(1024)
    long_x, long_y = torch.randn(2, elements)
    side = int((elements / 4) ** 0.5) // 64 * 64
    a, b = torch.randn(2, side, side)
    q, k, v = torch.randn(3, elements >> 15, 512, 64)
    return {
        "vector add": lambda: vector_add.add(long_x, long_y),
        "softmax": lambda: softmax.softmax(x),
        "layer norm": lambda: layer_norm.layer_norm(x, weight, weight),
        f"matmul {side}³": lambda: matmul.matmul(a, b),
        f"flash forward {len(q)}×512×64": lambda: flash_attention.flash_forward(q, k, v),
        f"  the same, causal, {len(q)} heads": lambda: flash_attention.flash_forward(
            q, k, v, causal=True
        ),
    }


def seconds(run: Callable[[], object], threads: int) -> float:
    """One launch, on the clock."""
    with settings.use(threads=threads):
        start = time.perf_counter()
        run()
        return time.perf_counter() - start


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--as-set", action="store_true", help="with the thresholds in force")
    options = parser.parse_args()
    if not options.as_set:
        machine._WORTH_A_THREAD = machine._WORTH_A_THREAD_STRAIGHT = 1
    torch.set_num_threads(1)
    table = Table(title=f"medians of {options.rounds} paired rounds", title_justify="left")
    for heading in ("elements", "launch", "1 thread, ms", f"{options.threads} threads, ms", "gain"):
        table.add_column(heading, justify="left" if heading == "launch" else "right")
    progress = Console(stderr=True)
    for power in track(range(20, 24), console=progress, disable=not progress.is_terminal):
        for name, run in launches(1 << power).items():
            for threads in (1, options.threads):
                seconds(run, threads)  # compiles
            times = [
                (seconds(run, 1), seconds(run, options.threads)) for _ in range(options.rounds)
            ]
            one, more = (statistics.median(side) * 1e3 for side in zip(*times, strict=True))
            gain = statistics.median(o / m for o, m in times)
            table.add_row(f"2^{power}", name, f"{one:.1f}", f"{more:.1f}", f"{gain:.2f}×")
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
