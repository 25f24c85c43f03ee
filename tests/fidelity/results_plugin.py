"""A pytest plug-in that takes a seeded sample of a suite's parametrizations and writes results.

`pytest -p tests.fidelity.results_plugin --results FILE [--sample N --sample-seed S]
[--skipped-in FILE] [--not-in FILE]`; the last two keep only tests that another run skipped, or that
it did not come to. A file of results has a JSON object a line: `test` (file::name[parameters]),
`outcome` (passed, failed or skipped), `message` (of what failed or why it was skipped) and
`seconds`.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options above."""
    parser.addoption("--results", type=Path, default=None)
    parser.addoption("--sample", type=int, default=0)
    parser.addoption("--sample-seed", type=int, default=0)
    parser.addoption("--skipped-in", type=Path, default=None)
    parser.addoption("--not-in", type=Path, default=None)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keeps N parametrizations of every test: those whose names hash lowest.

    So that both sides take the same, also where they do not have the same parameters.
    """
    before = config.getoption("--skipped-in")
    if before is not None:
        skipped = {name for name, outcome in _outcomes(before).items() if outcome == "skipped"}
        items[:] = [item for item in items if _name(item.nodeid) in skipped]
    if wanted := config.getoption("--sample"):
        items[:] = _sample(items, wanted, config.getoption("--sample-seed"))
    known = config.getoption("--not-in")
    if known is not None:
        there = _outcomes(known).keys()
        items[:] = [item for item in items if _name(item.nodeid) not in there]


def _sample(items: list[pytest.Item], wanted: int, seed: int) -> list[pytest.Item]:
    by_function: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        by_function[item.nodeid.partition("[")[0]].append(item)
    kept = {
        id(item)
        for group in by_function.values()
        for item in sorted(
            group, key=lambda i: hashlib.sha256(f"{seed} {i.nodeid}".encode()).digest()
        )[:wanted]
    }
    return [item for item in items if id(item) in kept]


def _outcomes(path: Path) -> dict[str, str]:
    outcomes: dict[str, str] = {}
    for result in map(json.loads, path.read_text().splitlines()):
        if result["outcome"] != "skipped":  # a test that ran once has not been skipped
            outcomes[result["test"]] = result["outcome"]
        outcomes.setdefault(result["test"], "skipped")
    return outcomes


class _Writer:
    """Writes a line when a test has ended, so that a run that is killed leaves what it has."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a")
        self._seconds: dict[str, float] = defaultdict(float)
        self._written: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid] += report.duration
        outcome = report.outcome
        if report.when != "call" and outcome == "passed":
            return
        if report.nodeid in self._written:
            return
        self._written.add(report.nodeid)
        message = ""
        if outcome == "failed":
            message = _crash_message(report)
        elif outcome == "skipped":
            message = getattr(report, "wasxfail", "") or _skip_reason(report)
        json.dump(
            {
                "test": _name(report.nodeid),
                "outcome": outcome,
                "message": message,
                "seconds": round(self._seconds[report.nodeid], 3),
            },
            self._file,
        )
        self._file.write("\n")
        self._file.flush()

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            line = {"test": _name(report.nodeid), "outcome": "failed", "seconds": 0.0}
            json.dump(line | {"message": str(report.longrepr)[-2000:]}, self._file)
            self._file.write("\n")
            self._file.flush()


def _name(nodeid: str) -> str:
    """The test without the folders above its file."""
    path, separator, rest = nodeid.partition("::")
    return path.rpartition("/")[2] + separator + rest


def _crash_message(report: pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    return (crash.message if crash else str(report.longrepr)[-2000:])[:4000]


def _skip_reason(report: pytest.TestReport) -> str:
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")
    return str(report.longrepr)


def pytest_configure(config: pytest.Config) -> None:
    """Only the process that distributes tests writes: it hears of all of them."""
    path = config.getoption("--results")
    if path is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Writer(path), "results-writer")
