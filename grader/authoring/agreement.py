"""Do the tests and the manifest say the same? Every test is listed, and listed as it calls itself.

Points and visibility live in `assignment.toml`; the decorators on the tests repeat them for the TA
who reads the test file. Here is the proof that they agree, that no test is left out of the
manifest, and that a task is said to be written in the file that its tests call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from grader import house as houses
from grader.house import House
from grader.judge.child import load_tests
from grader.manifest import Assignment, Test
from grader.testing import AssignmentTestCase


def disagreements(assignment: Assignment, house: House | None = None) -> list[str]:
    """What differs between manifest and test files, a line each; none if they agree."""
    house = house or houses.here()
    listed = {(test.hidden, test.file, test.case, test.method): test for test in assignment.tests()}
    folders = {False: house.public(assignment.name), True: house.hidden(assignment.name)}
    lines: list[str] = []
    found = set()
    for hidden, folder in folders.items():
        for path in sorted(folder.glob("test_*.py")):
            lines += _files(assignment, path, house.relative(path))
            for case, method in _tests(load_tests(path, house.root)):
                key = (hidden, path.name, case.__name__, method)
                found.add(key)
                where = f"{house.relative(path)}::{case.__name__}::{method}"
                if key in listed:
                    lines += _decorators(where, getattr(case, method), listed[key])
                else:
                    lines.append(f"{where} is not in assignment.toml, so it is worth nothing")
    for key, test in listed.items():
        if key not in found:
            lines.append(f"assignment.toml lists {test.number}, {test.reference}: no such test")
    return lines


def _files(assignment: Assignment, path: Path, shown: str) -> Iterator[str]:
    """The files that the tests of one file call (`flash_lab:flash_fwd`), against their tasks'."""
    tests = [test for test in assignment.tests() if test.file == path.name]
    written = {assignment.file_of(assignment.task_of(test)) for test in tests}
    text = path.read_text(encoding="utf-8")
    for file in assignment.files:
        if file not in written and re.search(rf"[\"']{file.removesuffix('.py')}:[\w{{]", text):
            tasks = sorted({assignment.task_of(test).id for test in tests})
            yield (
                f"{shown} calls functions of {file}, but assignment.toml has its tasks "
                f"({', '.join(tasks)}) written in {', '.join(sorted(written))}; correct `file`"
            )


def _decorators(where: str, method: object, test: Test) -> Iterator[str]:
    """The decorators of one test against its entry in the manifest."""
    said = {
        "number": getattr(method, "__number__", None),
        "weight": getattr(method, "__weight__", None),
        "visibility": getattr(method, "__visibility__", "visible"),
    }
    entry = {"number": test.number, "weight": test.points, "visibility": test.visibility}
    for key, expected in entry.items():
        if said[key] != expected:
            yield f"{where}: @{key} is {said[key]!r}, in assignment.toml it is {expected!r}"


def _tests(module: ModuleType) -> Iterator[tuple[type[AssignmentTestCase], str]]:
    for value in vars(module).values():
        if isinstance(value, type) and issubclass(value, AssignmentTestCase):
            if value.__module__ != module.__name__:
                continue
            for name in sorted(vars(value)):
                if name.startswith("test"):
                    yield value, name
