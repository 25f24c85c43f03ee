"""Triton's interpreter in a process of its own, which stays alive from program to program.

`TRITON_INTERPRET` decides when `triton` is imported, so that one process cannot have both. This
file is also that process's: it reads pickled requests (path of the source, grid, arguments, arrays
for tensors) from its standard input and answers with the arguments as they are afterwards, or with
an error's text.
"""

from __future__ import annotations

import importlib.util
import os
import pickle
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

ROOT = Path(__file__).parents[3]


def loaded(path: Path) -> ModuleType:
    """The module of a source file, which is no part of a package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _tensors(args: list[Any]) -> list[Any]:
    return [torch.from_numpy(a) if isinstance(a, np.ndarray) else a for a in args]


class Refused(Exception):
    """The interpreter cannot run the program; the text is its error."""


class Interpreter:
    """The process; it starts when it is first asked."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, path: Path, grid: tuple[int, ...], args: list[Any]) -> list[Any]:
        """`kernel[grid](*args)` of a source file; the tensors as they are afterwards.

        Raises `Refused`, after a second try in a new process: an error in one program can leave
        the interpreter in a state in which the next one fails.
        """
        try:
            return self._ask(path, grid, args)
        except Refused:
            self.close()
            return self._ask(path, grid, args)

    def _ask(self, path: Path, grid: tuple[int, ...], args: list[Any]) -> list[Any]:
        if self._process is None:
            env = os.environ | {"TRITON_INTERPRET": "1"}
            env["PYTHONPATH"] = os.pathsep.join(
                [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
            )
            self._process = subprocess.Popen(
                [sys.executable, "-W", "ignore", __file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=env,
            )
        assert self._process.stdin is not None and self._process.stdout is not None
        arrays = [a.numpy() if isinstance(a, torch.Tensor) else a for a in args]
        pickle.dump((path, grid, arrays), self._process.stdin)
        self._process.stdin.flush()
        answer = pickle.load(self._process.stdout)
        if isinstance(answer, str):
            raise Refused(answer)
        return _tensors(answer)

    def close(self) -> None:
        """Ends the process."""
        if self._process is not None:
            assert self._process.stdin is not None and self._process.stdout is not None
            self._process.stdin.close()
            self._process.wait()
            self._process.stdout.close()
            self._process = None


def _serve() -> None:
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints must not mix with the answers
    np.seterr(all="ignore")
    while True:
        try:
            path, grid, args = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            loaded(path).kernel[grid](*_tensors(args))  # which share the arrays' memory
            answer: Any = args
        except Exception as error:
            cause = error.__cause__ or error
            answer = f"{type(cause).__name__}: {cause}"
        pickle.dump(answer, answers)
        answers.flush()


if __name__ == "__main__":
    torch.set_num_threads(1)
    _serve()
