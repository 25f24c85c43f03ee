"""Results of a suite on two sides, side by side: per file, per test, and what is not explained."""

from __future__ import annotations

import fnmatch
import json
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

OUTCOMES = ("passed", "failed", "skipped")


@dataclass(frozen=True)
class Result:
    """One test on one side; `message` says why it failed or was skipped."""

    test: str
    outcome: str
    message: str = ""
    seconds: float = 0.0

    @property
    def function(self) -> str:
        """The test without its parameters."""
        return self.test.partition("[")[0]

    @property
    def file(self) -> str:
        """The file that it is in."""
        return self.test.partition("::")[0]


def read_results(path: Path) -> dict[str, Result]:
    """Results by test, of a file that `results_plugin` wrote.

    Of a test that was run twice, the last; but that it was skipped then does not count: it was for
    another GPU.
    """
    results: dict[str, Result] = {}
    for line in path.read_text().splitlines():
        result = Result(**json.loads(line))
        if result.outcome != "skipped" or result.test not in results:
            results[result.test] = result
    return results


@dataclass
class Explanation:
    """Why tests that match do not pass.

    Attributes:
        tests: pattern (as for file names) of `file::test[parameters]`.
        reason: why they fail or are skipped here.
        message: regular expression that has to be found in a failure's message.
    """

    tests: str
    reason: str
    message: str = ""
    used: int = field(default=0, compare=False)

    def fits(self, result: Result) -> bool:
        """True if it explains this result."""
        name = result.test.replace("[", "\0").replace("]", "\1")
        pattern = self.tests.replace("[", "\0").replace("]", "\1")  # no character sets
        return fnmatch.fnmatchcase(name, pattern) and bool(
            re.search(self.message, result.message, re.DOTALL)
        )


def read_explanations(path: Path) -> list[Explanation]:
    """The file's `[[explained]]` entries. Raises `TypeError` for a key that it does not know."""
    return [Explanation(**entry) for entry in tomllib.loads(path.read_text())["explained"]]


@dataclass
class Row:
    """Counts of some tests: outcomes on both sides, and where the sides part.

    Attributes:
        ours, interpreter: outcomes.
        explained: our failures that are explained.
        unexplained: those that are not.
        only_interpreter: tests that the interpreter passes and the simulator does not.
        only_ours: tests that the simulator passes, and the interpreter fails, skips or cannot run.
    """

    ours: Counter[str] = field(default_factory=Counter)
    interpreter: Counter[str] = field(default_factory=Counter)
    explained: int = 0
    unexplained: int = 0
    only_interpreter: int = 0
    only_ours: int = 0

    def __iadd__(self, other: Row) -> Row:
        self.ours += other.ours
        self.interpreter += other.interpreter
        self.explained += other.explained
        self.unexplained += other.unexplained
        self.only_interpreter += other.only_interpreter
        self.only_ours += other.only_ours
        return self


@dataclass
class Comparison:
    """A suite on both sides.

    Attributes:
        rows: by test function.
        reasons: our explained failures by reason.
        unexplained: our failures that nothing explains.
        only_interpreter: our results of tests that only the interpreter passes.
        only_ours: the interpreter's results of those that it does not pass and the simulator does;
            a test that is not marked for the interpreter has none and is not among them.
        skips: our skipped tests by what they say.
        idle: explanations that explain nothing.
    """

    rows: dict[str, Row]
    reasons: Counter[str]
    unexplained: list[Result]
    only_interpreter: list[Result]
    only_ours: list[Result]
    skips: Counter[str]
    idle: list[Explanation]

    def by_file(self) -> dict[str, Row]:
        """Rows added up by file."""
        files: dict[str, Row] = defaultdict(Row)
        for function, row in self.rows.items():
            files[function.partition("::")[0]] += row
        return dict(files)

    def total(self) -> Row:
        """All rows added up."""
        total = Row()
        for row in self.rows.values():
            total += row
        return total

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "tests": {name: vars(row) for name, row in self.rows.items()},
            "files": {name: vars(row) for name, row in self.by_file().items()},
            "total": vars(self.total()),
            "explained": dict(self.reasons),
            "unexplained": [vars(result) for result in self.unexplained],
            "only_interpreter": [vars(result) for result in self.only_interpreter],
            "only_ours": [vars(result) for result in self.only_ours],
            "skipped": dict(self.skips),
        }


