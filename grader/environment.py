"""Which modules a submission finds where it is graded: those that the grader itself depends on.

A student's own machine has more: matplotlib for the demo, pytest, whatever else was installed. A
file that imports such a module works there, and in a grading container it cannot be imported at
all, which costs every point. So the judge hides these modules wherever it runs, and says why; and
`make submit` and `make test` say it beforehand. They are not installed in the container instead:
every test imports the file anew, and pyplot takes a second and 30 MB each time.
"""

from __future__ import annotations

import ast
import functools
import importlib.abc
import importlib.machinery
import importlib.metadata
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader import house as houses

_DISTRIBUTION = "bytewise"
#: What a message names of all that may be imported, beside `shared/`; the rest is there by chance.
WORTH_NAMING = "Python's own modules, torch, triton and numpy"


@functools.cache
def available() -> frozenset[str]:
    """The top-level modules that can be imported where submissions are graded.

    Those of Python's library, of the packages that `pyproject.toml` depends on (without its
    extras), directly or not, as far as they are installed here, and of `shared/`. Where the project
    itself is not installed, nobody knows, and all modules are.
    """
    needed: set[str] = set()
    names = [_DISTRIBUTION]
    while names:
        name = _normalised(names.pop())
        if name in needed:
            continue
        try:
            requirements = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue  # a requirement of another system's or another Python's
        needed.add(name)
        names += [
            re.split(r"[^\w.-]", requirement, maxsplit=1)[0]
            for requirement in requirements
            if not re.search(r";.*\bextra\s*==", requirement)
        ]
    found = {
        module
        for module, distributions in importlib.metadata.packages_distributions().items()
        if not needed or any(_normalised(distribution) in needed for distribution in distributions)
    }
    # The project's own packages, however they are installed.
    return frozenset(sys.stdlib_module_names | found | set(_shared()) | {"grader"})


@functools.cache
def _shared() -> tuple[str, ...]:
    """The packages of `shared/`."""
    return tuple(sorted(p.parent.name for p in houses.here().root.glob("shared/*/__init__.py")))


def _normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


class OnlyAvailable(importlib.abc.MetaPathFinder):
    """Put first on `sys.meta_path`, it hides all modules but the available ones.

    Args:
        modules: the available ones, see `available`.
    """

    def __init__(self, modules: frozenset[str]) -> None:
        self._modules = modules

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Finds nothing; raises for what is to be hidden."""
        if path is None and fullname not in self._modules:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        return None


def explain_absent(module: str) -> str:
    """What to do about an import of a module that is not there."""
    return (
        f"there is no module {module.partition('.')[0]} where submissions are graded: they may "
        f"import {WORTH_NAMING}, what lies in shared ({', '.join(_shared())}), and the files "
        "handed in. If it is for plots or experiments, "
        'import it in the function that uses it, or below `if __name__ == "__main__":`'
    )


@dataclass(frozen=True)
class Absent:
    """An import that fails where submissions are graded.

    Attributes:
        file: the submitted file.
        line: the import's.
        module: what it imports.
    """

    file: str
    line: int
    module: str

    def __str__(self) -> str:
        place = f"{self.file}, line {self.line}, imports {self.module}"
        return f"{place}, which will fail: {explain_absent(self.module)}"


def absent_imports(folder: Path, files: Sequence[str]) -> list[Absent]:
    """The imports in submitted files that run when a file is imported, and fail in grading.

    Only the first of each module. An import in a function, below `if __name__ == "__main__":` or in
    a `try` that catches its failure does no harm.

    Args:
        folder: where the files are; those that are missing or cannot be parsed are passed over.
        files: the names of all files that are handed in.
    """
    allowed = available() | {Path(file).stem for file in files}
    found: dict[tuple[str, str], Absent] = {}
    for file in files:
        try:
            tree = ast.parse((folder / file).read_bytes())
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        for line, module in _imports(tree.body):
            if module.partition(".")[0] not in allowed:
                found.setdefault((file, module), Absent(file, line, module))
    return list(found.values())


def _imports(body: Sequence[ast.stmt]) -> Iterator[tuple[int, str]]:
    """(line, module) of the imports among statements that surely run."""
    for node in body:
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield node.lineno, module
            case ast.If(test=ast.Constant(value=value), body=inner) if value:
                yield from _imports(inner)
            case ast.With(body=inner) | ast.ClassDef(body=inner):
                yield from _imports(inner)
            case ast.Try(body=inner, handlers=handlers, finalbody=last):
                if not any(_catches(handler) for handler in handlers):
                    yield from _imports(inner)
                yield from _imports(last)


def _catches(handler: ast.ExceptHandler) -> bool:
    """Whether a handler catches a `ModuleNotFoundError`."""
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    catching = {"ModuleNotFoundError", "ImportError", "Exception", "BaseException"}
    return any(
        kind is None or (isinstance(kind, ast.Name) and kind.id in catching) for kind in kinds
    )
