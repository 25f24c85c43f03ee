"""A submission in the same process: what `pytest` runs, so that `print` and the debugger work."""

from __future__ import annotations

import linecache
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mini_triton
import torch

from grader.testing.provenance import Operand, execute
from grader.testing.running import run_call, run_gradients
from grader.testing.student import Call, Launches, tensors_in
from grader.testing.submitted import SubmittedCode


class _Recorder:
    """A device that executes launches as before and keeps their records."""

    def __init__(self, device: Any) -> None:
        self._device = device
        self.records: list[Any] = []
        self.operands: list[Operand] = []

    def launch(self, launch: Any) -> Any:
        record, operands = execute(self._device, launch)
        self.records.append(record)
        self.operands += operands
        return record

    def made(self, name: str, value: Any, inputs: tuple[torch.Tensor, ...]) -> Call:
        """The call during which all this was launched."""
        launches = Launches(tuple(self.records))
        return Call(name, value, launches, inputs, tuple(self.operands))


@contextmanager
def _recorded() -> Iterator[_Recorder]:
    """The launches of the region; a `mini_triton.profile()` around it still sees them."""
    recorder = _Recorder(mini_triton.current_device())
    before = mini_triton.set_device(recorder)
    try:
        yield recorder
    finally:
        mini_triton.set_device(before)


class LocalStudent:
    """Runs a submission's functions in this process. See `Student` for what they take and raise.

    Args:
        folder: where the declared files are.
        files: their names, the main file first.

    Attributes:
        calls: how many calls have been made.
    """

    def __init__(self, folder: Path, files: Sequence[str]) -> None:
        self._code = SubmittedCode(folder, files)
        self.calls = 0

    def call(self, name: str, /, *args: Any, **kwargs: Any) -> Call:
        """Calls a function of the submission."""
        self.calls += 1
        with _recorded() as device:
            value = run_call(self._code, name, args, kwargs)
        return device.made(name, value, tensors_in(args, kwargs))

    def gradients(
        self,
        name: str,
        /,
        *inputs: Any,
        wrt: Sequence[int] = (0, 1),
        dy: torch.Tensor,
        **kwargs: Any,
    ) -> Call:
        """Calls a function, then its backward pass: value is (output, gradient, …)."""
        self.calls += 1
        with _recorded() as device:
            value = run_gradients(self._code, name, inputs, wrt, dy, kwargs)
        return device.made(name, value, tensors_in(inputs, kwargs, dy))

    def source(self, file: str, line: int) -> str:
        """The text of a line of a submitted file, stripped; "" for any other file."""
        path = self._code.files.get(Path(file).stem)
        if path is None or path.name != Path(file).name:
            return ""
        return linecache.getline(str(path), line).strip()
