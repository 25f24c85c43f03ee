"""The conductor alone, with ranks that say what they are told to."""

import numpy as np
import pytest
from comm_sim import NVLINK4, Comm, switch

from grader.testing import conductor
from grader.testing.collective import Collective, Raised, Returned
from grader.testing.conductor import Conductor
from grader.testing.problems import (
    Crashed,
    Frame,
    ImportFailed,
    Misuse,
    NotStarted,
    StudentError,
    TimedOut,
)


class Fakes:
    """Ranks with a script each; what they say comes in the order of `order`."""

    def __init__(self, *scripts, order=sorted):
        self.scripts = [list(script) for script in scripts]
        self.order = order
        self.answers = [[] for _ in scripts]
        self.doing = []

    def messages(self, ranks, doing):
        left = list(self.order(ranks))
        while left:
            self.doing.append(doing(left))
            rank = left.pop(0)
            yield rank, self.scripts[rank].pop(0)

    def answer(self, rank, reply):
        self.answers[rank].append(reply)


def reduce(*numbers, members=(0, 1, 2), algo="ring", op="all_reduce", dtype=float, frames=()):
    return Collective(op, members, np.array(numbers, dtype), algo, "label", frames)


def gather(*numbers, **how):
    return reduce(*numbers, op="all_gather", algo="", **how)


def make(*ranks, whole=(0, 1, 2), frames=()):
    return Collective("group", whole, np.empty(0), "", "group", frames, ranks=ranks)


def conduct(*scripts, **how):
    crew, comm = Fakes(*scripts, **how), Comm(switch(len(scripts), NVLINK4))
    played = Conductor("f", crew, comm)
    return played, crew, comm


@pytest.mark.parametrize("order", [sorted, lambda ranks: sorted(ranks, reverse=True)])
def test_collectives_are_executed_and_logged(order):
    played, crew, comm = conduct(
        *([reduce(rank, 1), gather(rank), Returned(rank)] for rank in range(3)), order=order
    )
    assert played.run() == [0, 1, 2]
    for first, second in crew.answers:
        assert first.tolist() == [3, 3]
        assert second.tolist() == [0, 1, 2]
    assert comm.get_comm_counts() == {"all_reduce": 1, "all_gather_into_tensor": 1}
    assert played.waiting == {}


def test_groups_go_on_while_others_wait():
    played, crew, comm = conduct(
        [reduce(1, members=(0, 2)), reduce(1), Returned("a")],
        [reduce(1), Returned("b")],
        [reduce(2, members=(0, 2)), reduce(1), Returned("c")],
    )
    assert played.run() == ["a", "b", "c"]
    assert [answers[0].tolist() for answers in crew.answers] == [[3], [3], [3]]
    assert [call.devices for call in comm.calls] == [(0, 2), (0, 1, 2)]


def test_a_groups_order_is_the_order_of_what_is_gathered():
    played, crew, _ = conduct(
        *([gather(rank, members=(2, 0, 1)), Returned(None)] for rank in range(3))
    )
    played.run()
    assert crew.answers[0][0].tolist() == [2, 0, 1]


def test_a_group_is_made_by_all_and_costs_nothing():
    played, crew, comm = conduct(
        [make(0, 2), reduce(1, members=(0, 2)), Returned("a")],
        [make(0, 2), Returned("b")],
        [make(0, 2), reduce(2, members=(0, 2)), Returned("c")],
    )
    assert played.run() == ["a", "b", "c"]
    assert [len(answers) for answers in crew.answers] == [2, 1, 2]
    assert comm.get_comm_counts() == {"all_reduce": 1}
    assert {call.devices for call in comm.calls} == {(0, 2)}


def test_who_is_waited_for_is_told():
    played, crew, _ = conduct(*([reduce(1), Returned(None)] for _ in range(3)))
    played.run()
    assert crew.doing[:3] == [
        "in f",
        "in f on ranks 1 and 2, while rank 0 waits in all_reduce",
        "in f on rank 2, while ranks 0 and 1 wait in all_reduce",
    ]


RULE = ": all ranks of a group have to call the same collectives in the same order"
FRAMES = (Frame("w.py", 1, "g", "g()"), Frame("w.py", 2, "f", "f()"), Frame("w.py", 3, "h", "h()"))


