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
