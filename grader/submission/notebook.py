"""From a notebook to a Python file, with a way back from its lines to the cells.

Which code cells make up `rmsnorm.py`:

    a cell with the tag `rmsnorm.py` or `rmsnorm`
    a cell whose first line is `# file: rmsnorm.py` or `%%writefile rmsnorm.py`
    if no cell says so and the assignment has just one file, all code cells

in the order of the notebook. Cells that begin with another cell magic are left out, unless it
executes the cell where all others are (`%%time`, `%%capture`): then that line alone is.

Cells are counted from 1, text cells included: that is how they lie before the student, while the
numbers in brackets change whenever a cell is run.
"""

from __future__ import annotations

import json
import logging
import re
import shlex
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import nbformat

from grader.submission.magics import strip_magics
from grader.submission.result import LineMap, Problem, Refused
from grader.submission.syntax import Part, check_parts, check_syntax
from grader.submission.text import shown, unix_lines

_FILE_LINE = re.compile(r"#\s*file:\s*(?P<file>\S+)\s*$")
_WRITEFILE = re.compile(r"%%(?:writefile|file)\b(?P<arguments>.*)$")
#: Cell magics that execute their cell in the notebook's own names: what it defines stays defined.
_EXECUTED = re.compile(r"%%(?:time|capture|prun)(?!\S)")
#: This one executes it in a function.
_TIMEIT = re.compile(r"%%timeit(?!\S)")
_NOTED = 20
#: nbformat takes 2 kB for a cell, and JSON can spell 240,000 of them in the bytes that we read.
_CELLS = 5_000


@dataclass(frozen=True)
class Cell:
    """A code cell.

    Attributes:
        number: its place in the notebook, from 1, text cells included.
        lines: its source.
        names: what its tags and its first line call it: `rmsnorm`, `rmsnorm.py`.
    """

    number: int
    lines: list[str]
    names: frozenset[str]

    def is_for(self, file: str) -> bool:
        """Whether it says that it is part of a declared file."""
        return file in self.names or file.removesuffix(".py") in self.names


@dataclass(frozen=True)
class Extract:
    """A declared file, made of cells.

    Attributes:
        source: the file.
        lines: where each of its lines came from.
        notes: what was assumed and taken out.
        problem: what Python has against it, placed in its cell.
    """

    source: str
    lines: LineMap
    notes: list[str]
    problem: Problem | None


def read_cells(text: str, name: str) -> list[Cell]:
    """The code cells of a notebook of any format version up to 4.

    Args:
        text: the notebook's JSON.
        name: what to call it.

    Raises:
        Refused: it is not a notebook.
    """
    try:
        with _quiet():
            # `nbformat.read` would also validate, and so complain of missing and duplicate cell ids
            # and of much else that does not matter to us.
            essentials = json.dumps(_essentials(json.loads(text)))
            book = nbformat.convert(nbformat.reader.reads(essentials), 4)
        found = [_cell(number, cell) for number, cell in enumerate(book["cells"], start=1)]
    except Exception as error:  # whatever nbformat makes of arbitrary JSON: KeyError, TypeError, …
        what = shown(" ".join(str(error).split())) or type(error).__name__
        raise Refused(
            f"{name} cannot be read as a notebook ({what}); open it in Jupyter and save it again",
            "import error",
        ) from None
    return [cell for cell in found if cell is not None]


def extract(cells: Sequence[Cell], file: str, declared: Sequence[str]) -> Extract:
    """Makes a declared file of the cells that are for it.

    Raises:
        Refused: there are none.
    """
    mine = [cell for cell in cells if cell.is_for(file)]
    notes: list[str] = []
    if not mine and len(declared) == 1:
        mine = [cell for cell in cells if any(line.strip() for line in cell.lines)]
        notes.append(
            f"no cell is tagged {file}, so all {len(mine)} code cells were taken; tag those to be "
            f"graded, or begin them with `# file: {file}`"
        )
    if not mine:
        stem = file.removesuffix(".py")
        raise Refused(
            f"{file} is missing: no code cell of the notebook is for it; give its cells the tag "
            f"{stem}, or the first line `# file: {file}`",
            "missing file",
            file,
        )
    source: list[str] = []
    lines: list[tuple[int, int] | None] = []
    parts: list[Part] = []
    for cell in mine:
        kept = _python_of(cell, file, notes)
        numbered = [(cell.number, line) for line in range(1, len(kept) + 1)]
        parts.append(("\n".join(kept), tuple(numbered)))
        source += [f"# cell {cell.number}", *kept, ""]
        lines += [None, *numbered, None]
    text = "\n".join(source)
    if len(notes) > _NOTED:
        notes[_NOTED:] = [f"{file}: … and {len(notes) - _NOTED} more lines and cells were left out"]
    return Extract(text, tuple(lines), notes, _problem(text, tuple(lines), parts, file))


