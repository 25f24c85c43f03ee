"""The submission as the judge's tests see it: another process at the end of a wire.

All that comes from there is checked. Launches are executed here, on buffers of the judge's own, and
counted here; the counts that a test sees are these.
"""

from __future__ import annotations

import linecache
import re
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import mini_triton
import torch
from comm_sim import Topology
from mini_triton import settings

from grader.judge import wire
from grader.judge.arguments import ArgumentEncoder
from grader.judge.faults import SimulatorFault, WorkerGone
from grader.judge.remote_ranks import RemoteRanks
from grader.judge.staff import Staff
from grader.judge.text import clean
from grader.submission import Submission
from grader.testing.limits import MOST_MEMORY, MOST_STEPS
from grader.testing.problems import (
    KINDS,
    Crashed,
    Frame,
    MissingFile,
    StudentError,
    StudentProblem,
    TimedOut,
)
from grader.testing.ranks import Ranks
from grader.testing.sound import CHECKS, sound
from grader.testing.student import Call, Launches, shown
from grader.testing.submitted import require_read
from grader.testing.trace import Trace, reach

#: Bounds on text that comes from the worker: characters of a message, frames, bytes of TTIR.
_LONGEST_MESSAGE = 8_000
_MOST_FRAMES = 12
_LONGEST_LINE = 300
_LONGEST_TTIR = 4 << 20
_MOST_ARGUMENTS = 256
_LARGEST_AXIS = 2**31 - 1


