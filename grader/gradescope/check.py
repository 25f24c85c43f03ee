"""Rehearses a Gradescope zip: `make gradescope-check A=rmsnorm`.

Builds the zip, unpacks it into a fresh tree laid out as /autograder, installs it there, hands in
the solution, the starter, a file with a syntax error and nothing at all, and compares every
results.json with the format and with what it must say. Shows time and memory against what the
default container has.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from grader import house as houses
from grader.gradescope.borrowed import borrow
from grader.gradescope.box import Box, Limits
from grader.gradescope.build import SECONDS, build
from grader.gradescope.meter import Usage
from grader.gradescope.rehearsal import Rehearsal
from grader.gradescope.submissions import Attempt, attempts, differences, verdicts
from grader.house import House
from grader.manifest import Assignment

_TAIL = 40


@dataclass(frozen=True)
class Step:
    """One row of the table.

    Attributes:
        name: what was done.
        usage: what it took.
        score: as the results have it, in words.
        verdicts: of the tests, in words.
        confined: how student code was confined, in words.
        wrong: what is not as it must be, in sentences.
        log: the end of what it printed.
    """

    name: str
    usage: Usage
    score: str = ""
    verdicts: str = ""
    confined: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    log: str = ""


def check(
    assignment: Assignment,
    *,
    house: House | None = None,
    prefix: Path | None = None,
    python: Path | None = None,
    limits: Limits | None = None,
    console: Console | None = None,
) -> list[Step]:
    """Builds the zip and rehearses it.

    Args:
        assignment: the assignment.
        house: the tree to build from; None takes the one this package lies in.
        prefix: a virtual environment whose packages to take, instead of running `setup.sh`.
        python: the Python for `setup.sh` to build on; None leaves the choice to it.
        limits: of the container; None takes the default container's.
        console: shows how it goes, and the table.

    Returns:
        The steps. All is well if none has anything `wrong`.

    Raises:
        PackingError: something that the zip needs is not there.
        BorrowError: the packages of `prefix` cannot be used.
        RehearsalError: the zip lacks a script.
    """
    house = house or houses.here()
    limits = limits or Limits()
    console = console or Console(quiet=True)
    archive = build(assignment, house=house)
    handed_in = attempts(assignment, house)
    console.print(f"built {house.relative(archive)} ({archive.stat().st_size / 1e3:.0f} kB)")
    steps: list[Step] = []

    def take(step: Step) -> None:
        steps.append(step)
        outcome = "; ".join(step.wrong) or "as it must be"
        console.print(f"{step.name}: {step.usage.seconds:.1f} s, {outcome}", markup=False)

    boxed = False
    with Rehearsal(archive, assignment) as rehearsal:
        if prefix is not None:
            console.print(f"packages taken from {prefix}; setup.sh is not run", markup=False)
            borrow(prefix, rehearsal.prefix, rehearsal.source)
        else:
            with console.status("setup.sh"):
                take(_setup(rehearsal, python))
        if not any(step.wrong for step in steps):
            for attempt in handed_in:
                with console.status(attempt.name):
                    step, boxed = _grade(rehearsal, attempt, assignment, limits)
                take(step)
        console.print("removing what was installed")
    _show(steps, assignment, limits, boxed, console)
    return steps


def _setup(rehearsal: Rehearsal, python: Path | None) -> Step:
    usage = rehearsal.setup(python)
    wrong = []
    if usage.timed_out:
        wrong.append(f"setup.sh took more than {usage.seconds:.0f} s and was ended")
    elif usage.status != 0:
        wrong.append(f"setup.sh ended with status {usage.status}")
    return Step("setup.sh", usage, wrong=tuple(wrong), log=_tail(rehearsal.log("setup")))


def _grade(
    rehearsal: Rehearsal, attempt: Attempt, assignment: Assignment, limits: Limits
) -> tuple[Step, bool]:
    """The step, and whether it was held to the container's limits."""
    box = Box.make(limits)
    try:
        usage, content = rehearsal.grade(attempt, box, limits.seconds)
        killed = box.killed() if box else 0
    finally:
        if box:
            box.close()
    wrong = _resources(usage, limits, killed, boxed=box is not None)
    score = words = ""
    if content is None:
        wrong.append("there is no results.json, or it is no JSON")
    else:
        found = differences(content, assignment, attempt)
        wrong += found
        if (user := rehearsal.student) is not None and f"as user {user}" not in _confined(content):
            wrong.append(f"student code did not run as user {user}, whom setup.sh has made for it")
        if isinstance(content, dict) and "tests" in content:
            score = f"{content.get('score')} of {assignment.total_points:g}"
            words = ", ".join(f"{count} {word}" for word, count in verdicts(content).items())
    log = _tail(rehearsal.log(attempt.name))
    confined = tuple(_confined(content))
    step = Step(attempt.name, usage, score, words, confined, tuple(wrong), log)
    return step, box is not None


