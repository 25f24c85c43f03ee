"""What collectives take on an idle network, in closed form: the simulator's clock, foretold.

S bytes, n ranks, α seconds, B bytes a second; lg is the logarithm to base 2, p = 2^⌊lg n⌋.

    key                  collective, algorithm           seconds
    ring                 all-reduce, ring                2(n−1)(α + S/(nB))
    rd                   all-reduce, recursive doubling  lg n·(α + S/B), n ≠ p: (lg p + 2)(α + S/B)
    rab                  all-reduce, Rabenseifner        2 lg p·α + 2(p−1)/p·S/B
                                                         n ≠ p: + 2(α + S/B)
    tree                 all-reduce, binomial tree       2⌈lg n⌉(α + S/B)
    innet                all-reduce, in network          2α + S/B
    hier                 all-reduce, m nodes of g        2(g−1)(α₁ + S/(gB₁))
                                                         + 2(m−1)(α₂ + S/(gmB₂))
    all_gather           all-gather, ring                (n−1)(α + S/(nB))
    all_gather_rd        all-gather, doubling            lg n·α + (n−1)/n·S/B
    reduce_scatter       reduce-scatter, ring            (n−1)(α + S/(nB))
    reduce_scatter_rh    reduce-scatter, halving         lg n·α + (n−1)/n·S/B
    broadcast            broadcast, binomial tree        ⌈lg n⌉(α + S/B)
    reduce               reduce, binomial tree           ⌈lg n⌉(α + S/B)
    broadcast_pipelined  broadcast, chain of c chunks    (n − 2 + c)(α + S/(cB))
    all_to_all           all-to-all, pairwise            (n−1)(α + S/(nB))

S is the whole array: what an all-gather ends with and a reduce-scatter begins with at each rank;
for an all-to-all it is what one rank holds. n = 1 takes no time.

Sources: R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of Collective Communication Operations
in MPICH" (2005); nccl-tests, doc/PERFORMANCE.md; "How to Scale Your Model", part 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from comm_sim.links import LinkSpec


def t_formula(
    algo: str,
    n: int | tuple[int, int],
    bytes: float,
    alpha: float | tuple[float, float],
    bw: float | tuple[float, float],
    *,
    itemsize: float | None = None,
    chunks: int | None = None,
) -> float:
    """Seconds that a collective takes on an idle network on which any two ranks are one step apart.

    Args:
        algo: a key of the table above.
        n: ranks; for "hier" also (g, m): GPUs in a node, nodes. One number is one node.
        bytes: S.
        alpha: seconds of latency; for "hier" also (in a node, between nodes).
        bw: bytes a second in one direction of a port; for "hier" also as `alpha`.
        itemsize: bytes of an element, where elements cannot be cut. None cuts S into equal parts,
            as the table does. Given, a part is the longest that whole elements make, which sets the
            pace: ⌈L/n⌉ elements of L instead of L/n, and this is the simulator's time for any L.
            It counts bytes as S does, after `byte_scale`.
        chunks: c, for "broadcast_pipelined".

    Raises:
        ValueError: no such algorithm, or a number out of range.
    """
    if algo not in _FORMULAS:
        raise ValueError(f"there is no algorithm {algo!r}; there are {', '.join(_FORMULAS)}")
    two_level = any(isinstance(argument, tuple) for argument in (n, alpha, bw))
    if two_level and algo != "hier":
        raise ValueError(f"pairs of numbers are for 'hier'; {algo!r} takes one n, alpha and bw")
    g, m = n if isinstance(n, tuple) else (n, 1)
    alphas = alpha if isinstance(alpha, tuple) else (alpha, alpha)
    bws = bw if isinstance(bw, tuple) else (bw, bw)
    if g < 1 or m < 1:
        raise ValueError(f"n is {n}; there is one rank or more")
    if not 0 <= bytes < math.inf:
        raise ValueError(f"bytes is {bytes}; give a number of bytes, 0 or more")
    if itemsize is not None and not 0 < itemsize < math.inf:
        raise ValueError(f"itemsize is {itemsize}; an element has more than 0 bytes")
    if (chunks is not None) != (algo == "broadcast_pipelined") or (
        chunks is not None and chunks < 1
    ):
        raise ValueError(
            f"chunks is {chunks}; 'broadcast_pipelined', and no other, needs 1 or more"
        )
    links = tuple(LinkSpec(a, b) for a, b in zip(alphas, bws, strict=True))
    if g * m == 1:
        return 0.0
    return _FORMULAS[algo](_Problem(g, m, bytes, links, itemsize, chunks))


@dataclass(frozen=True)
class _Problem:
    """The arguments of `t_formula`; `n` and `link` are those of all but "hier"."""

    n: int
    nodes: int
    bytes: float
    links: tuple[LinkSpec, ...]
    itemsize: float | None
    chunks: int | None

    @property
    def p(self) -> int:
        """The largest power of two that is not more than n."""
        return 1 << (self.n.bit_length() - 1)

    @property
    def rounds(self) -> int:
        """⌈lg n⌉."""
        return (self.n - 1).bit_length()

    def message(self, *parts: int, level: int = 0) -> float:
        """Seconds for the longest of `parts` parts, or of parts of that."""
        size = self.bytes
        if self.itemsize is None:
            return self.links[level].time(size / math.prod(parts))
        elements = round(size / self.itemsize)
        for number in parts:
            elements = -(-elements // number)
        return self.links[level].time(elements * self.itemsize)


def _ring(x: _Problem) -> float:
    return (x.n - 1) * x.message(x.n)


def _halving(x: _Problem) -> float:
    return sum(x.message(2**k) for k in range(1, x.p.bit_length()))


def _halving_of_a_power_of_two(x: _Problem) -> float:
    if x.n != x.p:
        raise ValueError(f"n is {x.n}; halving and doubling needs a power of two")
    return _halving(x)


def _tree(x: _Problem) -> float:
    return x.rounds * x.message(1)


def _doubling(x: _Problem) -> float:
    steps = x.p.bit_length() - 1 + (0 if x.n == x.p else 2)
    return steps * x.message(1)


def _rabenseifner(x: _Problem) -> float:
    return 2 * _halving(x) + (0 if x.n == x.p else 2 * x.message(1))


def _in_network(x: _Problem) -> float:
    return x.links[0].alpha + x.message(1)


def _hierarchical(x: _Problem) -> float:
    inside = 2 * (x.n - 1) * x.message(x.n)
    across = 2 * (x.nodes - 1) * x.message(x.n, x.nodes, level=1)
    return inside + across


def _pipelined(x: _Problem) -> float:
    # All chunks go through each link, one after the other; the last link begins n − 2 steps late.
    c = x.chunks
    assert c is not None
    all_chunks = x.message(1) + (c - 1) * x.links[0].alpha
    return all_chunks + (x.n - 2) * x.message(c)


_FORMULAS: dict[str, Callable[[_Problem], float]] = {
    "ring": lambda x: 2 * _ring(x),
    "rd": _doubling,
    "rab": _rabenseifner,
    "tree": lambda x: 2 * _tree(x),
    "innet": _in_network,
    "hier": _hierarchical,
    "all_gather": _ring,
    "all_gather_rd": _halving_of_a_power_of_two,
    "reduce_scatter": _ring,
    "reduce_scatter_rh": _halving_of_a_power_of_two,
    "broadcast": _tree,
    "reduce": _tree,
    "broadcast_pipelined": _pipelined,
    "all_to_all": _ring,
}
