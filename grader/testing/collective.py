"""What a rank says while student code runs on it: the one thing it waits for next.

Every rank is asked for its next message, which is a `Collective` that it waits in, or `Returned`,
or `Raised`. The conductor (module `conductor`) executes the collectives and answers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from comm_sim.arrays import check_pieces
from numpy.typing import NDArray

from grader.testing.problems import Frame, StudentProblem

Array = NDArray[Any]

#: The methods of `spmd.Communicator` that all ranks of it call together. The last moves nothing.
OPS = ("all_reduce", "all_gather", "reduce_scatter", "group")
#: Dtypes that travel between ranks: those that torch has, too.
DTYPES = frozenset(
    (
        *("bool", "uint8", "int8", "int16", "int32", "int64"),
        *("float16", "float32", "float64", "complex64", "complex128"),
    )
)
#: Bytes of one rank's array in one collective, elements of a label and of an algorithm's name, at
#: most: no honest program comes near.
MOST_BYTES = 4 << 20
LONGEST_LABEL = 100
#: Ranks of a session, at most.
MOST_RANKS = 16


@dataclass(frozen=True)
class Collective:
    """A rank waits in a collective.

    Attributes:
        op: one of `OPS`.
        members: the group that is to call it: ranks, in the group's order.
        array: what this rank gives, 1-D; empty for a group that is made.
        algo: of an all-reduce; else empty.
        label: for the log.
        frames: the lines of submitted files that wait, the outermost first.
        ranks: those of a group that is made, in its order; else empty.
    """

    op: str
    members: tuple[int, ...]
    array: Array
    algo: str
    label: str
    frames: tuple[Frame, ...] = field(default=(), compare=False)
    ranks: tuple[int, ...] = ()


@dataclass(frozen=True)
class Returned:
    """A rank is done.

    Attributes:
        value: what the function returned.
    """

    value: Any


@dataclass(frozen=True)
class Raised:
    """A rank came to a bad end.

    Attributes:
        problem: what its code did wrong.
    """

    problem: StudentProblem


Message = Collective | Returned | Raised


def check_given(array: object, rank: int) -> Array:
    """What a rank gives to a collective, as an array of its own.

    Args:
        array: what student code gave.
        rank: its rank in the group.

    Raises:
        ValueError: no 1-D array of a dtype that travels, or too large.
    """
    what = f"the array of rank {rank}"
    check_pieces(1, [array], what)  # type: ignore[list-item]
    given = np.array(array, order="C", subok=False)
    if str(given.dtype) not in DTYPES:
        raise ValueError(f"{what} is of {given.dtype}; give one of {', '.join(sorted(DTYPES))}")
    if given.nbytes > MOST_BYTES:
        raise ValueError(
            f"{what} has {given.nbytes:,} bytes; at most {MOST_BYTES:,} are sent at once here"
        )
    return given