class RemoteStudent:
    """Calls functions of a submission that runs in a worker. See `Student`.

    Args:
        connection: the judge's end of the wire.
        folder: the folder with the submitted files.
        files: their names, the main file first.
        announce: told what is going on, for the message if time runs out, and which file is being
            imported meanwhile, if one is.
        submission: what kept files from being read, and which notebook cells lines came from.
        show: takes what kernels print, line by line.
        endless: files that are not to be imported, as that had no end in tests before; with the
            numbers of these.
        staff: gets processes for ranks.

    Attributes:
        calls: how many calls have been made.
        last: the last of them, for people.
    """

    def __init__(
        self,
        connection: socket.socket,
        folder: Path,
        files: Sequence[str],
        announce: Callable[[str, str], None] = lambda doing, importing: None,
        submission: Submission | None = None,
        show: Callable[[str], None] = print,
        endless: Mapping[str, Sequence[str]] = MappingProxyType({}),
        staff: Staff | None = None,
    ) -> None:
        self._connection = connection
        self._folder = folder
        self._files = {Path(file).stem: file for file in files}
        self._announce = announce
        self._submission = submission
        self._device = mini_triton.LocalDevice(show, CHECKS)
        self._endless = endless
        self._staff = staff
        self._imported: set[str] = set()
        self._importing = ""
        self.calls = 0
        self.last = ""

    def call(self, name: str, /, *args: Any, **kwargs: Any) -> Call:
        """Calls a function of the submission."""
        return self._request("call", name, args, kwargs, {})

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
        call = self._request(
            "gradients", name, inputs, kwargs, {"dy": dy}, wrt=[int(position) for position in wrt]
        )
        if type(call.value) is not tuple or len(call.value) != 1 + len(wrt):
            raise Crashed(f"the student's process answered {name} with something else")
        return call

    @contextmanager
    def ranks(
        self, n: int, topology: Topology | None = None, byte_scale: float = 1.0
    ) -> Iterator[Ranks]:
        """Ranks that the submission runs on, each in a process of its own."""
        ranks = RemoteRanks(n, topology, byte_scale, self, self._staff)
        try:
            yield ranks
        finally:
            ranks.close()

    def source(self, file: str, line: int) -> str:
        """The text of a line of a submitted file, stripped; "" for any other file."""
        name = Path(file).name
        if self._files.get(Path(name).stem) != name:
            return ""
        return clean(linecache.getline(str(self._folder / name), line).strip(), _LONGEST_LINE)

    def _request(
        self,
        op: str,
        name: str,
        args: Sequence[Any],
        kwargs: dict[str, Any],
        tensors: dict[str, torch.Tensor],
        **plain: Any,
    ) -> Call:
        """Sends one request and executes launches until its answer comes."""
        self.begin(name, shown(name, args, kwargs))
        self._import(name)
        self.doing(f"in {name}")
        encoder = ArgumentEncoder()
        header = {
            "op": op,
            "name": name,
            "args": [encoder.value(value) for value in args],
            "kwargs": {key: encoder.value(value) for key, value in kwargs.items()},
            **{key: encoder.value(value) for key, value in tensors.items()},
            **plain,
        }
        encoder.seal()
        records: list[mini_triton.LaunchRecord] = []
        trace = Trace((args, kwargs, tensors))
        frame = wire.pack(header, encoder.storages)
        with sound(records, self.source):
            value, filled = self._ask(name, frame, records, trace)
        wanted = {key for key, given in kwargs.items() if type(given) is dict}
        if filled.keys() != wanted or any(type(item) is not dict for item in filled.values()):
            raise Crashed(f"the student's process answered {name} with something else")
        return Call(name, value, Launches(tuple(records)), trace, filled)

    def _import(self, name: str) -> None:
        """Has the file imported, apart from the call: what it launches meanwhile is no part of it.

        A file may well try a kernel at its end. What such a launch stores is unknown to the call,
        so nothing that was computed then can be passed off as the call's.
        """
        module = self._module_of(name)
        if module in self._imported:
            return
        with self.importing(name):
            self._ask(name, wire.pack({"op": "import", "name": name}), [], Trace(()))
        self._imported.add(module)

    @contextmanager
    def importing(self, name: str) -> Iterator[None]:
        """The time while the file of a function is imported.

        Raises:
            TimedOut: it is not imported again, as that had no end before.
        """
        file = self._files[self._module_of(name)]
        if file in self._endless:
            tests = " and ".join(self._endless[file])
            raise TimedOut(f"{file} was not imported again: that had no end in tests {tests}")
        self._importing = file
        self._announce(f"while {file} was imported", file)
        yield
        self._importing = ""

    def _ask(
        self, name: str, frame: bytes, records: list[mini_triton.LaunchRecord], trace: Trace
    ) -> tuple[Any, dict[str, Any]]:
        """Sends a request and executes launches until its answer comes: the value, `filled`."""
        try:
            wire.send(self._connection, frame)
            while True:
                message = wire.receive(self._connection)
                kind = message.header.get("op")
                if kind == "launch":
                    self._launch(message, records, trace)
                elif kind == "returned":
                    filled = message.header.get("filled")
                    if not isinstance(filled, dict):
                        raise wire.ProtocolError("an answer does not say what was filled in")
                    value = message.value(message.header.get("value"))
                    return value, {key: message.value(item) for key, item in filled.items()}
                elif kind == "raised":
                    raise self.problem_of(message.header)
                else:
                    raise wire.ProtocolError(f"unknown message {str(kind)[:20]!r}")
        except wire.Disconnected as gone:
            raise WorkerGone(f"the student's process ended in {name}") from gone
        except wire.ProtocolError as bad:
            raise Crashed(
                f"during {name}, the student's process sent what is no answer: {bad}"
            ) from bad

    def begin(self, name: str, call: str) -> None:
        """Counts a call and notes its words for people.

        Raises:
            StudentProblem: its file could not be read.
        """
        self.calls += 1
        self.last = call
        self._require_file(name)

    def doing(self, what: str) -> None:
        """Tells what goes on, for the message if time runs out."""
        self._announce(what, self._importing)

    def _module_of(self, name: str) -> str:
        return name.rpartition(":")[0] or next(iter(self._files))

    def _require_file(self, name: str) -> None:
        """Raises what kept the file that `name` is in from being read."""
        file = self._files[self._module_of(name)]
        require_read(self._submission, file)
        if not (self._folder / file).is_file():
            raise MissingFile(f"{file} was not submitted")

    def problem_of(self, header: dict[str, Any]) -> StudentProblem:
        """What the worker says went wrong: believed, since it only ever costs points."""
        kind = KINDS.get(str(header.get("kind")), StudentError)
        message = clean(header.get("message", ""), _LONGEST_MESSAGE)
        return kind(message, self.frames_of(header.get("frames")))

    def frames_of(self, raw: Any) -> tuple[Frame, ...]:
        """The frames in a message from a worker; of a notebook, with its cells."""
        frames = []
        for entry in raw[:_MOST_FRAMES] if isinstance(raw, list) else []:
            match entry:
                case [str(file), int(line), str(function), str(text)]:
                    cell = self._submission.cell_of(file, line) if self._submission else None
                    if cell is not None:
                        file, line = f"cell {cell[0]}", cell[1]
                    parts = [clean(part, _LONGEST_LINE) for part in (file, function, text)]
                    frames.append(Frame(parts[0], line, parts[1], parts[2]))
        return tuple(frames)

    def _launch(
        self,
        message: wire.Message,
        records: list[mini_triton.LaunchRecord],
        trace: Trace,
    ) -> None:
        """Executes a launch, keeps what it moved, and answers it; of one that fails, the error."""
        launch = _checked_launch(message)
        self._announce(f"in kernel {launch.kernel}, grid {launch.grid}", self._importing)
        before = [storage.clone() for storage in message.storages]
        try:
            # A container of half a core may show the machine's: threads would only take memory.
            with settings.use(steps=MOST_STEPS, memory=MOST_MEMORY, threads=1):
                record = trace.launch(self._device, launch)
        except mini_triton.KernelError as error:
            refusal = {
                "op": "kernel error",
                "kind": type(error).__name__,
                "message": clean(error.report(self.source), _LONGEST_MESSAGE),
            }
            wire.send(self._connection, wire.pack(refusal))
            return
        except Exception as error:
            raise SimulatorFault(
                f"the simulator failed on kernel {launch.kernel}: {type(error).__name__}: {error}"
            ) from error
        records.append(record)
        changed = [
            number
            for number, (old, new) in enumerate(zip(before, message.storages, strict=True))
            if not torch.equal(old, new)
        ]
        reply = {
            "op": "launched",
            "record": record.to_dict(),
            "changed": changed,
            "unwritten": list(launch.unwritten),
        }
        storages = [message.storages[number] for number in changed]
        marks = [marks.view(torch.uint8) for marks in launch.unwritten.values()]
        frame = wire.pack(reply, storages + marks)
        wire.send(self._connection, frame)


