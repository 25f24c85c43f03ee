"""On an idle network the clock shows what the closed formulas foretell, for every algorithm."""

import math

import numpy as np
import pytest
from comm_sim import (
    ALLREDUCE_ALGOS,
    Comm,
    LinkSpec,
    all_reduce_doubling,
    all_reduce_ring,
    all_to_all,
    allgather_doubling,
    allgather_ring,
    broadcast_pipelined,
    broadcast_tree,
    hierarchical,
    reduce_scatter_halving,
    reduce_scatter_ring,
    reduce_tree,
    ring,
    switch,
    t_formula,
    torus,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.comm_sim.comparing import LINK, SLOW, numbers, same

#: A call of each collective that is no all-reduce, given a communicator and a length.
OTHERS = {
    "all_gather": lambda comm, length: allgather_ring(
        comm, np.array_split(np.ones(length), comm.n), range(comm.n)
    ),
    "all_gather_rd": lambda comm, length: allgather_doubling(comm, halves(length, comm.n)),
    "reduce_scatter": lambda comm, length: reduce_scatter_ring(comm, [np.ones(length)] * comm.n),
    "reduce_scatter_rh": lambda comm, length: reduce_scatter_halving(
        comm, [np.ones(length)] * comm.n
    ),
    "broadcast": lambda comm, length: broadcast_tree(comm, np.ones(length)),
    "reduce": lambda comm, length: reduce_tree(comm, [np.ones(length)] * comm.n),
    "all_to_all": lambda comm, length: all_to_all(
        comm, [np.array_split(np.ones(length), comm.n)] * comm.n
    ),
}
POWERS_ONLY = ("all_gather_rd", "reduce_scatter_rh")

links = st.builds(LinkSpec, alpha=st.floats(0, 1e-4), bw=st.floats(1e6, 1e12))


def halves(length, n):
    """`np.ones(length)` in n parts, halved again and again."""
    parts = [np.ones(length)]
    while len(parts) < n:
        parts = [half for part in parts for half in np.array_split(part, 2)]
    return parts


def run(algo, comm, length):
    if algo in ALLREDUCE_ALGOS:
        ALLREDUCE_ALGOS[algo][1](comm, [np.ones(length)] * comm.n)
    else:
        OTHERS[algo](comm, length)
    return comm.time


@pytest.mark.parametrize(
    ("algo", "n"),
    [
        (algo, n)
        for algo in [*ALLREDUCE_ALGOS, *OTHERS]
        for n in range(1, 17)
        if algo not in POWERS_ONLY or n & (n - 1) == 0
    ],
)
def test_the_table_of_formulas(algo, n):
    """Written once more here, in the shape in which the literature has them; n divides S."""
    length = 16 * n
    S, a, B = 8 * length, LINK.alpha, LINK.bw
    lg, p = int(math.log2(n)), 2 ** int(math.log2(n))
    rounds = math.ceil(math.log2(n))
    once = a + S / B
    ring_half = (n - 1) * a + (n - 1) / n * S / B
    expected = {
        "ring": 2 * (n - 1) * a + 2 * (n - 1) / n * S / B,
        "hier": 2 * (n - 1) * a + 2 * (n - 1) / n * S / B,
        "rd": (lg if n == p else lg + 2) * once,
        "rab": 2 * lg * a + 2 * (p - 1) / p * S / B + (0 if n == p else 2 * once),
        "tree": 2 * rounds * once,
        "innet": 2 * a + S / B if n > 1 else 0,
        "all_gather": ring_half,
        "reduce_scatter": ring_half,
        "all_gather_rd": lg * a + (n - 1) / n * S / B,
        "reduce_scatter_rh": lg * a + (n - 1) / n * S / B,
        "broadcast": rounds * once,
        "reduce": rounds * once,
        "all_to_all": ring_half,
    }[algo]
    assert same(t_formula(algo, n, S, a, B), expected)
    assert same(t_formula(algo, n, S, a, B, itemsize=8), expected)
    assert same(run(algo, Comm(switch(n, LINK)), length), expected)


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from([*ALLREDUCE_ALGOS, *OTHERS]),
    st.integers(1, 16),
    st.integers(0, 300),
    links,
    st.floats(1e-3, 1e6),
)
def test_the_clock_is_the_formula_for_any_ranks_length_and_link(algo, n, length, link, scale):
    if algo in POWERS_ONLY:
        n = 1 << (n.bit_length() - 1)
    comm = Comm(switch(n, link), byte_scale=scale)
    expected = t_formula(algo, n, 8 * length * scale, link.alpha, link.bw, itemsize=8 * scale)
    assert same(run(algo, comm, length), expected)


@settings(deadline=None)
@given(st.integers(1, 16), st.integers(1, 20), st.integers(0, 300), links)
def test_a_pipelined_broadcast(n, chunks, length, link):
    comm = Comm(switch(n, link))
    broadcast_pipelined(comm, np.ones(length), chunks)
    S = 8 * length
    expected = t_formula(
        "broadcast_pipelined", n, S, link.alpha, link.bw, itemsize=8, chunks=chunks
    )
    assert same(comm.time, expected)
    if length % chunks == 0 and n > 1:
        one = link.alpha + S / (chunks * link.bw)
        assert same(expected, (n - 2 + chunks) * one)