@pytest.mark.parametrize(
    ("scripts", "words"),
    [
        (
            [[reduce(1)], [gather(1, 2)], [reduce(1)]],
            "ranks 0 and 2 wait in all_reduce of 1 float64 (call 1), "
            "rank 1 waits in all_gather of 2 float64 (call 1)",
        ),
        (
            [[reduce(1)], [Returned(3)], [Returned(3)]],
            "rank 0 waits in all_reduce of 1 float64 (call 1), ranks 1 and 2 have returned from f",
        ),
        (
            [[reduce(1), reduce(5)], [reduce(1), Returned(1)], [reduce(1), reduce(5)]],
            "ranks 0 and 2 wait in all_reduce of 1 float64 (call 2), rank 1 has returned from f",
        ),
        (
            [[reduce(1, members=(0, 1))], [reduce(1, members=(1, 0))], [Returned(1)]],
            "rank 0 waits in all_reduce of 1 float64 in the group (0, 1) (call 1), "
            "rank 1 waits in all_reduce of 1 float64 in the group (1, 0) (call 1), "
            "rank 2 has returned from f",
        ),
        (
            [[reduce(1)], [reduce(1, algo="rd")], [reduce(1)]],
            "ranks 0 and 2 wait in all_reduce of 1 float64 (call 1), "
            "rank 1 waits in all_reduce of 1 float64 by 'rd' (call 1)",
        ),
    ],
)
def test_ranks_that_wait_for_ever(scripts, words):
    played, _, _ = conduct(*scripts)
    with pytest.raises(Misuse) as caught:
        played.run()
    assert str(caught.value) == words + RULE
    assert played.waiting


@pytest.mark.parametrize(
    ("scripts", "words"),
    [
        (
            [[make(0, 2)], [Returned(1)], [make(0, 2)]],
            "ranks 0 and 2 wait in group([0, 2]) (call 1), rank 1 has returned from f",
        ),
        (
            [[reduce(1), make(0, 1)], [reduce(1), make(0, 1)], [reduce(1), make(2)]],
            "ranks 0 and 1 wait in group([0, 1]) (call 2), rank 2 waits in group([2]) (call 2)",
        ),
        (
            [[make(0, 1)], [make(1, 0)], [make(0, 1)]],
            "ranks 0 and 2 wait in group([0, 1]) (call 1), rank 1 waits in group([1, 0]) (call 1)",
        ),
        (
            [[make(0, 1)], [reduce(1)], [make(0, 1)]],
            "ranks 0 and 2 wait in group([0, 1]) (call 1), "
            "rank 1 waits in all_reduce of 1 float64 (call 1)",
        ),
    ],
)
def test_a_group_that_not_all_make(scripts, words):
    played, _, _ = conduct(*scripts)
    with pytest.raises(Misuse) as caught:
        played.run()
    rule = ": all ranks have to call group with the same ranks, whether they are in it or not"
    assert str(caught.value) == words + rule
    assert played.waiting


def test_groups_without_end_are_stopped(monkeypatch):
    monkeypatch.setattr(conductor, "MOST_COLLECTIVES", 40)
    played, _, _ = conduct(*([make(0, 1)] * 100 for _ in range(3)))
    with pytest.raises(TimedOut, match="f has not come to an end after 40 collectives"):
        played.run()


def test_where_they_wait_is_shown():
    played, _, _ = conduct([reduce(1, frames=FRAMES)], [Returned(1)], [Returned(1)])
    with pytest.raises(Misuse) as caught:
        played.run()
    assert str(caught.value).split("\n")[1:] == [
        "  rank 0 at",
        "    w.py:2 in f",
        "        f()",
        "    w.py:3 in h",
        "        h()",
    ]


@pytest.mark.parametrize(
    ("others", "words"),
    [
        (reduce(1, 2), "the array of rank 1 has 2 elements, that of rank 0 1"),
        (reduce(1, dtype=int), "the array of rank 1 is of int64, the array of rank 0 of float64"),
    ],
)
def test_arrays_that_do_not_fit_are_refused_at_every_rank(others, words):
    played, crew, comm = conduct(
        [reduce(1), Returned(1)], [others, Returned(1)], [reduce(1), Returned(1)]
    )
    played.run()
    for (reply,) in crew.answers:
        assert isinstance(reply, ValueError)
        assert words in str(reply)
    assert comm.messages == []


