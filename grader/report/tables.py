"""The tables of a report, one row per task, output and byte count, as text cells.

One place decides what is shown of a measurement; terminal, HTML and Gradescope only lay it out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich import box
from rich.table import Table
from rich.text import Text

from grader.testing.evidence import OutputRow, TrafficRow
from grader.verdict import GradeReport, TestResult, Verdict

#: How a verdict is coloured on a terminal.
STYLES: dict[Verdict, str] = {
    Verdict.PASSED: "green",
    Verdict.NOT_STARTED: "yellow",
    Verdict.GRADER_ERROR: "magenta",
}
WRONG_STYLE = "red"


@dataclass(frozen=True)
class Row:
    """Cells of one row, and whether what it shows is right."""

    cells: tuple[str, ...]
    ok: bool


OUTPUT_HEADERS = ("test", "output", "dtype", "shape", "largest error", "tolerance", "at", "off")
TRAFFIC_HEADERS = ("test", "call", "bytes", "count", "budget", "used")
TASK_HEADERS = ("task", "title", "points", "verdict")


def number(value: float) -> str:
    """Points without a tail of zeros: 3, 2.5."""
    return f"{value:g}"


def output_rows(tests: Iterable[TestResult]) -> list[Row]:
    """One row per test and output: its largest error, where that is, and what would have passed.

    Of an output that a test compares several times, the worst comparison is shown.
    """
    worst: dict[tuple[str, str], OutputRow] = {}
    for test in tests:
        for row in test.evidence:
            if isinstance(row, OutputRow):
                key = (test.number, row.name)
                worst[key] = max(worst.get(key, row), row, key=_badness)
    return [
        Row(
            (
                test,
                name,
                row.dtype,
                "×".join(map(str, row.shape)) or "scalar",
                _error(row),
                "" if row.tolerance is None else f"{row.tolerance:.2g}",
                f"[{', '.join(map(str, row.index))}]" if row.index else "",
                f"{row.wrong:,} of {row.total:,}",
            ),
            row.ok,
        )
        for (test, name), row in worst.items()
    ]


def _badness(row: OutputRow) -> tuple[bool, float]:
    """Wrong before right; then by the error measured in tolerances."""
    if row.error is None or row.tolerance is None:
        return (not row.ok, math.inf)
    return (not row.ok, row.error / row.tolerance if row.tolerance else row.error)


def _error(row: OutputRow) -> str:
    if row.error is not None:
        return f"{row.error:.2e}"
    return "not compared" if row.tolerance is None else f"got {row.got}"


def traffic_rows(tests: Iterable[TestResult]) -> list[Row]:
    """One row per byte count: the count, the budget as a formula, and their ratio."""
    return [
        Row(
            (
                test.number,
                row.name,
                row.which,
                f"{row.bytes:,} B",
                row.formula,
                f"{row.bytes / row.budget:.1%}" if row.budget else "",
            ),
            row.ok,
        )
        for test in tests
        for row in test.evidence
        if isinstance(row, TrafficRow)
    ]


def task_rows(report: GradeReport) -> list[Row]:
    """One row per task, and the sum."""
    rows = [
        Row(
            (
                task.id,
                task.title,
                f"{number(task.points)} / {number(task.max_points)}",
                task.verdict,
            ),
            task.points == task.max_points,
        )
        for task in report.tasks
    ]
    sum_cells = ("", "sum", f"{number(report.points)} / {number(report.max_points)}", "")
    return [*rows, Row(sum_cells, report.points == report.max_points)]


def table(title: str, headers: Sequence[str], rows: Sequence[Row], *, plain: bool = False) -> Table:
    """Lays rows out for a terminal, or (`plain`) for text without line-drawing characters."""
    laid_out = Table(
        title=title or None,
        title_justify="left",
        title_style="bold",
        box=box.MARKDOWN if plain else box.SIMPLE_HEAD,
        pad_edge=plain,
    )
    for header in headers:
        right = header in ("largest error", "tolerance", "count", "used", "points", "off")
        laid_out.add_column(header, justify="right" if right else "left", overflow="fold")
    for row in rows:
        style = "" if row.ok else WRONG_STYLE
        laid_out.add_row(*(Text(cell, style=style) for cell in row.cells))
    return laid_out
