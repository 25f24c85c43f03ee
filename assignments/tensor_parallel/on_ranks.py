"""Your tensor parallelism on real ranks: n processes, each with its own shard and no other.

    python assignments/tensor_parallel/on_ranks.py --ranks 4
    python assignments/tensor_parallel/on_ranks.py --ranks 2 --backend nccl     # needs two GPUs
    torchrun --nproc-per-node 4 assignments/tensor_parallel/on_ranks.py         # starts them itself

The same functions run on simulated ranks first, all in one process. What real ranks return is
compared with one device, and their collectives with the simulated ones.
"""

import importlib.util
import os
import pickle
import re
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy is: ranks share the cores

import click
import numpy as np
import spmd
from comm_sim import NVLINK4, Comm, switch
from console import print_header, print_table
from transformer_lab import TINY, backward, forward, init_params

HOUSE = Path(__file__).resolve().parents[2]
PLACES = tuple(HOUSE / folder / "tensor_parallel" for folder in ("solutions", "starter"))
DEFAULT = next(place for place in PLACES if place.is_dir() or place is PLACES[-1])
TOLERANCE = 1e-10
#: Seconds that a rank waits for another.
PATIENCE = 60.0
BATCH, POSITIONS, STEPS = 2, 16, 6

#: By function what it returned, and how often this rank called which collective; in the place of
#: that the words of a stub, for one that is not started.
Outcome = dict[str, tuple[Any, Any]]


class Failure(click.ClickException):
    """Shown without a traceback."""


def load(file: Path) -> ModuleType:
    """Imports the student's file as `shard_lab`."""
    spec = importlib.util.spec_from_file_location("shard_lab", file)
    if spec is None or spec.loader is None or not file.is_file():
        raise Failure(f"there is no {file}")
    module = importlib.util.module_from_spec(spec)
    sys.modules["shard_lab"] = module
    spec.loader.exec_module(module)
    return module


def inputs() -> tuple[Any, np.ndarray, np.ndarray]:
    """Parameters of TINY, tokens, and a gradient at the logits: the same in every process."""
    rng = np.random.default_rng(0)
    tokens = rng.integers(0, TINY.vocab, (BATCH, POSITIONS))
    return init_params(TINY), tokens, rng.standard_normal((BATCH, POSITIONS, TINY.vocab))


# -------------------------------------------------------------------------------------------------
# On a rank, or on all of them
# -------------------------------------------------------------------------------------------------


def exercise(comm: Any, lab: ModuleType, held: Sequence[Any]) -> list[Outcome]:
    """Calls the functions with what this process holds: one shard, or simulated all of them."""
    _, tokens, dlogits = inputs()
    calls: dict[str, Callable[[], Any]] = {
        "tp_forward": lambda: lab.tp_forward(held, TINY, tokens, comm),
        "tp_generate": lambda: lab.tp_generate(held, TINY, tokens, STEPS, comm),
        "tp_forward_sp": lambda: lab.tp_forward_sp(held, TINY, tokens, comm),
        "tp_backward": lambda: lab.tp_backward(held, TINY, tokens, dlogits, comm),
    }
    outcomes: list[Outcome] = [{} for _ in comm.ranks]
    simulated = isinstance(comm, Comm)
    for name, call in calls.items():
        comm.reset()
        try:
            value = call()
            values = per_rank(value, len(held)) if name == "tp_backward" else [value] * len(held)
        except NotImplementedError as stub:
            for outcome in outcomes:
                outcome[name] = None, str(stub)
            continue
        except Exception as error:
            error.add_note(f"({name} was called)")
            raise
        if not simulated:
            finish(comm, name)
        for rank, outcome, of_rank in zip(comm.ranks, outcomes, values, strict=True):
            counts = comm.get_comm_counts(rank) if simulated else comm.get_comm_counts()
            outcome[name] = of_rank, counts
    return outcomes


def finish(comm: Any, name: str) -> None:
    """Waits for the others: what a rank has forgotten shows here."""
    try:
        comm.finish()
    except ValueError as error:
        # One that waits in a collective gets the same error, and has the line. This one only lost
        # the other, as far as can be told.
        raise spmd.BackendError(f"{error}\n(after {name})") from error


