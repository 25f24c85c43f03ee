"""Does grading judge rightly? The solution, the starter and every variant, through the real grader.

A right program keeps every point, an untouched stub earns none and is called *not started*, and a
wrong one loses points at exactly the tasks that it breaks. Solution and starter are judged by every
test. A variant is judged by the tests that can tell it from the solution (see `slices`): those
written for the file it changes that reach a definition it changes. Of a task that it is to break,
these are run, the quickest first, until one is lost: the others could change nothing.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

import grader.judge  # noqa: F401  (first: it sees to it that torch starts no threads)
from grader import house as houses
from grader import manifest
from grader.authoring import golden, overlay
from grader.authoring.selection import Reach, only_tests, reaches, select
from grader.judge.supervisor import Judge
from grader.manifest import Assignment
from grader.submission import read
from grader.verdict import GradeReport, TaskResult, TestResult, Verdict

#: Time limits are so many times as long here: that others use the machine is no fault of a program.
#: That the limits suffice is for `make gradescope-check` to show, in a container's share of a core.
_PATIENCE = 5


@dataclass(frozen=True)
class Case:
    """A submission and what grading must find.

    Attributes:
        name: for people.
        path: the submitted folder.
        breaks: the tasks that must lose points; None if no task may start at all.
        tests: the numbers of those that decide about it, in the order in which a broken task's are
            run; None for all.
    """

    name: str
    path: Path
    breaks: tuple[str, ...] | None = ()
    tests: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Finding:
    """What grading a case found: nothing wrong if `faults` is empty.

    Attributes:
        case: its name.
        points: earned and possible; of a wrong variant, the tasks that lost some.
        faults: what is not as it must be.
        counts: the bytes that the solution moved.
    """

    case: str
    points: str
    faults: list[str]
    counts: golden.Table | None = None


def graded_solution(assignment: Assignment) -> GradeReport:
    """The solution's report."""
    with Judge() as judge:
        return judge.grade_path(assignment, houses.solution(assignment.name))


def judge_all(assignment: Assignment, jobs: int | None = None) -> Iterator[Finding]:
    """Grades solution, starter and variants, as many at once as there are cores."""
    with tempfile.TemporaryDirectory(prefix="bytewise-check-") as folder:
        # Spawned, not forked: a judge must be made where no test or solution was ever loaded.
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(jobs or os.cpu_count(), mp_context=context) as pool:
            yield from _judge_all(assignment, Path(folder), pool)


def _judge_all(assignment: Assignment, folder: Path, pool: Executor) -> Iterator[Finding]:
    name = assignment.name
    reaching = [pool.submit(_reaches, name, task) for task in assignment.task_ids]
    solution = Case("solution", houses.solution(name))
    starter = Case("starter", houses.starter(name), breaks=None)
    waiting = [pool.submit(judge_case, name, case) for case in (solution, starter)]
    found = [reach for future in reaching for reach in future.result()]
    yield _of_slices(found)
    waiting += _submit_variants(assignment, found, folder, pool)
    for done in as_completed(waiting):
        yield done.result()


def _patient(assignment: Assignment) -> Assignment:
    """The assignment with longer time limits."""
    tasks = []
    for task in assignment.tasks:
        tests = [
            test.model_copy(update={"time_limit": _PATIENCE * assignment.time_limit_of(test)})
            for test in task.tests
        ]
        tasks.append(task.model_copy(update={"tests": tests}))
    return assignment.model_copy(update={"tasks": tasks})


def _reaches(name: str, task_id: str) -> list[Reach]:
    assignment = _patient(manifest.load(name))
    (task,) = (task for task in assignment.tasks if task.id == task_id)
    with Judge() as judge:
        return reaches(judge, assignment, task)


def _of_slices(found: list[Reach]) -> Finding:
    """Says of how many tests it is known what they reach. The others only cost time."""
    known = sum(reach.names is not None for reach in found)
    return Finding("tests that pass on their slice of the solution", f"{known} / {len(found)}", [])


