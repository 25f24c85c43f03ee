"""The supervisor: runs an assignment's tests in order, each in processes of its own.

It owns the clock, the memory limits and the results. For each test it has the zygote fork a
*worker* (the submission, confined) and forks a *judge child* (the test, the expected values, the
counters); the two share one socket. The child's verdict stands unless the supervisor had to end
the test: out of time, out of memory, or a process that died.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from grader import house as houses
from grader.judge import isolation
from grader.judge.match import Match
from grader.judge.preload import preload
from grader.judge.zygote import Zygote, ZygoteGone
from grader.manifest import Assignment, Test
from grader.submission import Submission, read
from grader.verdict import GradeReport, TestResult, Verdict, empty_report, empty_result

#: So many tests wait for an import without end; the rest does not, as all of them together would
#: take minutes. One test alone may have met with a busy machine.
_PATIENCE = 2

#: Told of each result as it comes, with the report so far.
Listener = Callable[[TestResult, GradeReport], None]


class Judge:
    """Grades submissions, one after another, with one zygote.

    Make it before anything secret (tests, solutions) is in this process's memory: the zygote is
    forked here and now. Use it as a context manager, or call `close`.

    Args:
        uid: the user that student code runs as; None takes one of its own if this process is root.
    """

    def __init__(self, uid: int | None = None) -> None:
        preload()
        isolation.close_to_others()
        self.uid = isolation.worker_uid() if uid is None else uid
        self._zygote = Zygote(self.uid)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the zygote."""
        self._zygote.close()

    def grade(
        self,
        assignment: Assignment,
        submission: Submission,
        *,
        seed: int | None = None,
        only: Collection[str] | None = None,
        house: houses.House | None = None,
        listener: Listener = lambda result, report: None,
    ) -> GradeReport:
        """Runs all tests on the submitted files.

        Args:
            assignment: the assignment.
            submission: the submitted files, as `grader.submission.read` took them.
            seed: of the random inputs; None takes the assignment's.
            only: run the tests of these tasks only, and report no others.
            house: the tree with the tests; None takes the one this package lies in.
            listener: told of each result as it comes.

        Returns:
            The report. Whatever a test does, its result is in there.

        Raises:
            KeyError: no such task.
        """
        start = time.monotonic()
        seed = assignment.seed if seed is None else seed
        house = house or houses.here()
        report = of_tasks(empty_report(assignment, seed, "the test has not run"), only)
        with _staged(submission, self.uid) as stage:
            report = report.model_copy(
                update={
                    "notes": tuple(submission.notes),
                    "problems": tuple(problem.message for problem in submission.problems),
                    "protections": isolation.protections(self.uid),
                    "sources": submitted_sources(submission),
                }
            )
            stalled: dict[str, list[str]] = {}
            for test in assignment.tests():
                if only is not None and assignment.task_of(test).id not in only:
                    continue
                result = self._run(assignment, submission, test, stage, seed, house, stalled)
                report = report.with_result(result)
                listener(result, report)
        return report.model_copy(update={"seconds": time.monotonic() - start})

    def grade_path(
        self,
        assignment: Assignment,
        path: Path,
        *,
        seed: int | None = None,
        only: Collection[str] | None = None,
        house: houses.House | None = None,
        listener: Listener = lambda result, report: None,
    ) -> GradeReport:
        """Reads a folder, zip, file or notebook, and grades it. See `grade`."""
        with tempfile.TemporaryDirectory(prefix="bytewise-read-") as into:
            submission = read(path, assignment, Path(into))
            return self.grade(
                assignment, submission, seed=seed, only=only, house=house, listener=listener
            )

    def _run(
        self,
        assignment: Assignment,
        submission: Submission,
        test: Test,
        stage: Path,
        seed: int,
        house: houses.House,
        stalled: dict[str, list[str]],
    ) -> TestResult:
        """One test; a fault of the machinery is a grader error of this test alone.

        `stalled`: the tests in which a file's import had no end, by file; added to.
        """
        endless = {file: tests for file, tests in stalled.items() if len(tests) >= _PATIENCE}
        blank = empty_result(assignment, test, Verdict.GRADER_ERROR)
        home = stage / "home"
        home.mkdir(mode=0o700)
        if self.uid is not None:
            os.chown(home, self.uid, self.uid)
        try:
            match = Match(
                assignment, submission, test, blank, stage, seed, house, self._zygote, endless
            )
            result = match.play()
            if match.stalled:
                stalled.setdefault(match.stalled, []).append(test.number)
            return result
        except ZygoteGone:
            self._zygote.close()
            self._zygote = Zygote(self.uid)
            message = "the student's code ended the process that the grader starts it from"
            return blank.model_copy(update={"verdict": Verdict.CRASHED, "message": message})
        except Exception as error:
            message = f"the grader failed: {type(error).__name__}: {error}"
            return blank.model_copy(update={"message": message})
        finally:
            shutil.rmtree(home, ignore_errors=True)


def of_tasks(report: GradeReport, only: Collection[str] | None) -> GradeReport:
    """The report with all tasks but these left out.

    Raises:
        KeyError: there is no such task.
    """
    if only is None:
        return report
    tasks = tuple(task for task in report.tasks if task.id in only)
    if missing := set(only) - {task.id for task in tasks}:
        raise KeyError(min(missing))
    return report.model_copy(update={"tasks": tasks})


@contextlib.contextmanager
def _staged(submission: Submission, uid: int | None) -> Iterator[Path]:
    """A temporary folder with a copy of the submitted files in `submission/`, to be read only."""
    with tempfile.TemporaryDirectory(prefix="bytewise-", ignore_cleanup_errors=True) as name:
        stage = Path(name).resolve()
        copy = stage / "submission"
        copy.mkdir()
        for file in submission.files:
            (copy / file).write_bytes((submission.folder / file).read_bytes())
            (copy / file).chmod(0o644)
        # Student code reads its files as another user; it may list nothing on the way there.
        copy.chmod(0o755)
        stage.chmod(0o711 if uid is not None else 0o700)
        yield stage


def submitted_sources(submission: Submission) -> dict[str, str]:
    """The submitted files' text by name, for the report's listing."""
    return {
        file: (submission.folder / file).read_text(encoding="utf-8", errors="replace")
        for file in submission.files
    }
