"""What all tests of the assignment assert with: that it fails where something is wrong."""

import numpy as np
import pytest
import torch
from comm_sim import NVLINK4, Comm, switch

from assignments.tensor_parallel import oracle
from assignments.tensor_parallel.case import TensorParallelCase
from grader.testing import Call, NotStarted, RanksCall
from grader.testing.problems import StudentError


class Case(TensorParallelCase):
    def test(self):
        """A test."""


@pytest.fixture
def case() -> Case:
    return Case("test")


def returned(*values, comm=None) -> RanksCall:
    """A call on as many ranks."""
    return RanksCall("f", list(values), comm or Comm(switch(len(values), NVLINK4)))


X = np.arange(1.0, 7.0).reshape(2, 3)


class TestEveryRankIsJudged:
    def test_the_same_everywhere(self, case):
        case.assert_all(returned(X, X), "x", X)
        with pytest.raises(AssertionError, match="x of rank 1 is wrong"):
            case.assert_all(returned(X, X + 1), "x", X)
        assert [row.name for row in case.evidence] == ["x of rank 0", "x of rank 1"]

    def test_a_list_of_one(self, case):
        case.assert_each(returned([X], [X]), "x", X)
        case.assert_each(returned([X], [2 * X]), "x", [X, 2 * X])
        with pytest.raises(AssertionError, match="x of rank 0 is wrong"):
            case.assert_each(returned([2 * X], [X]), "x", [X, 2 * X])
        with pytest.raises(AssertionError, match="rank 1"):
            case.assert_each(returned([X], X), "x", X)
        with pytest.raises(AssertionError, match="float32"):
            case.assert_each(returned([X.astype(np.float32)]), "x", X)
        case.assert_each(returned([X.astype(np.float32)]), "x", X, torch.float32)

    def test_a_list_of_parts(self, case):
        case.assert_parts("parts", [X, 2 * X], [X, 2 * X])
        for wrong in (X, [X], [X, 2 * X, X], [2 * X, X], None):
            with pytest.raises(AssertionError, match="parts"):
                case.assert_parts("parts", wrong, [X, 2 * X])

    def test_tokens(self, case):
        tokens = np.array([[0, 3], [5, 1]])
        case.assert_tokens(returned(tokens, tokens), tokens)
        none = np.empty((2, 0), dtype=np.int64)
        case.assert_tokens(returned(none), none)
        for wrong in (tokens + 1, tokens.astype(float), tokens[0], tokens.tolist(), None):
            with pytest.raises(AssertionError, match="rank 1"):
                case.assert_tokens(returned(tokens, wrong), tokens)
        with pytest.raises(AssertionError, match=r"\(2, 2\).*\(2, 0\)"):
            case.assert_tokens(returned(tokens), none)


GOOD = {"embed": X, "layers": [{"wq": X, "wk": 3 * X}], "kv_groups": [0, 1], "tied": False}


class TestParameters:
    def test_equal_ones(self, case):
        case.assert_params("shard", GOOD, GOOD)
        assert len(case.evidence) == 1

    @pytest.mark.parametrize(
        ("wrong", "said"),
        [
            (None, "shard: a dict with embed"),
            (GOOD | {"embed": 2 * X}, "shard: embed is wrong"),
            (GOOD | {"embed": X[:1]}, "shard: embed has shape"),
            (GOOD | {"embed": None}, "shard: embed"),
            (
                GOOD | {"more": 1},
                "^shard: a dict with embed.*tied was expected; more is not among them$",
            ),
            ({"embed": X, "layers": []}, "; kv_groups and tied are missing$"),
            (
                {"embed": X, "layers": [], "tied": False, "kv": [], "lm": 1},
                "; kv_groups is missing, kv and lm are not among them$",
            ),
            (GOOD | {"layers": []}, "shard: layers: a list of 1 was expected"),
            (GOOD | {"layers": [None]}, r"shard: layers\[0\]: a dict with wq, wk"),
            (GOOD | {"layers": [{"wq": X, "wk": X}]}, r"shard: layers\[0\].wk is wrong"),
            (GOOD | {"kv_groups": [0]}, "shard: kv_groups"),
            (GOOD | {"kv_groups": [X]}, "shard: kv_groups: a list with an array of shape"),
            (
                GOOD | {"kv_groups": X},
                r"shard: kv_groups: an array of shape \(2, 3\); a list of wh",
            ),
            (GOOD | {"tied": True}, "shard: tied"),
        ],
    )
    def test_wrong_ones(self, case, wrong, said):
        with pytest.raises(AssertionError, match=said):
            case.assert_params("shard", wrong, GOOD)

    def test_some_entries_only(self, case):
        wrong = GOOD | {"embed": None, "layers": [{"wq": None, "wk": 3 * X}]}
        case.assert_params("shard", wrong, GOOD, only=("layers", "wk", "tied"))
        with pytest.raises(AssertionError, match="wq"):
            case.assert_params("shard", wrong, GOOD, only=("layers", "wq"))

    def test_a_block(self, case):
        case.assert_block(Call("f", (X, {"wq": X})), "rank 0", X, {"wq": X})
        for wrong in (X, (X,), (X, X), (None, {"wq": X}), (X, {"wq": 2 * X}), (2 * X, {"wq": X})):
            with pytest.raises(AssertionError):
                case.assert_block(Call("f", wrong), "rank 0", X, {"wq": X})


