"""The report in a terminal; plain when it goes to a pipe."""

from __future__ import annotations

import textwrap

from rich.console import Console
from rich.text import Text

from grader.report import tables
from grader.verdict import GradeReport, TestResult

_INDENT = " " * 8


def show(report: GradeReport, console: Console) -> None:
    """Prints a report: what failed and why, what was measured, and the points of each task.

    Args:
        report: the report.
        console: where to; rich leaves colours out if that is no terminal.
    """
    plain = not console.is_terminal
    seen: dict[str, str] = {}
    for task in report.tasks:
        console.print(Text(f"Task {task.id}: {task.title}", style="bold"))
        for test in task.tests:
            show_test(_shortened(test, seen), console)
        outputs, traffic = tables.output_rows(task.tests), tables.traffic_rows(task.tests)
        if outputs:
            console.print(tables.table("Outputs", tables.OUTPUT_HEADERS, outputs, plain=plain))
        if traffic:
            console.print(tables.table("Bytes", tables.TRAFFIC_HEADERS, traffic, plain=plain))
        console.print()
    for note in report.notes:
        console.print(Text(f"note: {note}"))
    for problem in report.problems:
        console.print(Text(f"problem: {problem}", style=tables.WRONG_STYLE))
    console.print(
        tables.table(report.title, tables.TASK_HEADERS, tables.task_rows(report), plain=plain)
    )
    console.print(Text(f"seed {report.seed}, {report.seconds:.1f} s"))


def _shortened(test: TestResult, seen: dict[str, str]) -> TestResult:
    """The test, with `as 1.2` for a message and for a print that test 1.2 had already."""
    changes = {}
    for name in ("message", "printed"):
        text = getattr(test, name)
        if not text or (name == "printed" and test.passed):
            continue
        before = seen.setdefault(text, test.number)
        if before != test.number and len(text) > len(f"as {before}"):
            changes[name] = f"as {before}"
    return test.model_copy(update=changes)


def show_test(test: TestResult, console: Console) -> None:
    """Prints one test's line and, if it did not pass, why."""
    style = tables.STYLES.get(test.verdict, tables.WRONG_STYLE)
    line = Text(f"  {test.number:<5} ")
    line.append(f"{test.verdict.value:<14}", style=style)
    line.append(f"{tables.number(test.points)}/{tables.number(test.max_points)}  {test.title}")
    if test.hidden:
        line.append("  (hidden)", style="dim")
    console.print(line)
    if test.message:
        console.print(Text(textwrap.indent(test.message, _INDENT)))
    if test.printed and not test.passed:
        console.print(Text(textwrap.indent(f"printed:\n{test.printed}", _INDENT)))
