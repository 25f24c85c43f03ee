"""Evidence: what a test measured, passed or not, as rows of the report's tables."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict


class OutputRow(BaseModel):
    """One output compared with its expected value.

    Attributes:
        name: what the test calls the output, e.g. `y`.
        shape: its shape.
        dtype: its dtype, e.g. `float32`.
        error: |got − expected| at the worst element; None where that is not a finite number.
        tolerance: the largest error that would have passed there; None if nothing was compared.
        index: the worst element's index; empty for a scalar or if nothing was compared.
        got: the value there, printed.
        expected: the value wanted there, printed.
        wrong: how many elements are off by more than their tolerance.
        total: how many elements there are.
        ok: whether the output passed.
    """

    model_config = ConfigDict(frozen=True)

    kind: Literal["output"] = "output"
    name: str
    shape: tuple[int, ...]
    dtype: str
    error: float | None
    tolerance: float | None
    index: tuple[int, ...]
    got: str
    expected: str
    wrong: int
    total: int
    ok: bool


class LineTraffic(BaseModel):
    """Bytes that one source line of a submitted file moved.

    Attributes:
        file: the file's name relative to the submission.
        line: the line's number.
        loaded: bytes loaded.
        stored: bytes stored.
    """

    model_config = ConfigDict(frozen=True)

    file: str
    line: int
    loaded: int
    stored: int

    @property
    def moved(self) -> int:
        """Bytes loaded and stored."""
        return self.loaded + self.stored


class TrafficRow(BaseModel):
    """Bytes moved by one call's kernels, or sent by one of its ranks, against a budget.

    Attributes:
        name: the function called, and the rank.
        which: `loaded`, `stored`, or `moved`: both together; `sent` to other ranks.
        bytes: the count.
        budget: the budget's value in bytes; None if there is none.
        formula: the budget as a derivation, `2·M·N·s = 2·64·100·4 = 51,200 B`.
        tensors: bytes per tensor argument, or per label of what was sent, the largest first.
        lines: bytes per source line, both directions.
        ok: whether the count is within the budget.
    """

    model_config = ConfigDict(frozen=True)

    kind: Literal["traffic"] = "traffic"
    name: str
    which: Literal["loaded", "stored", "moved", "sent"]
    bytes: int
    budget: int | None
    formula: str
    tensors: dict[str, int]
    lines: tuple[LineTraffic, ...]
    ok: bool


Row = OutputRow | TrafficRow
