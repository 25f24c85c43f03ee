"""The rules of time: ports, contention, overlap."""

import itertools

import numpy as np
import pytest
from comm_sim import Comm, LinkSpec, Message, hierarchical, ring, switch, torus
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.comm_sim.comparing import LINK, SLOW, idle, same

X = np.arange(1000.0)
T = LINK.time(X.nbytes)


def times(comm):
    return [(m.src, m.dst, m.start, m.end) for m in comm.messages]


def test_one_message_takes_alpha_and_its_bytes_over_the_bandwidth():
    comm = idle(2)
    comm.send(0, 1, X, "hello")
    assert comm.messages == [Message(0, 1, 8000, 0.0, T, "hello")]
    assert same(T, 3e-6 + 8000 / 2e9)
    assert comm.clocks == [T, T]
    assert comm.time == T


def test_messages_that_share_no_port_go_at_once():
    comm = idle(4)
    comm.exchange([(0, 1, X), (2, 3, X)])
    assert comm.time == T


def test_two_messages_to_one_receiver_take_twice_the_time():
    comm = idle(3)
    comm.exchange([(0, 2, X), (1, 2, X)])
    assert times(comm) == [(0, 2, 0.0, T), (1, 2, T, 2 * T)]


def test_two_messages_from_one_sender_take_twice_the_time():
    comm = idle(3)
    comm.exchange([(0, 1, X), (0, 2, X)])
    assert times(comm) == [(0, 1, 0.0, T), (0, 2, T, 2 * T)]
    assert comm.clocks == [2 * T, T, 2 * T]


def test_both_directions_of_a_port_work_at_once():
    comm = idle(2)
    comm.exchange([(0, 1, X), (1, 0, X)])
    assert comm.time == T


def test_sends_are_in_program_order_and_an_exchange_is_not():
    """After a send both ends wait for its arrival: the answer comes after the question."""
    comm = idle(2)
    comm.send(0, 1, X)
    comm.send(1, 0, X)
    assert times(comm) == [(0, 1, 0.0, T), (1, 0, T, 2 * T)]


def test_sends_of_other_ranks_overlap_in_time_though_they_follow_in_the_program():
    comm = idle(4)
    comm.send(0, 1, X)
    comm.send(2, 3, X)
    assert comm.time == T


def test_a_rank_that_computes_sends_later_and_is_sent_to_meanwhile():
    comm = idle(3)
    comm.compute(0, 5 * T, "matmul")
    comm.exchange([(0, 1, X), (2, 0, X)])
    assert sorted(times(comm)) == [(0, 1, 5 * T, 6 * T), (2, 0, 0.0, T)]
    (work,) = comm.work
    assert (work.device, work.start, work.end, work.label) == (0, 0.0, 5 * T, "matmul")


def test_of_two_that_meet_the_one_that_is_ready_first_goes_first():
    comm = idle(3)
    comm.compute(0, 0.5 * T)
    comm.exchange([(0, 2, X), (1, 2, X)])
    assert times(comm) == [(1, 2, 0.0, T), (0, 2, T, 2 * T)]


def test_a_message_that_is_given_later_takes_a_gap_that_is_long_enough():
    comm = idle(4)
    comm.compute(0, 2 * T)
    comm.send(0, 2, X)  # from 2T to 3T
    comm.send(1, 2, np.concatenate([X, X, X]))  # longer than 2T: after it
    comm.send(3, 2, X)  # before it
    starts = {m.src: m.start for m in comm.messages}
    assert starts == {0: 2 * T, 1: 3 * T, 3: 0.0}


def test_all_ports_of_a_way_are_free_at_the_same_time():
    """From 0 to T the receiver's port is busy, from T to 2T the sender's."""
    comm = idle(5)
    comm.exchange([(4, 3, X), (0, 3, X), (1, 2, X), (0, 2, X)])
    assert times(comm) == [
        (4, 3, 0.0, T),
        (0, 3, T, 2 * T),
        (1, 2, 0.0, T),
        (0, 2, 2 * T, 3 * T),
    ]


def test_on_a_ring_messages_to_others_use_the_links_between():
    comm = Comm(ring(6, LINK))
    comm.exchange([(0, 2, X)])
    two_hops = 2 * LINK.alpha + X.nbytes / LINK.bw  # not stored on the way
    assert comm.time == two_hops
    comm.reset()
    comm.exchange([(0, 2, X), (1, 2, X)])  # both want the link from 1 to 2
    assert same(comm.time, two_hops + T)
    comm.reset()
    comm.exchange([(0, 2, X), (1, 0, X), (3, 4, X)])
    assert comm.time == two_hops


