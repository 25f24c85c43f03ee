"""The assertions of `AssignmentTestCase`, with a student that returns what it is told."""

from types import SimpleNamespace

import mini_triton
import numpy as np
import pytest
import torch
from comm_sim import NVLINK4, Comm, switch

from grader.testing import AssignmentTestCase, Budget, Call, Launches, RanksCall, Record
from grader.testing.case import test_seed as seed_of


class Case(AssignmentTestCase):
    def test_something(self):
        """Not run"""


@pytest.fixture
def case():
    case = Case("test_something")
    case.student = SimpleNamespace(calls=0, source=lambda file, line: f"line {line} of {file}")
    return case


def record(loaded, stored):
    made = mini_triton.LaunchRecord("k", (1, 1, 1))
    for line, (name, elements) in enumerate(loaded.items(), start=10):
        made.add(name, mini_triton.Location("/there/work.py", line), "loaded", elements, 4)
    for line, (name, elements) in enumerate(stored.items(), start=20):
        made.add(name, mini_triton.Location("/there/work.py", line), "stored", elements, 4)
    return made


def test_inputs_depend_on_seed_and_number_only(case):
    other = Case("test_something")
    assert torch.equal(case.randn(3, 4), other.randn(3, 4))
    assert not torch.equal(case.randn(3, 4), Case("test_something").randn(3, 4))
    assert len({seed_of(0, "1.1"), seed_of(1, "1.1"), seed_of(0, "1.2")}) == 3
    assert all(0 <= seed_of(seed, "1.1") < 2**63 for seed in range(20))


def test_inputs_have_the_dtype_and_scale_asked_for(case):
    x = case.randn(1000, dtype=torch.bfloat16, scale=100.0)
    assert x.dtype is torch.bfloat16
    assert 80 < x.float().std() < 120
    assert not case.zeros(2, 3).any()
    assert case.ones(2, 3).all()


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        (None, r"f returned None; a tuple \(y, r\) was expected"),
        (torch.ones(2), r"f returned a tensor of shape \(2,\); a tuple"),
        ((torch.ones(2),), r"f returned 1 values; \(y, r\) was expected"),
        ((torch.ones(2), 3.0), "f returned a float for r, not a torch.Tensor"),
    ],
)
def test_unpack_says_what_was_expected(case, value, complaint):
    with pytest.raises(AssertionError, match=complaint):
        case.unpack(Call("f", value), "y", "r")


def test_unpack_gives_the_tensors(case):
    y, r = case.unpack(Call("f", [torch.ones(2), torch.zeros(3)]), "y", "r")
    assert (y.shape, r.shape) == ((2,), (3,))


def test_close_leaves_evidence_passed_or_not(case):
    expected = torch.tensor([1.0, 2.0], dtype=torch.float64)
    case.assert_close("y", expected.float(), expected)
    with pytest.raises(AssertionError, match="y is wrong"):
        case.assert_close("y", expected.float() + 1, expected)
    assert [row.ok for row in case.evidence] == [True, False]


def test_traffic_within_the_budget(case):
    call = Call("f", None, Launches((record({"x": 8}, {"y": 8}),)))
    case.assert_traffic(call, loaded=Budget("N*s", N=8, s=4), stored=Budget("N*s", N=8, s=4))
    assert [(row.which, row.bytes, row.ok) for row in case.evidence] == [
        ("loaded", 32, True),
        ("stored", 32, True),
    ]


def test_traffic_over_the_budget_names_tensors_and_lines(case):
    call = Call("f", None, Launches((record({"x": 16, "g": 4}, {"y": 8}), record({"x": 1}, {}))))
    with pytest.raises(AssertionError) as caught:
        case.assert_traffic(call, loaded=Budget("N*s", N=8, s=4), stored=Budget("N*s", N=8, s=4))
    assert str(caught.value).split("\n") == [
        "f loads 84 B, over the budget of N·s = 8·4 = 32 B (2.62×)",
        "  68 B  x",
        "  16 B  g",
        "  most is loaded at",
        "  68 B  work.py:10  line 10 of work.py",
        "  16 B  work.py:11  line 11 of work.py",
    ]
    assert [row.ok for row in case.evidence] == [False, True]