def compare(
    ours: dict[str, Result],
    interpreter: dict[str, Result],
    explanations: Iterable[Explanation] = (),
) -> Comparison:
    """Puts both sides' results side by side."""
    explanations = [*explanations]
    rows: dict[str, Row] = defaultdict(Row)
    comparison = Comparison(rows, Counter(), [], [], [], Counter(), [])
    for test in sorted(ours.keys() | interpreter.keys()):
        mine, theirs = ours.get(test), interpreter.get(test)
        row = rows[(mine or theirs).function]  # type: ignore[union-attr]
        if theirs is not None:
            row.interpreter[theirs.outcome] += 1
        if mine is None:
            continue
        row.ours[mine.outcome] += 1
        passed, passed_there = mine.outcome == "passed", _passed(theirs)
        if passed_there and not passed:
            row.only_interpreter += 1
            comparison.only_interpreter.append(mine)
        if passed and not passed_there:
            row.only_ours += 1
            if theirs is not None:
                comparison.only_ours.append(theirs)
        if mine.outcome == "skipped":
            comparison.skips[mine.message.strip()] += 1
        if mine.outcome == "failed":
            explanation = next((e for e in explanations if e.fits(mine)), None)
            if explanation is None:
                row.unexplained += 1
                comparison.unexplained.append(mine)
            else:
                row.explained += 1
                explanation.used += 1
                comparison.reasons[explanation.reason] += 1
    comparison.idle = [e for e in explanations if not e.used]
    return comparison


def _passed(result: Result | None) -> bool:
    return result is not None and result.outcome == "passed"


HEADINGS = ("simulator", "interpreter", "not explained", "only interpreter", "only simulator")


def cells(row: Row) -> list[str]:
    """A row's counts, in the order of `HEADINGS`: outcomes as passed / failed / skipped."""
    numbers = (row.unexplained, row.only_interpreter, row.only_ours)
    return [
        *(" / ".join(f"{side[o]:,}" for o in OUTCOMES) for side in (row.ours, row.interpreter)),
        *(f"{number:,}" if number else "–" for number in numbers),
    ]


def markdown(comparison: Comparison) -> str:
    """The table per file, the reasons of failures and of skips, as Markdown."""
    lines = ["| passed / failed / skipped | " + " | ".join(HEADINGS) + " |"]
    lines.append("|---" + "|--:" * len(HEADINGS) + "|")
    for name, row in comparison.by_file().items():
        lines.append(f"| {name.removesuffix('.py')} | " + " | ".join(cells(row)) + " |")
    total = cells(comparison.total())
    lines.append("| **all** | " + " | ".join(f"**{cell}**" for cell in total) + " |")
    if comparison.reasons:
        lines += [
            "",
            "Failures of the simulator, by reason:",
            "",
            "| tests | reason |",
            "|--:|---|",
        ]
        lines += [f"| {count:,} | {reason} |" for reason, count in comparison.reasons.most_common()]
    if comparison.unexplained:
        lines += ["", "Failures that nothing explains:", ""]
        lines += [f"- `{r.test}`: {_first_line(r.message)}" for r in comparison.unexplained]
    if comparison.skips:
        lines += ["", "What the tests themselves skip:", "", "| tests | they say |", "|--:|---|"]
        lines += [f"| {count:,} | {say} |" for say, count in comparison.skips.most_common()]
    return "\n".join(lines) + "\n"


def _first_line(message: str) -> str:
    return (message.strip().splitlines() or [""])[0][:200]
