"""The report as one self-contained HTML page: no scripts, no fonts, nothing fetched."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import jinja2

from grader.report import tables
from grader.testing.evidence import TrafficRow
from grader.verdict import GradeReport


@dataclass(frozen=True)
class SourceLine:
    """One line of a submitted file, with the bytes that it moved in the first test that counted.

    Attributes:
        number: from 1.
        text: the line.
        loaded: bytes; 0 if none.
        stored: bytes; 0 if none.
        test: the number of the test that counted; empty if none did.
    """

    number: int
    text: str
    loaded: int
    stored: int
    test: str


def listing(report: GradeReport) -> dict[str, list[SourceLine]]:
    """The submitted files, line by line, annotated with bytes."""
    moved: dict[tuple[str, int], tuple[int, int, str]] = {}
    for test in report.tests:
        for row in test.evidence:
            if isinstance(row, TrafficRow):
                for line in row.lines:
                    key = (line.file, line.line)
                    moved.setdefault(key, (line.loaded, line.stored, test.number))
    return {
        file: [
            SourceLine(number, text, *moved.get((file, number), (0, 0, "")))
            for number, text in enumerate(source.splitlines(), start=1)
        ]
        for file, source in report.sources.items()
    }


def render(report: GradeReport) -> str:
    """The page."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("grader.report", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html.j2").render(
        report=report, tables=tables, listing=listing(report)
    )


def write(report: GradeReport, path: Path) -> None:
    """Writes the page.

    Raises:
        OSError: it cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render(report), encoding="utf-8")
