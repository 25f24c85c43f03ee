"""Random programs for property tests: those of the assignment's tests, chosen by hypothesis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from assignments.graph_fusion.programs import Sample, random_program, same

__all__ = ["Sample", "same", "samples"]


class _Drawn:
    """A `Chooser` whose choices hypothesis makes, and makes smaller when something fails."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw

    def whole(self, low: int, high: int) -> int:
        return self._draw(st.integers(low, high))

    def of(self, options: Sequence[Any]) -> Any:
        return self._draw(st.sampled_from(options))

    def flag(self) -> bool:
        return self._draw(st.booleans())

    def order(self, n: int) -> list[int]:
        return self._draw(st.permutations(range(n)))


@st.composite
def samples(
    draw: st.DrawFn,
    steps: int = 14,
    dtypes: Sequence[str] = ("f64",),
    special: bool = True,
    impure: bool = True,
) -> Sample:
    """A program of up to so many steps: see `random_program`."""
    return random_program(_Drawn(draw), steps, dtypes, special, impure)
