"""`make check`: the proof that what is derived is up to date and that grading judges rightly."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click
from rich.console import Console

from grader import manifest
from grader.authoring import agreement, golden, starter, verdicts
from grader.manifest import Assignment

#: What `regenerate` did about a change that it found.
_DONE = {"new": "written", "changed": "rewritten", "stray": "removed, the solution has none"}


def regenerate(names: list[str], console: Console) -> None:
    """`make solutions`: writes starter/ and the golden tables; says what changed."""
    for name in names:
        assignment = manifest.load(name)
        for change in starter.write(assignment):
            console.print(f"{name}: {change.path}: {_DONE[change.kind]}")
        report = verdicts.graded_solution(assignment)
        if report.points < report.max_points:
            raise click.ClickException(
                f"{name}: the solution earns {report.points:g} of {report.max_points:g} points, so "
                f"its counts are no standard. See: python -m grader grade {name} solutions/{name}"
            )
        changed = golden.write(name, golden.table(report))
        console.print(f"{name}: golden counts {'written' if changed else 'unchanged'}")


def check(names: list[str], console: Console) -> bool:
    """Prints a line per thing checked, and its faults; whether there were none."""
    faultless = [_checked(manifest.load(name), console) for name in names]
    return all(faultless)


def _checked(assignment: Assignment, console: Console) -> bool:
    faults = 0
    for what, points, found in _findings(assignment):
        sign = "[red]✗[/]" if found else "[green]✓[/]"
        console.print(f"{sign} {assignment.name}: {what} {points}".rstrip())
        for fault in found:
            console.print(f"    {fault}", markup=False)
        faults += len(found)
        sys.stdout.flush()
    return faults == 0


def _findings(assignment: Assignment) -> Iterator[tuple[str, str, list[str]]]:
    """(what was checked, points, faults)."""
    changes = starter.diff(assignment)
    drift = [
        f"{change.path} is {change.kind}; run make solutions\n{change.diff}" for change in changes
    ]
    yield "starter/ is what the solution makes", "", drift
    yield "tests and manifest agree", "", agreement.disagreements(assignment)
    for finding in verdicts.judge_all(assignment):
        yield finding.case, finding.points, finding.faults
        if finding.counts is not None:
            changed = golden.differences(golden.read(assignment.name), finding.counts)
            yield "counts are those of the golden table", "", changed