def _submit_variants(
    assignment: Assignment, found: list[Reach], folder: Path, pool: Executor
) -> list[Future[Finding]]:
    """Hands out the variants, what takes longest first, so that no core is idle at the end."""
    cases = []
    for variant in overlay.variants(assignment):
        path = folder / variant.name
        overlay.write(assignment, variant, path)
        selected = select(assignment, found, path)
        numbers = tuple(reach.number for reach in selected)
        seconds = sum(
            reach.seconds for reach in selected if _task(reach.number) not in variant.breaks
        )
        cases.append((seconds, Case(variant.name, path, variant.breaks, numbers)))
    cases.sort(key=lambda item: item[0], reverse=True)
    return [pool.submit(judge_case, assignment.name, case) for _, case in cases]


def judge_case(name: str, case: Case) -> Finding:
    """Grades one case in a process of its own."""
    assignment = _patient(manifest.load(name))
    with Judge() as judge:
        report = _graded(judge, assignment, case)
    faults = list(_faults(report, case))
    counts = golden.table(report) if case.name == "solution" else None
    points = f"{report.points:g} / {report.max_points:g}"
    if case.tests is not None:
        points += f" in {len(report.tests)} tests"
    if case.breaks:
        lost = [task.id for task in report.tasks if task.points < task.max_points]
        points = f"breaks {', '.join(lost)}" if lost else "breaks nothing"
    return Finding(case.name, points, faults, counts)


def _graded(judge: Judge, assignment: Assignment, case: Case) -> GradeReport:
    """The tests that decide about a case; of a task that it must break, no more than that takes."""
    numbers = [test.number for test in assignment.tests()] if case.tests is None else case.tests
    broken = case.breaks or ()
    kept = [number for number in numbers if _task(number) not in broken]
    results: dict[str, TestResult] = {}
    with tempfile.TemporaryDirectory(prefix="bytewise-read-") as into:
        submission = read(case.path, assignment, Path(into))
        report = judge.grade(only_tests(assignment, kept), submission)
        for task in broken:
            for number in (number for number in numbers if _task(number) == task):
                one = judge.grade(only_tests(assignment, {number}), submission)
                results.update((result.number, result) for result in one.tests)
                if not results[number].passed:
                    break
    results.update((result.number, result) for result in report.tests)
    return _of_results(report, assignment, results)


def _of_results(
    report: GradeReport, assignment: Assignment, results: dict[str, TestResult]
) -> GradeReport:
    """A report with just these results."""
    tasks = []
    for task in only_tests(assignment, results).tasks:
        tests = tuple(results[test.number] for test in task.tests)
        tasks.append(TaskResult(id=task.id, title=task.title, tests=tests))
    return report.model_copy(update={"tasks": tuple(tasks)})


def _task(number: str) -> str:
    """The task of a test's number."""
    return number.rpartition(".")[0]


def _faults(report: GradeReport, case: Case) -> Iterator[str]:
    for test in report.grader_errors:
        yield f"test {test.number}: the grader failed: {test.message}"
    if case.breaks is None:
        for test in report.tests:
            if test.verdict is not Verdict.NOT_STARTED or test.points:
                yield f"{test.number} is {test.verdict}, should be not started: {test.message}"
        return
    if not report.tests:
        yield "no test reaches what it changes"
    for unseen in sorted(set(case.breaks) - {task.id for task in report.tasks}):
        yield f"task {unseen} is to be broken, but none of its tests reaches what this changes"
    for task in report.tasks:
        lost = task.points < task.max_points
        if lost and task.id not in case.breaks:
            test = next(t for t in task.tests if not t.passed)
            yield f"task {task.id} loses points: {test.number} {test.verdict}: {test.message}"
        if not lost and task.id in case.breaks:
            yield f"task {task.id} keeps all of its {task.max_points:g} points, but it is broken"
