"""The student's process: imports the submission, runs what the judge asks, and sends back bytes.

Nothing here is believed. A kernel launch becomes a message; the judge's device executes it on the
judge's own buffers, counts, and returns the bytes that changed.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mini_triton
import torch

from grader.judge import wire
from grader.judge.arguments import Arguments
from grader.testing.problems import Misuse, StudentProblem
from grader.testing.running import filled_in, run_call, run_gradients
from grader.testing.submitted import SubmittedCode

#: The simulator's errors by name, to raise here what the judge's device raised there.
_KERNEL_ERRORS: dict[str, type[mini_triton.KernelError]] = {
    kind.__name__: kind
    for kind in (
        mini_triton.KernelError,
        mini_triton.BadLaunch,
        mini_triton.BadProgram,
        mini_triton.DeviceAssertion,
        mini_triton.OutOfBounds,
        mini_triton.OverBudget,
        mini_triton.UnsupportedOp,
    )
}


@dataclass(frozen=True)
class WorkerJob:
    """What a worker is started for.

    Attributes:
        folder: the folder with the submitted files.
        files: their names, the main file first.
        seed: of torch's global generator, which student code may use.
        ranks: of how many ranks it holds one; 0 if it is for calls without ranks.
        rank: which.
    """

    folder: str
    files: tuple[str, ...]
    seed: int
    ranks: int = 0
    rank: int = 0


class RemoteDevice:
    """A device that has the judge execute launches."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def launch(self, launch: mini_triton.Launch) -> mini_triton.LaunchRecord:
        """Sends a launch, copies the bytes that it changed into place, returns its record.

        Raises:
            KernelError: what the judge's device raised.
        """
        encoder = wire.Encoder()
        header = {
            "op": "launch",
            "kernel": launch.kernel,
            "ttir": launch.ttir,
            "grid": list(launch.grid),
            "arg_names": list(launch.arg_names),
            "args": [encoder.value(_plain(argument)) for argument in launch.args],
            "pointed_to": launch.pointed_to,
            "addresses": {
                str(position): launch.addresses.get(position, argument.data_ptr())
                for position, argument in enumerate(launch.args)
                if isinstance(argument, torch.Tensor)
            },
            "unwritten": _encoded(encoder, launch.unwritten),
            "read_only": _encoded(encoder, launch.read_only),
        }
        encoder.seal()
        try:
            frame = wire.pack(header, encoder.storages)
        except wire.TooLarge as error:
            raise mini_triton.BadLaunch(
                f"kernel {launch.kernel}: its arguments are too large to be graded: {error}"
            ) from error
        wire.send(self._connection, frame)
        reply = wire.receive(self._connection)
        if reply.header["op"] == "kernel error":
            kind = _KERNEL_ERRORS.get(reply.header["kind"], mini_triton.KernelError)
            raise kind(reply.header["message"])
        changed, unwritten = reply.header["changed"], reply.header["unwritten"]
        left = reply.storages[len(changed) :]
        for number, storage in zip(changed, reply.storages, strict=False):
            encoder.storages[number].copy_(storage)
        for position, marks in zip(unwritten, left, strict=True):
            launch.unwritten[position].copy_(marks.view(torch.bool))
        return mini_triton.LaunchRecord.from_dict(reply.header["record"])


def _encoded(encoder: wire.Encoder, marks: dict[int, torch.Tensor]) -> dict[str, Any]:
    """Marks of arguments' elements by position; those of all elements shortly."""
    return {
        str(position): encoder.value(True if bool(flags.all()) else flags)
        for position, flags in marks.items()
    }


def _plain(argument: Any) -> Any:
    """A launch argument as it travels: a tensor's subclass does not matter to a kernel."""
    if isinstance(argument, torch.Tensor) and type(argument) is not torch.Tensor:
        return argument.detach().as_subclass(torch.Tensor)
    return argument


def serve(connection: socket.socket, job: WorkerJob) -> None:
    """Answers the judge's requests until it hangs up."""
    torch.manual_seed(job.seed)
    mini_triton.set_device(RemoteDevice(connection))
    code = SubmittedCode(Path(job.folder), job.files)
    while True:
        try:
            message = wire.receive(connection)
        except wire.Disconnected:
            return
        wire.send(connection, _answer(code, Arguments(message.header, message.storages)))


def _answer(code: SubmittedCode, request: wire.Message) -> bytes:
    """Runs one request and packs what came of it."""
    name = request.header["name"]
    try:
        kwargs = {
            key: request.value(value) for key, value in request.header.get("kwargs", {}).items()
        }
        value = _run(code, request, kwargs)
        filled = filled_in(code, name, kwargs)
        encoder = wire.Encoder()
        header = {
            "op": "returned",
            "value": encoder.value(value),
            "filled": {key: encoder.value(item) for key, item in filled.items()},
        }
        encoder.seal()
        return wire.pack(header, encoder.storages)
    except wire.TooLarge as error:
        return packed_problem(Misuse(f"what {name} returned is too large to be graded: {error}"))
    except StudentProblem as problem:
        return packed_problem(problem)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def _run(code: SubmittedCode, request: wire.Message, kwargs: dict[str, Any]) -> Any:
    header = request.header
    if header["op"] == "import":
        code.function(header["name"])
        return None
    args = [request.value(value) for value in header["args"]]
    if header["op"] == "call":
        return run_call(code, header["name"], args, kwargs)
    dy = request.value(header["dy"])
    return run_gradients(code, header["name"], args, header["wrt"], dy, kwargs)


def packed_problem(problem: StudentProblem) -> bytes:
    """What went wrong, as a frame."""
    frames = [[frame.file, frame.line, frame.function, frame.text] for frame in problem.frames]
    return wire.pack(
        {"op": "raised", "kind": problem.kind, "message": problem.message, "frames": frames}
    )


def main(connection: socket.socket, job: WorkerJob) -> None:
    """Runs a worker in this process, which is confined already, and ends it."""
    from grader.judge import rank_worker

    with contextlib.suppress(wire.Disconnected):
        (rank_worker.serve if job.ranks else serve)(connection, job)
    os._exit(0)
