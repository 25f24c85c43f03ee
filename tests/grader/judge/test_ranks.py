"""Ranks in processes and ranks in threads: the same verdict, in the same words."""

import textwrap
import threading
from pathlib import Path

import pytest

from grader import manifest
from grader.house import House
from grader.judge.inprocess import grade_in_process
from grader.judge.memory import held
from grader.judge.printed import Printed
from grader.submission import read
from grader.testing import conductor
from grader.verdict import Verdict

HOUSE = House(Path(__file__).parents[2] / "attacks" / "ranks_house")
SOLUTION = (HOUSE.solution("ranks") / "work.py").read_text()


@pytest.fixture(scope="module")
def ranks():
    return manifest.load("ranks", HOUSE)


@pytest.fixture
def graded(judge, ranks, tmp_path):
    """`graded(source, number)`: one test's result, by the judge and in this process."""

    def run(source, number="1.2", local=True, **limits):
        folder = tmp_path / "work"
        folder.mkdir(exist_ok=True)
        (folder / "work.py").write_text(SOLUTION + textwrap.dedent(source))
        task = ranks.tasks[0].model_copy(update={"tests": [ranks.test(number)]})
        one = ranks.model_copy(update={"tasks": [task], **limits})
        (judged,) = judge.grade_path(one, folder, house=HOUSE).tests
        if not local:
            return judged, None
        submission = read(folder, one, tmp_path / "read")
        (here,) = grade_in_process(one, submission, house=HOUSE).tests
        return judged, here

    return run


@pytest.mark.parametrize("number", ["1.1", "1.2", "1.3", "1.4", "1.5"])
def test_the_solution_passes(graded, number):
    for result in graded("", number):
        assert (result.verdict, result.message) == (Verdict.PASSED, "")


def total(body, before=""):
    return f"{before}\ndef total(comm, shards):\n{textwrap.indent(textwrap.dedent(body), '    ')}\n"


