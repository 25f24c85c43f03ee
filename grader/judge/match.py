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

from grader.house import House
from grader.judge import isolation
from grader.judge.child import Outcome, load_case, run_test, title_of
from grader.judge.memory import descendants, held, resident
from grader.judge.printed import MOST_PRINTED, Printed
from grader.judge.remote import RemoteStudent
from grader.judge.staff import Staff
from grader.judge.workers import Start, Workers
from grader.judge.zygote import Zygote, exit_words
from grader.manifest import Assignment, Test
from grader.submission import Submission
from grader.testing.case import AssignmentTestCase
from grader.verdict import TestResult, Verdict

#: How often memory is looked at, and a worker's children are looked for, in seconds.
_POLL = 0.02
_POLL_TREE = 0.2
#: A worker that the system killed while it held this share of its limit had run out of memory.
_NEARLY_ALL = 0.7


@dataclass
class _Seen:
    """What the supervisor saw of a test while it ran."""

    report: bytearray = field(default_factory=bytearray)
    printed: Printed = field(default_factory=Printed)
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
        seen = _Seen()
        workers = Workers(self._zygote, self._start, seen.printed)
        child = 0
        report, report_child = os.pipe()
        control, control_child = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with contextlib.ExitStack() as stack:
            stack.callback(os.close, report)
            stack.callback(control.close)
            try:
                with control_child, os.fdopen(report_child, "wb"):
                    connection, output = workers.begin()
                    with connection, os.fdopen(output, "wb"):
                        ours = [report, control.fileno(), *workers.outputs]
                        child = self._fork(connection, report_child, output, control_child, ours)
                self._watch(seen, workers, child, report, control, start + self._seconds)
            finally:
                child_status = _ended(child)
                workers.finish()
        result = self._judgement(seen, workers, child_status)
        self.stalled = seen.importing if seen.stopped is Verdict.TIMED_OUT else ""
        return result.model_copy(
            update={
                "title": seen.title or result.title,
                "printed": seen.printed.text(),
                "seconds": time.monotonic() - start,
                "peak_memory": max(seen.peak_worker, workers.peak()),
            }
        )

    # ---------------------------------------------------------------- starting
    @property
    def _start(self) -> Start:
        return Start(
            home=self._home,
            submission=self._folder,
            files=tuple(self._assignment.files),
            seed=self._seed,
            number=self._test.number,
            seconds=int(self._seconds) + 5,
        )

    def _fork(
        self,
        connection: socket.socket,
        report: int,
        output: int,
        control: socket.socket,
        close: list[int],
    ) -> int:
        pid = os.fork()
        if pid:
            return pid
        try:
            isolation.die_with_parent()
            isolation.close_to_others()
            for descriptor in close:
                os.close(descriptor)
            os.dup2(2, 1)  # a test that prints is debugging: not into a report on stdout
            self._run_test(connection, report, output, Staff(control))
        finally:
            os._exit(0)

    def _run_test(self, connection: socket.socket, report: int, output: int, staff: Staff) -> None:
        """In the child: runs the test and writes its outcome."""

        def tell(what: dict[str, str]) -> None:
            os.write(report, json.dumps(what).encode() + b"\n")

        room = MOST_PRINTED + 1  # one more than is kept: so it is seen that there was more

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
            staff,
        )
        outcome = run_test(self._blank, load, student, self._seed)
        with os.fdopen(report, "wb") as pipe:
            pipe.write(outcome.model_dump_json().encode() + b"\n")

    # ---------------------------------------------------------------- watching
    def _watch(
        self,
        seen: _Seen,
        workers: Workers,
        child: int,
        report: int,
        control: socket.socket,
        deadline: float,
    ) -> None:
        """Until the child has reported, or the test has to be stopped."""
        asking = [control.fileno()]
        closed: set[int] = set()
        next_look, next_tree = 0.0, 0.0
        family: list[int] = []
        while True:
            now = time.monotonic()
            if now >= deadline:
                seen.stopped = Verdict.TIMED_OUT
                seen.why = f"no result after {self._seconds:g} s, {seen.doing}"
                return
            if now >= next_tree:
                family, next_tree = descendants(self._zygote.pid), now + _POLL_TREE
            if now >= next_look:
                next_look = now + _POLL
                if self._out_of_memory(seen, workers, family, child):
                    return
            pipes = [pipe for pipe in workers.outputs if pipe not in closed]
            wait = min(_POLL, deadline - now)
            ready = select.select([report, *asking, *pipes], [], [], wait)[0]
            for pipe in pipes:
                if pipe in ready and not (data := os.read(pipe, 1 << 16)):
                    closed.add(pipe)
                elif pipe in ready:
                    seen.printed.take(data, workers.outputs[pipe])
            if report in ready:
                if not (data := os.read(report, 1 << 16)):
                    return
                self._take_report(seen, data)
            if control.fileno() in ready:
                if not workers.answer(control):
                    asking = []
                closed &= workers.outputs.keys()

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

    def _out_of_memory(self, seen: _Seen, workers: Workers, family: list[int], child: int) -> bool:
        used = held(self._zygote.pid, workers.pids, family)
        seen.peak_worker = max(seen.peak_worker, used)
        theirs = "what the ranks sent" if workers.hired else "the kernels"
        for amount, whose in ((used, "the student's processes"), (resident(child), theirs)):
            if amount > self._memory:
                seen.stopped = Verdict.OUT_OF_MEMORY
                seen.why = (
                    f"{whose} held {amount / 1e6:,.0f} MB, {seen.doing}; "
                    f"{self._memory / 1e6:,.0f} MB are allowed"
                )
                return True
        return False

    # ---------------------------------------------------------------- judging
    def _judgement(self, seen: _Seen, workers: Workers, child_status: int) -> TestResult:
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
        end = workers.end_of(outcome.gone)
        killed = os.WIFSIGNALED(end.status) and os.WTERMSIG(end.status) == signal.SIGKILL
        if (
            killed
            and end.early
            and max(seen.peak_worker, workers.peak()) > (_NEARLY_ALL * self._memory)
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


def _ended(child: int) -> int:
    """Kills the judge's child, if it was forked and still is there; its status."""
    if not child:
        return 0
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]
