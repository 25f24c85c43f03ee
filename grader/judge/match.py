"""One test: a judge child, a worker, a clock, and what is made of how they end."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import psutil

from grader.house import House
from grader.judge import isolation
from grader.judge.child import Outcome, load_case, run_test, title_of
from grader.judge.isolation import Confinement
from grader.judge.remote import RemoteStudent, clean
from grader.judge.worker import WorkerJob
from grader.judge.zygote import WorkerEnd, Zygote, exit_words
from grader.manifest import Assignment, Test
from grader.submission import Submission
from grader.testing.case import AssignmentTestCase, test_seed
from grader.verdict import TestResult, Verdict

#: How often memory is looked at, and a worker's children are looked for, in seconds.
_POLL = 0.02
_POLL_TREE = 0.2
#: How much of what student code prints is kept, in bytes.
_MOST_PRINTED = 8_000
#: A worker that the system killed while it held this share of its limit had run out of memory.
_NEARLY_ALL = 0.7


@dataclass
class _Seen:
    """What the supervisor saw of a test while it ran."""

    report: bytearray = field(default_factory=bytearray)
    printed: bytearray = field(default_factory=bytearray)
    flooded: bool = False
    title: str = ""
    doing: str = "before the first call"
    importing: str = ""
    peak_worker: int = 0
    stopped: Verdict | None = None
    why: str = ""


class Match:
    """Plays one test and says how it ended.

    Args:
        assignment: the assignment.
        submission: the submitted files, and what kept others from being read.
        test: the test.
        blank: its result, to be filled in.
        stage: the run's temporary folder, with `submission/` and an empty `home/`.
        seed: the run's.
        house: the tree with the tests.
        zygote: forks the worker.
        endless: files that are not to be imported; see `RemoteStudent`.

    Attributes:
        stalled: the file that was being imported when time ran out; empty if none was.
    """

    def __init__(
        self,
        assignment: Assignment,
        submission: Submission,
        test: Test,
        blank: TestResult,
        stage: Path,
        seed: int,
        house: House,
        zygote: Zygote,
        endless: Mapping[str, Sequence[str]] = MappingProxyType({}),
    ) -> None:
        self._assignment = assignment
        self._test = test
        self._blank = blank
        self._submission = submission
        self._folder = stage / "submission"
        self._home = stage / "home"
        self._seed = seed
        self._house = house
        self._zygote = zygote
        self._endless = endless
        self.stalled = ""
        self._seconds = assignment.time_limit_of(test)
        self._memory = assignment.memory_limit_mb_of(test) * 1_000_000

    def play(self) -> TestResult:
        """Runs the test to its end.

        Raises:
            ZygoteGone: the zygote has ended, which only student code would bring about.
        """
        start = time.monotonic()
        judge_end, worker_end = socket.socketpair()
        output, output_worker = os.pipe()
        report, report_child = os.pipe()
        try:
            worker = self._spawn(worker_end, output_worker)
            child = self._fork(
                judge_end, report_child, output_worker, [worker_end.fileno(), output, report]
            )
        finally:
            judge_end.close()
            worker_end.close()
            os.close(output_worker)
            os.close(report_child)
        seen = _Seen()
        try:
            self._watch(seen, worker, child, report, output, start + self._seconds)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            _, child_status = os.waitpid(child, 0)
            end = self._zygote.finish()
            _drain(output, seen)
            os.close(output)
            os.close(report)
        result = self._judgement(seen, end, child_status)
        self.stalled = seen.importing if seen.stopped is Verdict.TIMED_OUT else ""
        return result.model_copy(
            update={
                "title": seen.title or result.title,
                "printed": _printed(seen),
                "seconds": time.monotonic() - start,
                "peak_memory": max(seen.peak_worker, end.peak_memory),
            }
        )

    # ---------------------------------------------------------------- starting
    def _spawn(self, connection: socket.socket, output: int) -> int:
        number = self._test.number
        job = WorkerJob(
            folder=str(self._folder),
            files=tuple(self._assignment.files),
            seed=test_seed(self._seed, f"{number} student"),
        )
        settings = Confinement(
            home=self._home,
            submission=self._folder,
            uid=self._zygote.uid,
            seconds=int(self._seconds) + 5,
        )
        return self._zygote.spawn(job, settings, connection, output)

    def _fork(self, connection: socket.socket, report: int, output: int, close: list[int]) -> int:
        try:
            pid = os.fork()
        except OSError:
            self._zygote.finish()  # the worker is there already, and would be taken for the next
            raise
        if pid:
            return pid
        try:
            isolation.die_with_parent()
            isolation.close_to_others()
            for descriptor in close:  # above all the worker's end: its closing is the worker's end
                os.close(descriptor)
            os.dup2(2, 1)  # a test that prints is debugging: not into a report on stdout
            self._run_test(connection, report, output)
        finally:
            os._exit(0)

    def _run_test(self, connection: socket.socket, report: int, output: int) -> None:
        """In the child: runs the test and writes its outcome."""

        def tell(what: dict[str, str]) -> None:
            os.write(report, json.dumps(what).encode() + b"\n")

        room = _MOST_PRINTED + 1  # one more than is kept: so it is seen that there was more

        def show(line: str) -> None:
            """What a kernel prints, which runs here, goes where its host code prints, in order."""
            nonlocal room
            part = f"{line}\n".encode()[:room]
            room -= len(part)
            os.write(output, part)

        def load() -> AssignmentTestCase:
            case = load_case(path, self._test, self._house.root)
            tell({"title": title_of(case)})
            return case

        path = self._assignment.test_path(self._test, self._house)
        files = self._assignment.files
        student = RemoteStudent(
            connection,
            self._folder,
            files,
            lambda doing, importing: tell({"doing": doing, "importing": importing}),
            self._submission,
            show,
            self._endless,
        )
        outcome = run_test(self._blank, load, student, self._seed)
        with os.fdopen(report, "wb") as pipe:
            pipe.write(outcome.model_dump_json().encode() + b"\n")

    # ---------------------------------------------------------------- watching
    def _watch(
        self, seen: _Seen, worker: int, child: int, report: int, output: int, deadline: float
    ) -> None:
        """Until the child has reported, or the test has to be stopped."""
        pipes = [report, output]
        next_look, next_tree = 0.0, 0.0
        family: list[int] = [worker]
        while report in pipes:
            now = time.monotonic()
            if now >= deadline:
                seen.stopped = Verdict.TIMED_OUT
                seen.why = f"no result after {self._seconds:g} s, {seen.doing}"
                return
            if now >= next_tree:
                family, next_tree = self._family(worker), now + _POLL_TREE
            if now >= next_look:
                next_look = now + _POLL
                if self._out_of_memory(seen, family, child):
                    return
            for pipe in select.select(pipes, [], [], min(_POLL, deadline - now))[0]:
                data = os.read(pipe, 1 << 16)
                if not data:
                    pipes.remove(pipe)
                elif pipe == report:
                    self._take_report(seen, data)
                else:
                    _keep(seen, data)

    def _take_report(self, seen: _Seen, data: bytes) -> None:
        """Lines from the judge child: the test's title, what it does, in the end the outcome."""
        seen.report += data
        *lines, rest = bytes(seen.report).split(b"\n")
        kept = bytearray()
        for line in lines:
            if line.startswith(b'{"result"'):
                kept += line + b"\n"
                continue
            what = json.loads(line)
            seen.title = what.get("title", seen.title)
            seen.doing = what.get("doing", seen.doing)
            seen.importing = what.get("importing", seen.importing)
        seen.report = kept + rest

    def _family(self, worker: int) -> list[int]:
        """The worker's processes, those that were orphaned included."""
        with contextlib.suppress(psutil.Error):
            zygote = psutil.Process(self._zygote.pid)
            return [process.pid for process in zygote.children(recursive=True)]
        return [worker]

    def _out_of_memory(self, seen: _Seen, family: list[int], child: int) -> bool:
        used = sum(map(_resident, family))
        seen.peak_worker = max(seen.peak_worker, used)
        for amount, whose in ((used, "the student's processes"), (_resident(child), "the kernels")):
            if amount > self._memory:
                seen.stopped = Verdict.OUT_OF_MEMORY
                seen.why = (
                    f"{whose} held {amount / 1e6:,.0f} MB, {seen.doing}; "
                    f"{self._memory / 1e6:,.0f} MB are allowed"
                )
                return True
        return False

    # ---------------------------------------------------------------- judging
    def _judgement(self, seen: _Seen, end: WorkerEnd, child_status: int) -> TestResult:
        """The child's verdict, unless the test was stopped or a process died."""
        if seen.stopped is not None:
            return self._without_points(seen.stopped, seen.why)
        text = bytes(seen.report).strip()
        if not text:
            how = exit_words(child_status)
            return self._without_points(
                Verdict.GRADER_ERROR, f"the judge's process ended ({how}), {seen.doing}"
            )
        outcome = Outcome.model_validate_json(text)
        if not outcome.worker_gone:
            return outcome.result
        result = outcome.result
        killed = os.WIFSIGNALED(end.status) and os.WTERMSIG(end.status) == signal.SIGKILL
        if (
            killed
            and end.early
            and max(seen.peak_worker, end.peak_memory) > (_NEARLY_ALL * self._memory)
        ):
            why = f"{result.message}: the system killed it, out of memory"
            return result.model_copy(update={"verdict": Verdict.OUT_OF_MEMORY, "message": why})
        how = exit_words(end.status) if end.early else "it closed its connection"
        why = f"{result.message}: {how}"
        if end.early and os.WIFEXITED(end.status):
            why += "; a submission must return, not end the process"
        return result.model_copy(update={"message": why})

    def _without_points(self, verdict: Verdict, message: str) -> TestResult:
        return self._blank.model_copy(update={"verdict": verdict, "message": message})


def _resident(pid: int) -> int:
    """Resident memory of a process in bytes; 0 once it is gone."""
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return 0


def _keep(seen: _Seen, data: bytes) -> None:
    """Keeps the beginning of what is printed; a flood is read and dropped."""
    room = _MOST_PRINTED - len(seen.printed)
    seen.printed += data[:room]
    seen.flooded = seen.flooded or len(data) > room


def _drain(output: int, seen: _Seen) -> None:
    """Reads what is left in the pipe of a worker that has ended."""
    os.set_blocking(output, False)
    with contextlib.suppress(BlockingIOError):
        while data := os.read(output, 1 << 16):
            _keep(seen, data)


def _printed(seen: _Seen) -> str:
    text = clean(bytes(seen.printed).decode("utf-8", errors="replace"), _MOST_PRINTED)
    return text + "\n… (more was printed; it is not kept)" if seen.flooded else text
