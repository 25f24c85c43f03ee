"""Runs student code on one rank: the same way in the student's process and the grader's.

The rank gets its communicator for `COMM`, and what it kept before for a `Kept`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from grader.testing.problems import Misuse
from grader.testing.rank_comm import RankComm
from grader.testing.ranks import COMM, Reference, for_each
from grader.testing.record import Record
from grader.testing.running import built, describe, detached, unchanged
from grader.testing.submitted import SubmittedCode


class Rank:
    """One rank of a session: its code, its communicator, and what it keeps.

    Args:
        code: the submitted files, imported for this rank alone.
        comm: its communicator.
    """

    def __init__(self, code: SubmittedCode, comm: RankComm) -> None:
        self.code = code
        self._comm = comm
        self._kept: dict[int, Any] = {}

    def call(
        self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], keep: int | None
    ) -> Any:
        """Calls a function. What it raises passes through.

        Args:
            name: the function.
            args: its positional arguments.
            kwargs: its keyword arguments.
            keep: the number under which to keep what it returns; None to return it.

        Returns:
            The value, tensors detached; None if it is kept.

        Raises:
            Misuse: an argument was changed, or there is nothing kept where one was expected.
        """
        function = self.code.function(name)
        with unchanged(function, name, args, kwargs):
            here = [built(self.code, name, value) for value in for_each(list(args), self._own)]
            named = {
                key: built(self.code, name, for_each(value, self._own))
                for key, value in kwargs.items()
            }
            value = function(*here, **named)
            if keep is None:
                return detached(value)
        self._kept[keep] = value
        return None

    def _own(self, value: Any) -> Any:
        """What stands for an argument on this rank."""
        if value is COMM:
            return self._comm
        if isinstance(value, Reference):
            return self._element(value)
        return value

    def _element(self, kept: Reference) -> Any:
        value = self._kept[kept.key]
        for at in kept.path:
            try:
                value = value[at]
            except Exception as error:
                raise Misuse(f"{describe(value)} was returned; it has no element {at!r}") from error
        return value


def copied(value: Any) -> Any:
    """Copies of the arrays and tensors in a value, as if it had come from another process."""
    if isinstance(value, Record):
        return Record(value.kind, **{name: copied(field) for name, field in value.fields.items()})
    return for_each(value, _copied)


def _copied(value: Any) -> Any:
    if type(value) is np.ndarray:
        return value.copy()
    if type(value) is torch.Tensor:
        return value.detach().clone()
    if isinstance(value, np.generic):
        return value.item()
    return copied(value) if isinstance(value, Record) else value