FAILURES = {
    "another collective": (
        total("return comm.all_gather(shards) if comm.ranks == (1,) else comm.all_reduce(shards)"),
        Verdict.FAILED,
        "ranks 0, 2 and 3 wait in all_reduce of 12 float64 (call 1), rank 1 waits in all_gather",
    ),
    "returned before": (
        total("return shards if comm.ranks[0] > 1 else comm.all_reduce(shards)"),
        Verdict.FAILED,
        "wait in all_reduce of 12 float64 (call 1), ranks 2 and 3 have returned from total",
    ),
    "lengths": (
        total("return comm.all_reduce([shards[0][: 9 + comm.ranks[0]]])"),
        Verdict.FAILED,
        "rank 0: ValueError: all_reduce: the array of rank 1 has 10 elements, that of rank 0 9",
    ),
    "dtypes": (
        total("return comm.all_reduce([shards[0].astype('f4' if comm.ranks == (2,) else 'f8')])"),
        Verdict.FAILED,
        "the array of rank 2 is of float32, the array of rank 0 of float64",
    ),
    "an array of objects": (
        total("return comm.all_reduce([shards[0].astype(object)])"),
        Verdict.FAILED,
        "rank 0: ValueError: the array of rank 0 holds Python objects",
    ),
    "two axes": (
        total("return comm.all_reduce([shards[0].reshape(3, 4)])"),
        Verdict.FAILED,
        "rank 0: ValueError: the array of rank 0 has shape (3, 4); give 1-D arrays",
    ),
    "arrays of all ranks": (
        total("return comm.all_reduce(shards * comm.n)"),
        Verdict.FAILED,
        "1 array is needed, one for each rank that this process holds (0); there are 4",
    ),
    "counts what is held": (
        total("whole = comm.all_gather(shards)[0]\nwhole.reshape(len(shards), 12)"),
        Verdict.FAILED,
        "cannot reshape array of size 48 into shape (1,12)\n  hint: this process holds 1 of 4",
    ),
    "another shape": (
        total("return [shards[0].reshape(5, 2)]"),
        Verdict.FAILED,
        "cannot reshape array of size 12 into shape (5,2)",
    ),
    "no such algorithm": (
        total("return comm.all_reduce(shards, 'magic')"),
        Verdict.FAILED,
        "rank 0: ValueError: all_reduce: there is no algorithm 'magic'",
    ),
    "no such rank": (
        total("return comm.group([0, 7]).all_reduce(shards)"),
        Verdict.FAILED,
        "rank 0: ValueError: there is no rank 7: ranks are 0 to 3",
    ),
    "a group made by its members alone": (
        total(
            """
            if comm.ranks[0] > 1:
                return comm.all_reduce(shards)
            return comm.all_reduce(comm.group([0, 1]).all_reduce(shards))
            """
        ),
        Verdict.FAILED,
        "ranks 0 and 1 wait in group([0, 1]) (call 1), ranks 2 and 3 wait in all_reduce of 12",
    ),
    "a group of a group made by its members alone": (
        total(
            """
            some = comm.group([3, 1, 0])
            if some.ranks:
                some.group([2, 1])
            return comm.all_reduce(shards)
            """
        ),
        Verdict.FAILED,
        "ranks 0, 1 and 3 wait in group([0, 1]) (call 2), rank 2 waits in all_reduce of 12",
    ),
    "groups of groups": (
        total(
            """
            odd = comm.group([3, 1, 0]).group([0, 1])
            assert odd.ranks == {3: (0,), 1: (1,)}.get(comm.ranks[0], ())
            odd.all_reduce(shards[: len(odd.ranks)])
            assert comm.group([comm.ranks[0]]).ranks == (0,)
            return comm.all_reduce(shards)
            """
        ),
        Verdict.PASSED,
        "",
    ),
    "not divisible": (
        total("return comm.reduce_scatter([shards[0][:10]])"),
        Verdict.FAILED,
        "reduce_scatter: arrays of 10 elements cannot be cut into 4 equal blocks",
    ),
    "one raises": (
        total(
            """
            if comm.ranks == (2,):
                raise KeyError("layer 3")
            return comm.all_reduce(shards)
            """
        ),
        Verdict.FAILED,
        "rank 2: KeyError: 'layer 3'",
    ),
    "another's shard": (
        total("return [shards[comm.n - 1]]"),
        Verdict.FAILED,
        "rank 0: IndexError: list index out of range\n  hint: this process holds 1 of 4 ranks, and "
        "so do its lists; comm.n says how many there are",
    ),
    "a stub on some ranks": (
        total(
            """
            if comm.ranks == (2,):
                raise NotImplementedError("ranks 1: sum them")
            return comm.all_reduce(shards)
            """
        ),
        Verdict.NOT_STARTED,
        "not started: ranks 1: sum them",
    ),
    "an input changed": (
        total("shards[0] += 1\nreturn comm.all_reduce(shards)"),
        Verdict.FAILED,
        "rank 0: shards[0] was changed by total",
    ),
    "the end of the process": (
        total("import sys\nsys.exit(3)"),
        Verdict.CRASHED,
        "rank 0: total tried to end the process: sys.exit(3)",
    ),
    "no file": ("import nowhere", Verdict.IMPORT_ERROR, "No module named 'nowhere'"),
    "no function": ("del total", Verdict.FAILED, "work.py defines no total; keep the names"),
    "no list": (
        total("return comm.all_reduce(shards)[0]"),
        Verdict.FAILED,
        "total: rank 0 returned an array of shape (12,) from total; it holds one rank, so a list",
    ),
    "no line of the file": (
        "def total(comm): pass",
        Verdict.FAILED,
        "argument but 2 were given\n  in total(comm, [(12,) float64]) on 4 ranks",
    ),
    "a kernel": (
        """
        import torch, triton

        @triton.jit
        def kernel(x_ptr):
            pass

        def total(comm, shards):
            kernel[(1,)](torch.ones(1))
        """,
        Verdict.FAILED,
        "no kernels are run here",
    ),
    "a global of its own": (
        total(
            """
            global MINE
            MINE = comm
            comm.all_reduce(shards)
            return MINE.all_reduce([shards[0] * (1 + (MINE.ranks != comm.ranks))])
            """
        ),
        Verdict.PASSED,
        "",
    ),
}


