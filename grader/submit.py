"""Packs what is handed in: the declared files and nothing else. `make submit A=rmsnorm`.

A file that is missing, or that Python cannot read, is found here rather than by the grader. Work
that is not started is no error, only said.
"""

from __future__ import annotations

import ast
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from grader import house as houses
from grader.environment import Absent, absent_imports
from grader.house import House
from grader.manifest import Assignment
from grader.packing import Parcel
from grader.submission import Submission, read


class SubmitError(Exception):
    """There is something in the way of handing in; the message says what and where."""


@dataclass(frozen=True)
class Packed:
    """A zip that can be handed in.

    Attributes:
        path: the zip.
        files: what is in it.
        notes: what was changed or assumed to make the files of what was given.
        not_started: the ids of the tasks of which a stub is left.
        absent: imports that would fail where it is graded.
    """

    path: Path
    files: tuple[str, ...]
    notes: tuple[str, ...]
    not_started: tuple[str, ...]
    absent: tuple[Absent, ...] = ()


def submit(
    assignment: Assignment,
    source: Path | None = None,
    *,
    house: House | None = None,
    to: Path | None = None,
) -> Packed:
    """Writes the zip.

    Args:
        assignment: the assignment.
        source: folder, zip, Python file or notebook; None is `starter/<name>`.
        house: the tree; None takes the one this package lies in.
        to: where to write it; None is `dist/submit/<name>.zip` in the tree.

    Returns:
        What was packed.

    Raises:
        SubmitError: a declared file is missing or cannot be read by Python. No zip is written, and
            one of before is left as it is.
    """
    house = house or houses.here()
    source = house.starter(assignment.name) if source is None else source
    to = to or house.root / "dist" / "submit" / f"{assignment.name}.zip"
    with tempfile.TemporaryDirectory(prefix="bytewise-submit-") as folder:
        submission = read(source, assignment, Path(folder))
        if submission.problems:
            problems = "\n".join(f"  {problem.message}" for problem in submission.problems)
            raise SubmitError(f"{house.relative(source)} cannot be handed in yet:\n{problems}")
        parcel = Parcel()
        for file in assignment.files:
            parcel.add(file, (submission.folder / file).read_bytes())
        left = not_started(assignment, submission)
        absent = tuple(absent_imports(submission.folder, assignment.files))
    parcel.write(to)
    return Packed(to, tuple(parcel.names), tuple(submission.notes), left, absent)


def not_started(assignment: Assignment, submission: Submission) -> tuple[str, ...]:
    """The ids of the tasks of which a stub, `raise NotImplementedError("rmsnorm 2: …")`, is left.

    Ids that stubs give to steps of a task (2.1) count for the task.
    """
    stub = re.compile(rf"{re.escape(assignment.name)} (?P<id>\d+(\.\d+)*):")
    left = set()
    for file in submission.files:
        for node in ast.walk(ast.parse((submission.folder / file).read_bytes())):
            if not (isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)):
                continue
            called, arguments = node.exc.func, node.exc.args
            if not (isinstance(called, ast.Name) and called.id == "NotImplementedError"):
                continue
            text = (
                arguments[0].value if arguments and isinstance(arguments[0], ast.Constant) else ""
            )
            if match := stub.match(str(text)):
                left.add(match["id"])
    return tuple(
        task
        for task in assignment.task_ids
        if any(found == task or found.startswith(f"{task}.") for found in left)
    )
