import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.testing.compare import RTOL, compare


def expected(*shape, scale=1.0, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64) * scale


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_the_rounded_exact_result_passes(dtype):
    target = expected(64, 100)
    outcome = compare("y", target.to(dtype), target)
    assert outcome.failure is None
    assert outcome.row.ok
    assert outcome.row.wrong == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@settings(deadline=None)
@given(scale=st.floats(min_value=1e-3, max_value=1e3), seed=st.integers(0, 100))
def test_nothing_lazy_passes(dtype, scale, seed):
    target = expected(4, 9, scale=scale, seed=seed)
    lazy = {
        "zeros": torch.zeros_like(target),
        "the mean": torch.full_like(target, float(target.mean())),
        "NaN": torch.full_like(target, torch.nan),
        "infinity": torch.full_like(target, torch.inf),
        "one NaN": torch.where(torch.arange(9) == 3, torch.nan, target),
        "shifted": target.roll(1, 0),
    }
    for what, value in lazy.items():
        assert compare("y", value.to(dtype), target).failure is not None, what


def test_sixteen_bit_accumulation_fails_in_float32():
    target = expected(8, 64)
    assert compare("y", target.half().float(), target).failure is not None


def test_a_small_row_needs_its_own_scale():
    target = expected(3, 50)
    target[1] *= 1e-6
    lazy = target.clone()
    lazy[1] = 0
    assert compare("y", lazy.float(), target).failure is None
    failure = compare("y", lazy.float(), target, per_row=True).failure
    assert failure is not None
    assert "only row 1" in failure


def test_says_what_where_and_how_much():
    target = expected(4, 8)
    got = target.float()
    got[2, 5] += 3
    outcome = compare("y", got, target)
    assert outcome.row.index == (2, 5)
    assert outcome.row.error == pytest.approx(3, abs=1e-5)
    assert outcome.failure is not None
    assert outcome.failure.startswith("y is wrong: 1 of 32 elements are off (float32, shape (4, 8)")
    assert "at y[2, 5]: got" in outcome.failure
    assert "only row 2 is wrong" in outcome.failure


def test_nan_is_the_worst_error_and_no_number():
    target = expected(4, 8)
    got = target.float()
    got[0, 0] += 100
    got[3, 1] = torch.nan
    row = compare("y", got, target).row
    assert (row.index, row.error, row.got) == ((3, 1), None, "nan")


def test_infinities_have_to_agree():
    target = torch.tensor([1.0, -torch.inf, 2.0], dtype=torch.float64)
    assert compare("lse", target.float(), target).failure is None
    wrong = torch.tensor([1.0, torch.inf, 2.0])
    assert "lse[1]: got inf, expected -inf" in (compare("lse", wrong, target).failure or "")


def test_scalars_and_integers():
    assert compare("loss", torch.tensor(2.0), torch.tensor(2.0, dtype=torch.float64)).row.ok
    assert not compare("loss", torch.tensor(2.1), torch.tensor(2.0, dtype=torch.float64)).row.ok
    assert compare("ids", torch.tensor([1, 2]), torch.tensor([1, 2])).row.ok
    row = compare("ids", torch.tensor([1, 3]), torch.tensor([1, 2])).row
    assert (row.index, row.got, row.expected) == ((1,), "3", "2")


class Liar(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return torch.tensor(0.0)


@pytest.mark.parametrize(
    ("got", "complaint"),
    [
        (None, "is a NoneType"),
        ([1.0], "is a list"),
        (torch.zeros(2, 2).as_subclass(Liar), "is a Liar"),
        (torch.nn.Parameter(torch.zeros(2, 2)), "is a Parameter"),
        (torch.zeros(2, 2, device="meta"), "is on meta"),
        (torch.eye(2).to_sparse(), "sparse"),
        (torch.zeros(4), r"has shape \(4,\); \(2, 2\) was expected"),
        (torch.zeros(2, 2, dtype=torch.int64), "has dtype int64"),
        (torch.zeros(2, 2, dtype=torch.float16), "has dtype float16; float32 was expected"),
    ],
)
def test_refuses_what_is_no_such_tensor(got, complaint):
    outcome = compare("y", got, expected(2, 2), dtype=torch.float32)
    assert not outcome.row.ok
    with pytest.raises(AssertionError, match=complaint):
        raise AssertionError(outcome.failure)


@pytest.mark.parametrize(
    ("target", "complaint"),
    [
        (torch.zeros(3, dtype=torch.float64), "all zeros"),
        (torch.ones(3), "compute it in float64"),
        (torch.tensor([1.0, torch.nan], dtype=torch.float64), "NaN"),
        (torch.ones(0, dtype=torch.float64), "empty"),
    ],
)
def test_refuses_an_expected_value_that_cannot_tell(target, complaint):
    with pytest.raises(ValueError, match=complaint):
        compare("y", target.float(), target)


def test_zeros_with_a_floor():
    target = torch.zeros(3, dtype=torch.float64)
    assert compare("dx", torch.full((3,), 1e-7), target, floor=1e-6).row.ok
    assert not compare("dx", torch.full((3,), 1e-5), target, floor=1e-6).row.ok


def test_every_default_tolerance_is_tighter_than_a_percent():
    assert max(RTOL.values()) < 0.01
