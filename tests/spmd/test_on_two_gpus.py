"""What `tests/benchmarks/on_two_gpus.py` does on GPUs, on CPUs; and its fits."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
from comm_sim import t_formula

from tests.benchmarks.alpha_beta import fit, fit_two, plain, two_regimes

ROOT = Path(__file__).resolve().parents[2]
SIZES = [2**power for power in range(10, 31)]


@pytest.mark.parametrize("key", ["ring", "all_gather", "reduce_scatter", "rd"])
@pytest.mark.parametrize("n", [2, 4])
def test_a_fit_finds_the_link_that_times_were_made_with(key, n):
    seconds = [t_formula(key, n, size, 7e-6, 150e9) for size in SIZES]
    link = fit(key, n, SIZES, seconds)
    assert math.isclose(link.alpha, 7e-6, rel_tol=1e-9)
    assert math.isclose(link.bw, 150e9, rel_tol=1e-9)
    foretold = plain(key, n, SIZES, seconds)
    assert foretold.largest < 1e-9
    assert "α = 7.00 µs, B = 150.0 GB/s" in foretold.words


def test_errors_are_those_of_sizes_that_were_not_fitted():
    seconds = [t_formula("ring", 2, size, 7e-6, 150e9) for size in SIZES]
    seconds[5] *= 2  # of the half that is left out
    foretold = plain("ring", 2, SIZES, seconds)
    assert foretold.median < 1e-9
    assert math.isclose(foretold.largest, 0.5)
    seconds[4] *= 2  # of the half that is fitted
    assert plain("ring", 2, SIZES, seconds).median > 1e-3


@pytest.mark.parametrize(
    ("seconds", "alpha", "bw"),
    [
        ([size / 1e9 - 1e-7 for size in SIZES], 0.0, None),  # shorter ones are too quick
        ([1e-3 - size * 1e-13 for size in SIZES], None, math.inf),  # longer ones are not slower
    ],
)
def test_no_latency_and_no_time_for_a_byte_is_negative(seconds, alpha, bw):
    link = fit("ring", 2, SIZES, seconds)
    assert link.alpha >= 0
    assert link.bw > 0
    assert alpha is None or link.alpha == alpha
    assert bw is None or link.bw == bw


def test_two_regimes_are_found():
    def model(size):
        alpha, bw = (5e-6, 2e9) if size < 2**17 else (20e-6, 150e9)
        return t_formula("ring", 2, size, alpha, bw)

    seconds = [model(size) for size in SIZES]
    border, below, above = fit_two("ring", 2, SIZES, seconds)
    assert 2**16 < border < 2**17
    assert math.isclose(below.alpha, 5e-6, rel_tol=1e-9)
    assert math.isclose(above.bw, 150e9, rel_tol=1e-9)
    assert (
        two_regimes("ring", 2, SIZES, seconds).median
        < 1e-9
        < plain("ring", 2, SIZES, seconds).median
    )


def test_two_regimes_need_sizes_enough():
    with pytest.raises(ValueError, match="5 sizes are too few for two regimes of 3"):
        fit_two("ring", 2, SIZES[:5], [1.0] * 5)


def script(*arguments, **environment):
    """Runs it as on a machine with GPUs: from the checkout, with what the tree has on the path."""
    environment = os.environ | {"PYTHONPATH": "shared:."} | environment
    return subprocess.run(
        [sys.executable, "-W", "error", "tests/benchmarks/on_two_gpus.py", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )


def test_all_of_it_on_two_processes(tmp_path):
    lab = "solutions/tensor_parallel/shard_lab.py"
    options = ["--backend", "gloo", "--small", "--largest", "8192", "--samples", "1"]
    done = script(*options, "--shard-lab", lab, OUT=str(tmp_path))
    assert done.returncode == 0, done.stderr
    data = json.loads((tmp_path / "on_two_gpus.json").read_text())
    assert set(data["collectives"]) == {"all_reduce", "all_gather", "reduce_scatter"}
    for name, of_all in data["collectives"].items():
        assert of_all["sizes"] == [1024, 2048, 4096, 8192]
        assert all(t > 0 for t in of_all["seconds"])
        factor = 1.0 if name == "all_reduce" else 0.5  # of two ranks
        assert math.isclose(of_all["busbw"][2], factor * 4096 / of_all["seconds"][2])
        assert f"{name} of 2 ranks, float32" in done.stdout
    bounds = {"float32": 2e-5, "float64": 1e-12}
    assert len(data["differences"]) == 2
    for of_rank in data["differences"]:
        assert [row["dtype"] for row in of_rank] == list(bounds)
        for row in of_rank:
            bound = bounds[row["dtype"]]
            assert row["error"] < bound < row["largest"]
            assert row["error with a cache"] < bound
    assert [row["measured"]["n"] for row in data["decode"]] == [1, 2]
    one, two = (row["measured"]["bytes"] for row in data["decode"])
    assert two * 2 == one
    assert data["decode"][0]["foretold"]["t_comm"] == 0 < data["decode"][1]["foretold"]["t_comm"]
    assert "step, foretold" in done.stdout


def test_too_few_gpus_are_said_in_one_line():
    done = script("--ranks", "99")
    assert done.returncode != 0
    assert done.stderr.startswith("nccl needs a GPU for each of 99 ranks; this machine has")
    assert done.stderr.count("\n") == 1
