"""`Comm`: the communicator that collectives are written with.

It moves data for real: what a rank receives is a copy of what was sent. And it keeps time: see
`network` for the rules.

The algorithms are functions that take a `Comm`, in files of their own, which need it for no more
than its name. Its methods `all_reduce`, `all_gather` and `reduce_scatter` call them.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from comm_sim.allreduce import ALLREDUCE_ALGOS
from comm_sim.arrays import Array, check_array, check_summands
from comm_sim.network import SWITCH, Call, Message, Network, Work
from comm_sim.rings import allgather_ring, reduce_scatter_ring
from comm_sim.topology import Topology

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Comm:
    """The devices of a topology, or some of them, as ranks 0 … n−1 that can talk to each other.

        comm = Comm(switch(4, NVLINK4))
        comm.exchange([(0, 1, x), (1, 0, y)])     # at once
        comm.time                                 # seconds

    There are no threads: one program acts for all ranks, and says for each message who sends it.

    Args:
        topology: the network.
        byte_scale: what a byte of an array counts for. Arrays of float64 that stand for bfloat16
            take 0.25; a small array may stand for a large one.

    Attributes:
        topology: the network.
        devices: the device of each rank.
        byte_scale: as given.

    Raises:
        ValueError: `byte_scale` is not more than 0.
    """

    def __init__(self, topology: Topology, byte_scale: float = 1.0) -> None:
        if not 0 < byte_scale < math.inf:
            raise ValueError(f"byte_scale is {byte_scale}; it is more than 0, and finite")
        self.topology = topology
        self.byte_scale = byte_scale
        self.devices = tuple(range(topology.n))
        self._network = Network(topology)

    def __repr__(self) -> str:
        return f"<Comm: {self.n} ranks on {self.topology.name}>"

    @property
    def n(self) -> int:
        """How many ranks."""
        return len(self.devices)

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks that this process holds: all."""
        return tuple(range(self.n))

    def group(self, ranks: Sequence[int]) -> Comm:
        """Some of the ranks, in this order, as a communicator of their own.

        Clocks, ports and logs are those of the whole: collectives on two groups that share no
        device run at the same time, and wait for each other in ports that both use.

        Raises:
            ValueError: no ranks, one that does not exist, or one twice.
        """
        chosen = [self._device(rank) for rank in ranks]
        if not chosen or len(set(chosen)) < len(chosen):
            raise ValueError(f"ranks are {list(ranks)}; a group has one rank or more, each once")
        part = Comm.__new__(Comm)
        part.topology, part.byte_scale = self.topology, self.byte_scale
        part.devices, part._network = tuple(chosen), self._network
        return part

    # ---------------------------------------------------------------------------------------------
    # Collectives, as `spmd.Communicator` has them
    # ---------------------------------------------------------------------------------------------

    def all_reduce(
        self, arrays: Sequence[Array], algo: str = "ring", label: str = "all-reduce"
    ) -> list[Array]:
        """Sums the arrays of all ranks; each rank gets the sum.

        Args:
            arrays: one 1-D array a rank, all of one length and dtype.
            algo: a key of `ALLREDUCE_ALGOS`.
            label: for the log.

        Returns:
            The sum, for each rank; bitwise equal.

        Raises:
            ValueError: no such algorithm, or the arrays do not fit; then nothing was sent.
        """
        if algo not in ALLREDUCE_ALGOS:
            raise ValueError(f"there is no algorithm {algo!r}; there are {list(ALLREDUCE_ALGOS)}")
        return ALLREDUCE_ALGOS[algo][1](self, arrays, label)

    def all_gather(self, arrays: Sequence[Array], label: str = "all-gather") -> list[Array]:
        """Joins the arrays of all ranks, in rank order; each rank gets all. A ring.

        Args:
            arrays: one 1-D array a rank, all of one dtype; lengths may differ.
            label: for the log.

        Returns:
            The joined array, for each rank.

        Raises:
            ValueError: the arrays do not fit; then nothing was sent.
        """
        return allgather_ring(self, arrays, range(self.n), label)

    def reduce_scatter(self, arrays: Sequence[Array], label: str = "reduce-scatter") -> list[Array]:
        """Sums the arrays of all ranks; rank r gets block r of n equal ones. A ring.

        Args:
            arrays: one 1-D array a rank, all of one dtype and of one length, a multiple of n.
            label: for the log.

        Returns:
            Its block of the sum, for each rank.

        Raises:
            ValueError: the arrays do not fit, or cannot be cut into n equal blocks; then nothing
                was sent.
        """
        check_summands(self.n, arrays)
        length = len(arrays[0])
        if length % self.n:
            raise ValueError(
                f"arrays of {length} elements cannot be cut into {self.n} equal blocks; pad them "
                f"to {length + -length % self.n}"
            )
        # The ring leaves block r + 1 at rank r: with all blocks one place on, that is block r.
        shifted = [np.roll(array, length // self.n) for array in arrays]
        return reduce_scatter_ring(self, shifted, label)[0]

    # ---------------------------------------------------------------------------------------------
    # Messages and work
    # ---------------------------------------------------------------------------------------------

    def exchange(self, transfers: Sequence[tuple[int, int, Array]], label: str = "") -> list[Array]:
        """Sends some messages, none of which waits for another's arrival.

        Of those that meet in a port, the one whose sender is ready first goes first; of equal ones,
        the one that comes first in the list.

        Args:
            transfers: (sending rank, receiving rank, array) of each.
            label: for the log.

        Returns:
            What arrives, in the order of `transfers`: copies, each of its sender's shape.

        Raises:
            ValueError: a rank does not exist or sends to itself, or what it sends is no array of
                numbers; then nothing was sent.
        """
        network = self._network
        planned = []
        for src, dst, array in transfers:
            check_array(array, f"what rank {src} sends to rank {dst}")
            sender, receiver = self._device(src), self._device(dst)
            planned.append((sender, receiver, self.topology.route(sender, receiver), array))
        ready = list(network.clock)
        for sender, receiver, route, array in sorted(planned, key=lambda plan: ready[plan[0]]):
            nbytes = self.scaled(array)
            start, end = network.occupy(route, ready[sender], nbytes)
            network.log(sender, receiver, nbytes, start, end, label)
        return [array.copy() for *_, array in planned]

    def send(self, src: int, dst: int, array: Array, label: str = "send") -> Array:
        """Sends one message; both its ends go on when it has arrived.

        Returns:
            What arrives: a copy.

        Raises:
            ValueError: as `exchange`.
        """
        return self.exchange([(src, dst, array)], label)[0]

    def reduce_in_switch(self, arrays: Sequence[Array], label: str = "") -> list[Array]:
        """Sends one array from each rank into the switch, which sends their sum back to all.

        The switch adds what comes in and passes it on at once: its output runs α behind its input.

        Args:
            arrays: one a rank, of one shape and dtype.
            label: for the log.

        Returns:
            The sum, added in rank order: a copy for each rank.

        Raises:
            ValueError: the topology has no switch that forms sums.
        """
        network = self._network
        routes = [self.topology.switch_ports(device) for device in self.devices]
        nbytes = self.scaled(arrays[0])
        begun = []
        for device, (up, _) in zip(self.devices, routes, strict=True):
            start, end = network.occupy(up, network.clock[device], nbytes)
            begun.append((start, end, device, up.alpha))
        ready = max(start + alpha for start, _, _, alpha in begun)
        for start, end, device, _ in begun:
            network.log(device, SWITCH, nbytes, start, end, label)
        for device, (_, down) in zip(self.devices, routes, strict=True):
            start, end = network.occupy(down, ready, nbytes)
            network.log(SWITCH, device, nbytes, start, end, label)
        total = arrays[0].copy()
        for array in arrays[1:]:
            total += array
        return [total.copy() for _ in arrays]

    def compute(self, rank: int, seconds: float, label: str = "compute") -> None:
        """Lets a rank be busy with something else for some time.

        Raises:
            ValueError: no such rank, or a negative time.
        """
        device = self._device(rank)
        if not 0 <= seconds < math.inf:
            raise ValueError(f"rank {rank} computes for {seconds} s; give a time of 0 or more")
        start = self._network.clock[device]
        self._network.clock[device] = start + seconds
        self._network.work.append(Work(device, start, start + seconds, label))

    @contextmanager
    def collective(self, op: str, label: str) -> Iterator[None]:
        """Makes what is sent in the region one call of a collective; regions may nest.

        Only the outermost counts: an all-reduce that is made of a reduce-scatter and an all-gather
        is one all-reduce. It counts where nothing is sent, too, as a call by one rank alone. Labels
        of messages are those of all regions around them.

        Args:
            op: its name in the counts, see `Call`.
            label: the caller's name for it.
        """
        network = self._network
        outermost = not network.under_way
        start = min(self.clocks)
        before = len(network.messages)
        network.under_way.append(label)
        try:
            yield
        finally:
            network.under_way.pop()
        if outermost:
            sent = network.messages[before:]
            nbytes = sum(message.bytes for message in sent)
            end = max(self.clocks)
            network.calls.append(Call(op, label, self.devices, start, end, nbytes, len(sent)))

    # ---------------------------------------------------------------------------------------------
    # What happened
    # ---------------------------------------------------------------------------------------------

    @property
    def clocks(self) -> list[float]:
        """Seconds: until when each rank is busy."""
        return [self._network.clock[device] for device in self.devices]

    @property
    def time(self) -> float:
        """Seconds until the last device of the whole network is done: the makespan."""
        return max(self._network.clock)

    @property
    def messages(self) -> list[Message]:
        """Every message of the whole network, in the order in which they got their ports."""
        return list(self._network.messages)

    @property
    def work(self) -> list[Work]:
        """All times that `compute` was called for."""
        return list(self._network.work)

    @property
    def calls(self) -> list[Call]:
        """Every call of a collective, in order."""
        return list(self._network.calls)

    def sent(self, rank: int) -> float:
        """Bytes that a rank has sent."""
        device = self._device(rank)
        return sum(m.bytes for m in self._network.messages if m.src == device)

    def received(self, rank: int) -> float:
        """Bytes that a rank has received."""
        device = self._device(rank)
        return sum(m.bytes for m in self._network.messages if m.dst == device)

    def get_comm_counts(self, rank: int | None = None) -> Counter[str]:
        """How often each collective was called, as torch's `CommDebugMode` tells it.

        Args:
            rank: count the calls that this rank took part in, which is what its own process would
                count; None counts all.

        Returns:
            Counts by torch's names of the operations (`op.__name__` of its keys), see `Call`.
        """
        device = None if rank is None else self._device(rank)
        calls = self._network.calls
        return Counter(call.op for call in calls if device is None or device in call.devices)

    def get_total_counts(self, rank: int | None = None) -> int:
        """How often collectives were called; see `get_comm_counts`."""
        return self.get_comm_counts(rank).total()

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data: time, clocks, counts, calls, messages and work."""
        network = self._network
        return {
            "topology": self.topology.name,
            "time": self.time,
            "clocks": list(network.clock),
            "counts": dict(self.get_comm_counts()),
            "calls": [asdict(call) | {"devices": list(call.devices)} for call in network.calls],
            "messages": [asdict(message) for message in network.messages],
            "work": [asdict(work) for work in network.work],
        }

    def show(self, limit: int | None = 40) -> None:
        """Prints the messages as a table, the first `limit` of them."""
        from comm_sim.display import show

        show(self, limit)

    def timeline(self, target: str | Path | Axes) -> Axes:
        """Draws who sends and receives what when: one row a device.

        Args:
            target: a file to write (.png, .svg, .pdf), or axes to draw into.

        Returns:
            The axes.
        """
        from comm_sim.timeline import timeline

        return timeline(self, target)

    def reset(self) -> None:
        """Sets all clocks to zero and empties the logs, of the whole network."""
        self._network.reset()

    # ---------------------------------------------------------------------------------------------

    def scaled(self, array: Array) -> float:
        """Bytes that an array counts for."""
        return array.nbytes * self.byte_scale

    def _device(self, rank: int) -> int:
        try:
            number = operator.index(rank)
        except TypeError:
            raise ValueError(f"a rank is a whole number, not {rank!r}") from None
        if not 0 <= number < self.n:
            raise ValueError(f"there is no rank {rank}: ranks are 0 to {self.n - 1}")
        return self.devices[number]