def per_rank(value: Any, held: int) -> list[Any]:
    """What a function returned, if it is a list with an entry for each held rank."""
    if not isinstance(value, list) or len(value) != held:
        raise TypeError(f"a list of {held} is to be returned, one entry for each rank held")
    return value


def program(comm: spmd.Communicator, file: Path, folder: Path) -> tuple[int, Outcome]:
    """What each of the processes runs: it reads its own shard, and no other."""
    (rank,) = comm.ranks
    mine = pickle.loads((folder / str(rank)).read_bytes())
    return os.getpid(), exercise(comm, load(file), [mine])[0]


# -------------------------------------------------------------------------------------------------
# What came of it
# -------------------------------------------------------------------------------------------------


def largest_error(found: Any, right: Any) -> float:
    """The largest difference in arrays, lists and dictionaries; ∞ where they are not alike."""
    if isinstance(right, dict):
        if not isinstance(found, dict):
            return float("inf")
        return max(largest_error(found.get(name), value) for name, value in right.items())
    if isinstance(right, list):
        if not isinstance(found, list) or len(found) != len(right):
            return float("inf")
        return max(map(largest_error, found, right), default=0.0)
    if not isinstance(right, np.ndarray):  # names of KV heads, None for a tied head
        return 0.0
    if not isinstance(found, np.ndarray) or found.shape != right.shape:
        return float("inf")
    difference = np.abs(found - right).max(initial=0)
    return float("inf") if np.isnan(difference) else float(difference)


def expected(lab: ModuleType, n: int) -> dict[str, list[Any]]:
    """What each rank has to return, by function: what one device computes."""
    params, tokens, dlogits = inputs()
    seen = tokens
    for _ in range(STEPS):
        following = forward(params, TINY, seen)[:, -1].argmax(1)
        seen = np.concatenate([seen, following[:, None]], 1)
    logits = forward(params, TINY, tokens)
    grads = lab.shard_params_tp(backward(params, TINY, tokens, dlogits), TINY, n)
    for of_rank in grads:  # what is a part of the shards, and no gradient
        del of_rank["kv_groups"], of_rank["tied"]
    whole = {"tp_forward": logits, "tp_generate": seen[:, POSITIONS:], "tp_forward_sp": logits}
    return {name: [value] * n for name, value in whole.items()} | {"tp_backward": grads}


def told(counts: Counter[str]) -> str:
    """Counts by short names: "4 all_reduce, 1 all_gather"."""
    short = {"all_gather_into_tensor": "all_gather", "reduce_scatter_tensor": "reduce_scatter"}
    return ", ".join(f"{count} {short.get(op, op)}" for op, count in counts.items()) or "none"


def numbers(parameters: Any) -> int:
    """Elements of all arrays in dictionaries and lists."""
    if isinstance(parameters, np.ndarray):
        return parameters.size
    if isinstance(parameters, dict):
        return sum(map(numbers, parameters.values()))
    return sum(map(numbers, parameters)) if isinstance(parameters, list) else 0


def report(lab: ModuleType, shards: Sequence[Any], real: Sequence[tuple[int, Outcome]]) -> bool:
    """Prints who held what and what came out; whether all that is written is right."""
    n = len(shards)
    print_table(
        ["rank", "process", "KV heads", "numbers held"],
        [
            [rank, str(pid), str(shard["kv_groups"]), numbers(shard)]
            for rank, ((pid, _), shard) in enumerate(zip(real, shards, strict=True))
        ],
    )
    click.echo()
    simulated, right = exercise(Comm(switch(n, NVLINK4)), lab, shards), expected(lab, n)
    rows, below, good = [], [], True
    for name, (value, counts) in real[0][1].items():
        if isinstance(counts, str):
            below.append(f"not started: {counts}")
            continue
        found = [outcome[name] for _, outcome in real]
        errors = [largest_error(found[rank][0], right[name][rank]) for rank in range(n)]
        worst = max(errors)
        exact = worst < TOLERANCE
        alike = all(found[rank][1] == simulated[rank][name][1] for rank in range(n))
        good = good and exact and alike
        mark = "✓" if exact else f"at rank {errors.index(worst)} ✗"
        as_simulated = "✓" if alike else f"✗ {told(simulated[0][name][1])}"
        rows.append([name, f"{worst:.1e} {mark}", told(counts), as_simulated])
        if name == "tp_generate" and exact:
            below.append(f"\nGenerated after sequence 0: {' '.join(map(str, value[0].tolist()))}")
    if rows:
        print_table(["function", "largest error", "collectives of rank 0", "as simulated"], rows)
    for line in dict.fromkeys(below):
        click.echo(line)
    return good


