"""`make bench`: the simulator against Triton's interpreter and against torch, paired.

Each round gives interpreter, simulator and torch half a second each, one after the other, so that a
slow minute of the machine hits all three; ratios are medians of the rounds' ratios. Compiling is
not in the times (one run first warms up); counting is.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

HERE = Path(__file__).parent
ROUNDS = 5


class Side:
    """A process that times cases, with Triton's interpreter or the simulator."""

    def __init__(self, interpreted: bool) -> None:
        env = os.environ | {"PYTHONPATH": str(HERE)}
        env.pop("TRITON_INTERPRET", None)
        if interpreted:
            env["TRITON_INTERPRET"] = "1"
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "time_one.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=env,
        )

    def time(self, name: str, side: str = "triton") -> float:
        """Seconds of one run."""
        assert self._process.stdin is not None and self._process.stdout is not None
        print(json.dumps([name, side]), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit(f"the timing process ended while running {name!r}")
        return float(json.loads(answer))


def main() -> None:
    """Prints the table."""
    from cases import cases

    interpreter, simulator = Side(interpreted=True), Side(interpreted=False)
    table = Table(title=f"median of {ROUNDS} paired rounds, counting on", title_justify="left")
    table.add_column("kernel")
    for heading in ("interpreter ms", "simulator ms", "torch ms", "interpreter ÷ simulator"):
        table.add_column(heading, justify="right")
    table.add_column("simulator ÷ torch", justify="right")
    speedups, slowdowns = [], []
    progress = Console(stderr=True)
    for name in track(cases(), "timing", console=progress, disable=not progress.is_terminal):
        for side in (simulator, interpreter):
            side.time(name)  # warm up: compile, caches
        simulator.time(name, "torch")
        rounds = [
            (interpreter.time(name), simulator.time(name), simulator.time(name, "torch"))
            for _ in range(ROUNDS)
        ]
        slow, fast, plain = (statistics.median(column) for column in zip(*rounds, strict=True))
        speedups.append(statistics.median(i / s for i, s, _ in rounds))
        slowdowns.append(statistics.median(s / t for _, s, t in rounds))
        table.add_row(
            name,
            *(f"{t * 1e3:,.1f}" for t in (slow, fast, plain)),
            f"{speedups[-1]:.0f}×",
            f"{slowdowns[-1]:.1f}×",
        )
    table.add_section()
    table.add_row(
        "geometric mean",
        "",
        "",
        "",
        f"{statistics.geometric_mean(speedups):.0f}×",
        f"{statistics.geometric_mean(slowdowns):.1f}×",
    )
    console = Console()
    (console if console.is_terminal else Console(width=120)).print(table)


if __name__ == "__main__":
    main()
