"""Programs of ranks that tests run; new processes import them from here."""

import gc
import os
import signal
import time
import warnings
import weakref

import numpy as np
import pytest
import torch
import torch.distributed as dist
from spmd import TorchComm

from tests.spmd.cases import check, numbers


def all_cases(comm):
    """All that a launch can show: hashes of the cases, on all ranks and in groups."""
    warnings.simplefilter("error")
    (rank,) = comm.ranks
    results = {"whole": check(comm), "alone": check(comm.group([rank])), "three": {}}
    if comm.n > 3:
        three = comm.group([3, 0, 1])
        results["three"] = check(three) if three.ranks else in_no_rank(three)
    results["torch"] = tensors(comm)
    results["log"] = log(comm)
    return results


def held_by_itself(comm):
    """Whether a communicator, or a group of it, outlives its last reference."""
    gc.disable()
    mine = TorchComm()
    mine.group([0])
    group = mine.group(range(mine.n))
    group.all_reduce([np.ones(3)])
    gone = weakref.ref(mine), weakref.ref(group)
    del mine, group
    return [ref() is not None for ref in gone]


def in_no_rank(group):
    """Of a group without this process: [] in, [] out, and nothing else."""
    assert (group.n, group.ranks) == (3, ())
    before = group.get_total_counts()
    for method in (group.all_reduce, group.all_gather, group.reduce_scatter):
        assert method([]) == []
        with pytest.raises(ValueError, match="holds none of the group's ranks, but gives 1"):
            method([np.ones(3)])
    # All processes make groups together.
    check(group, ["groups_in_any_order_and_with_common_ranks", "groups_of_groups"])
    assert group.get_total_counts() == before
    return {}


def tensors(comm):
    """torch tensors come back as such, on their device, in their dtype, without gradients."""
    (rank,) = comm.ranks
    for dtype in (torch.bfloat16, torch.float32, torch.complex64, torch.int16):
        x = torch.arange(4 * comm.n).to(dtype)[::2]
        if dtype.is_floating_point:
            x = x.requires_grad_()
        (total,) = comm.all_reduce([x])
        (full,) = comm.all_gather([x[: rank + 1]])
        (block,) = comm.reduce_scatter([x])
        assert [t.dtype for t in (total, full, block)] == [dtype] * 3
        assert not any(t.requires_grad for t in (total, full, block))
        assert [t.device for t in (total, full, block)] == [x.device] * 3
        assert torch.equal(total, x.detach() * comm.n)
        assert torch.equal(block, 2 * comm.n * torch.arange(2 * rank, 2 * rank + 2).to(dtype))
        assert torch.equal(full, torch.cat([x.detach()[: r + 1] for r in range(comm.n)]))
    (conjugate,) = comm.all_reduce([torch.tensor([1 + 2j]).conj()])
    assert conjugate.item() == comm.n * (1 - 2j)
    mixed = np.ones(3, np.float32) if rank else torch.ones(3)
    assert type(comm.all_reduce([mixed])[0]) is type(mixed)
    return True


def log(comm):
    """Calls have names, labels, members and bytes; those of groups count as well."""
    comm.reset()
    pair = comm.group([1, 0])
    comm.all_reduce([np.ones(6, np.float32)], label="wo")
    if pair.ranks:
        pair.all_gather([np.ones(2)], "logits")
    comm.group([comm.ranks[0]]).reduce_scatter([np.ones(5)])
    calls = [(c.op, c.label, c.ranks, c.bytes) for c in comm.calls]
    assert calls[0] == ("all_reduce", "wo", tuple(range(comm.n)), 24)
    assert (("all_gather_into_tensor", "logits", (1, 0), 16) in calls) == bool(pair.ranks)
    assert calls[-1] == ("reduce_scatter_tensor", "reduce-scatter", comm.ranks, 40)
    assert pair.calls == comm.calls
    trusting = TorchComm(check=False)
    (total,) = trusting.all_reduce([np.ones(3)])
    (full,) = trusting.all_gather([np.ones(3)])
    (block,) = trusting.reduce_scatter([np.ones(comm.n)])
    assert (total[0], len(full), block[0]) == (comm.n, 3 * comm.n, comm.n)
    assert trusting.get_total_counts() == 3
    # A communicator of a process group that is not the default one, in an order of its own.
    backwards = list(range(comm.n - 1, -1, -1))
    made = TorchComm(dist.new_group(backwards)).group(backwards)
    (full,) = made.all_gather([np.array(made.ranks)])
    assert list(full) == list(range(comm.n))
    some = list(range(1, comm.n))
    group = dist.new_group(some)
    if comm.ranks == (0,):
        with pytest.raises(ValueError, match="rank 0 does not belong to the process group"):
            TorchComm(group)
    else:
        part = TorchComm(group)
        (total,) = part.all_reduce([np.ones(1)])
        assert total == part.n == len(some)
        assert part.group(part.ranks).all_gather([np.ones(2)])[0].sum() == 2
        if part.n > 2:
            with pytest.raises(ValueError, match=r"made by all ranks together, .* TorchComm\(\)"):
                part.group([0, 1])
    return True


def threads(comm, values):
    """How many threads torch and numpy's libraries may use, and what was given."""
    (rank,) = comm.ranks
    (total,) = comm.all_reduce([values * rank])
    return rank, torch.get_num_threads(), os.environ["OMP_NUM_THREADS"], total


def fails(comm, rank):
    """One rank raises while the others wait for it."""
    if comm.ranks == (rank,):
        raise KeyError(f"shard of rank {rank}")
    comm.all_reduce([np.ones(2)])


def dies(comm, rank):
    """One rank is killed while the others wait for it."""
    if comm.ranks == (rank,):
        os.kill(os.getpid(), signal.SIGKILL)
    comm.all_reduce([np.ones(2)])


def stays_away(comm, rank):
    """One rank is busy for an hour while the others wait for it."""
    if comm.ranks == (rank,):
        time.sleep(3600)
    try:
        comm.all_reduce([np.ones(2)])
    except Exception as error:
        error.add_note("(in the third layer)")
        raise


def computes_on(comm, rank):
    """One rank raises while the others are busy for an hour."""
    if comm.ranks == (rank,):
        raise ArithmeticError("no more")
    time.sleep(3600)


def forgets(comm):
    """Rank 0 leaves out an all-reduce."""
    comm.all_gather(numbers(1, 3), label="both")
    if comm.ranks != (0,):
        comm.all_reduce(numbers(1, 3), label="after the MLP")


def divides(comm):
    """A group is made by its members alone."""
    if comm.ranks[0] > 0:
        comm.group([2, 1])
    comm.all_gather([np.ones(3)], "x")


def confuses(comm):
    """Ranks call different collectives."""
    if comm.ranks == (0,):
        comm.all_reduce([np.ones(4)], label="wo")
    else:
        comm.reduce_scatter([np.ones(4)], "norm")
