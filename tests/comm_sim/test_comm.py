"""`Comm`: data that move, groups, logs and counts, and what is refused."""

import json

import numpy as np
import pytest
import torch
import torch.distributed._functional_collectives  # defines the operations
from comm_sim import (
    ALLREDUCE_ALGOS,
    Comm,
    all_reduce_ring,
    allgather_ring,
    broadcast_tree,
    reduce_scatter_ring,
    switch,
)

from tests.comm_sim.comparing import LINK, idle, numbers, same

X = np.arange(6.0).reshape(2, 3)


def test_what_arrives_is_a_copy_of_what_was_sent():
    comm = idle(3)
    sent = X.copy()
    first, second = comm.exchange([(0, 1, sent), (0, 2, sent)])
    first[:] = -1
    assert np.array_equal(second, X)
    assert np.array_equal(sent, X)
    sent[:] = 7
    assert np.array_equal(second, X)


def test_any_array_is_sent_as_it_is():
    comm = idle(2)
    strided = np.arange(10, dtype=np.int16)[::3]
    for array in (X, X.T, strided, np.array(3, np.float32), np.array([], bool)):
        arrived = comm.send(0, 1, array)
        assert np.array_equal(arrived, array)
        assert arrived.dtype == array.dtype
    assert [m.bytes for m in comm.messages] == [48, 48, 8, 4, 0]


def test_what_arrives_is_in_the_order_of_the_list_whoever_was_first():
    comm = idle(3)
    comm.compute(0, 1.0)
    arrived = comm.exchange([(0, 2, X), (1, 2, -X)])
    assert np.array_equal(arrived[0], X)
    assert np.array_equal(arrived[1], -X)


def test_bytes_are_scaled():
    comm = Comm(switch(2, LINK), byte_scale=0.25)  # float64 stands for bfloat16
    comm.send(0, 1, X)
    assert comm.messages[0].bytes == 12
    assert comm.time == LINK.time(12)
    assert comm.group([1, 0]).byte_scale == 0.25


def test_bytes_of_a_rank():
    comm = idle(3)
    comm.exchange([(0, 1, X), (0, 2, X), (2, 0, X[0])])
    assert [comm.sent(r) for r in range(3)] == [96, 0, 24]
    assert [comm.received(r) for r in range(3)] == [24, 48, 48]


class TestGroups:
    """Communicators of some of the ranks."""

    def test_ranks_of_a_group_are_devices_of_the_whole(self):
        comm = idle(6)
        group = comm.group([4, 1, 3])
        assert (group.n, group.devices) == (3, (4, 1, 3))
        assert group.group([2, 0]).devices == (3, 4)
        group.send(0, 2, X)
        (message,) = comm.messages
        assert (message.src, message.dst) == (4, 3)
        assert comm.clocks == [0, 0, 0, message.end, message.end, 0]
        assert group.clocks == [message.end, 0, message.end]

    def test_collectives_of_groups_without_common_devices_overlap(self):
        """As two tensor-parallel groups, or rows and columns of a mesh."""
        alone = idle(4)
        all_reduce_ring(alone, numbers(4, 100))
        comm = idle(8)
        all_reduce_ring(comm.group([0, 1, 2, 3]), numbers(4, 100))
        all_reduce_ring(comm.group([4, 5, 6, 7]), numbers(4, 100))
        assert same(comm.time, alone.time)
        assert comm.get_comm_counts() == {"all_reduce": 2}
        assert [comm.get_comm_counts(r) for r in (0, 7)] == [{"all_reduce": 1}] * 2

    def test_a_group_that_begins_late_holds_up_only_itself(self):
        comm = idle(4)
        comm.compute(3, 1.0)
        first, second = comm.group([0, 1]), comm.group([2, 3])
        all_reduce_ring(second, numbers(2, 10))
        all_reduce_ring(first, numbers(2, 10))
        assert max(first.clocks) < 1e-4 < 1.0 < min(second.clocks)

    @pytest.mark.parametrize("ranks", [[], [0, 1, 0]])
    def test_no_rank_and_a_rank_twice_are_refused(self, ranks):
        with pytest.raises(ValueError, match="one rank or more, each once"):
            idle(4).group(ranks)


