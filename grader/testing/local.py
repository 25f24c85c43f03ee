"""A submission in the same process: what `pytest` runs, so that `print` and the debugger work."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mini_triton
import torch
from comm_sim import Topology
from mini_triton.settings import use

from grader.testing.limits import MOST_MEMORY, MOST_STEPS
from grader.testing.local_ranks import LocalRanks
from grader.testing.ranks import Ranks
from grader.testing.running import filled_in, run_call, run_gradients
from grader.testing.sound import CHECKS, sound
from grader.testing.student import Call, Launches, shown
from grader.testing.submitted import SubmittedCode
from grader.testing.trace import Trace


class _Recorder:
    """A device that executes launches as before, and keeps their records and a trace."""

    def __init__(self, device: Any, inputs: Any) -> None:
        self._device = device
        self.records: list[Any] = []
        self.trace = Trace(inputs)

    def launch(self, launch: Any) -> Any:
        record = self.trace.launch(self._device, launch)
        self.records.append(record)
        return record

    def made(self, name: str, value: Any, filled: dict[str, Any]) -> Call:
        """The call during which all this was launched."""
        return Call(name, value, Launches(tuple(self.records)), self.trace, filled)


@contextmanager
def _recorded(source: Callable[[str, int], str], *inputs: Any) -> Iterator[_Recorder]:
    """The launches of the region; a `mini_triton.profile()` around it still sees them.

    Raises `KernelFault` in the end if a kernel has a fault.
    """
    recorder = _Recorder(mini_triton.current_device(), inputs)
    before = mini_triton.set_device(recorder)
    try:
        limits = use(checks=CHECKS, steps=MOST_STEPS, memory=MOST_MEMORY)
        with limits, sound(recorder.records, source):
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
        last: the last of them, for people.
    """

    def __init__(self, folder: Path, files: Sequence[str]) -> None:
        self._code = SubmittedCode(folder, files)
        self.calls = 0
        self.last = ""

    def call(self, name: str, /, *args: Any, **kwargs: Any) -> Call:
        """Calls a function of the submission."""
        self._begin(name, shown(name, args, kwargs), [self._code])
        recorded = _recorded(self.source, args, kwargs)
        with self._during(lambda: f"in {name}"), recorded as device:
            value = run_call(self._code, name, args, kwargs)
            filled = filled_in(self._code, name, kwargs)
        return device.made(name, value, filled)

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
        self._begin(name, shown(name, inputs, kwargs), [self._code])
        recorded = _recorded(self.source, inputs, kwargs, dy)
        with self._during(lambda: f"in {name}"), recorded as device:
            value = run_gradients(self._code, name, inputs, wrt, dy, kwargs)
            filled = filled_in(self._code, name, kwargs)
        return device.made(name, value, filled)

    @contextmanager
    def ranks(
        self, n: int, topology: Topology | None = None, byte_scale: float = 1.0
    ) -> Iterator[Ranks]:
        """Ranks that the submission runs on, each with modules of its own."""
        folder, files = self._code.folder, [path.name for path in self._code.files.values()]
        ranks = LocalRanks(
            n, topology, byte_scale, folder, files, begin=self._begin, during=self._during
        )
        try:
            yield ranks
        finally:
            ranks.close()

    def _begin(self, name: str, call: str, codes: Sequence[SubmittedCode]) -> None:
        """Counts a call, and imports the file apart from it: what it launches then is no part."""
        self.calls += 1
        self.last = call
        for code in codes:
            code.function(name)

    @contextmanager
    def _during(self, doing: Callable[[], str]) -> Iterator[None]:
        """The region of a call, which someone who watches a clock may break off."""
        yield

    def source(self, file: str, line: int) -> str:
        """The text of a line of a submitted file, stripped; "" for any other file."""
        path = self._code.files.get(Path(file).stem)
        if path is None or path.name != Path(file).name:
            return ""
        return linecache.getline(str(path), line).strip()
