"""`make bench`: the simulator against Triton's interpreter and against torch, paired.

Each round gives interpreter, simulator and torch half a second each, one after the other, so that a
slow minute of the machine hits all three; ratios are medians of the rounds' ratios. Compiling is
not in the times (one run first warms up); counting is. Torch has as many threads as the simulator.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Result:
    """One case: medians over the rounds, in milliseconds, and of the rounds' ratios."""

    kernel: str
    interpreter_ms: float
    simulator_ms: float
    torch_ms: float
    speedup: float  # interpreter ÷ simulator
    slowdown: float  # simulator ÷ torch


class Side:
    """A process that times cases, with Triton's interpreter or the simulator."""

    def __init__(self, interpreted: bool, threads: int, cpu: bool) -> None:
        env = os.environ | {"PYTHONPATH": str(HERE), "MINI_TRITON_THREADS": str(threads)}
        env.pop("TRITON_INTERPRET", None)
        if interpreted:
            env["TRITON_INTERPRET"] = "1"
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "time_one.py"), str(threads), *(["cpu"] if cpu else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=env,
        )

    def time(self, name: str, turn: float, side: str = "triton") -> float:
        """Seconds of one run, the median of as many as take `turn` seconds."""
        assert self._process.stdin is not None and self._process.stdout is not None
        print(json.dumps([side, name, turn]), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit(f"the timing process ended while running {name!r}")
        return float(json.loads(answer))


def measured(
    name: str, interpreter: Side, simulator: Side, rounds: int, turn: float, warm: bool
) -> Result:
    """One case, timed in paired rounds; `warm`: the interpreter, too, runs once beforehand."""
    simulator.time(name, 0)  # compile, caches
    simulator.time(name, 0, "torch")
    if warm:
        interpreter.time(name, 0)
    times = [
        (
            interpreter.time(name, turn),
            simulator.time(name, turn),
            simulator.time(name, turn, "torch"),
        )
        for _ in range(rounds)
    ]
    slow, fast, plain = (statistics.median(column) * 1e3 for column in zip(*times, strict=True))
    speedup = statistics.median(i / s for i, s, _ in times)
    slowdown = statistics.median(s / t for _, s, t in times)
    return Result(name, slow, fast, plain, speedup, slowdown)


def table(results: list[Result], title: str) -> Table:
    """A row a case, then the geometric means of the ratios."""
    shown = Table(title=title, title_justify="left")
    shown.add_column("kernel", no_wrap=True)
    for heading in ("interpreter ms", "simulator ms", "torch ms", "interpreter ÷ simulator"):
        shown.add_column(heading, justify="right")
    shown.add_column("simulator ÷ torch", justify="right")
    for r in results:
        times = (f"{t:,.1f}" for t in (r.interpreter_ms, r.simulator_ms, r.torch_ms))
        shown.add_row(r.kernel, *times, f"{r.speedup:.0f}×", f"{r.slowdown:.1f}×")
    shown.add_section()
    speedup = statistics.geometric_mean(r.speedup for r in results)
    slowdown = statistics.geometric_mean(r.slowdown for r in results)
    shown.add_row("geometric mean", "", "", "", f"{speedup:.0f}×", f"{slowdown:.1f}×")
    return shown


def main() -> None:
    """Prints the table."""
    from cases import cases

    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="2 rounds of a tenth of a second")
    parser.add_argument("--only", default="", help="cases whose name holds this text")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument(
        "--cpu",
        action="store_true",
        help="CPU time of one thread, for a machine that others keep busy",
    )
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    options = parser.parse_args()
    rounds, turn = (2, 0.1) if options.quick else (5, 0.5)
    names = [name for name in cases() if options.only in name]
    if not names:
        raise SystemExit(f"no case has {options.only!r} in its name; there are {list(cases())}")

    threads = 1 if options.cpu else options.threads
    interpreter, simulator = (Side(side, threads, options.cpu) for side in (True, False))
    progress = Console(stderr=True)
    results = [
        measured(name, interpreter, simulator, rounds, turn, warm=not options.quick)
        for name in track(names, "timing", console=progress, disable=not progress.is_terminal)
    ]
    title = (
        f"median of {rounds} paired rounds, counting on; simulator and torch may use "
        f"{threads} {'thread, CPU time' if options.cpu else 'threads'}"
    )
    console = Console()
    (console if console.is_terminal else Console(width=140)).print(table(results, title))
    if options.json:
        options.json.write_text(json.dumps([asdict(r) for r in results], indent=1))


if __name__ == "__main__":
    main()
