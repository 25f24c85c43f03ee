"""A report with one of everything, made by hand."""

import pytest

from grader.testing.evidence import LineTraffic, OutputRow, TrafficRow
from grader.verdict import GradeReport, LeaderboardEntry, TaskResult, TestResult, Verdict


def output(name="y", error=1e-3, ok=False, **changes):
    row = {
        "name": name,
        "shape": (64, 100),
        "dtype": "float32",
        "error": error,
        "tolerance": 1e-5,
        "index": (3, 64),
        "got": "0",
        "expected": "1.5",
        "wrong": 0 if ok else 7,
        "total": 6400,
        "ok": ok,
    }
    return OutputRow(**{**row, **changes})


def traffic(which="loaded", count=76_800, ok=False):
    return TrafficRow(
        name="rmsnorm_forward",
        which=which,
        bytes=count,
        budget=51_200,
        formula="2·M·N·s = 2·64·100·4 = 51,200 B",
        tensors={"x_ptr": count},
        lines=(LineTraffic(file="toy.py", line=2, loaded=count, stored=0),),
        ok=ok,
    )


@pytest.fixture
def report():
    tests = (
        TestResult(
            number="1.1",
            title="Any width",
            task="1",
            points=3,
            max_points=3,
            verdict=Verdict.PASSED,
            evidence=(output(error=1e-7, ok=True), output(error=2e-6, ok=True), traffic()),
            leaderboard=(LeaderboardEntry(name="bytes", value=12, order="asc"),),
        ),
        TestResult(
            number="1.2",
            title="<b>Rows</b>",
            task="1",
            max_points=2.5,
            verdict=Verdict.FAILED,
            message="y is wrong\x1b[31m: <script>alert(1)</script>",
            evidence=(output(error=None, got="nan"),),
            printed="printed this",
            peak_memory=10,
            seconds=1.25,
        ),
        TestResult(
            number="1.3",
            title="Edges",
            task="1",
            max_points=2,
            verdict=Verdict.FAILED,
            message="secret 4711",
            printed="secret print",
            evidence=(output(name="secret output"),),
            visibility="hidden",
            hidden=True,
        ),
        TestResult(
            number="1.4",
            title="Broken",
            task="1",
            max_points=1,
            verdict=Verdict.GRADER_ERROR,
            message="Traceback: expected = secret-oracle",
        ),
    )
    return GradeReport(
        assignment="toy",
        title="Doubling",
        seed=5,
        tasks=(TaskResult(id="1", title="Double", tests=tests),),
        notes=("line ends were changed",),
        protections={"user": "as user 31000"},
        sources={"toy.py": "import torch\nx = tl.load(p) # <&>\n"},
        seconds=12.3,
    )