class TestNumbers:
    def test_whole_numbers(self, case):
        for right in ([0, 2], (0, 2), [np.int64(0), np.int32(2)]):
            case.assert_whole_numbers("heads", right, [0, 2])
        for wrong, said in (
            ([0, 1], "[0, 1]; [0, 2] was expected"),
            ((0,), "(0,); [0, 2] was expected"),
            (np.array([0, 2]), "an array of shape (2,); a list of whole numbers was expected"),
            ({0, 2}, "a set; a list of whole numbers was expected"),
            (range(2), "a range; a list of whole numbers was expected"),
            (None, "None; a list of whole numbers was expected"),
            ([0, [2]], "a list with a list of 1 in it; a list of whole numbers was expected"),
            ([0.0, 2.0], "a list with a float in it; a list of whole numbers was expected"),
        ):
            with pytest.raises(AssertionError) as caught:
                case.assert_whole_numbers("heads", wrong, [0, 2])
            assert str(caught.value) == f"heads: {said}"

    def test_a_number(self, case):
        case.assert_number("t", 3.0 * (1 + 1e-14), 3)
        for wrong in (3.1, float("nan"), True, None, "3", X):
            with pytest.raises(AssertionError, match="t is"):
                case.assert_number("t", wrong, 3)

    def test_several(self, case):
        case.assert_numbers("times", {"a": 1, "b": 2.0}, {"a": 1.0, "b": 2})
        for wrong in (None, {"a": 1}, {"a": 1, "b": 3}, {"a": 1, "b": 2, "c": 3}):
            with pytest.raises(AssertionError, match="times"):
                case.assert_numbers("times", wrong, {"a": 1, "b": 2})
        with pytest.raises(
            AssertionError, match=r"^times: a dict with a, b was expected; b is missing$"
        ):
            case.assert_numbers("times", {"a": 1}, {"a": 1, "b": 2})
        case.assert_pair("both", (1, 2.0), (1, 2))
        for wrong in (None, 1.0, (1,), (1, 3)):
            with pytest.raises(AssertionError, match="both"):
                case.assert_pair("both", wrong, (1, 2))


class TestBytesSent:
    def test_exactly(self, case):
        comm = Comm(switch(2, NVLINK4))
        comm.all_reduce([np.ones(4), np.ones(4)])
        case.assert_sends(returned(None, None, comm=comm), 32, "what a ring sends")
        with pytest.raises(AssertionError, match="rank 0 sent 32 B, not 64 B, what doubling sends"):
            case.assert_sends(returned(None, None, comm=comm), 64, "what doubling sends")


class TestRefusals:
    @pytest.mark.parametrize("rank", ["", "rank 3: "])
    def test_that_name_the_numbers(self, case, rank):
        with case.refuses("shard", 7, 3):
            raise StudentError(f"{rank}ValueError: axis 0 has length 7; it cannot be cut into 3")

    @pytest.mark.parametrize("words", ["length 7", "lengths 70 and 3", ""])
    def test_that_do_not(self, case, words):
        with (
            pytest.raises(AssertionError, match="does not name"),
            case.refuses("shard", 7, 3),
        ):
            raise StudentError(f"ValueError: {words}")

    def test_none(self, case):
        with pytest.raises(AssertionError, match="is to raise a ValueError"), case.refuses("shard"):
            pass

    @pytest.mark.parametrize(
        "other", [StudentError("IndexError: 7, 3"), NotStarted("7, 3"), RuntimeError("7, 3")]
    )
    def test_something_else(self, case, other):
        with pytest.raises(type(other), match="7, 3"), case.refuses("shard", 7, 3):
            raise other


class TestInputs:
    def test_follow_the_seed(self):
        cfg, made = oracle.config(8, 4), []
        for _ in range(2):
            case = Case("test")
            made.append((case.model(cfg)["embed"], case.tokens(cfg, 2, 3), case.array(2)))
        for one, other in zip(*made, strict=True):
            assert np.array_equal(one, other)
        assert not np.array_equal(made[0][0], case.model(cfg)["embed"])

    def test_gradients_of_own_heads(self, case):
        cfg = oracle.config(12, 3, dh=4)
        widths = [g["layers"][0]["wk"].shape[1] for g in case.replica_gradients(cfg, 4)]
        assert widths == [4, 8, 8, 4]