def _problem(text: str, lines: LineMap, parts: Sequence[Part], file: str) -> Problem | None:
    """A bracket left open in one cell is noticed in the next; so look at each by itself first."""
    whole = check_syntax(text, file, lines)
    return whole and (check_parts(parts, file) or whole)


def _python_of(cell: Cell, file: str, notes: list[str]) -> list[str]:
    """The cell's lines, as many as before, with only Python left in them; adds to the notes."""
    lines = list(cell.lines)
    for index in _cell_magics(lines):
        magic = lines[index].strip()
        if _EXECUTED.match(magic):
            where = f"cell {cell.number}, line {index + 1}"
            notes.append(f"{where}: left out the cell magic {_short(magic)}")
        elif _written_file(magic) != file:
            why = ", which keeps nothing that it defines" if _TIMEIT.match(magic) else ""
            notes.append(f"cell {cell.number}: left out, as it begins with {_short(magic)}{why}")
            return []
        lines[index] = f"# {magic}"
    kept, dropped = strip_magics(lines)
    notes += [
        f"cell {cell.number}, line {one.line}: left out {one.kind} {_short(one.text)}"
        for one in dropped
    ]
    return kept


def _essentials(book: dict[str, Any]) -> dict[str, Any]:
    """The notebook without outputs and all else that nbformat would convert for nothing."""
    kept: dict[str, Any] = {"metadata": {}}
    kept |= {key: value for key, value in book.items() if key in ("nbformat", "nbformat_minor")}
    count = sum(len(one["cells"]) for one in book.get("worksheets", [book]))
    if count > _CELLS:
        raise ValueError(f"it has {count:,} cells, and {_CELLS:,} are the most there may be")
    if "worksheets" in book:  # before version 4
        sheets = [
            {"cells": [_essential(cell) for cell in one["cells"]]} for one in book["worksheets"]
        ]
        return {**kept, "worksheets": sheets}
    return {**kept, "cells": [_essential(cell) for cell in book["cells"]]}


def _essential(cell: dict[str, Any]) -> dict[str, Any]:
    wanted = ("cell_type", "source", "input", "language", "level")
    kept = {key: cell[key] for key in wanted if key in cell}
    return {**kept, "metadata": {"tags": cell.get("metadata", {}).get("tags", [])}, "outputs": []}


def _short(text: str) -> str:
    return f"`{shown(text if len(text) <= 60 else text[:59] + '…')}`"


def _cell(number: int, cell: Any) -> Cell | None:
    if cell["cell_type"] != "code":
        return None
    source = cell["source"]
    text = unix_lines(source if isinstance(source, str) else "".join(source))
    tags = cell.get("metadata", {}).get("tags", [])
    names = {tag for tag in tags if isinstance(tag, str)}
    lines = text.split("\n")
    first = _first_line(lines)
    if named := _FILE_LINE.match(first):
        names.add(named["file"])
    elif written := _written_file(first):
        names.add(written)
    return Cell(number, lines, frozenset(names))


def _cell_magics(lines: list[str]) -> Iterator[int]:
    """Where the magics are that a cell begins with: several only if each executes what follows."""
    for index, line in enumerate(lines):
        text = line.strip()
        if text.startswith("%%"):
            yield index
        if text and not _EXECUTED.match(text):
            return


def _first_line(lines: list[str]) -> str:
    """The first line that says something, magics that execute the cell passed over; stripped."""
    texts = (line.strip() for line in lines)
    return next((text for text in texts if text and not _EXECUTED.match(text)), "")


def _written_file(line: str) -> str:
    """The file name that `%%writefile -a folder/rmsnorm.py` gives, without folders; or empty."""
    match = _WRITEFILE.match(line)
    if match is None:
        return ""
    try:
        arguments = shlex.split(match["arguments"])
    except ValueError:  # a quotation mark without its partner
        return ""
    files = [argument for argument in arguments if not argument.startswith("-")]
    return PurePosixPath(files[0]).name if len(files) == 1 else ""


@contextmanager
def _quiet() -> Iterator[None]:
    """What nbformat mends, it also warns of and logs; no student has to read that."""
    logger = logging.getLogger("traitlets")  # nbformat's
    before = logger.disabled
    logger.disabled = True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.disabled = before