def test_both_directions_over_are_both_said(case):
    call = Call("f", None, Launches((record({"x": 16}, {"y": 16}),)))
    with pytest.raises(AssertionError, match=r"(?s)f loads 64 B.*f stores 64 B"):
        case.assert_traffic(call, loaded=Budget("N", N=8), stored=Budget("N", N=8))


def test_a_file_that_repaints_a_terminal_is_named_without(case):
    made = mini_triton.LaunchRecord("k", (1, 1, 1))
    made.add("x", mini_triton.Location("/there/\x1b[2Jwork.py", 1), "loaded", 8, 4)
    case.assert_traffic(Call("f", None, Launches((made,))), loaded=Budget("N*s", N=8, s=4))
    assert case.evidence[0].lines[0].file == "�[2Jwork.py"


def test_traffic_needs_a_kernel(case):
    with pytest.raises(AssertionError, match="f launched no Triton kernel"):
        case.assert_traffic(Call("f", None), loaded=Budget("N", N=8))


def test_unpack_takes_arrays_and_records(case):
    io = Record("IO", read=1, write=2)
    call = Call("f", (np.ones(2), io))
    o, got = case.unpack(call, "O", "io", kinds=(np.ndarray, Record))
    assert torch.equal(o, torch.ones(2, dtype=torch.float64))
    assert got is io
    with pytest.raises(AssertionError, match=r"f returned an array of shape \(2,\) for O, not a "):
        case.unpack(call, "O", "io")
    with pytest.raises(AssertionError, match=r"f returned a IO for io, not a numpy\.ndarray"):
        case.unpack(call, "O", "io", kinds=(np.ndarray, np.ndarray))


def test_loads_and_stores_may_share_a_budget(case):
    call = Call("f", None, Launches((record({"x": 8}, {"y": 2}),)))
    total = call.profile.moved_bytes
    assert total == 40
    case.assert_traffic(call, moved=Budget("n", n=total))
    assert (case.evidence[-1].which, case.evidence[-1].bytes) == ("moved", total)
    with pytest.raises(AssertionError, match=r"f moves 40 B, over the budget of n = 39 B"):
        case.assert_traffic(call, moved=Budget("n", n=total - 1))


@pytest.mark.parametrize("array", [np.array(["a"]), np.array([None]), np.zeros(2, dtype=">f8")])
def test_unpack_takes_no_array_of_what_torch_has_not(case, array):
    call = Call("f", (array,))
    with pytest.raises(AssertionError, match=r"not a numpy\.ndarray of numbers"):
        case.unpack(call, "O", kinds=(np.ndarray,))


def test_unpack_takes_arrays_of_any_layout(case):
    arrays = (np.arange(3.0)[::-1], np.broadcast_to(np.float64(2), (2,)), np.array(4.0))
    found = case.unpack(Call("f", arrays), "a", "b", "c", kinds=(np.ndarray,) * 3)
    assert [t.tolist() for t in found] == [[2.0, 1.0, 0.0], [2.0, 2.0], 4.0]


@pytest.mark.parametrize("count", [torch.ones(2), np.ones(2), [np.ones((0,))]])
def test_a_tensor_in_place_of_a_number_is_a_failure(case, count):
    with pytest.raises(AssertionError, match=r"stats: .* of shape .* stands where a number should"):
        case.assertEqual({"tiles": count}, {"tiles": 1}, "stats")


def test_numbers_are_compared_as_ever(case):
    case.assertEqual({"tiles": torch.tensor(3)}, {"tiles": 3})
    case.assertEqual([np.int64(3), 3.0], [3, 3])
    with pytest.raises(AssertionError, match="3 != 4 : count"):
        case.assertEqual(3, 4, "count")


def launched(**about):
    return Call("f", None, Launches((mini_triton.LaunchRecord("k", (3, 2, 1), **about),)))


def test_a_tile_larger_than_a_multiprocessor_is_refused(case):
    case.assert_tiles_fit(launched(largest_tile=65_536))
    with pytest.raises(AssertionError, match=r"kernel k makes a tile of 131,072 elements, but"):
        case.assert_tiles_fit(launched(largest_tile=131_072))


