"""Makes whole files of variants: solutions with a few definitions replaced.

A variant proves the tests. `wrong_*.py` has one defect, and must lose points at exactly the tasks
that its docstring names; `right_*.py` does it otherwise than the solution, and must lose none.

    \"\"\"The forward kernel uses 1e-5, whatever ε it is given.

    breaks: 1, 3
    \"\"\"

A variant holds nothing but the top-level definitions in which it differs from the solution, and the
imports that these need. They are spliced in, so that a variant follows every other change of the
solution, and cannot become an old copy of it. Of several files it replaces definitions of one: the
one that has them all; where several have, a line `file: flash_lab.py` below `breaks:` says which.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from grader import house as houses
from grader.authoring.markers import AuthoringError
from grader.authoring.splice import defined_names, overlay, parse
from grader.house import House
from grader.manifest import Assignment

_FILE = re.compile(r"^file:[ \t]*(?P<file>\S+)[ \t]*$", re.MULTILINE)
_BREAKS = re.compile(r"^breaks:(?P<tasks>.*)$", re.MULTILINE)
_TASK = re.compile(r"\d+(\.\d+)*")

__all__ = ["Variant", "affected", "apply", "describe", "overlay", "variants", "write"]


@dataclass(frozen=True)
class Variant:
    """A variant, as its docstring describes it.

    Attributes:
        name: of its file, without the suffix: `wrong_eps_ignored`.
        path: of its file.
        says: the first paragraph of its docstring, on one line.
        breaks: the ids of the tasks that must lose points; empty for a right one.
        file: the declared file that it is of, if it says so.
    """

    name: str
    path: Path
    says: str
    breaks: tuple[str, ...]
    file: str | None = None

    @property
    def right(self) -> bool:
        """Whether it must keep full marks."""
        return not self.breaks


def variants(assignment: Assignment, house: House | None = None) -> list[Variant]:
    """The variants of an assignment: the right ones, then the wrong ones, by name.

    Raises:
        AuthoringError: a file that is neither, or a docstring that is not as it must be.
    """
    house = house or houses.here()
    folder = house.variants(assignment.name)
    found = []
    for path in sorted(folder.glob("*")):
        if path.name == "__pycache__":
            continue
        if not re.fullmatch(r"(right|wrong)_[a-z0-9_]+\.py", path.name):
            what = "is neither a right_*.py nor a wrong_*.py; rename or remove it"
            raise AuthoringError(house.relative(path), 1, what)
        variant = describe(path, assignment.task_ids, house.relative(path))
        if variant.file is not None and variant.file not in assignment.files:
            what = f"`file: {variant.file}`; the manifest has {', '.join(assignment.files)}"
            raise AuthoringError(house.relative(path), 1, what)
        found.append(variant)
    return found


def describe(
    path: Path, task_ids: Collection[str] | None = None, shown: str | None = None
) -> Variant:
    """Reads what a variant says of itself.

    Args:
        path: of its file, `right_*.py` or `wrong_*.py`.
        task_ids: those that there are, if that is to be checked.
        shown: what errors call the file.

    Raises:
        AuthoringError: no docstring; a wrong one that does not say what it breaks, a right one that
            does; a task that does not exist, or twice.
    """
    shown = shown or path.name
    tree = parse(path.read_text(encoding="utf-8"), shown)
    docstring = ast.get_docstring(tree)
    if not docstring:
        raise AuthoringError(shown, 1, "has no docstring; say in it what this variant does")
    lines = _BREAKS.findall(docstring)
    wrong = path.name.startswith("wrong_")
    if wrong and len(lines) != 1:
        what = f"has {len(lines) or 'no'} lines `breaks: 1, 3` in its docstring"
        raise AuthoringError(shown, 1, f"{what}; name the tasks that must lose points in one")
    if not wrong and lines:
        what = "is a right one, which breaks nothing, but its docstring has a line `breaks:`"
        raise AuthoringError(shown, 1, f"{what}; remove the line, or call the file wrong_…")
    breaks = tuple(task.strip() for task in lines[0].split(",")) if wrong else ()
    for task in breaks:
        if not _TASK.fullmatch(task):
            what = f"{task!r} in `breaks:` is not a task; write ids with commas: `breaks: 1, 3`"
            raise AuthoringError(shown, 1, what)
        if task_ids is not None and task not in task_ids:
            what = f"there is no task {task!r}; the manifest has {', '.join(task_ids)}"
            raise AuthoringError(shown, 1, what)
        if breaks.count(task) > 1:
            raise AuthoringError(shown, 1, f"`breaks:` names task {task} twice; name it once")
    says = " ".join(docstring.partition("\n\n")[0].split())
    if _BREAKS.match(says):
        raise AuthoringError(shown, 1, "its docstring does not say what it does; begin with that")
    of = _FILE.findall(docstring)
    return Variant(path.stem, path, says, breaks, of[0] if of else None)


def apply(
    assignment: Assignment, variant: Variant, house: House | None = None
) -> tuple[str, dict[str, str]]:
    """The declared files of the solution, one of them with the variant spliced in.

    Returns:
        The name of that one, which defines what the variant replaces; name → text of all.

    Raises:
        AuthoringError: no file does, or several do; or see `overlay`.
    """
    house = house or houses.here()
    folder = house.solution(assignment.name)
    files = {file: (folder / file).read_text(encoding="utf-8") for file in assignment.files}
    shown = house.relative(variant.path)
    text = variant.path.read_text(encoding="utf-8")
    wanted = defined_names(text, shown)
    meant = [variant.file] if variant.file else _defining(wanted, files)
    if len(meant) > 1:
        what = f"replaces what {' and '.join(meant)} define"
        raise AuthoringError(shown, 1, f"{what}; say which in its docstring: `file: {meant[0]}`")
    file = meant[0] if meant else assignment.files[0]
    files[file] = overlay(files[file], text, house.relative(folder / file), shown)
    return file, files


def _defining(wanted: set[str], files: dict[str, str]) -> list[str]:
    """The files that define the most of some names."""
    shared = {file: len(wanted & defined_names(text, file)) for file, text in files.items()}
    most = max(shared.values())
    return [file for file, count in shared.items() if count == most > 0]


def affected(file: str, files: dict[str, str]) -> set[str]:
    """A file, and those of `files` (name → text) that import it, directly or through others."""
    imports = {name: _imports(text, name) for name, text in files.items()}
    found = {file}
    while more := {
        name
        for name, modules in imports.items()
        if name not in found and modules & {other.removesuffix(".py") for other in found}
    }:
        found |= more
    return found


def _imports(text: str, file: str) -> set[str]:
    """The modules that a file imports, at any level."""
    modules = set()
    for node in ast.walk(parse(text, file)):
        if isinstance(node, ast.Import):
            modules |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules.add(node.module.partition(".")[0])
    return modules


def write(
    assignment: Assignment, variant: Variant, folder: Path, house: House | None = None
) -> set[str]:
    """Makes a folder with what `apply` returns, as a student would hand it in. Raises likewise.

    Returns:
        The files that are not as in the solution, or import one that is not.
    """
    file, files = apply(assignment, variant, house)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_bytes(text.encode())
    return affected(file, files)
