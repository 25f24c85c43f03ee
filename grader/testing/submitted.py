"""Imports the declared files of a submission, each by its path, and finds functions in them.

A submission cannot shadow a library: its folder never is on `sys.path`, only the declared files can
be imported, under their own names, and byte code lying around is never read.
"""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from grader.submission import Submission
from grader.testing.explain import explain_import
from grader.testing.problems import ImportFailed, MissingFile, Misuse


def require_read(submission: Submission | None, file: str) -> None:
    """Raises what kept a declared file from being read, if anything did.

    Args:
        submission: how reading went; None if there is nothing to say of it.
        file: the declared file's name.

    Raises:
        ImportFailed: Python could not read it.
        MissingFile: it is not there, or was refused.
    """
    problem = submission.problem_of(file) if submission else None
    if problem is not None:
        kind = ImportFailed if problem.kind == "import error" else MissingFile
        raise kind(problem.message)


class _SourceOnly(importlib.machinery.SourceFileLoader):
    """Compiles the source each time: a `__pycache__` may be stale, or forged."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


class SubmittedCode(importlib.abc.MetaPathFinder):
    """The declared files of one submission, imported on first use.

    Args:
        folder: where they are.
        files: their names, the main file first.
    """

    def __init__(self, folder: Path, files: Sequence[str]) -> None:
        self.folder = folder.resolve()
        self.files = {Path(file).stem: self.folder / file for file in files}
        self._modules: dict[str, ModuleType] = {}

    def find_spec(
        self, fullname: str, path: object = None, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Finds the declared files, so that one of them may import another."""
        file = self.files.get(fullname)
        if file is None or not file.is_file():
            return None
        return importlib.util.spec_from_file_location(
            fullname, file, loader=_SourceOnly(fullname, str(file))
        )

    @contextmanager
    def importable(self) -> Iterator[None]:
        """While active, `import` finds the declared files, and finds them here."""
        for name in self.files:
            if name in self._modules:
                sys.modules[name] = self._modules[name]
            else:
                sys.modules.pop(name, None)  # one of another submission's
        sys.meta_path.insert(0, self)
        try:
            yield
        finally:
            sys.meta_path.remove(self)
            for name in self.files:
                if name in sys.modules:
                    self._modules[name] = sys.modules[name]

    def module(self, name: str) -> ModuleType:
        """The module of a declared file.

        Raises:
            MissingFile: it was not submitted.
            ImportFailed: it raised while it was imported.
            Crashed: it ended the process while it was imported.
        """
        if name in self._modules:
            return self._modules[name]
        file = self.files[name]
        if not file.is_file():
            raise MissingFile(f"{file.name} was not submitted")
        with self.importable():
            try:
                return importlib.import_module(name)
            except BaseException as error:
                raise explain_import(error, self.folder, file.name) from error

    def function(self, name: str) -> Callable[..., Any]:
        """Finds `function`, `Class.method` or `module:function`.

        Raises:
            Misuse: no such name.
            MissingFile, ImportFailed, Crashed: see `module`.
        """
        module_name, colon, path = name.rpartition(":")
        if not colon:
            module_name = next(iter(self.files))
        elif module_name not in self.files:
            raise KeyError(f"{module_name!r} is not among the assignment's files: {name}")
        module = self.module(module_name)
        try:
            found = functools.reduce(getattr, path.split("."), module)
        except AttributeError:
            raise Misuse(
                f"{module_name}.py defines no {path}; keep the names that the starter has"
            ) from None
        if not callable(found):
            raise Misuse(f"{path} in {module_name}.py is not a function but {found!r:.80}")
        return found
