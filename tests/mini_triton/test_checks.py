"""Checks are chosen by name."""

import pytest
from mini_triton.checks import ALL, DEFAULT, chosen


def test_checks_are_chosen_by_name() -> None:
    assert chosen("all") == ALL
    assert chosen(None) == DEFAULT
    assert chosen("races") == ("bounds", "races")
    assert chosen(["order", "races"]) == ("bounds", "races", "order")
    assert chosen(()) == ("bounds",)
    with pytest.raises(ValueError, match="there are bounds, read_only, races"):
        chosen("nothing")
    with pytest.raises(ValueError, match="did you mean 'races'"):
        chosen("race")