def _confined(content: Any) -> list[str]:
    """How student code was confined, as results.json says it."""
    try:
        return [str(words) for words in content["extra_data"]["protections"].values()]
    except (KeyError, TypeError, AttributeError):
        return []


def expected_seconds(usage: Usage, limits: Limits, *, boxed: bool) -> float:
    """Wall time in the container: measured there, else what the CPU time asks for."""
    return usage.seconds if boxed else max(usage.seconds, usage.cpu_seconds / limits.cpus)


def slow_for_all(assignment: Assignment) -> str:
    """What happens to a submission that hangs in every test, if that takes too long; else ""."""
    limits = [assignment.time_limit_of(test) for test in assignment.tests()]
    if sum(limits) <= SECONDS:
        return ""
    return (
        f"a submission that hangs in all {len(limits)} tests is stopped after {SECONDS} s, before "
        f"the last ones have run (their limits sum up to {sum(limits):g} s); with a time_limit of "
        f"{SECONDS // len(limits)} s in assignment.toml, all would run"
    )


def _resources(usage: Usage, limits: Limits, killed: int, *, boxed: bool) -> list[str]:
    wrong = []
    if usage.timed_out:
        wrong.append(f"it took more than {usage.seconds:.0f} s and was ended")
    elif usage.status != 0:
        wrong.append(f"run_autograder ended with status {usage.status}")
    if (seconds := expected_seconds(usage, limits, boxed=boxed)) > limits.seconds:
        wrong.append(f"it needs {seconds:.0f} s; the container has {limits.seconds} s")
    if usage.peak_memory > limits.memory_bytes:
        wrong.append(
            f"it holds {usage.peak_memory / 1e6:.0f} MB; the container has "
            f"{limits.memory_bytes / 1e6:.0f} MB"
        )
    if killed:
        wrong.append(f"the kernel killed {killed} of its processes for want of memory")
    if usage.left:
        wrong.append(f"processes were left running: {', '.join(usage.left)}")
    return wrong


def _tail(log: Path) -> str:
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return "\n".join(lines[-_TAIL:])


def _show(
    steps: list[Step], assignment: Assignment, limits: Limits, boxed: bool, console: Console
) -> None:
    table = Table(title=f"{assignment.title} on Gradescope, rehearsed")
    columns: list[tuple[str, Callable[[Step], str], bool]] = [
        ("step", lambda step: step.name, False),
        ("score", lambda step: step.score, True),
        ("verdicts", lambda step: step.verdicts, False),
        ("wall s", lambda step: f"{step.usage.seconds:.1f}", True),
        ("CPU s", lambda step: f"{step.usage.cpu_seconds:.1f}", True),
        ("peak MB", lambda step: f"{step.usage.peak_memory / 1e6:.0f}", True),
        ("", lambda step: "WRONG" if step.wrong else "right", False),
    ]
    for header, _, right in columns:
        table.add_column(header, justify="right" if right else "left")
    for step in steps:
        table.add_row(*(cell(step) for _, cell, _ in columns))
    console.print(table)
    size = f"{limits.cpus:g} cores, {limits.memory_bytes / 1e6:.0f} MB, {limits.seconds} s"
    if boxed:
        console.print(f"Submissions were graded in a container's limits: {size}.")
    else:
        console.print(
            f"A container has {size}. No control groups could be made here, so these limits were "
            f"not enforced: wall time there is at least CPU time / {limits.cpus:g}."
        )
    console.print(
        "peak: the largest sum of proportional set sizes of all processes (a shared page counts "
        "once, mapped files included), looked at every 0.1 s."
    )
    if confined := next((step.confined for step in steps if step.confined), ()):
        console.print(f"{'; '.join(confined)}.", markup=False)
    if sentence := slow_for_all(assignment):
        console.print(f"note: {sentence}")
    for step in steps:
        if step.wrong:
            console.print(f"\n{step.name}:", style="bold red")
            for sentence in step.wrong:
                console.print(f"  {sentence}", markup=False)
            console.print("what it printed, at its end:")
            console.print(step.log, markup=False, soft_wrap=True)
