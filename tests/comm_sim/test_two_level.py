"""Hierarchical all-reduce: what stays in the nodes, and what it gains."""

import numpy as np
import pytest
from comm_sim import (
    IB_NDR,
    NVLINK4,
    Comm,
    all_reduce_hierarchical,
    all_reduce_ring,
    hierarchical,
    switch,
    torus,
)

from tests.comm_sim.comparing import LINK, SLOW, bits, numbers


def crossing(comm, gpus):
    """Bytes that leave each node."""
    nodes = [0.0] * (comm.n // gpus)
    for m in comm.messages:
        if m.src // gpus != m.dst // gpus:
            nodes[m.src // gpus] += m.bytes
    return nodes


def test_only_a_part_for_each_gpu_crosses_between_nodes():
    g, m, length = 4, 3, 48
    comm = Comm(hierarchical(m, g, LINK, SLOW))
    all_reduce_hierarchical(comm, numbers(12, length))
    assert crossing(comm, g) == [2 * (m - 1) / m * length * 8] * m
    for message in comm.messages:
        same_node = message.src // g == message.dst // g
        assert same_node or message.src % g == message.dst % g  # g rings side by side
        assert ("across nodes" in message.label) == (not same_node)


def test_it_beats_one_ring_over_all_where_links_between_nodes_are_slow():
    arrays = numbers(32, 3200)
    times = []
    for all_reduce in (all_reduce_ring, all_reduce_hierarchical):
        comm = Comm(hierarchical(4, 8, NVLINK4, IB_NDR), byte_scale=1e4)
        all_reduce(comm, arrays)
        times.append(comm.time)
    assert times[0] > 4 * times[1]


def test_one_card_for_all_gpus_of_a_node_makes_the_rings_wait_for_each_other():
    arrays = numbers(8, 800)
    times = []
    for nics in (4, 1):
        comm = Comm(hierarchical(2, 4, LINK, SLOW, nics=nics))
        all_reduce_hierarchical(comm, arrays)
        across = [m for m in comm.messages if "across" in m.label]
        times.append(max(m.end for m in across) - min(m.start for m in across))
    assert times[1] == pytest.approx(4 * times[0], rel=1e-9)


def test_on_a_torus_it_goes_axis_by_axis_over_links_of_neighbours_only():
    topology = torus((3, 4), LINK)
    comm = Comm(topology)
    sums = all_reduce_hierarchical(comm, numbers(12, 24))
    assert {bits(s) for s in sums} == {bits(sums[0])}
    assert all(len(topology.route(m.src, m.dst).ports) == 1 for m in comm.messages)


def test_groups_are_cut_by_node_and_need_as_many_ranks_in_each():
    comm = Comm(hierarchical(3, 4, LINK, SLOW))
    arrays = numbers(4, 9)
    sums = all_reduce_hierarchical(comm.group([9, 1, 0, 8]), arrays)
    np.testing.assert_allclose(sums[3], np.sum(arrays, axis=0), rtol=1e-12)
    assert len({m.src for m in comm.messages}) == 4
    with pytest.raises(ValueError, match=r"the nodes have \[2, 1\] ranks; .* as many in each"):
        all_reduce_hierarchical(comm.group([0, 1, 4]), numbers(3, 9))


def test_without_nodes_it_is_a_ring():
    both = []
    for all_reduce in (all_reduce_hierarchical, all_reduce_ring):
        comm = Comm(switch(5, LINK))
        all_reduce(comm, numbers(5, 12))
        both.append(sorted((m.src, m.dst, m.bytes, m.start) for m in comm.messages))
    assert both[0] == both[1]
