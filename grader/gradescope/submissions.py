"""What is handed in to try an autograder out, and what the results have to be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader.house import House
from grader.manifest import Assignment
from grader.packing import PackingError
from grader.report import gradescope
from grader.verdict import Verdict

#: A function without a body: Python refuses the whole file.
_NO_PYTHON = "\n\ndef broken(:\n"


@dataclass(frozen=True)
class Attempt:
    """One submission.

    Attributes:
        name: what it is, in a word or two.
        write: puts its files into the (empty) folder that it is given.
        verdict: what every test has to end with.
        points: what it has to score.
    """

    name: str
    write: Callable[[Path], None]
    verdict: Verdict
    points: float


def attempts(assignment: Assignment, house: House) -> list[Attempt]:
    """The solution, the untouched starter, the solution with a syntax error, and nothing at all.

    Raises:
        PackingError: the tree has no solution or no starter; only the repository has.
    """
    solution, starter = house.solution(assignment.name), house.starter(assignment.name)
    for folder in (solution, starter):
        for file in assignment.files:
            if not (folder / file).is_file():
                raise PackingError(f"there is no {house.relative(folder / file)}")

    def copy(source: Path, appended: str = "") -> Callable[[Path], None]:
        def write(folder: Path) -> None:
            for file in assignment.files:
                text = (source / file).read_text(encoding="utf-8")
                (folder / file).write_text(text + appended, encoding="utf-8")

        return write

    return [
        Attempt("solution", copy(solution), Verdict.PASSED, assignment.total_points),
        Attempt("starter", copy(starter), Verdict.NOT_STARTED, 0.0),
        Attempt("syntax error", copy(solution, _NO_PYTHON), Verdict.IMPORT_ERROR, 0.0),
        Attempt("empty", lambda folder: None, Verdict.MISSING_FILE, 0.0),
    ]


def verdicts(content: dict[str, Any]) -> Counter[str]:
    """How often each verdict is in results.json."""
    return Counter(str(test.get("extra_data", {}).get("verdict")) for test in content["tests"])


def differences(content: Any, assignment: Assignment, attempt: Attempt) -> list[str]:
    """What is wrong with results.json, in sentences; empty if it is as it must be."""
    try:
        gradescope.validate(content)
    except ValueError as error:
        return [str(error)]
    found = []
    if content["score"] != attempt.points:
        found.append(f"score is {content['score']}, expected {attempt.points:g}")
    total = round(sum(test["score"] for test in content["tests"]), 2)
    if total != content["score"]:
        found.append(f"the tests' points sum up to {total}, but score is {content['score']}")
    expected = {test.number: (test.points, test.visibility) for test in assignment.tests()}
    actual = {test["number"]: (test["max_score"], test["visibility"]) for test in content["tests"]}
    if list(actual) != list(expected):
        found.append(f"tests are {', '.join(actual)}; expected {', '.join(expected)}")
    found += [
        f"{number} has (maximum, visibility) {actual[number]}, expected {expected[number]}"
        for number in expected.keys() & actual.keys()
        if actual[number] != expected[number]
    ]
    others = verdicts(content)
    del others[attempt.verdict.value]
    if others:
        numbers = [
            test["number"]
            for test in content["tests"]
            if test.get("extra_data", {}).get("verdict") != attempt.verdict.value
        ]
        words = ", ".join(f"{count} {verdict}" for verdict, count in others.items())
        found.append(
            f"every test should be {attempt.verdict.value!r}, but {words} "
            f"({', '.join(numbers[:6])}{', …' if len(numbers) > 6 else ''})"
        )
    return found
