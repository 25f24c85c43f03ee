"""Headers: what ranks tell each other, and what they make of it."""

import pytest
from spmd.agreement import (
    ALL_GATHER,
    ALL_REDUCE,
    FINISH,
    GROUP,
    HEADER_BYTES,
    REDUCE_SCATTER,
    Header,
    check_agreement,
)


@pytest.mark.parametrize(
    "header",
    [
        Header(FINISH),
        Header(GROUP, str(list(range(20)))),
        Header(ALL_REDUCE, "wo", "float64", 2**40),
        Header(ALL_GATHER, 'Größe "×" 重\n\\', "bool", 0, "has shape (3, 1)"),
    ],
)
def test_a_header_comes_back_as_it_was(header):
    data = header.to_bytes()
    assert len(data) == HEADER_BYTES
    assert Header.from_bytes(data) == header


@pytest.mark.parametrize("letter", ["x", "重", "\\", '"', "\n", "\0", "\U0001f600", "\ud800"])
def test_a_long_header_is_cut_whatever_its_letters(letter):
    header = Header(ALL_REDUCE, letter * 1000, "float32", 5, letter * 1000)
    data = header.to_bytes()
    assert len(data) == HEADER_BYTES
    back = Header.from_bytes(data)
    assert (back.op, back.dtype, back.length) == (ALL_REDUCE, "float32", 5)
    assert back.problem


def test_an_all_gather_may_have_all_lengths():
    check_agreement([Header(ALL_GATHER, "a", "int8", 3), Header(ALL_GATHER, "b", "int8", 0)])


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        (
            [Header(ALL_REDUCE, "wo"), Header(ALL_REDUCE, "wo"), Header(FINISH)],
            r"rank 0 calls all_reduce \('wo'\), rank 2 has come to its end; all ranks call the",
        ),
        (
            [Header(GROUP, "[0, 1]"), Header(GROUP, "[0, 2]")],
            r"rank 0 makes a group of \[0, 1\], rank 1 makes a group of \[0, 2\]; all ranks",
        ),
        (
            [Header(ALL_GATHER, "x", "int8", 3), Header(ALL_GATHER, problem="is a list; give …")],
            "the array of rank 1 is a list; give …",
        ),
        (
            [Header(ALL_GATHER, "x", "int8", 3), Header(ALL_GATHER, "x", "uint8", 3)],
            "the array of rank 1 is of uint8, the array of rank 0 of int8; dtypes must be equal",
        ),
        (
            [Header(ALL_REDUCE, "x", "int8", 3), Header(ALL_REDUCE, "x", "int8", 4)],
            "the array of rank 1 has 4 elements, that of rank 0 3; lengths must be equal",
        ),
        (
            [Header(REDUCE_SCATTER, "x", "int8", 7)] * 3,
            "arrays of 7 elements cannot be cut into 3 equal blocks; pad them to 9",
        ),
    ],
)
def test_what_does_not_fit_is_said(headers, message):
    with pytest.raises(ValueError, match=message):
        check_agreement(headers)
