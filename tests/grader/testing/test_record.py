"""Dataclasses travel as Records: as arguments, as results, and in containers."""

import textwrap

import numpy as np
import pytest
import torch

from grader.testing import Record
from grader.testing.local import LocalStudent
from grader.testing.problems import Misuse, StudentError

SOURCE = """
    from dataclasses import dataclass
    from typing import NamedTuple

    import torch


    @dataclass
    class State:
        m: torch.Tensor
        o: torch.Tensor | None = None

        @property
        def twice(self):
            return 2 * self.m


    class IO(NamedTuple):
        read: int
        write: int


    def double(state, more=()):
        assert all(isinstance(each, State) for each in (state, *more))
        return State(state.twice, state.o), [IO(len(more), 2)]


    def fill(x, stats=None):
        stats["rows"] = len(x)
        stats["x"] = x
        return stats.get("before", 0)


    def fill_with_itself(stats=None):
        stats["stats"] = stats


    def spoil(state, array):
        state.m.zero_()


    def spoil_array(state, array):
        array[0] = 7
"""


@pytest.fixture
def student(tmp_path):
    (tmp_path / "work.py").write_text(textwrap.dedent(SOURCE))
    return LocalStudent(tmp_path, ["work.py"])


def test_there_and_back(student):
    m = torch.arange(3.0)
    given = Record("State", m=m, o=None)
    state, (io,) = student.call("work:double", given, more=[given]).value
    assert (state.kind, list(state.fields)) == ("State", ["m", "o"])
    assert torch.equal(state.m, 2 * m)
    assert state.o is None
    assert (io.kind, io.read, io.write) == ("IO", 1, 2)


def test_a_field_that_is_not_there(student):
    for kind in (AttributeError, AssertionError):  # to Python; to a test
        with pytest.raises(kind, match="State has no field 'l'"):
            _ = Record("State", m=1).l
    assert not hasattr(Record("State", m=1), "l")
    with pytest.raises(StudentError, match="unexpected keyword argument 'l'"):
        student.call("double", Record("State", l=1))


def test_a_class_that_is_not_there(student):
    with pytest.raises(Misuse, match="defines no Stat; keep the names"):
        student.call("double", Record("Stat", m=1))


def test_what_a_dict_was_filled_with(student):
    given = {"before": 3}
    call = student.call("fill", torch.ones(2), stats=given)
    assert call.value == 3
    assert call.filled["stats"]["rows"] == 2
    assert torch.equal(call.filled["stats"]["x"], torch.ones(2))


def test_a_dict_that_holds_itself(student):
    with pytest.raises(StudentError, match="RecursionError"):
        student.call("fill_with_itself", stats={})


def test_records_and_arrays_are_to_be_left_as_they_are(student):
    state, array = Record("State", m=torch.ones(2)), np.ones(2)
    with pytest.raises(Misuse, match=r"state\.m was changed by spoil"):
        student.call("spoil", state, array)
    with pytest.raises(Misuse, match="array was changed by spoil_array"):
        student.call("spoil_array", state, array)
