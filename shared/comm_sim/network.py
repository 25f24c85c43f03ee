"""Clocks, ports and logs: when each message starts and ends.

The rules, all of them:

1.  Each device has a clock. A message is ready when its sender's clock says so.
2.  A message occupies every port on its route from its start to its end, α + bytes/B later. The
    latency is part of that: it is the sender's and the receiver's work for the message.
3.  A port carries one message at a time. A message starts at the earliest time, from when it is
    ready, at which all its ports are free for as long as it takes. So messages that meet in a port
    go one after the other, two of them in twice the time; those that do not meet go at once.
4.  A receiver need not wait for its messages: they are put into its memory. It cannot go on before
    the last one is there.
5.  Adding numbers takes no time, nor does copying them inside a device.

These are the rules that the closed formulas of the literature assume (R. Thakur, R. Rabenseifner,
W. Gropp: "Optimization of Collective Communication Operations in MPICH", 2005, section 2).
"""

from __future__ import annotations

from bisect import bisect_right, insort
from dataclasses import dataclass

from comm_sim.topology import Route, Topology

#: The receiver of what goes into a switch that forms sums, and the sender of what comes out.
SWITCH = -1


@dataclass(frozen=True)
class Message:
    """One message.

    Attributes:
        src: the sending device, or `SWITCH`.
        dst: the receiving device, or `SWITCH`.
        bytes: how many, after `Comm`'s `byte_scale`.
        start: seconds; before, it waited for its sender or for a port.
        end: seconds; from then on it is at its receiver.
        label: what it was sent for, as "all-reduce: reduce-scatter".
    """

    src: int
    dst: int
    bytes: float
    start: float
    end: float
    label: str


@dataclass(frozen=True)
class Work:
    """Time that a device spent computing: `start` and `end` in seconds."""

    device: int
    start: float
    end: float
    label: str


@dataclass(frozen=True)
class Call:
    """One call of a collective, however many messages it took.

    Attributes:
        op: what it did, by torch's name for it: "all_reduce", "all_gather_into_tensor",
            "reduce_scatter_tensor", "broadcast", "reduce", "all_to_all_single".
        label: the caller's name for it.
        devices: who took part, in rank order.
        start: seconds, when the first of them began.
        end: seconds, when the last of them was done.
        bytes: of all its messages together.
        messages: how many.
    """

    op: str
    label: str
    devices: tuple[int, ...]
    start: float
    end: float
    bytes: float
    messages: int


class _Port:
    """When a port is busy: intervals in order, none of which touch."""

    def __init__(self) -> None:
        self._busy: list[tuple[float, float]] = []

    def earliest(self, ready: float, duration: float) -> float:
        """The first time from `ready` on at which the port is free for `duration`."""
        start = ready
        at = bisect_right(self._busy, (ready, float("inf")))
        if at and self._busy[at - 1][1] > start:
            start = self._busy[at - 1][1]
        while at < len(self._busy) and self._busy[at][0] < start + duration:
            start = self._busy[at][1]
            at += 1
        return start

    def occupy(self, start: float, end: float) -> None:
        """Takes a free interval."""
        if start == end:
            return
        at = bisect_right(self._busy, (start, end))
        if at < len(self._busy) and self._busy[at][0] == end:
            end = self._busy.pop(at)[1]
        if at and self._busy[at - 1][1] == start:
            start = self._busy.pop(at - 1)[0]
        insort(self._busy, (start, end))


class Network:
    """The state that all communicators on one topology share."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.reset()

    def reset(self) -> None:
        """Time zero, an idle network, empty logs."""
        self.clock = [0.0] * self.topology.n
        self.messages: list[Message] = []
        self.work: list[Work] = []
        self.calls: list[Call] = []
        #: Labels of the collectives that are under way, the outermost first.
        self.under_way: list[str] = []
        self._ports: dict[str, _Port] = {}

    def occupy(self, route: Route, ready: float, nbytes: float) -> tuple[float, float]:
        """Finds the time for a message and takes its ports.

        Returns:
            Its start and end.
        """
        ports = [self._ports.setdefault(name, _Port()) for name in route.ports]
        duration = route.alpha + nbytes / route.bw
        start = ready
        while True:
            later = start
            for port in ports:
                later = port.earliest(later, duration)
            if later == start:
                break
            start = later
        for port in ports:
            port.occupy(start, start + duration)
        return start, start + duration

    def log(self, src: int, dst: int, nbytes: float, start: float, end: float, label: str) -> None:
        """Notes a message, and that both its ends are busy until its end."""
        path = ": ".join([*self.under_way, label] if label else self.under_way)
        self.messages.append(Message(src, dst, nbytes, start, end, path))
        for device in (src, dst):
            if device != SWITCH:
                self.clock[device] = max(self.clock[device], end)
