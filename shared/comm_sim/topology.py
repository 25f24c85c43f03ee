"""Who is wired to whom: switch, ring, torus, nodes of GPUs.

A topology knows for two devices which *ports* a message passes, and what the way costs. A port is
one direction of one connection, and carries one message at a time (see `network`). Where messages
share no port they do not disturb each other.

    switch          a port out and one in for each device; any two devices are one step apart
    ring, torus     two ports (one out, one in) for each device and neighbour; messages to others
                    pass through all devices between, α for every hop, but are not stored on the way
    hierarchical    in a node as on a switch; between nodes through network cards
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from comm_sim.links import LinkSpec


class Route(NamedTuple):
    """The way of a message.

    Attributes:
        ports: names of the ports that it occupies, all of them from its start to its end.
        alpha: seconds of latency, of all hops together.
        bw: bytes a second of the slowest link.
    """

    ports: tuple[str, ...]
    alpha: float
    bw: float


class Topology(ABC):
    """What `Comm` asks of a network.

    Attributes:
        n: devices, numbered from 0.
        name: for titles.
        nodes: the devices in groups that are closer to each other than to the rest, for
            hierarchical algorithms: nodes of GPUs, rows of a torus; else one group.
    """

    def __init__(self, n: int, name: str) -> None:
        self.n = n
        self.name = name
        self.nodes: tuple[tuple[int, ...], ...] = (tuple(range(n)),)

    def __repr__(self) -> str:
        return f"<{self.name}: {self.n} devices>"

    def route(self, src: int, dst: int) -> Route:
        """The way from device `src` to device `dst`.

        Raises:
            ValueError: no such device, or they are the same.
        """
        for device in (src, dst):
            self._check(device)
        if src == dst:
            raise ValueError(f"device {src} sends to itself; what it has it need not send")
        return self._route(src, dst)

    def switch_ports(self, device: int) -> tuple[Route, Route]:
        """The ways from a device into the switch and back, where the switch can add numbers.

        Raises:
            ValueError: no such device, or no such switch.
        """
        self._check(device)
        raise ValueError(f"{self.name}: there is no one switch in which sums could be formed")

    def _check(self, device: int) -> None:
        if not 0 <= device < self.n:
            raise ValueError(f"there is no device {device}; {self.name} has 0 to {self.n - 1}")

    @abstractmethod
    def _route(self, src: int, dst: int) -> Route: ...


class _Switch(Topology):
    def __init__(self, n: int, link: LinkSpec) -> None:
        super().__init__(n, f"switch of {n}")
        self._link = link

    def _route(self, src: int, dst: int) -> Route:
        return Route((f"{src} out", f"{dst} in"), self._link.alpha, self._link.bw)

    def switch_ports(self, device: int) -> tuple[Route, Route]:
        self._check(device)
        up, down = f"{device} out", f"{device} in"
        return tuple(Route((port,), self._link.alpha, self._link.bw) for port in (up, down))  # type: ignore[return-value]


class _Torus(Topology):
    def __init__(self, shape: tuple[int, ...], link: LinkSpec, name: str) -> None:
        super().__init__(math.prod(shape), name)
        self._shape = shape
        self._link = link
        row = shape[-1]
        if len(shape) > 1:
            self.nodes = tuple(tuple(range(i, i + row)) for i in range(0, self.n, row))

    def _coordinates(self, device: int) -> list[int]:
        """Of the last axis neighbours have neighbouring numbers."""
        found = []
        for size in reversed(self._shape):
            device, coordinate = divmod(device, size)
            found.append(coordinate)
        return found[::-1]

    def _device(self, coordinates: Sequence[int]) -> int:
        device = 0
        for size, coordinate in zip(self._shape, coordinates, strict=True):
            device = device * size + coordinate
        return device

    def _route(self, src: int, dst: int) -> Route:
        here, there = self._coordinates(src), self._coordinates(dst)
        passed = [src]
        for axis, size in enumerate(self._shape):
            ahead = (there[axis] - here[axis]) % size
            # The shorter way round; where both are equal, upwards.
            step, hops = (1, ahead) if 2 * ahead <= size else (-1, size - ahead)
            for _ in range(hops):
                here[axis] = (here[axis] + step) % size
                passed.append(self._device(here))
        ports = tuple(f"{a} to {b}" for a, b in itertools.pairwise(passed))
        return Route(ports, self._link.alpha * len(ports), self._link.bw)


class _Hierarchical(Topology):
    def __init__(self, nodes: int, gpus: int, intra: LinkSpec, inter: LinkSpec, nics: int) -> None:
        super().__init__(nodes * gpus, f"{nodes} nodes of {gpus}")
        self.nodes = tuple(tuple(range(i * gpus, (i + 1) * gpus)) for i in range(nodes))
        self._gpus = gpus
        self._intra = intra
        self._inter = inter
        self._nics = nics

    def _nic(self, device: int) -> str:
        node, local = divmod(device, self._gpus)
        return f"node {node} nic {local * self._nics // self._gpus}"

    def _route(self, src: int, dst: int) -> Route:
        if src // self._gpus == dst // self._gpus:
            return Route((f"{src} out", f"{dst} in"), self._intra.alpha, self._intra.bw)
        ports = (f"{self._nic(src)} out", f"{self._nic(dst)} in")
        return Route(ports, self._inter.alpha, self._inter.bw)


def switch(n: int, link: LinkSpec) -> Topology:
    """n devices on one switch that never blocks, as eight GPUs on NVSwitch.

    Each device has one port, and sends and receives at full speed at the same time; what meets in
    a port waits. `link` is the whole way through the switch. The switch can form sums ("innet").

    Raises:
        ValueError: n is no positive whole number.
    """
    return _Switch(_positive(n, "n"), link)


def ring(n: int, link: LinkSpec) -> Topology:
    """n devices in a circle, each with a link to both neighbours, both ways at once.

    Two devices have one link between them, not two.

    Raises:
        ValueError: n is no positive whole number.
    """
    return _Torus((_positive(n, "n"),), link, f"ring of {n}")


def torus(shape: Sequence[int], link: LinkSpec) -> Topology:
    """A grid, each row and column of which is a ring, as in a TPU pod: `(x, y)` or `(x, y, z)`.

    Devices are numbered in row-major order: the last axis runs fastest. Messages go along the first
    axis first, then the second, …, the shorter way round. The rows of the last axis are `nodes`.

    Raises:
        ValueError: the shape has not two or three axes, or one of no positive whole length.
    """
    sizes = tuple(_positive(size, f"axis {axis} of the torus") for axis, size in enumerate(shape))
    if len(sizes) not in (2, 3):
        raise ValueError(f"shape is {sizes}; a torus has two or three axes, a ring has one")
    return _Torus(sizes, link, f"torus of {'×'.join(map(str, sizes))}")


def hierarchical(
    nodes: int, gpus_per_node: int, intra: LinkSpec, inter: LinkSpec, nics: int | None = None
) -> Topology:
    """Nodes of GPUs: a switch in each node, and network cards between the nodes.

    Device `i` is GPU `i % gpus_per_node` of node `i // gpus_per_node`. A message to another node
    goes through a card of the sender's node and one of the receiver's, and does not touch the
    ports inside the nodes; the network between the cards never blocks.

    Args:
        nodes: how many nodes.
        gpus_per_node: GPUs in each.
        intra: from GPU to GPU in a node.
        inter: from card to card.
        nics: cards of a node, shared evenly by its GPUs in order; None is one for each GPU.

    Raises:
        ValueError: a number is not positive, or `nics` does not divide `gpus_per_node`.
    """
    nodes = _positive(nodes, "nodes")
    gpus = _positive(gpus_per_node, "gpus_per_node")
    cards = gpus if nics is None else _positive(nics, "nics")
    if gpus % cards:
        raise ValueError(f"{gpus} GPUs cannot share {cards} network cards evenly")
    return _Hierarchical(nodes, gpus, intra, inter, cards)


def _positive(n: int, what: str) -> int:
    if isinstance(n, bool) or not hasattr(n, "__index__") or n < 1:
        raise ValueError(f"{what} is {n!r}; give a whole number, 1 or more")
    return int(n)
