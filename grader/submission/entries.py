"""Which of the files in a folder or a zip are the declared ones."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from grader.submission.result import Refused
from grader.submission.text import shown

#: Folders that machines make, and that nobody hands in on purpose. Names with a leading dot
#: (`.git`, `.DS_Store`, `.ipynb_checkpoints`, macOS's `._rmsnorm.py`) are passed over as well.
_LITTER = frozenset({"__MACOSX", "__pycache__", "venv", "site-packages", "node_modules"})

_LISTED = 8


@dataclass(frozen=True)
class Entry:
    """A file that a folder or a zip holds.

    Attributes:
        path: from the top of the submission.
        read: the bytes, given how many there may be; raises `Refused` if there are more.
        link: it is a symbolic link, and nobody looked at where it leads.
    """

    path: PurePosixPath
    read: Callable[[int], bytes]
    link: bool = False

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.name

    def __str__(self) -> str:
        return shown(str(self.path)) + (" (a symbolic link)" if self.link else "")


def is_litter(part: str) -> bool:
    """Whether a file or a folder of that name is passed over, with all that is in it."""
    return part.startswith(".") or part in _LITTER


def choose(entries: Sequence[Entry], file: str) -> Entry | None:
    """The one entry that has a declared file's name, in whichever folder; None if there is none.

    Raises:
        Refused: there are several, or it is a symbolic link.
    """
    found = [entry for entry in entries if entry.name == file]
    if len(found) > 1:
        raise Refused(
            f"several files are called {file}: {listed(found)}; hand in just the one to be graded",
            file=file,
        )
    if found and found[0].link:
        raise Refused(
            f"{found[0]} is not followed; hand in the file itself",
            file=file,
        )
    return found[0] if found else None


def choose_notebook(entries: Sequence[Entry], file: str) -> Entry | None:
    """The notebook that stands for a declared file that is not there; None if there is none.

    Of several notebooks, the one that is called like the file: `rmsnorm.ipynb`.

    Raises:
        Refused: there are several, or it is a symbolic link.
    """
    notebooks = [entry for entry in entries if entry.path.suffix == ".ipynb"]
    stem = file.removesuffix(".py")
    found = [entry for entry in notebooks if entry.path.stem == stem] or notebooks
    if len(found) > 1:
        raise Refused(
            f"there is no {file}, but several notebooks: {listed(found)}; hand in just the one to "
            f"be graded, or call it {stem}.ipynb",
            file=file,
        )
    if found and found[0].link:
        raise Refused(f"{found[0]} is not followed; hand in the notebook itself", file=file)
    return found[0] if found else None


def explain_missing(entries: Sequence[Entry], file: str, declared: Sequence[str]) -> str:
    """Says that a declared file is not there, what is, and which of that it may have been."""
    if not entries:
        return f"{file} is missing: there are no files at all"
    others = [entry for entry in entries if entry.name not in declared]
    python = {entry.name: entry for entry in others if entry.path.suffix.casefold() == ".py"}
    folded = {name.casefold(): name for name in python}
    near = difflib.get_close_matches(file, list(folded), n=1, cutoff=0.7)
    if near:
        likely = python[folded[near[0]]]
    elif len(python) == 1 and len(declared) == 1:
        likely = next(iter(python.values()))
    else:
        archives = [entry for entry in others if entry.path.suffix.casefold() == ".zip"]
        hint = f"; unpack {archives[0]} and hand in what is in it" if archives else ""
        return f"{file} is missing: found {listed(entries)}{hint}"
    return f"{file} is missing: found {likely}, expected {file}: rename it"


def listed(entries: Sequence[Entry]) -> str:
    """The first few, and how many more there are."""
    text = ", ".join(str(entry) for entry in entries[:_LISTED])
    return text + (f" and {len(entries) - _LISTED} more" if len(entries) > _LISTED else "")
