"""Makes the starter from a solution: every block becomes a stub that says what is to be written.

    raise NotImplementedError("rmsnorm 1: allocate y and r; launch a program a row; return both")

An import that only blocks use would be left over in the starter, and is an error. If students are
going to need it, `# starter: keep` behind it says so; the comment itself is not copied.

`generate` makes all files of `starter/<name>/`; `write` puts them there, `diff` tells what it would
change. Nobody edits the starter by hand, so files that the solution does not account for are
strays: `write` removes them, `diff` names them.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from grader import house as houses
from grader.authoring.markers import AuthoringError, Block, find_blocks
from grader.authoring.names import KEEP, check_names
from grader.house import House
from grader.manifest import Assignment

_COLUMNS = 100
_INDENT = 4

#: Folders that Python makes.
_LITTER = "__pycache__"


def strip(
    source: str,
    filename: str,
    task_ids: Collection[str] | None = None,
    assignment: str | None = None,
) -> str:
    """A solution without its blocks. Formatted, if the solution is.

    Args:
        source: the solution's text.
        filename: what errors call it.
        task_ids: those that there are, if markers are to be checked for it.
        assignment: the name that markers must give, if that is to be checked.

    Raises:
        AuthoringError: see `grader.authoring.markers` for markers, and `grader.authoring.names` for
            what may be wrong with what is left.
    """
    blocks = find_blocks(source, filename, task_ids, assignment)
    solution = source.split("\n")
    lines: list[str] = []
    line_of: dict[int, int] = {}
    stubs: set[int] = set()
    at = 1
    for block in blocks:
        for number in range(at, block.begin):
            lines.append(solution[number - 1])
            line_of[len(lines)] = number
        stubs.add(len(lines) + 1)
        for line in stub(block):
            lines.append(line)
            line_of[len(lines)] = block.begin
        at = block.end + 1
    for number in range(at, len(solution) + 1):
        lines.append(solution[number - 1])
        line_of[len(lines)] = number
    starter = "\n".join(lines)
    check_names(source, starter, line_of, stubs, filename)
    return "\n".join(_without_keep(lines))


def stub(block: Block) -> list[str]:
    """The lines that a block becomes, up to 100 columns unless a word is, laid out as by ruff."""
    text = f"{block.assignment} {block.task}: {block.hint}"
    outer = " " * block.indent
    one = f"{outer}raise NotImplementedError({_literal(text)})"
    if len(one) <= _COLUMNS:
        return [one]
    inner = outer + " " * _INDENT
    room = _COLUMNS - len(inner)
    parts = [_literal(part) for part in _wrap(text, room)]
    return [f"{outer}raise NotImplementedError(", *(inner + part for part in parts), f"{outer})"]


def _wrap(text: str, room: int) -> Iterator[str]:
    """Cuts behind spaces, so that each part fits as a literal; together they are the text."""
    words = text.split(" ")
    part = words[0]
    for index, word in enumerate(words[1:], start=1):
        space = "" if index == len(words) - 1 else " "  # the last part ends without one
        if len(_literal(f"{part} {word}{space}")) > room:
            yield f"{part} "
            part = word
        else:
            part = f"{part} {word}"
    yield part


def _literal(text: str) -> str:
    """A string literal in double quotes, or in single ones if that saves escapes."""
    quote = "'" if text.count('"') > text.count("'") else '"'
    return quote + text.replace("\\", r"\\").replace(quote, f"\\{quote}") + quote


def _without_keep(lines: list[str]) -> list[str]:
    """Takes `# starter: keep` off the imports: it says nothing to a student."""
    lines = list(lines)
    for node in ast.walk(ast.parse("\n".join(lines))):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for index in range(node.lineno - 1, node.end_lineno or node.lineno):
                lines[index] = lines[index].removesuffix(KEEP).rstrip()
    return lines


def generate(assignment: Assignment, house: House | None = None) -> dict[PurePosixPath, str]:
    """All files of an assignment's starter: path below `starter/<name>/` → text.

    Python files are stripped; other text files, such as data, are copied as they are.

    Raises:
        AuthoringError: see `strip`; or a declared file is missing, or has no block, so that
            students would be given the solution; or a task has no block in any file.
    """
    house = house or houses.here()
    folder = house.solution(assignment.name)
    files: dict[PurePosixPath, str] = {}
    begun: set[str] = set()
    for path in _files(folder):
        shown = house.relative(path)
        where = PurePosixPath(path.relative_to(folder).as_posix())
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise AuthoringError(shown, 1, f"is not UTF-8: {error}; keep it elsewhere") from None
        if path.suffix != ".py":
            files[where] = text
            continue
        blocks = find_blocks(text, shown, assignment.task_ids, assignment.name)
        if not blocks and str(where) in assignment.files:
            what = "has no block, so that students would be given the solution"
            raise AuthoringError(shown, 1, f"{what}; mark what they are to write")
        begun |= {block.task for block in blocks}
        files[where] = strip(text, shown, assignment.task_ids, assignment.name)
    for declared in assignment.files:
        if PurePosixPath(declared) not in files:
            what = f"{house.relative(house.manifest(assignment.name))} declares it"
            raise AuthoringError(
                house.relative(folder / declared), 1, f"is not there, though {what}; write it"
            )
    for task in assignment.task_ids:
        if task not in begun:
            what = f"no file here has a block for task {task}, which then could not be not started"
            raise AuthoringError(house.relative(folder), 1, f"{what}; mark one")
    return files


@dataclass(frozen=True)
class Change:
    """How a file of the starter differs from what it should be.

    Attributes:
        path: relative to the root of the tree.
        kind: `new`, `changed`, or `stray`: nothing in the solution accounts for it.
        diff: unified, from what is there to what should be; empty for a stray.
    """

    path: str
    kind: str
    diff: str = ""


def diff(assignment: Assignment, house: House | None = None) -> list[Change]:
    """What `write` would change; nothing is written. Raises as `generate`."""
    house = house or houses.here()
    return _changes(assignment, house, generate(assignment, house))


def _changes(assignment: Assignment, house: House, files: dict[PurePosixPath, str]) -> list[Change]:
    folder = house.starter(assignment.name)
    changes = []
    for where, text in sorted(files.items()):
        path = folder / where
        shown = house.relative(path)
        there = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
        if path.is_file() and path.read_bytes() == text.encode():
            continue
        lines = difflib.unified_diff(
            there.splitlines(keepends=True),
            text.splitlines(keepends=True),
            fromfile=shown,
            tofile=f"{shown} as generated",
        )
        changes.append(Change(shown, "changed" if path.is_file() else "new", "".join(lines)))
    for path in _files(folder):
        if PurePosixPath(path.relative_to(folder).as_posix()) not in files:
            changes.append(Change(house.relative(path), "stray"))
    return changes


def write(assignment: Assignment, house: House | None = None) -> list[Change]:
    """Writes `starter/<name>/`, removes strays, and returns what was changed. Raises as `generate`.

    Nothing is touched unless all files could be generated.
    """
    house = house or houses.here()
    files = generate(assignment, house)
    changes = _changes(assignment, house, files)
    folder = house.starter(assignment.name)
    for change in changes:
        path = house.root / change.path
        if change.kind == "stray":
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            text = files[PurePosixPath(path.relative_to(folder).as_posix())]
            path.write_bytes(text.encode())
    return changes


def _files(folder: Path) -> list[Path]:
    return sorted(
        path
        for path in folder.rglob("*")
        if path.is_file() and _LITTER not in path.relative_to(folder).parts
    )