def test_a_torus_sends_to_all_its_neighbours_at_once_where_a_switch_has_one_port():
    for topology, expected in ((torus((3, 3), LINK), T), (switch(9, LINK), 4 * T)):
        comm = Comm(topology)
        comm.exchange([(4, neighbour, X) for neighbour in (1, 3, 5, 7)])
        assert same(comm.time, expected)


def test_nodes_have_fast_links_inside_and_slow_ones_between():
    comm = Comm(hierarchical(2, 2, LINK, SLOW))
    comm.exchange([(0, 1, X), (1, 3, X)])
    assert sorted(times(comm)) == [(0, 1, 0.0, T), (1, 3, 0.0, SLOW.time(X.nbytes))]


def test_gpus_that_share_a_network_card_wait_for_each_other():
    slow = SLOW.time(X.nbytes)
    for nics, expected in ((None, slow), (2, slow), (1, 2 * slow)):
        comm = Comm(hierarchical(2, 2, LINK, SLOW, nics=nics))
        comm.exchange([(0, 2, X), (1, 3, X)])
        assert same(comm.time, expected)


@st.composite
def traffic(draw):
    """Some topology of 6 devices, and rounds of messages and work."""
    topology = draw(
        st.sampled_from(
            [switch(6, LINK), ring(6, LINK), torus((2, 3), LINK), hierarchical(3, 2, LINK, SLOW, 1)]
        )
    )
    rank = st.integers(0, 5)
    pair = st.tuples(rank, rank).filter(lambda ends: ends[0] != ends[1])
    message = st.tuples(pair, st.integers(0, 40))
    rounds = draw(st.lists(st.lists(message, max_size=5), max_size=5))
    work = draw(st.lists(st.tuples(rank, st.floats(0, 1e-4)), max_size=3))
    return topology, rounds, work


@settings(max_examples=50, deadline=None)
@given(traffic())
def test_no_port_ever_carries_two_messages_and_none_starts_before_its_sender(case):
    topology, rounds, work = case
    comm = Comm(topology)
    for rank, seconds in work:
        comm.compute(rank, seconds)
    for messages in rounds:
        before, sent = comm.clocks, len(comm.messages)
        comm.exchange([(src, dst, np.zeros(size)) for (src, dst), size in messages])
        for m in comm.messages[sent:]:
            route = topology.route(m.src, m.dst)
            assert m.start >= before[m.src]
            assert m.end == m.start + (route.alpha + m.bytes / route.bw)
            assert min(comm.clocks[m.src], comm.clocks[m.dst]) >= m.end
    busy: dict[str, list[tuple[float, float]]] = {}
    for m in comm.messages:
        for port in topology.route(m.src, m.dst).ports:
            busy.setdefault(port, []).append((m.start, m.end))
    for intervals in busy.values():
        for (_, end), (start, _) in itertools.pairwise(sorted(intervals)):
            assert start >= end


@settings(max_examples=50, deadline=None)
@given(traffic())
def test_no_message_could_have_started_earlier(case):
    """Each starts when its sender is ready, or when some port on its way becomes free."""
    topology, rounds, work = case
    comm = Comm(topology)
    for rank, seconds in work:
        comm.compute(rank, seconds)
    for messages in rounds:
        before, sent = comm.clocks, len(comm.messages)
        comm.exchange([(src, dst, np.zeros(size)) for (src, dst), size in messages])
        for number, m in enumerate(comm.messages[sent:], sent):
            ports = set(topology.route(m.src, m.dst).ports)
            ends = [
                other.end
                for other in comm.messages[:number]
                if ports & set(topology.route(other.src, other.dst).ports)
            ]
            assert m.start in [before[m.src], *ends]


def test_links_of_latency_alone_keep_their_order():
    comm = Comm(switch(3, LinkSpec(alpha=1e-6, bw=float("inf"))))
    comm.exchange([(0, 2, X), (1, 2, X)])
    assert comm.time == pytest.approx(2e-6)


def test_nothing_takes_no_time():
    """Without latency an empty message is over as it starts, and is in nobody's way."""
    comm = Comm(switch(3, LinkSpec(alpha=0, bw=1e9)))
    comm.exchange([(0, 2, X[:0]), (1, 2, X), (0, 2, X[:0])])
    assert comm.time == X.nbytes / 1e9
    assert len(comm.messages) == 3
