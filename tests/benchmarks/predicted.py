"""What the hardware model predicts of Nsight Compute's counters.

    python tests/benchmarks/predicted.py [--gpu H200] [--only NAME] > predicted.json
    python tests/benchmarks/predicted.py --table            # beside what was measured

Runs the cases of `hardware_cases.py` on the simulator, a few seconds each. The JSON has the
counters by case, the sectors of each source line, resources and least times; the table the
counters beside those of `measured_h200.json`, with the error in per cent.
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
from console import print_header, print_table

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.benchmarks import hardware_cases

MEASURED = Path(__file__).with_name("measured_h200.json")


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


#: Counter → what the table calls it.
_SHOWN = {
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": "L1 load sectors",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": "L1 store sectors",
    "lts__t_sectors_srcunit_tex_op_read.sum": "L2 read sectors",
    "lts__t_sectors_srcunit_tex_op_write.sum": "L2 write sectors",
    "dram__bytes_read.sum": "DRAM bytes read",
    "dram__bytes_write.sum": "DRAM bytes written",
}


def beside_measured(found: dict[str, dict[str, Any]]) -> None:
    """Prints a row for each case and counter: predicted, measured, error.

    A prediction is a range where requests of several SMs may be merged before L2.
    """
    measured = json.loads(MEASURED.read_text())
    rows = []
    for name, predicted in found.items():
        case = name
        for counter, title in _SHOWN.items():
            if counter not in measured["cases"].get(name, {}):
                continue
            actual = measured["cases"][name][counter]
            high = predicted["counters"][counter]
            low = predicted["at_least"].get(counter, high)
            nearest = min(max(actual, low), high)
            error = f"{(nearest - actual) / actual:+.2%}" if nearest != actual else "0"
            if low < actual < high:
                error = f"within: {high / actual:.2f} requests merged into one"
            said = f"{high:,}" if low == high else f"{low:,} to {high:,}"
            rows.append([case, title, said, f"{actual:,}", error])
            case = ""
    print_header(f"predicted, and measured on {measured['machine']}")
    print_table(["case", "counter", "predicted", "measured", "error"], rows)


def main() -> None:
    """Prints predictions."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--gpu", default="H200")
    parser.add_argument("--only", default="", help="cases whose name holds this")
    parser.add_argument("--table", action="store_true", help="beside what was measured")
    arguments = parser.parse_args()
    found = {c.name: predict(c, arguments.gpu) for c in hardware_cases.chosen(arguments.only)}
    if arguments.table:
        beside_measured(found)
    else:
        json.dump({"gpu": arguments.gpu, "cases": found}, sys.stdout, indent=1)
        print()


if __name__ == "__main__":
    main()