@pytest.mark.parametrize("what", FAILURES)
def test_the_same_words_in_both(graded, what):
    source, verdict, words = FAILURES[what]
    judged, here = graded(source)
    assert judged.verdict is verdict, judged.message
    assert words in judged.message
    assert (here.verdict, here.message) == (judged.verdict, judged.message)
    assert not [t for t in threading.enumerate() if t.name.startswith("rank ")]


def test_a_loop_of_collectives_is_stopped_in_both(graded, monkeypatch):
    monkeypatch.setattr(conductor, "MOST_COLLECTIVES", 50)
    judged, here = graded(total("while True: comm.all_reduce(shards)"))
    assert judged.verdict is Verdict.TIMED_OUT
    assert judged.message.startswith("total has not come to an end after 50 collectives")
    assert (here.verdict, here.message) == (judged.verdict, judged.message)
    assert not [t for t in threading.enumerate() if t.name.startswith("rank ")]


def test_a_bare_except_does_not_keep_a_thread(graded):
    source = total(
        """
        if comm.ranks == (3,):
            return shards
        for _ in range(3):
            try:
                comm.all_reduce(shards)
            except:
                pass
        return shards
        """
    )
    judged, here = graded(source)
    assert judged.message == here.message
    assert "rank 3 has returned from total" in here.message
    assert not [t for t in threading.enumerate() if t.name.startswith("rank ")]


def test_a_rank_that_waits_elsewhere_is_named_when_time_is_up(graded):
    source = total("while comm.ranks == (1,): pass\nreturn comm.all_reduce(shards)")
    judged, _ = graded(source, local=False, time_limit=3)
    assert judged.verdict is Verdict.TIMED_OUT
    assert judged.message == (
        "no result after 3 s, in total on rank 1, while ranks 0, 2 and 3 wait in all_reduce"
    )


def test_an_import_without_end_on_ranks(graded):
    judged, _ = graded("while True: pass", local=False, time_limit=2)
    assert judged.verdict is Verdict.TIMED_OUT
    assert judged.message == "no result after 2 s, while work.py was imported"


def test_a_rank_that_dies_is_named(graded):
    source = total("import os\nif comm.ranks == (2,): os._exit(3)\nreturn comm.all_reduce(shards)")
    judged, _ = graded(source, local=False)
    assert judged.verdict is Verdict.CRASHED
    assert judged.message.startswith("rank 2: the student's process ended in total: exit code 3;")


def test_what_ranks_print_is_kept_line_by_line(graded):
    source = total("print('here', comm.ranks[0])\nreturn comm.all_reduce(shards)")
    judged, _ = graded(source, local=False)
    lines = sorted(judged.printed.splitlines())
    assert lines == [f"rank {rank}: here {rank}" for rank in range(4)]


def test_nothing_is_kept_from_one_session_to_the_next(graded):
    source = total(
        """
        global SEEN
        print("seen", "SEEN" in globals(), Path.home().joinpath("x").exists())
        SEEN = Path.home().joinpath("x").write_text("x")
        return comm.all_reduce(shards)
        """,
        before="from pathlib import Path",
    )
    judged, _ = graded(source, "1.4", local=False)
    assert judged.verdict is Verdict.PASSED
    assert {line.partition(": ")[2] for line in judged.printed.splitlines()} == {"seen False False"}


# ------------------------------------------------------------------ parts
def test_shared_memory_counts_once(monkeypatch):
    sizes = {1: 300, 11: 310, 12: 305, 13: 290, 99: 50}
    monkeypatch.setattr("grader.judge.memory.resident", sizes.__getitem__)
    assert held(1, [11, 12, 13], [11, 12, 13, 99]) == 310 + 5 + 0 + 50
    assert held(1, [11], [11, 99]) == 310 + 50
    assert held(1, [11], []) == 310


def test_lines_of_ranks_are_told_apart():
    printed = Printed()
    printed.take(b"hel", 0)
    printed.take(b"other\n", 1)
    printed.take(b"lo\nmore", 0)
    printed.take(b"plain")
    assert printed.text() == "rank 1: other\nrank 0: hello\nplain"