def test_too_few_programs(case):
    case.assert_programs(launched(), 6, "n_split·G")
    with pytest.raises(AssertionError, match=r"f launches at most 6 programs at once; n_split·G ="):
        case.assert_programs(launched(), 7, "n_split·G")


# ------------------------------------------------------------------ ranks
def on_ranks(values=(), n=3, byte_scale=1.0):
    return RanksCall("f", list(values), Comm(switch(n, NVLINK4), byte_scale))


def test_each_takes_lists_of_one(case):
    assert case.each(on_ranks([[1], (2,), [3]]), "y") == [1, 2, 3]
    for wrong, words in (([1] * 4, "a list of 4"), (7, "a int"), (np.ones(1), r"shape \(1,\)")):
        with pytest.raises(AssertionError, match=rf"^y: rank 2 returned .*{words} from f; it hold"):
            case.each(on_ranks([[1], [2], wrong]), "y")


def test_counts_are_those_of_each_rank(case):
    call = on_ranks()
    call.comm.all_reduce([np.ones(6)] * 3)
    call.comm.group([0, 1]).all_gather([np.ones(2)] * 2)
    call.comm.group([2]).all_gather([np.ones(2)])
    case.assert_comm(call, counts={"all_reduce": 1, "all_gather_into_tensor": 1})
    with pytest.raises(AssertionError) as caught:
        case.assert_comm(call, counts={"all_reduce": 2, "reduce_scatter_tensor": 1})
    assert str(caught.value) == (
        "f calls all_gather_into_tensor once (0 expected), all_reduce once (2 expected), "
        "reduce_scatter_tensor not at all (1 expected) on rank 0"
    )
    call.comm.group([1, 2]).all_reduce([np.ones(1)] * 2)
    with pytest.raises(AssertionError, match=r"all_reduce twice \(1 expected\) on rank 1$"):
        case.assert_comm(call, counts={"all_reduce": 1, "all_gather_into_tensor": 1})
    assert case.evidence == []


def test_bytes_sent_of_the_worst_rank(case):
    call = on_ranks(byte_scale=0.25)
    call.comm.exchange([(0, 1, np.ones(4)), (2, 0, np.ones(7))], "first")
    call.comm.exchange([(2, 1, np.ones(3))], "second\x1b[2J")
    case.assert_comm(call, sent=Budget("n*s", n=10, s=2))
    with pytest.raises(AssertionError) as caught:
        case.assert_comm(call, counts={"all_reduce": 1}, sent=Budget("n*s", n=9, s=2))
    assert str(caught.value).split("\n") == [
        "f calls all_reduce not at all (1 expected) on rank 0",
        "f sends 20 B from rank 2, over the budget of n·s = 9·2 = 18 B (1.11×)",
        "  14 B  first",
        "   6 B  second�[2J",
    ]
    row = case.evidence[-1]
    assert (row.name, row.which, row.bytes, row.ok) == ("f, rank 2 of 3", "sent", 20, False)
    assert row.tensors == {"first": 14, "second�[2J": 6}


def test_nothing_may_be_sent(case):
    case.assert_comm(on_ranks(), counts={}, sent=Budget("0"))


def test_arrays_are_compared(case):
    expected = torch.arange(3.0, dtype=torch.float64) + 1
    case.assert_close("y", expected.numpy()[::-1].copy()[::-1], expected)
    case.assert_close("y", expected.numpy(), expected.numpy())
    case.assert_close("y", np.arange(3), np.arange(3))
    with pytest.raises(AssertionError, match="y is wrong: 1 of 3"):
        case.assert_close("y", np.array([1.0, 2.0, 4.0]), expected)
    with pytest.raises(AssertionError, match=r"y has shape \(2,\)"):
        case.assert_close("y", np.ones(2), expected)
    with pytest.raises(AssertionError, match=r"y is a tensor of shape \(3,\); a numpy.ndarray of"):
        case.assert_close("y", expected, expected.numpy())
    with pytest.raises(AssertionError, match=r"y is a list; a numpy\.ndarray of numbers was exp"):
        case.assert_close("y", [1.0, 2.0, 3.0], expected.numpy())
    with pytest.raises(AssertionError, match=r"y is a ndarray; a numpy\.ndarray of numbers was"):
        case.assert_close("y", np.array([None]), expected.numpy())