def test_a_refusal_in_a_group_names_it():
    played, crew, _ = conduct(
        [reduce(1, members=(0, 2)), Returned(1)],
        [Returned(1)],
        [reduce(1, 2, members=(0, 2)), Returned(1)],
    )
    played.run()
    assert "the array of rank 1 has 2" in str(crew.answers[2][0])
    assert str(crew.answers[0][0]).endswith("(as ranks of the group (0, 2))")


def raised(kind, text, frames=()):
    return Raised(kind(text, frames))


@pytest.mark.parametrize(
    ("messages", "kind", "words"),
    [
        ([Returned(1), raised(StudentError, "b"), raised(StudentError, "c")], StudentError, "1: b"),
        ([reduce(1), reduce(1), raised(Crashed, "gone")], Crashed, "rank 2: gone"),
        (
            [raised(StudentError, "a"), raised(NotStarted, "todo"), reduce(1)],
            NotStarted,
            "not started: todo",
        ),
        ([raised(ImportFailed, "a")] * 3, ImportFailed, "a"),
    ],
)
def test_the_problem_of_the_lowest_rank_is_shown(messages, kind, words):
    played, _, _ = conduct(*([message] for message in messages), order=reversed)
    with pytest.raises(kind) as caught:
        played.run()
    assert str(caught.value).endswith(words)


def test_a_ranks_frames_are_kept():
    played, _, _ = conduct([raised(StudentError, "oops", FRAMES)], [reduce(1)])
    with pytest.raises(StudentError) as caught:
        played.run()
    assert caught.value.frames == FRAMES
    assert caught.value.message == "rank 0: oops"


@pytest.mark.parametrize(
    ("n", "text", "hinted"),
    [
        (3, "IndexError: list index out of range", True),
        (3, "IndexError: index 5 is out of bounds for axis 0 with size 2", False),
        (3, "ValueError: cannot reshape array of size 120 into shape (2,5,4)", True),
        (3, "ValueError: cannot reshape array of size 40 into shape (2,15,newaxis)", False),
        (3, "ValueError: cannot reshape array of size 40 into shape (2,15,4)", True),
        (3, "ValueError: cannot reshape array of size 80 into shape (2,5,4)", False),
        (3, "ValueError: cannot reshape array of size 3 into shape (0,)", False),
        (1, "IndexError: list index out of range", False),
    ],
)
def test_a_list_taken_for_all_ranks_is_hinted_at(n, text, hinted):
    played, _, _ = conduct(*[[raised(StudentError, text)] for _ in range(n)])
    with pytest.raises(StudentError) as caught:
        played.run()
    hint = (
        f"\n  hint: this process holds 1 of {n} ranks, and so do its lists; comm.n says how many "
        "there are"
    )
    assert caught.value.message == f"rank 0: {text}{hint if hinted else ''}"


@pytest.mark.parametrize("bound", ["MOST_COLLECTIVES", "MOST_MESSAGES"])
def test_collectives_without_end_are_stopped(monkeypatch, bound):
    monkeypatch.setattr(conductor, bound, 40)
    played, _, comm = conduct(*([reduce(1)] * 100 for _ in range(3)))
    with pytest.raises(TimedOut, match=r"f has not come to an end after \d+ collectives"):
        played.run()
    assert len(comm.messages) <= 40 * 12


def test_refusals_are_bounded():
    """What they say of other ranks' lengths is not counted."""
    most = conductor.MOST_REFUSED
    scripts = [
        [reduce(*range(1 + rank), members=(0, 1))] * most
        + [reduce(1, members=(0, 1)), Returned(rank)]
        for rank in range(2)
    ]
    played, crew, _ = conduct(*scripts)
    assert played.run() == [0, 1]
    assert [type(reply) for reply in crew.answers[0]] == [ValueError] * most + [np.ndarray]
    played, _, _ = conduct(*([script[0], *script] for script in scripts))
    with pytest.raises(Misuse, match=rf"f goes on after {most} collectives were refused; the last"):
        played.run()


def test_one_rank_sends_nothing():
    played, crew, comm = conduct([reduce(1, members=(0,)), Returned("x")])
    assert played.run() == ["x"]
    assert crew.answers[0][0].tolist() == [1]
    assert comm.messages == []


def test_an_overflow_is_no_warning():
    played, crew, _ = conduct(*([reduce(3e38, dtype=np.float32), Returned(0)] for _ in range(3)))
    played.run()
    assert crew.answers[0][0].tolist() == [np.inf]
