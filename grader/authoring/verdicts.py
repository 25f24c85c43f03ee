"""Does grading judge rightly? The solution, the starter and every variant, through the real grader.

A right program keeps every point, an untouched stub earns none and is called *not started*, and a
wrong one loses points at exactly the tasks that it breaks. A variant is judged by the tasks that
are written in the file it changes; all other files are the solution's, which is judged by all. Of a
task that it is to break, tests are run until one is lost: the others could change nothing. (Grading
costs about 0.25 s of a core for each test, nearly all of it in the test; judges cost nothing.)
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

import grader.judge  # noqa: F401  (first: it sees to it that torch starts no threads)
from grader import house as houses
from grader import manifest
from grader.authoring import golden, overlay
from grader.judge.supervisor import Judge
from grader.manifest import Assignment
from grader.submission import read
from grader.verdict import GradeReport, TaskResult, TestResult, Verdict


@dataclass(frozen=True)
class Case:
    """A submission and what grading must find.

    Attributes:
        name: for people.
        path: the submitted folder.
        breaks: the tasks that must lose points; None if no task may start at all.
        tasks: those to be graded; None for all.
    """

    name: str
    path: Path
    breaks: tuple[str, ...] | None = ()
    tasks: tuple[str, ...] | None = None


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
        cases = list(_cases(assignment, Path(folder)))
        # Spawned, not forked: a judge must be made where no test or solution was ever loaded.
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(jobs or os.cpu_count(), mp_context=context) as pool:
            waiting = [pool.submit(judge_case, assignment.name, case) for case in cases]
            for done in as_completed(waiting):
                yield done.result()


def _cases(assignment: Assignment, folder: Path) -> Iterator[Case]:
    yield Case("solution", houses.solution(assignment.name))
    yield Case("starter", houses.starter(assignment.name), breaks=None)
    for variant in overlay.variants(assignment):
        path = folder / variant.name
        changed = overlay.write(assignment, variant, path)
        tasks = [task.id for task in assignment.tasks if assignment.file_of(task) in changed]
        yield Case(variant.name, path, variant.breaks, tuple(tasks))


def judge_case(name: str, case: Case) -> Finding:
    """Grades one case in a process of its own."""
    assignment = manifest.load(name)
    with Judge() as judge:
        report = _graded(judge, assignment, case)
    faults = list(_faults(report, case))
    counts = golden.table(report) if case.name == "solution" else None
    points = f"{report.points:g} / {report.max_points:g}"
    if case.breaks:
        lost = [task.id for task in report.tasks if task.points < task.max_points]
        points = f"breaks {', '.join(lost)}" if lost else "breaks nothing"
    return Finding(case.name, points, faults, counts)


def _graded(judge: Judge, assignment: Assignment, case: Case) -> GradeReport:
    """The tests that decide about a case; of a task that it must break, no more than that takes."""
    with tempfile.TemporaryDirectory(prefix="bytewise-read-") as into:
        submission = read(case.path, assignment, Path(into))
        report = judge.grade(assignment, submission, only=_unbroken(assignment, case))
        tasks = {task.id: task for task in report.tasks}
        for task in assignment.tasks:
            if task.id not in (case.breaks or ()) or task.id not in _judged(assignment, case):
                continue
            results: list[TestResult] = []
            for test in task.tests:
                alone = task.model_copy(update={"tests": [test]})
                one = assignment.model_copy(update={"tasks": [alone]})
                results += judge.grade(one, submission).tests
                if not results[-1].passed:
                    break
            tasks[task.id] = TaskResult(id=task.id, title=task.title, tests=tuple(results))
    ordered = tuple(tasks[task.id] for task in assignment.tasks if task.id in tasks)
    return report.model_copy(update={"tasks": ordered})


def _judged(assignment: Assignment, case: Case) -> list[str]:
    return [t for t in assignment.task_ids if case.tasks is None or t in case.tasks]


def _unbroken(assignment: Assignment, case: Case) -> list[str]:
    return [task for task in _judged(assignment, case) if task not in (case.breaks or ())]


def _faults(report: GradeReport, case: Case) -> Iterator[str]:
    for test in report.grader_errors:
        yield f"test {test.number}: the grader failed: {test.message}"
    if case.breaks is None:
        for test in report.tests:
            if test.verdict is not Verdict.NOT_STARTED or test.points:
                yield f"{test.number} is {test.verdict}, should be not started: {test.message}"
        return
    for unseen in set(case.breaks) - {task.id for task in report.tasks}:
        yield f"task {unseen} is to be broken, but is written in another file than this variant's"
    for task in report.tasks:
        lost = task.points < task.max_points
        if lost and task.id not in case.breaks:
            test = next(t for t in task.tests if not t.passed)
            yield f"task {task.id} loses points: {test.number} {test.verdict}: {test.message}"
        if not lost and task.id in case.breaks:
            yield f"task {task.id} keeps all of its {task.max_points:g} points, but it is broken"
