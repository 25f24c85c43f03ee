"""Tokens of TTIR text."""

import pytest
from mini_triton.errors import BadProgram
from mini_triton.ir.lexer import tokenize


def kinds(text):
    return [(token.kind, token.text) for token in tokenize(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%x-1_y.2", [("value", "%x-1_y.2")]),
        ("%a#1:2", [("value", "%a#1"), ("punct", ":"), ("number", "2")]),
        ("^bb12", [("block", "^bb12")]),
        ("tensor<4x8xf32>", [("tile", "tensor<4x8xf32>")]),
        ("tensor<4x!tt.ptr<f8E5M2>>", [("tile", "tensor<4x!tt.ptr<f8E5M2>>")]),
        ("tensor<4x8xf32,", [("tensor", "tensor<4x8x"), ("word", "f32"), ("punct", ",")]),
        ("tensor<f32>", [("tensor", "tensor<"), ("word", "f32"), ("punct", ">")]),
        ("!tt.ptr<i8>", [("type", "!tt.ptr"), ("punct", "<"), ("word", "i8"), ("punct", ">")]),
        ("-1.5e-3 0xFF80 7", [("number", "-1.5e-3"), ("hex", "0xFF80"), ("number", "7")]),
        ('@"a b" @k.f', [("symbol", '@"a b"'), ("symbol", "@k.f")]),
        (r'"say \"(x)\" // no"', [("string", r'"say \"(x)\" // no"')]),
        ("a // b\n-> c", [("word", "a"), ("newline", "\n"), ("arrow", "->"), ("word", "c")]),
        ("#loc3", [("alias", "#loc3")]),
        ("loc(#loc3)", [("location", "loc(#loc3)")]),
        ("loc(unknown) ", [("word", "loc"), ("punct", "("), ("word", "unknown"), ("punct", ")")]),
        (" \t ", []),
    ],
)
def test_kinds(text, expected):
    assert kinds(text) == [*expected, ("end", "")]


def test_lines_are_counted():
    assert [token.line for token in tokenize("a\n\n b")] == [1, 1, 2, 3, 3]


def test_a_character_that_begins_no_token():
    with pytest.raises(BadProgram, match="TTIR line 2: unexpected character '§'"):
        tokenize("a\n §")