def explained(text: str, file: Path) -> str:
    """The words of an error, and of its traceback just the lines of the student's file."""
    words, _, trace = text.partition("\n\nTraceback")
    lines = re.findall(rf'File "{re.escape(str(file))}", line (\d+), in ([\w<>]+)\n\s+(.*)', trace)
    return words + "".join(
        f"\n  {file.name}:{number}, in {function}: {code}" for number, function, code in lines
    )


@contextmanager
def blaming(whom: str, file: Path) -> Iterator[None]:
    """Turns what the student's code raises into words."""
    try:
        yield
    except NotImplementedError as stub:
        raise Failure(f"not started: {stub}") from None
    except click.ClickException:
        raise
    except spmd.BackendError:
        raise Failure(f"{whom} stopped: another rank has ended") from None
    except Exception as error:
        summary = "".join(traceback.format_exception_only(error)).strip()
        text = f"{whom} failed: {summary}\n\n{traceback.format_exc()}"
        raise Failure(explained(text, file)) from None


# -------------------------------------------------------------------------------------------------


def start(n: int, file: Path, backend: str) -> bool:
    """Cuts the parameters, starts n processes, and reports."""
    with blaming("loading the file", file):
        lab = load(file)
    with blaming("cutting the parameters", file):
        shards = lab.shard_params_tp(inputs()[0], TINY, n)
    with tempfile.TemporaryDirectory() as folder:
        for rank, shard in enumerate(shards):
            (Path(folder) / str(rank)).write_bytes(pickle.dumps(shard))
        try:
            real = spmd.run(program, n, file, Path(folder), backend=backend, timeout=PATIENCE)
        except spmd.RankError as error:
            raise Failure(explained(str(error), file)) from None
        except ValueError as error:  # there are no such GPUs
            raise Failure(str(error)) from None
    with blaming("the same on simulated ranks", file):
        return report(lab, shards, real)


def under_torchrun(file: Path, backend: str) -> bool:
    """This process is a rank already; rank 0 reports."""
    import torch
    import torch.distributed as dist

    rank, n = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if backend == "nccl":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("cpu:gloo,cuda:nccl" if backend == "nccl" else "gloo")
    with blaming(f"rank {rank} of {n}", file):
        lab = load(file)
        shards = lab.shard_params_tp(inputs()[0], TINY, n)
        mine = os.getpid(), exercise(spmd.TorchComm(), lab, [shards[rank]])[0]
        real: list[Any] = [None] * n
        dist.gather_object(mine, real if rank == 0 else None)
        good = rank > 0 or report(lab, shards, real)
    dist.destroy_process_group()
    return good


@click.command(help=(__doc__ or "").partition("\n")[0])
@click.option("--ranks", type=int, default=2, show_default=True, help="How many: 1, 2, 4 or 8.")
@click.option(
    "--file",
    type=click.Path(path_type=Path),
    help=f"Your shard_lab.py, or its folder.  [default: {DEFAULT.relative_to(HOUSE)}]",
)
@click.option(
    "--backend",
    type=click.Choice(["gloo", "nccl"]),
    default="gloo",
    show_default=True,
    help="gloo for CPUs; nccl needs as many GPUs as ranks.",
)
def main(ranks: int, file: Path | None, backend: str) -> None:
    """Runs the functions on real ranks and reports; fails if something is wrong."""
    file = file or DEFAULT
    file = (file / "shard_lab.py" if file.is_dir() else file).resolve()
    torchrun = "TORCHELASTIC_RUN_ID" in os.environ
    n = int(os.environ["WORLD_SIZE"]) if torchrun else ranks
    if not torchrun or os.environ["RANK"] == "0":
        print_header(f"TINY on {n} processes, {backend}: {file}")
    good = under_torchrun(file, backend) if torchrun else start(n, file, backend)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
