"""`TorchComm`: real ranks, each a process, over torch.distributed (gloo on CPUs, NCCL on GPUs)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from spmd.agreement import (
    ALL_GATHER,
    ALL_REDUCE,
    FINISH,
    GROUP,
    HEADER_BYTES,
    REDUCE_SCATTER,
    Header,
    check_agreement,
)
from spmd.communicator import Array, Communicator
from spmd.tensors import dtype_name, like, problem, summable, summed, to_tensor

# torch 2.13 has new names for these two, and warns of the old ones.
_all_gather: Callable[..., Any]
_reduce_scatter: Callable[..., Any]
if hasattr(dist, "all_gather_single"):
    _all_gather, _reduce_scatter = dist.all_gather_single, dist.reduce_scatter_single
else:
    _all_gather, _reduce_scatter = dist.all_gather_into_tensor, dist.reduce_scatter_tensor


class BackendError(RuntimeError):
    """The backend broke off; mostly because another rank has ended."""


@dataclass(frozen=True)
class Call:
    """One call of a collective by this process.

    Attributes:
        op: "all_reduce", "all_gather_into_tensor" or "reduce_scatter_tensor".
        label: the caller's name for it.
        ranks: who took part: ranks of the default process group, in the communicator's order.
        bytes: size of the array that this process brought. What the backend sends for it is its
            own affair, and not known here.
    """

    op: str
    label: str
    ranks: tuple[int, ...]
    bytes: int


class TorchComm:
    """This process as a rank of a process group: a `Communicator` that holds one rank.

        comm = TorchComm()                       # after dist.init_process_group(…), or in spmd.run
        (total,) = comm.all_reduce([my_array])

    Arrays are numpy arrays or torch tensors; results are of the same kind, and on the same device.
    On their way they are on `device`. No gradients flow.

    Args:
        group: a process group that this process belongs to; None is the default one.
        device: where the backend wants its tensors; None is the current CUDA device for NCCL, else
            the CPU. With NCCL, call `torch.cuda.set_device` first.
        check: before each collective, ranks tell each other what they are about to do, so that
            what does not fit is the same `ValueError` at all of them (see `agreement`), and arrays
            of an all-gather may differ in length. It costs a small all-gather, on the CPU if the
            group has gloo as well ("cpu:gloo,cuda:nccl"). Without it, ranks trust each other:
            what does not fit may block for ever, and lengths must be equal in an all-gather, too.
        timeout: for process groups that `group` makes; None is the backend's default.

    Attributes:
        n: how many ranks.
        ranks: the rank of this process, or () in a group that it does not belong to.
        device: as above.

    Raises:
        RuntimeError: torch.distributed is not initialized.
        ValueError: this process does not belong to the group.
    """

    def __init__(
        self,
        group: dist.ProcessGroup | None = None,
        device: torch.device | str | None = None,
        check: bool = True,
        timeout: timedelta | None = None,
    ) -> None:
        if not dist.is_initialized():
            raise RuntimeError(
                "torch.distributed is not initialized: start ranks with spmd.run(fn, n), or with "
                "torchrun and call torch.distributed.init_process_group() first"
            )
        if dist.get_rank(group) < 0:
            raise ValueError(f"rank {dist.get_rank()} does not belong to the process group given")
        group = dist.group.WORLD if group is None else group
        assert group is not None
        backends = dict(part.split(":") for part in dist.get_backend_config(group).split(","))
        if device is None and backends.get("cuda") == "nccl":
            device = torch.device("cuda", torch.cuda.current_device())
        self.device = torch.device("cpu" if device is None else device)
        self._header_device = torch.device("cpu") if "cpu" in backends else self.device
        self._check, self._timeout = check, timeout
        self._members = tuple(dist.get_process_group_ranks(group))
        #: The communicator that this one is a group of; None: it is a whole itself. (Not `self`: a
        #: cycle would keep the process group, and its threads, beyond `destroy_process_group`. A
        #: thread that lets go of a tensor while Python ends aborts the process.)
        self._parent: TorchComm | None = None
        #: The process groups that were made, by their members; None where this process is none.
        self._groups: dict[frozenset[int], Any] = {frozenset(self._members): group}
        self._calls: list[Call] = []
        self._find_myself()

    def _find_myself(self) -> None:
        me = dist.get_rank()
        self.n = len(self._members)
        self.ranks = (self._members.index(me),) if me in self._members else ()

    def __repr__(self) -> str:
        place = f"rank {self.ranks[0]}" if self.ranks else "no rank"
        return f"<TorchComm: {place} of {self.n} on {self.device}>"

    def group(self, ranks: Sequence[int]) -> TorchComm:
        """A communicator of some of these ranks, which are 0 … k−1 in it, in this order.

        All processes call it, as `torch.distributed.new_group`, even those that hold none of these
        ranks. A group of the same members is made only once. Its log is that of the whole.

        Raises:
            ValueError: no ranks, one that does not exist, or one twice; another process does
                something else; or this communicator was made from a process group that has not
                all ranks, so that they could not all call.
            BackendError: the backend failed.
        """
        chosen = list(ranks)
        for rank in chosen:
            if rank not in range(self.n):
                raise ValueError(f"there is no rank {rank}: ranks are 0 to {self.n - 1}")
        if not chosen or len(set(chosen)) < len(chosen):
            raise ValueError(f"ranks are {chosen}; a group has one rank or more, each once")
        part = TorchComm.__new__(TorchComm)
        part.__dict__.update(self.__dict__)
        part._parent = self._whole
        part._members = tuple(self._members[rank] for rank in chosen)
        part._find_myself()
        part._make_process_group()
        return part

    def _make_process_group(self) -> None:
        members = frozenset(self._members)
        if members in self._groups or self.n == 1:
            return
        if self._whole.n < dist.get_world_size():
            raise ValueError(
                "groups are made by all ranks together, of a communicator of all: TorchComm()"
            )
        if self._check:
            check_agreement(self._whole._tell(Header(GROUP, str(sorted(members)))))
        try:
            made = dist.new_group(sorted(members), timeout=self._timeout)
        except RuntimeError as error:
            raise BackendError(f"{self!r} cannot be made: {error}") from error
        self._groups[members] = made if self.ranks else None

    # ---------------------------------------------------------------------------------------------
    # Collectives
    # ---------------------------------------------------------------------------------------------

    def all_reduce(
        self, arrays: Sequence[Array], algo: str = "ring", label: str = "all-reduce"
    ) -> list[Array]:
        """Sums the arrays of all ranks; each rank gets the sum.

        Args:
            arrays: [x], where x is 1-D and of one length and dtype at all ranks.
            algo: is ignored: the backend chooses.
            label: for the log.

        Returns:
            [the sum].

        Raises:
            ValueError: as `Communicator`; at all ranks.
            BackendError: the backend failed.
        """
        headers = self._begin(ALL_REDUCE, arrays, label)
        if not headers:
            return []
        mine = to_tensor(arrays[0], self.device)
        total = summable(mine)
        if self.n > 1 and len(total):
            self._call_backend(dist.all_reduce, total)
        return [like(summed(total, mine.dtype), arrays[0])]

    def all_gather(self, arrays: Sequence[Array], label: str = "all-gather") -> list[Array]:
        """Joins the arrays of all ranks, in rank order; each rank gets all.

        Args:
            arrays: [x], where x is 1-D and of one dtype at all ranks; lengths may differ, and the
                shorter ones are sent padded to the longest, since backends want equal ones.
            label: for the log.

        Returns:
            [the joined array].

        Raises:
            ValueError: as `Communicator`; at all ranks.
            BackendError: the backend failed.
        """
        headers = self._begin(ALL_GATHER, arrays, label)
        if not headers:
            return []
        mine = to_tensor(arrays[0], self.device)
        lengths = [header.length for header in headers]
        longest = max(lengths)
        if self.n == 1 or not longest:
            return [like(mine, arrays[0])]
        if len(mine) < longest:
            mine = torch.cat([mine, mine.new_zeros(longest - len(mine))])
        # As bytes: then it matters not which dtypes a backend knows.
        full = mine.new_empty(self.n * longest)
        self._call_backend(_all_gather, full.view(torch.uint8), mine.view(torch.uint8))
        rows = full.view(self.n, longest)
        places = self._places()
        if places != list(range(self.n)) or min(lengths) < longest:
            full = torch.cat([rows[p][:k] for p, k in zip(places, lengths, strict=True)])
        return [like(full, arrays[0])]

    def reduce_scatter(self, arrays: Sequence[Array], label: str = "reduce-scatter") -> list[Array]:
        """Sums the arrays of all ranks; rank r gets block r of n equal blocks of the sum.

        Args:
            arrays: [x], where x is 1-D and of one dtype and length, a multiple of n, at all ranks.
            label: for the log.

        Returns:
            [its block].

        Raises:
            ValueError: as `Communicator`; at all ranks.
            BackendError: the backend failed.
        """
        headers = self._begin(REDUCE_SCATTER, arrays, label)
        if not headers:
            return []
        mine = to_tensor(arrays[0], self.device)
        whole = summable(mine)
        if self.n > 1 and len(whole):
            places = self._places()
            if places != list(range(self.n)):
                blocks = whole.view(self.n, -1)
                whole = torch.cat([blocks[places.index(p)] for p in range(self.n)])
            block = whole.new_empty(len(whole) // self.n)
            self._call_backend(_reduce_scatter, block, whole)
            whole = block
        return [like(summed(whole, mine.dtype), arrays[0])]

    def finish(self) -> None:
        """Waits for all ranks at their program's end.

        Raises:
            ValueError: another rank calls a collective instead.
            BackendError: the backend failed; mostly, another rank has ended.
        """
        if self.ranks and self.n > 1:
            check_agreement(self._tell(Header(FINISH)))

    # ---------------------------------------------------------------------------------------------
    # What happened
    # ---------------------------------------------------------------------------------------------

    @property
    def calls(self) -> list[Call]:
        """Every call of a collective by this process, in order, those of groups included."""
        return list(self._calls)

    def get_comm_counts(self) -> Counter[str]:
        """How often this process called each collective, as `comm_sim.Comm.get_comm_counts`."""
        return Counter(call.op for call in self._calls)

    def get_total_counts(self) -> int:
        """How often this process called collectives."""
        return len(self._calls)

    def reset(self) -> None:
        """Empties the log, of the whole."""
        self._calls.clear()

    # ---------------------------------------------------------------------------------------------

    def _begin(self, op: str, arrays: Sequence[Array], label: str) -> list[Header]:
        """Checks what is given and logs the call; [] if this process has no part in it.

        Returns:
            The headers of all ranks.
        """
        if not self.ranks:
            if len(arrays):
                raise ValueError(
                    f"this process holds none of the group's ranks, but gives {len(arrays)} "
                    "arrays; give [], one entry for each rank held"
                )
            return []
        header = self._header(op, arrays, label)
        if self.n == 1:
            headers = [header]
        elif self._check:
            headers = self._tell(header)
        else:
            headers = [header] * self.n
        check_agreement(headers)
        self._calls.append(Call(op, label, self._members, int(arrays[0].nbytes)))
        return headers

    def _header(self, op: str, arrays: Sequence[Array], label: str) -> Header:
        if len(arrays) != 1:
            wrong = (
                f"is to be the one of its list, which has {len(arrays)}; a list has one entry for "
                "each rank that the process holds"
            )
            return Header(op, label, problem=wrong)
        wrong = problem(arrays[0], sums=op != ALL_GATHER)
        if wrong:
            return Header(op, label, problem=wrong)
        return Header(op, label, dtype_name(arrays[0]), len(arrays[0]))

    def _tell(self, header: Header) -> list[Header]:
        """The headers of all ranks."""
        mine = torch.frombuffer(bytearray(header.to_bytes()), dtype=torch.uint8)
        mine = mine.to(self._header_device)
        gathered = mine.new_empty(self.n * HEADER_BYTES)
        self._call_backend(_all_gather, gathered, mine)
        rows = gathered.cpu().view(self.n, HEADER_BYTES)
        return [Header.from_bytes(bytes(rows[place].numpy())) for place in self._places()]

    def _call_backend(self, collective: Callable[..., Any], *tensors: torch.Tensor) -> None:
        try:
            collective(*tensors, group=self._process_group)
        except RuntimeError as error:
            raise BackendError(f"{self!r}: {error}") from error

    @property
    def _whole(self) -> TorchComm:
        return self if self._parent is None else self._parent

    @property
    def _process_group(self) -> dist.ProcessGroup:
        group: dist.ProcessGroup = self._groups[frozenset(self._members)]
        return group

    def _places(self) -> list[int]:
        """For each rank of the communicator, its rank in the process group."""
        return [dist.get_group_rank(self._process_group, member) for member in self._members]


if TYPE_CHECKING:

    def _conforms(comm: TorchComm) -> Communicator:
        return comm
