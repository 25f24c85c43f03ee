"""The process of a rank: imports the submission, and runs on its own shard what the judge asks.

Nothing here is believed. A collective becomes a message; the judge executes it with those of the
other ranks and returns what this rank gets.
"""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import mini_triton
import torch

from grader.judge import rank_wire, wire
from grader.judge.arguments import Arguments
from grader.judge.worker import WorkerJob, packed_problem
from grader.testing.no_kernels import NoKernels
from grader.testing.on_rank import Rank
from grader.testing.problems import Misuse, StudentProblem
from grader.testing.rank_comm import RankComm
from grader.testing.running import student_code
from grader.testing.submitted import SubmittedCode


def serve(connection: socket.socket, job: WorkerJob) -> None:
    """Answers the judge's requests until it hangs up."""
    torch.manual_seed(job.seed)
    mini_triton.set_device(NoKernels())
    code = SubmittedCode(Path(job.folder), job.files)
    comm = RankComm(
        lambda wanted: rank_wire.ask(connection, wanted), range(job.ranks), job.rank, code.folder
    )
    rank = Rank(code, comm)
    while True:
        try:
            message = wire.receive(connection)
        except wire.Disconnected:
            return
        wire.send(connection, _answer(rank, Arguments(message.header, message.storages), job.ranks))


def _answer(rank: Rank, request: Arguments, ranks: int) -> bytes:
    """Runs one request and packs what came of it."""
    header = request.header
    name = header["name"]
    try:
        if header["op"] == "import":
            rank.code.function(name)
            return wire.pack({"op": "returned", "value": ["plain", None]})
        args = [request.value(value) for value in header["args"]]
        kwargs = {key: request.value(value) for key, value in header["kwargs"].items()}
        with student_code(rank.code, name, kernels=False):
            value = rank.call(name, args, kwargs, header["keep"])
        encoder = wire.Encoder()
        answer = {"op": "returned", "value": encoder.value(value)}
        encoder.seal()
        return wire.pack(answer, encoder.storages, rank_wire.most_bytes(ranks))
    except wire.TooLarge as error:
        return packed_problem(Misuse(f"what {name} returned is too large to be graded: {error}"))
    except StudentProblem as problem:
        return packed_problem(problem)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
