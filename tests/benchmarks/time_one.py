"""Times cases in one process, on demand: reads a request per line, answers with seconds.

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
import torch
from cases import cases

#: Seconds; of this process's work alone if other programs keep the machine busy.
clock = time.process_time if sys.argv[2:] == ["cpu"] else time.perf_counter


def turn(run: Callable[[], object], limit: float) -> float:
    """The median of as many runs as fit into `limit` seconds, at least one."""
    times = [seconds(run)]
    while sum(times) < limit:
        times.append(seconds(run))
    return statistics.median(times)


def seconds(run: Callable[[], object]) -> float:
    """One run, on the clock, with counting on."""
    start = clock()
    with mini_triton.profile():
        run()
    return clock() - start


def main() -> None:
    """Answers requests ["triton" | "torch", case's name, seconds of a turn] until input ends."""
    torch.set_num_threads(int(sys.argv[1]))
    known = cases()
    for line in sys.stdin:
        side, name, limit = json.loads(line)
        run = known[name][0 if side == "triton" else 1]
        print(json.dumps(turn(run, limit)), flush=True)


if __name__ == "__main__":
    main()
