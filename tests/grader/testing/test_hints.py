import pytest
import torch

from grader.testing.hints import hint

TARGET = torch.randn(6, 100, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def advice(change, target=TARGET):
    got = target.clone()
    got = change(got)
    wrong = ~((got - target).abs() < 1e-9)
    return hint(got, target, wrong)


def setting(index, value):
    def change(got):
        got[index] = value
        return got

    return change


def adding(index, value):
    def change(got):
        got[index] += value
        return got

    return change


def test_trailing_columns():
    text = advice(adding((slice(None), slice(64, None)), 1.0))
    assert text is not None
    assert text.startswith("columns 64…99 are wrong, columns 0…63 are right: is the tail masked")


def test_trailing_columns_of_one_row():
    text = advice(adding((3, slice(64, None)), 1.0))
    assert text is not None
    assert text.startswith("row 3, columns 64…99 are wrong")


def test_trailing_elements_of_a_vector():
    text = advice(adding(slice(64, None), 1.0), TARGET[0].clone())
    assert text is not None
    assert text.startswith("elements 64…99 are wrong")


def test_a_tail_is_guessed_only_where_a_block_may_begin():
    # r, one number a row: the last two of six rows are wrong, which no mask has to do with.
    vector = TARGET[:, 0].clone()
    text = advice(adding(slice(4, None), 1.0), vector)
    assert text == "elements 4…5 are wrong, elements 0…3 are right"
    text = advice(adding(slice(64, None), 1.0), TARGET[0].clone())
    assert text == (
        "elements 64…99 are wrong, elements 0…63 are right: is the tail masked, on load and on "
        "store?"
    )
    text = advice(adding((slice(None), slice(50, None)), 1.0))
    assert text == "columns 50…99 are wrong, columns 0…49 are right"


def test_blocks_beyond_the_first():
    text = advice(adding((slice(None), slice(32, None)), 1.0))
    assert text == (
        "columns 32…99 are wrong, columns 0…31 are right: does the kernel go over all blocks?"
    )


HEADS = torch.randn(2, 4, 100, 32, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
_ = slice(None)


@pytest.mark.parametrize(
    ("index", "said"),
    [
        (
            (_, _, slice(64, None)),
            "only [:, :, 64:, :] is wrong: is the tail of axis 2 masked, on load and on store?",
        ),
        ((0,), "only [0, :, :, :] is wrong"),
        ((_, slice(1, 3)), "only [:, 1:3, :, :] is wrong"),
        ((_, slice(1, None, 2)), "only [:, 1::2, :, :] is wrong"),
        ((1, 2, slice(None, 32), slice(16, None)), "only [1, 2, :32, 16:] is wrong"),
        ((_, _, _, slice(0, 32, 8)), "only [:, :, :, ::8] is wrong"),
    ],
)
def test_three_axes_and_more_are_named_by_their_indices(index, said):
    assert advice(adding(index, 1.0), HEADS) == said


def test_a_part_of_a_box_of_three_axes():
    assert advice(adding((0, 1, torch.tensor([3, 4]), torch.tensor([7, 8])), 1.0), HEADS) == (
        "all that is wrong lies in [0, 1, 3:5, 7:9]"
    )
    scattered = (torch.tensor([0, 1, 0]), torch.tensor([0, 1, 3]), torch.tensor([0, 50, 99]))
    assert advice(adding(scattered, 1.0), HEADS) is None


def test_nan_of_three_axes():
    text = advice(setting((_, _, slice(96, None)), torch.nan), HEADS)
    assert text is not None
    assert text.startswith("[:, :, 96:, :] is NaN: new memory")


def test_a_factor_a_row_of_three_axes():
    factors = torch.linspace(0.5, 2, 800, dtype=torch.float64).reshape(2, 4, 100, 1)
    assert "factor of its own" in (advice(lambda got: got * factors, HEADS) or "")


def test_all_rows_but_the_first():
    text = advice(adding((slice(1, None), slice(None)), 1.0))
    assert text is not None
    assert "every row but the first" in text


def test_trailing_rows():
    text = advice(adding((slice(4, None), slice(None)), 1.0))
    assert text is not None
    assert text.startswith("rows 4…5 are wrong")


def test_memory_never_written():
    text = advice(setting((slice(2, 5), slice(None)), torch.nan))
    assert text is not None
    assert text.startswith("rows 2…4 are NaN: new memory")


def test_scattered_nan_is_counted():
    text = advice(setting((torch.tensor([0, 3]), torch.tensor([5, 9])), torch.nan))
    assert text is not None
    assert text.startswith("2 elements are NaN")


def test_zeros():
    assert "every element is 0" in (advice(torch.zeros_like) or "")


def test_one_factor():
    text = advice(lambda got: got * 1.28)
    assert text == "every element is 1.28 times what it should be"


def test_a_factor_a_row():
    factors = torch.linspace(0.5, 2, 6, dtype=torch.float64)[:, None]
    assert "factor of its own" in (advice(lambda got: got * factors) or "")


def test_says_nothing_where_the_pattern_says_nothing():
    noise = torch.randn(6, 100, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    assert advice(lambda got: got + noise) is None
    scattered = (torch.tensor([0, 2, 5]), torch.tensor([7, 50, 3]))
    assert advice(adding(scattered, 1.0)) is None


def said(change, **about):
    got = change(TARGET.clone())
    return hint(got, TARGET, ~((got - TARGET).abs() < 1e-9), **about)


def test_where_no_kernel_ran_nothing_is_asked_about_one():
    assert said(adding(slice(4, None), 1.0)) == (
        "rows 4…5 are wrong, all before are right: does the grid end early?"
    )
    assert said(adding(slice(4, None), 1.0), kernels=False) == (
        "rows 4…5 are wrong, all before are right"
    )
    assert said(adding(slice(1, None), 1.0), kernels=False) == "every row but the first is wrong"
    tail = said(adding((slice(None), slice(96, None)), 1.0), kernels=False)
    assert tail == "columns 96…99 are wrong, columns 0…95 are right"


def test_a_row_of_zeros_is_no_sign():
    target = TARGET.clone()
    target[0] = 0
    got = target * 3
    got[1:] += 1
    assert hint(got, target, (got - target).abs() > 1e-9) is None


@pytest.mark.parametrize("unit", [2.0**-10, 2.0**-7])
def test_operands_with_too_few_bits(unit):
    noise = torch.rand(6, 100, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    got = TARGET * (1 + unit * (noise - 0.5))
    wrong = (got - TARGET).abs() > 1e-5
    text = hint(got, TARGET, wrong, torch.float32)
    assert text is not None
    assert 'input_precision="ieee"' in text
    assert hint(got, TARGET, wrong, torch.float16) is None
    assert hint(got, TARGET, wrong, torch.float32, kernels=False) is None
