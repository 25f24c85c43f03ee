"""All-to-all: block c of rank r arrives at rank c."""

import numpy as np
import pytest
from comm_sim import all_to_all

from tests.comm_sim.comparing import LINK, bits, idle, same


@pytest.mark.parametrize("n", [1, 2, 3, 8])
def test_blocks_of_any_length_arrive(n):
    blocks = [[np.full(r + 2 * c, 10 * r + c) for c in range(n)] for r in range(n)]
    comm = idle(n)
    got = all_to_all(comm, blocks)
    for c in range(n):
        assert [bits(b) for b in got[c]] == [bits(blocks[r][c]) for r in range(n)]
        assert not any(np.shares_memory(b, blocks[r][c]) for r, b in enumerate(got[c]))
    assert len(comm.messages) == n * (n - 1)
    assert comm.get_comm_counts() == {"all_to_all_single": 1}


def test_no_port_has_two_messages_at_once():
    comm = idle(5)
    all_to_all(comm, [[np.ones(4)] * 5] * 5)
    starts = sorted(m.start for m in comm.messages if m.dst == 2)
    assert all(same(start, k * LINK.time(32)) for k, start in enumerate(starts))


def test_one_rank_that_all_send_to_holds_up_all():
    """Tokens that all choose one expert: its port is the bottleneck."""
    n, tokens = 4, 1200
    even = idle(n)
    all_to_all(even, [[np.ones(tokens // n)] * n] * n)
    crowded = idle(n)
    all_to_all(crowded, [[np.ones(tokens if c == 0 else 0) for c in range(n)]] * n)
    assert same(crowded.time, (n - 1) * LINK.time(8 * tokens))
    assert crowded.time > 1.3 * even.time


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ([[np.ones(1)] * 2], "2 ranks take part, but there are 1 lists"),
        ([[np.ones(1)] * 2, [np.ones(1)]], "rank 1 has 1 blocks; it needs one for each of 2"),
        ([[np.ones(1)] * 2, [np.ones(1), 5]], "rank 1's block for rank 1 is a int; give a numpy"),
        ([[np.ones(1)] * 2, [np.ones(1, int)] * 2], "block of rank 1 for rank 0 is of int64"),
        ([[np.ones(1)] * 2, [np.ones((1, 1))] * 2], r"rank 1's block for rank 0 has shape"),
    ],
)
def test_blocks_that_do_not_fit_are_refused(blocks, message):
    comm = idle(2)
    with pytest.raises(ValueError, match=message):
        all_to_all(comm, blocks)
    assert comm.messages == []