class TestCounts:
    """In the shape of torch's `CommDebugMode`."""

    def test_calls_are_counted_not_messages(self):
        comm = idle(4)
        for _ in range(3):
            all_reduce_ring(comm, numbers(4, 10))
        allgather_ring(comm, numbers(4, 3), {r: r for r in range(4)})
        reduce_scatter_ring(comm, numbers(4, 8))
        broadcast_tree(comm, numbers(1, 8)[0])
        assert comm.get_comm_counts() == {
            "all_reduce": 3,
            "all_gather_into_tensor": 1,
            "reduce_scatter_tensor": 1,
            "broadcast": 1,
        }
        assert comm.get_total_counts() == comm.get_total_counts(rank=2) == 6
        assert comm.get_comm_counts()["all_to_all_single"] == 0

    @pytest.mark.parametrize("algo", ALLREDUCE_ALGOS)
    @pytest.mark.parametrize("n", [1, 4, 6])
    def test_every_algorithm_is_one_all_reduce(self, algo, n):
        comm = idle(n)
        ALLREDUCE_ALGOS[algo][1](comm, numbers(n, 10), label="dW")
        assert comm.get_comm_counts() == {"all_reduce": 1}
        (call,) = comm.calls
        assert (call.op, call.label, call.devices) == ("all_reduce", "dW", tuple(range(n)))
        assert (call.start, call.end) == (0.0, comm.time)
        assert call.messages == len(comm.messages)
        assert call.bytes == sum(m.bytes for m in comm.messages)
        assert all(m.label.startswith("dW: ") for m in comm.messages)

    def test_names_are_those_of_torch(self):
        for name in (
            "all_reduce",
            "all_gather_into_tensor",
            "reduce_scatter_tensor",
            "broadcast",
            "all_to_all_single",
        ):
            assert getattr(torch.ops.c10d_functional, name).__name__ == name

    def test_messages_outside_of_collectives_are_no_calls(self):
        comm = idle(2)
        comm.send(0, 1, X)
        assert comm.get_total_counts() == 0

    def test_a_collective_that_fails_is_not_counted_and_leaves_none_under_way(self):
        comm = idle(2)
        with pytest.raises(ZeroDivisionError), comm.collective("all_reduce", "mine"):
            raise ZeroDivisionError
        comm.send(0, 1, X, "after")
        assert comm.calls == []
        assert comm.messages[0].label == "after"

    def test_an_algorithm_of_ones_own_is_logged_like_the_others(self):
        comm = idle(2)
        with comm.collective("all_reduce", "swap and add"):
            comm.exchange([(0, 1, X), (1, 0, X)], "swap")
        assert comm.get_comm_counts() == {"all_reduce": 1}
        assert {m.label for m in comm.messages} == {"swap and add: swap"}


def test_a_coordinator_serves_ranks_that_bring_their_own_arrays():
    """As where each rank is a process: arrays and times of arrival come one by one."""
    comm = idle(4)
    results = {}

    class Meeting:
        """Collects what the ranks of a group bring, and runs the collective when all are there."""

        def __init__(self, devices):
            self.devices, self.brought = devices, {}

        def arrive(self, device, array, after):
            comm.compute(device, after)
            self.brought[device] = array
            if len(self.brought) == len(self.devices):
                arrays = [self.brought[d] for d in self.devices]
                sums = ALLREDUCE_ALGOS["rd"][1](comm.group(self.devices), arrays, label="wo")
                results.update(zip(self.devices, sums, strict=True))

    even, odd = Meeting([0, 2]), Meeting([1, 3])
    arrays = numbers(4, 5)
    for device, after in ((3, 1e-3), (0, 0.0), (1, 2e-3), (2, 0.0)):
        (odd if device % 2 else even).arrive(device, arrays[device], after)
    for device in range(4):
        assert np.array_equal(results[device], arrays[device % 2] + arrays[device % 2 + 2])
    assert comm.get_comm_counts(rank=0) == {"all_reduce": 1}
    step = LINK.time(40)
    assert [call.devices for call in comm.calls] == [(1, 3), (0, 2)]
    assert [call.end for call in comm.calls] == [pytest.approx(2e-3 + step), pytest.approx(step)]


def test_the_log_is_plain_data():
    comm = idle(2)
    comm.compute(1, 1e-3, "matmul")
    all_reduce_ring(comm, numbers(2, 4))
    data = json.loads(json.dumps(comm.to_dict()))
    assert data == comm.to_dict()
    assert (data["topology"], data["counts"]) == ("switch of 2", {"all_reduce": 1})
    assert data["time"] == max(data["clocks"]) == comm.time
    assert data["calls"][0]["devices"] == [0, 1]
    assert len(data["messages"]) == data["calls"][0]["messages"] == 4
    assert set(data["messages"][0]) == {"src", "dst", "bytes", "start", "end", "label"}
    assert data["work"] == [{"device": 1, "start": 0.0, "end": 1e-3, "label": "matmul"}]


def test_logs_are_copies_and_reset_empties_them():
    comm = idle(2)
    group = comm.group([1, 0])
    all_reduce_ring(group, numbers(2, 4))
    comm.messages.clear()
    comm.calls.clear()
    assert comm.get_total_counts() == 1
    assert len(comm.messages) == 4
    comm.compute(0, 1.0)
    comm.reset()
    assert (comm.time, comm.messages, comm.calls, comm.work) == (0.0, [], [], [])
    group.send(0, 1, X)
    assert comm.messages[0].start == 0


class TestRefused:
    """Nothing was sent then."""

    @pytest.mark.parametrize(
        ("transfer", "message"),
        [
            ((0, 4, X), "there is no rank 4: ranks are 0 to 3"),
            ((-1, 0, X), "there is no rank -1"),
            ((0.0, 1, X), "a rank is a whole number, not 0.0"),
            ((2, 2, X), "sends to itself"),
            ((1, 0, [1.0, 2.0]), "what rank 1 sends to rank 0 is a list; give a numpy array"),
            ((1, 0, np.array([X], object)), "holds Python objects"),
        ],
    )
    def test_messages(self, transfer, message):
        comm = idle(4)
        with pytest.raises(ValueError, match=message):
            comm.exchange([(0, 1, X), transfer])
        assert comm.messages == []
        assert comm.time == 0

    @pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf")])
    def test_work(self, seconds):
        with pytest.raises(ValueError, match="rank 1 computes for"):
            idle(2).compute(1, seconds)

    @pytest.mark.parametrize("scale", [0, -1.0, float("nan"), float("inf")])
    def test_scales(self, scale):
        with pytest.raises(ValueError, match="byte_scale is"):
            Comm(switch(2, LINK), byte_scale=scale)
