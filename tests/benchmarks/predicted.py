"""What the hardware model predicts of Nsight Compute's counters, as JSON.

    python tests/benchmarks/predicted.py [--gpu H200] [--only NAME] > predicted.json

Runs the cases of `hardware_cases.py` on the simulator, a few seconds each, and prints by case the
counters of its kernel under their names at Nsight Compute, and the sectors of each source line.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("TRITON_DEFAULT_BACKEND", "mini_triton")

import mini_triton

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.benchmarks import hardware_cases


def counters(record: mini_triton.LaunchRecord) -> dict[str, int]:
    """Predictions by the names of Nsight Compute's metrics.

    Of the L2's sectors those from the SMs' L1 are predicted (`srcunit_tex`): the plain
    `lts__t_sectors_op_read` has those between the L2's two halves besides.
    """
    hardware = record.hardware
    assert hardware is not None
    return {
        "dram__bytes_read.sum": hardware.dram_read_bytes,
        "dram__bytes_write.sum": hardware.dram_written_bytes,
        # Asynchronous copies to shared memory (LDGSTS) are loads to this counter.
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": hardware.sectors("ld", "ldgsts"),
        "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": hardware.sectors("st"),
        "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": _requests(hardware, "ld", "ldgsts"),
        "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum": _requests(hardware, "st"),
        "lts__t_sectors_srcunit_tex_op_read.sum": hardware.l2_sectors("load"),
        "lts__t_sectors_srcunit_tex_op_write.sum": hardware.l2_sectors("store"),
    }


def _least(hardware: Any) -> int:
    """If as many requests of different SMs are merged before L2 as can be."""
    return sum(a.least_l2_sectors for a in hardware.accesses if a.kind == "load")


def _requests(hardware: Any, *instructions: str) -> int:
    return sum(a.requests for a in hardware.accesses if a.instruction in instructions)


def predict(case: hardware_cases.Case, gpu: str) -> dict[str, Any]:
    """Runs a case: counters, resources, lines, and how long the model took."""
    launch = case.prepare("cpu")
    began = time.perf_counter()
    with mini_triton.profile(host=False, hardware=gpu, check=()) as profile:
        launch()
    seconds = time.perf_counter() - began
    (record,) = (r for r in profile.launches if r.kernel == case.kernel)
    hardware = record.hardware
    assert hardware is not None
    return {
        "kernel": case.kernel,
        "grid": list(record.grid),
        "counters": counters(record),
        "at_least": {"lts__t_sectors_srcunit_tex_op_read.sum": _least(hardware)},
        "counted": {"loaded_bytes": record.loaded_bytes, "stored_bytes": record.stored_bytes},
        "unique": {
            "loaded_bytes": hardware.unique_loaded_bytes,
            "stored_bytes": hardware.unique_stored_bytes,
        },
        "dirty_in_l2_at_the_end": hardware.dram_left_bytes,
        "resources": vars(hardware.resources),
        "lines": [
            {
                "line": f"{Path(access.file).name}:{access.line}",
                "tensor": access.tensor,
                "instruction": access.instruction,
                "width": access.width,
                "requests": access.requests,
                "sectors": access.sectors,
                "l2_sectors": access.l2_sectors,
                "efficiency": round(access.efficiency, 4),
            }
            for access in hardware.accesses
        ],
        "flops": {"products": hardware.products, "others": hardware.others},
        "least_microseconds": {side: round(t * 1e6, 2) for side, t in hardware.times.items()},
        "bound": hardware.bound,
        "model_seconds": round(seconds, 1),
    }


def main() -> None:
    """Prints predictions of all cases."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--gpu", default="H200")
    parser.add_argument("--only", default="", help="cases whose name holds this")
    arguments = parser.parse_args()
    found = {c.name: predict(c, arguments.gpu) for c in hardware_cases.chosen(arguments.only)}
    json.dump({"gpu": arguments.gpu, "cases": found}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