@settings(deadline=None)
@given(st.integers(1, 4), st.integers(1, 4), st.integers(0, 300), links, links)
def test_a_hierarchical_all_reduce(g, m, length, intra, inter):
    comm = Comm(hierarchical(m, g, intra, inter))
    S = 8 * length
    alphas, bws = (intra.alpha, inter.alpha), (intra.bw, inter.bw)
    expected = t_formula("hier", (g, m), S, alphas, bws, itemsize=8)
    assert same(run("hier", comm, length), expected)
    even = 2 * (g - 1) * intra.time(S / g) + 2 * (m - 1) * inter.time(S / (g * m))
    assert same(t_formula("hier", (g, m), S, alphas, bws), even)
    if length % (g * m) == 0:
        assert same(expected, even)


@pytest.mark.parametrize("shape", [(2, 2), (3, 4), (4, 4)])
def test_on_a_torus_of_two_axes_the_hierarchical_formula_holds_with_its_rows_as_nodes(shape):
    x, y = shape
    length = 8 * x * y
    expected = t_formula("hier", (y, x), 8 * length, LINK.alpha, LINK.bw)
    assert same(run("hier", Comm(torus(shape, LINK)), length), expected)


@pytest.mark.parametrize("n", [2, 5, 8, 16])
def test_a_ring_needs_no_more_wires_than_a_ring(n):
    for algo in ("ring", "all_gather", "reduce_scatter"):
        on_ring = run(algo, Comm(ring(n, LINK)), 80 * n)
        assert same(on_ring, t_formula(algo, n, 8 * 80 * n, LINK.alpha, LINK.bw))


def test_recursive_doubling_loses_on_a_ring_what_it_gains_on_a_switch():
    """Its partners are far away there, and share the links between."""
    length = 100
    foretold = t_formula("rd", 8, 8 * length, LINK.alpha, LINK.bw)
    assert same(run("rd", Comm(switch(8, LINK)), length), foretold)
    assert run("rd", Comm(ring(8, LINK)), length) > 2 * foretold


def test_short_arrays_want_few_steps_and_long_ones_few_bytes():
    """Ring and recursive doubling are equal at S = αB·(2(n−1) − lg n)/(lg n − 2(n−1)/n)."""
    n, lg = 8, 3
    crossing = LINK.half_size * (2 * (n - 1) - lg) / (lg - 2 * (n - 1) / n)
    equal = [t_formula(algo, n, crossing, LINK.alpha, LINK.bw) for algo in ("ring", "rd")]
    assert same(*equal)
    for factor, first in ((0.5, all_reduce_doubling), (2, all_reduce_ring)):
        arrays = numbers(n, 8 * round(factor * crossing / 64))
        times = {}
        for all_reduce in (all_reduce_ring, all_reduce_doubling):
            comm = Comm(switch(n, LINK))
            all_reduce(comm, arrays)
            times[all_reduce] = comm.time
        assert min(times, key=times.__getitem__) is first


@settings(deadline=None)
@given(st.sampled_from([*ALLREDUCE_ALGOS]), st.integers(2, 64), st.floats(0, 1e9), links)
def test_no_all_reduce_beats_the_lower_bounds(algo, n, S, link):
    """⌈lg n⌉α, and 2(n−1)/n·S/B of messages between two ranks; a switch that adds halves it."""
    t = t_formula(algo, n, S, link.alpha, link.bw)
    slack = 1 + 1e-12
    if algo != "innet":
        assert t * slack >= math.ceil(math.log2(n)) * link.alpha
        assert t * slack >= 2 * (n - 1) / n * S / link.bw
    assert t * slack >= S / link.bw


def test_blocks_of_whole_elements_round_up():
    a, B = LINK.alpha, LINK.bw
    assert t_formula("ring", 4, 80, a, B) == pytest.approx(6 * (a + 20 / B))
    assert t_formula("ring", 4, 80, a, B, itemsize=8) == pytest.approx(6 * (a + 24 / B))  # 3 of 10


@pytest.mark.parametrize(
    ("arguments", "named", "message"),
    [
        (("rign", 4, 8, 1e-6, 1e9), {}, "no algorithm 'rign'; there are ring, rd"),
        (("ring", 0, 8, 1e-6, 1e9), {}, "n is 0"),
        (("hier", (2, 0), 8, 1e-6, 1e9), {}, r"n is \(2, 0\)"),
        (("ring", 4, -1, 1e-6, 1e9), {}, "bytes is -1"),
        (("ring", 4, 8, -1e-6, 1e9), {}, "alpha is"),
        (("ring", 4, 8, 1e-6, 0), {}, "bw is 0"),
        (("ring", (2, 2), 8, 1e-6, 1e9), {}, "pairs of numbers are for 'hier'"),
        (("ring", 4, 8, 1e-6, (1e9, 1e9)), {}, "pairs of numbers are for 'hier'"),
        (("ring", 4, 8, 1e-6, 1e9), {"itemsize": 0}, "itemsize is 0"),
        (("ring", 4, 8, 1e-6, 1e9), {"chunks": 2}, "chunks is 2"),
        (("broadcast_pipelined", 4, 8, 1e-6, 1e9), {}, "chunks is None"),
        (("broadcast_pipelined", 4, 8, 1e-6, 1e9), {"chunks": 0}, "chunks is 0"),
        (("all_gather_rd", 6, 8, 1e-6, 1e9), {}, "n is 6; halving and doubling needs a power"),
    ],
)
def test_what_has_no_formula_is_refused(arguments, named, message):
    with pytest.raises(ValueError, match=message):
        t_formula(*arguments, **named)


def test_both_levels_of_a_hierarchy_may_have_links_of_their_own():
    t = t_formula("hier", (8, 4), 1e6, (LINK.alpha, SLOW.alpha), (LINK.bw, SLOW.bw))
    assert same(t, 14 * LINK.time(1e6 / 8) + 6 * SLOW.time(1e6 / 32))
