"""All-reduce in the switch: one way up, one way down, the second right behind the first."""

import numpy as np
import pytest
from comm_sim import SWITCH, Comm, all_reduce_in_network, all_reduce_ring, hierarchical, ring, torus

from tests.comm_sim.comparing import LINK, SLOW, idle, numbers, same


def test_every_rank_sends_its_array_once_and_receives_the_sum_once():
    comm = idle(4)
    all_reduce_in_network(comm, numbers(4, 10))
    assert sorted((m.src, m.dst, m.bytes) for m in comm.messages) == sorted(
        [(r, SWITCH, 80) for r in range(4)] + [(SWITCH, r, 80) for r in range(4)]
    )
    ring_comm = idle(4)
    all_reduce_ring(ring_comm, numbers(4, 12))
    assert ring_comm.sent(0) == 2 * 3 / 4 * 96


def test_what_comes_down_is_alpha_behind_what_goes_up():
    comm = idle(4)
    comm.compute(2, 1e-3)
    all_reduce_in_network(comm, numbers(4, 10))
    up = {m.src: m for m in comm.messages if m.dst == SWITCH}
    down = [m for m in comm.messages if m.src == SWITCH]
    assert [up[r].start for r in range(4)] == [0, 0, 1e-3, 0]
    assert all(same(m.start, 1e-3 + LINK.alpha) for m in down)  # the last one sets the pace
    assert same(comm.time, 1e-3 + 2 * LINK.alpha + 80 / LINK.bw)


def test_ranks_outside_the_group_neither_send_nor_receive():
    comm = idle(4)
    all_reduce_in_network(comm.group([3, 1]), numbers(2, 10))
    assert [comm.received(r) for r in range(4)] == [0, 80, 0, 80]


@pytest.mark.parametrize(
    "topology", [ring(4, LINK), torus((2, 2), LINK), hierarchical(2, 2, LINK, SLOW)], ids=str
)
def test_where_no_switch_adds_it_is_refused(topology):
    comm = Comm(topology)
    with pytest.raises(ValueError, match="no one switch in which sums could be formed"):
        all_reduce_in_network(comm, [np.ones(2)] * 4)
    assert comm.messages == []
    assert comm.calls == []
