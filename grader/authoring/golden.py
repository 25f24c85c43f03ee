"""The golden table of counts: the bytes that the reference solution moves, test by test.

Counts are exact integers that depend on nothing but the code, so the table is a drift alarm: a
change to the simulator, to a test's sizes or to a solution that moves one byte more or less shows
in a diff.
"""

from __future__ import annotations

import json
from typing import Any

from grader import house as houses
from grader.house import House
from grader.testing.evidence import TrafficRow
from grader.verdict import GradeReport

Table = dict[str, list[dict[str, Any]]]


def table(report: GradeReport) -> Table:
    """test number → a row per counted call: what was called, loaded or stored, bytes, budget."""
    rows: Table = {}
    for test in report.tests:
        counted = [row for row in test.evidence if isinstance(row, TrafficRow)]
        if counted:
            rows[test.number] = [
                {"call": row.name, "which": row.which, "bytes": row.bytes, "budget": row.formula}
                for row in counted
            ]
    return rows


def read(name: str, house: House | None = None) -> Table:
    """The table in the tree; empty if there is none yet."""
    path = (house or houses.here()).golden(name)
    if not path.exists():
        return {}
    found: Table = json.loads(path.read_text(encoding="utf-8"))
    return found


def write(name: str, counts: Table, house: House | None = None) -> bool:
    """Writes the table; whether that changed it."""
    path = (house or houses.here()).golden(name)
    text = json.dumps(counts, indent=1, ensure_ascii=False) + "\n"
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return True


def differences(expected: Table, found: Table) -> list[str]:
    """What differs, a line each; none if the tables are equal."""
    lines = []
    for number in sorted(expected.keys() | found.keys()):
        old, new = expected.get(number, []), found.get(number, [])
        for row in old:
            if row not in new:
                lines.append(f"test {number}: the golden table has {_shown(row)}, not counted now")
        for row in new:
            if row not in old:
                lines.append(f"test {number}: counted {_shown(row)}, not in the golden table")
    return lines


def _shown(row: dict[str, Any]) -> str:
    return f"{row['call']} {row['which']} {row['bytes']:,} B (budget {row['budget']})"
