"""The one interface through which tests reach a submission, wherever it runs.

`LocalStudent` (module `local`) runs it in the same process, for pytest, `print` and the debugger;
the judge's `RemoteStudent` runs it in another process that is believed about nothing but bytes of
data. Tests cannot tell the two apart.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy
import torch
from comm_sim import Topology

from grader.testing.ranks import Ranks
from grader.testing.record import Record
from grader.testing.trace import Trace

#: Of a dict with more entries, the first keys stand for all.
_MOST_ENTRIES = 3


@dataclass(frozen=True)
class Launches:
    """The kernel launches of one call, as the device that executed them counted them.

    Attributes:
        launches: one `mini_triton.LaunchRecord` a launch, in order.
    """

    launches: tuple[Any, ...] = ()

    @property
    def loaded(self) -> int:
        """Elements loaded by kernels."""
        return sum(record.loaded for record in self.launches)

    @property
    def stored(self) -> int:
        """Elements stored by kernels."""
        return sum(record.stored for record in self.launches)

    @property
    def loaded_bytes(self) -> int:
        """Bytes loaded by kernels."""
        return sum(record.loaded_bytes for record in self.launches)

    @property
    def stored_bytes(self) -> int:
        """Bytes stored by kernels."""
        return sum(record.stored_bytes for record in self.launches)

    @property
    def moved_bytes(self) -> int:
        """Bytes loaded and stored by kernels."""
        return self.loaded_bytes + self.stored_bytes


@dataclass(frozen=True)
class Call:
    """One call of student code.

    Attributes:
        name: what was called, e.g. `rmsnorm_forward`.
        value: what it returned; tensors detached. For `gradients`: (output, gradient, …).
        filled: dicts that it was passed as keyword arguments, as it left them, by name.
        profile: the kernels that it launched, with their counts.
        trace: what its launches were given and what they left.
    """

    name: str
    value: Any
    profile: Launches = field(default_factory=Launches)
    trace: Trace = field(default_factory=lambda: Trace(()))
    filled: dict[str, dict[str, Any]] = field(default_factory=dict)


class Student(Protocol):
    """A submission whose functions can be called.

    A function is named by a dotted path in the assignment's (first) file, `RMSNorm.apply`; another
    declared file is chosen by its module's name and a colon, `flash_lab:flash_forward`. Arguments
    and results are tensors, numpy arrays, numbers, strings, None, and tuples, lists and
    string-keyed dicts of these; a dataclass of the submission is a `Record`, both ways.

    Both methods raise a `StudentProblem` for whatever student code does wrong, `Misuse` ("x was
    changed by rmsnorm_forward") included. Memory that student code allocates and does not write
    holds NaN.

    Attributes:
        calls: how many calls have been made: a test that makes none judges nothing.
        last: the last of them, for people: `flash_forward((24, 16), (40, 16), …, Br=8)`.
    """

    calls: int
    last: str

    def call(self, name: str, /, *args: Any, **kwargs: Any) -> Call:
        """Calls a function of the submission."""

    def gradients(
        self,
        name: str,
        /,
        *inputs: Any,
        wrt: Sequence[int] = (0, 1),
        dy: torch.Tensor,
        **kwargs: Any,
    ) -> Call:
        """Calls a function, then its backward pass.

        Args:
            name: the function; it has to return one tensor.
            *inputs: its positional arguments.
            wrt: which of them to differentiate by.
            dy: the gradient at the output, of the output's shape; its strides are kept.
            **kwargs: its keyword arguments.

        Returns:
            A call whose value is (output, gradient of the first in `wrt`, …).
        """

    def ranks(
        self, n: int, topology: Topology | None = None, byte_scale: float = 1.0
    ) -> AbstractContextManager[Ranks]:
        """Starts n ranks that the submission runs on, each in a process of its own.

            with self.student.ranks(4) as ranks:
                call = ranks.call("f", [(shard, COMM) for shard in shards], algo="rd")

        A rank has no access to what the others were given: `COMM` among its arguments is its
        `spmd.Communicator`, whose collectives are executed, logged and timed on `topology` by who
        grades. The processes are fresh, live until the region ends, and keep what `Ranks.keep`
        leaves there. There are no kernels on ranks.

        Under pytest ranks are threads of this process, of which one runs at a time, in rank order;
        each has modules of its own, so that what a file keeps globally is a rank's own there, too.

        What goes wrong raises a `StudentProblem` that names the rank; if several have a problem at
        the same time, that of the lowest. Ranks that wait for each other for ever are a `Misuse`.

        Args:
            n: how many, 1 to 16.
            topology: what connects them; None is `comm_sim.switch(n, NVLINK4)`. It is idle when a
                call begins.
            byte_scale: what a byte of an array counts for, see `comm_sim.Comm`.

        Returns:
            A context manager: the ranks.

        Raises:
            ValueError: no such n, or a topology of another size.
        """

    def source(self, file: str, line: int) -> str:
        """The text of a line of a submitted file, stripped; "" for any other file."""


def shown(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """A call for people: of tensors and arrays shape and dtype.

    float32, which tensors are unless something else is asked for, goes without saying for them.
    """
    parts = [_shown(value) for value in args]
    parts += [f"{key}={_shown(value)}" for key, value in kwargs.items()]
    return f"{name.rpartition(':')[2]}({', '.join(parts)})"


def shown_on_ranks(name: str, args: Sequence[Sequence[Any]], kwargs: Mapping[str, Any]) -> str:
    """A call on ranks for people: with the arguments of rank 0."""
    count = "1 rank" if len(args) == 1 else f"{len(args)} ranks"
    return f"{shown(name, args[0], kwargs)} on {count}"


def _shown(value: Any) -> str:
    if isinstance(value, torch.Tensor | numpy.ndarray):
        shape, dtype = tuple(value.shape), str(value.dtype).removeprefix("torch.")
        usual = isinstance(value, torch.Tensor) and value.dtype is torch.float32
        return f"{shape}" if usual else f"{shape} {dtype}"
    if isinstance(value, Record):
        fields = ", ".join(f"{name}={_shown(field)}" for name, field in value.fields.items())
        return f"{value.kind}({fields})"
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_shown, value))}]"
    if type(value) is dict and len(value) > _MOST_ENTRIES:
        return f"{{{', '.join(map(str, list(value)[:_MOST_ENTRIES]))}, …}}"
    if type(value) is dict:
        return f"{{{', '.join(f'{key}: {_shown(item)}' for key, item in value.items())}}}"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return f"{type(value).__name__}(…)"
    return f"{value:.6g}" if isinstance(value, float) else repr(value)