#: An argument, or an item of one that is a tuple: `x`, `pair[0]`, `bundle.x`.
_NAME = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*|\[\d{1,4}\])*")


def _is_name(value: Any) -> bool:
    """Whether it may name an argument: reports show it."""
    return isinstance(value, str) and len(value) <= 200 and bool(_NAME.fullmatch(value))


def _checked_launch(message: wire.Message) -> mini_triton.Launch:
    """The launch in a message.

    Raises:
        ProtocolError: it is none.
    """
    header = message.header
    kernel, ttir, grid = header.get("kernel"), header.get("ttir"), header.get("grid")
    names, encoded = header.get("arg_names"), header.get("args")
    if not (isinstance(kernel, str) and re.fullmatch(r"\w{1,200}", kernel)):
        raise wire.ProtocolError("a launch has no kernel name")
    if not (isinstance(ttir, str) and len(ttir) <= _LONGEST_TTIR):
        raise wire.ProtocolError("a launch has no program, or one that is too long")
    if not (
        isinstance(grid, list)
        and len(grid) == 3
        and all(type(axis) is int and 0 <= axis <= _LARGEST_AXIS for axis in grid)
    ):
        raise wire.ProtocolError("a launch has no grid of three axes")
    if not (isinstance(names, list) and all(map(_is_name, names))):
        raise wire.ProtocolError("a launch's arguments have no names")
    if not (isinstance(encoded, list) and len(encoded) == len(names) <= _MOST_ARGUMENTS):
        raise wire.ProtocolError("a launch's arguments do not match their names")
    args = [message.value(value) for value in encoded]
    for argument in args:
        if not (argument is None or type(argument) in (torch.Tensor, int, float, bool)):
            raise wire.ProtocolError(f"a launch has an argument of {type(argument).__name__}")
    launch = mini_triton.Launch(kernel, ttir, (grid[0], grid[1], grid[2]), args, names)
    launch.pointed_to, launch.addresses = _checked_pointers(header, args)
    launch.unwritten = _checked_marks(message, "unwritten", args)
    launch.read_only = _checked_marks(message, "read_only", args)
    return launch


def _checked_pointers(header: dict[str, Any], args: list[Any]) -> tuple[int, dict[int, int]]:
    """How many arguments are reached by pointers only, and where tensors lay for who sent them.

    Addresses are no more than names: who lies about them reaches another of the launch's tensors.

    Raises:
        ProtocolError: they are none.
    """
    count, encoded = header.get("pointed_to"), header.get("addresses")
    if not (type(count) is int and 0 <= count <= len(args)):
        raise wire.ProtocolError("a launch does not say what is pointed to")
    if not all(isinstance(argument, torch.Tensor) for argument in args[len(args) - count :]):
        raise wire.ProtocolError("a launch points to what is no tensor")
    if not isinstance(encoded, dict):
        raise wire.ProtocolError("a launch does not say where its tensors are")
    addresses = {}
    for key, address in encoded.items():
        if not (re.fullmatch(r"\d{1,3}", key) and type(address) is int and 0 <= address < 2**62):
            raise wire.ProtocolError("a launch has an address that is none")
        addresses[int(key)] = address
    return count, addresses


def _checked_marks(message: wire.Message, which: str, args: list[Any]) -> dict[int, torch.Tensor]:
    """Marks of arguments' elements, by position: who lies about them is told less.

    Raises:
        ProtocolError: they are none.
    """
    encoded = message.header.get(which, {})
    if not isinstance(encoded, dict):
        raise wire.ProtocolError(f"a launch does not say which memory is {which}")
    found = {}
    for key, value in encoded.items():
        position = int(key) if re.fullmatch(r"\d{1,3}", key) else len(args)
        argument = args[position] if position < len(args) else None
        if not isinstance(argument, torch.Tensor):
            raise wire.ProtocolError(f"{which} memory is of no tensor")
        marks, count = message.value(value), reach(argument).numel()
        if marks is True:
            marks = torch.ones(count, dtype=torch.bool)
        if not isinstance(marks, torch.Tensor) or marks.dtype is not torch.bool:
            raise wire.ProtocolError(f"{which} memory is not marked")
        if marks.shape != (count,):
            raise wire.ProtocolError(f"{which} memory is marked beside a tensor")
        found[position] = marks.clone(memory_format=torch.contiguous_format)
    return found
