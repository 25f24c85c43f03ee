"""What grading finds: a verdict a test, and a report of all of them.

Points are finite, clamped to what a test is worth, and rounded to hundredths. Every test of the
manifest is in the report, whatever became of it, so nothing vanishes from the denominator.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from grader.manifest import Assignment, Test, Visibility
from grader.testing.evidence import OutputRow, TrafficRow


class Verdict(StrEnum):
    """What became of a test."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_STARTED = "not started"
    TIMED_OUT = "timed out"
    OUT_OF_MEMORY = "out of memory"
    CRASHED = "crashed"
    IMPORT_ERROR = "import error"
    MISSING_FILE = "missing file"
    GRADER_ERROR = "grader error"


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True)


class LeaderboardEntry(_Model):
    """A number that a test puts on the leaderboard (`@leaderboard`).

    Attributes:
        name: the column.
        value: the number.
        order: `asc` if small is good.
    """

    name: str
    value: float
    order: Literal["asc", "desc"]


class TestResult(_Model):
    """One test.

    Attributes:
        number: "1.2".
        title: what the test says of itself.
        task: the task's id.
        points: earned.
        max_points: what it is worth.
        verdict: what became of it.
        message: why, for the student; empty for a passed test.
        evidence: what was measured.
        visibility: what students see of it.
        hidden: whether the test's file stays with the graders, so that nothing of it may be shown.
        printed: what student code printed, bounded.
        seconds: how long it took.
        peak_memory: largest resident memory of the student's processes, in bytes.
        leaderboard: numbers for the leaderboard.
    """

    __test__ = False  # pytest: not a test

    number: str
    title: str
    task: str
    points: float = 0.0
    max_points: float
    verdict: Verdict
    message: str = ""
    evidence: tuple[Annotated[OutputRow | TrafficRow, Field(discriminator="kind")], ...] = ()
    visibility: Visibility = "visible"
    hidden: bool = False
    printed: str = ""
    seconds: float = 0.0
    peak_memory: int = 0
    leaderboard: tuple[LeaderboardEntry, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether it passed."""
        return self.verdict is Verdict.PASSED


class TaskResult(_Model):
    """One task's sum.

    Attributes:
        id: "1".
        title: a few words.
        tests: its tests, in order.
    """

    id: str
    title: str
    tests: tuple[TestResult, ...]

    @property
    def points(self) -> float:
        """Earned."""
        return total(test.points for test in self.tests)

    @property
    def max_points(self) -> float:
        """What it is worth."""
        return total(test.max_points for test in self.tests)

    @property
    def verdict(self) -> str:
        """The verdicts of its tests, in a few words: `passed`, `not started`, `2 failed`."""
        verdicts = [test.verdict for test in self.tests]
        if len(set(verdicts)) == 1:
            return verdicts[0].value
        others = [verdict for verdict in dict.fromkeys(verdicts) if verdict is not Verdict.PASSED]
        return ", ".join(f"{verdicts.count(verdict)} {verdict.value}" for verdict in others)


class GradeReport(_Model):
    """Everything that grading one submission found.

    Attributes:
        assignment: the assignment's name.
        title: its title.
        seed: of the random inputs.
        tasks: in the order of the handout.
        notes: what was done to the submission to read it ("line endings changed").
        problems: what was wrong with it as a whole ("rmsnorm.py was not submitted").
        protections: what the student's code was confined by, in words.
        sources: the submitted files' text, for the report's listing.
        seconds: how long grading took.
    """

    assignment: str
    title: str
    seed: int
    tasks: tuple[TaskResult, ...]
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    protections: dict[str, str] = Field(default_factory=dict)
    sources: dict[str, str] = Field(default_factory=dict)
    seconds: float = 0.0

    @property
    def tests(self) -> tuple[TestResult, ...]:
        """All tests, task by task."""
        return tuple(test for task in self.tasks for test in task.tests)

    @property
    def points(self) -> float:
        """Earned."""
        return total(test.points for test in self.tests)

    @property
    def max_points(self) -> float:
        """What the assignment is worth."""
        return total(test.max_points for test in self.tests)

    @property
    def grader_errors(self) -> tuple[TestResult, ...]:
        """The tests that could not be judged, through no fault of the student's."""
        return tuple(test for test in self.tests if test.verdict is Verdict.GRADER_ERROR)

    def with_result(self, result: TestResult) -> GradeReport:
        """The report with one test's result put in place of what stood there."""
        tasks = tuple(
            task.model_copy(
                update={
                    "tests": tuple(
                        result if test.number == result.number else test for test in task.tests
                    )
                }
            )
            for task in self.tasks
        )
        return self.model_copy(update={"tasks": tasks})


def clamp(points: float, most: float) -> float:
    """Points between zero and `most`, rounded to hundredths.

    Raises:
        ValueError: they are not a finite number.
    """
    if not math.isfinite(points):
        raise ValueError(f"a score of {points} is not a number of points")
    return round(min(max(points, 0.0), most), 2)


def total(points: Iterable[float]) -> float:
    """A sum rounded to hundredths, so that no 2.0001 shows."""
    return round(math.fsum(points), 2)


def empty_result(
    assignment: Assignment, test: Test, verdict: Verdict, message: str = ""
) -> TestResult:
    """A result without points: what stands before a test has run, or if it cannot run."""
    return TestResult(
        number=test.number,
        title=test.method.removeprefix("test_").replace("_", " "),
        task=assignment.task_of(test).id,
        max_points=test.points,
        verdict=verdict,
        message=message,
        visibility=test.visibility,
        hidden=test.hidden,
    )


def empty_report(assignment: Assignment, seed: int, message: str) -> GradeReport:
    """The report before anything has run: every test with no points, and `message`."""
    return GradeReport(
        assignment=assignment.name,
        title=assignment.title,
        seed=seed,
        tasks=tuple(
            TaskResult(
                id=task.id,
                title=task.title,
                tests=tuple(
                    empty_result(assignment, test, Verdict.GRADER_ERROR, message)
                    for test in task.tests
                ),
            )
            for task in assignment.tasks
        ),
    )
