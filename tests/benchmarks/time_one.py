"""Times cases in one process, on demand: reads a case's name per line, answers with seconds.

`against_interpreter` starts it twice, with and without TRITON_INTERPRET=1, so that both sides of a
pair live through the same minutes of the machine.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable

import mini_triton
from cases import cases

#: Seconds of one side's turn in a round: one run of the interpreter, several of the others.
TURN = 0.5


def turn(run: Callable[[], object]) -> float:
    """The median of as many runs as fit into a turn, at least one."""
    times: list[float] = []
    while sum(times) < TURN:
        times.append(seconds(run))
    return statistics.median(times)


def seconds(run: Callable[[], object]) -> float:
    """One run, on the clock, with counting on."""
    start = time.perf_counter()
    with mini_triton.profile():
        run()
    return time.perf_counter() - start


def main() -> None:
    """Answers {"triton": s} or {"torch": s} requests until standard input ends."""
    known = cases()
    for line in sys.stdin:
        name, side = json.loads(line)
        run = known[name][0 if side == "triton" else 1]
        print(json.dumps(turn(run)), flush=True)


if __name__ == "__main__":
    main()
