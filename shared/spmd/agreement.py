"""Do the arrays of all ranks fit? Ranks tell each other in headers, before anything is sent.

Real ranks that call different collectives, or bring arrays of different lengths, wait for each
other for ever or compute nonsense, depending on the backend. With headers every rank gets the same
`ValueError`, in the words of `comm_sim`, and none is left waiting.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

#: Bytes of a header on its way; those of all ranks are equally long.
HEADER_BYTES = 3072

ALL_REDUCE = "all_reduce"
ALL_GATHER = "all_gather_into_tensor"
REDUCE_SCATTER = "reduce_scatter_tensor"
#: No collectives, but all ranks do these together, too: making a group, coming to the end.
GROUP = "group"
FINISH = "finish"


@dataclass(frozen=True)
class Header:
    """What a rank is about to do.

    Attributes:
        op: the collective.
        label: the caller's name for it; of a group, its members.
        dtype: of its array, as numpy and torch both call it: "float32".
        length: of its array, in elements.
        problem: what is wrong with what it was given, or "". It begins with a verb: "has shape …".
    """

    op: str
    label: str = ""
    dtype: str = ""
    length: int = 0
    problem: str = ""

    def to_bytes(self) -> bytes:
        """The header in `HEADER_BYTES` bytes; long labels and problems are cut."""
        cut = Header(self.op, self.label[:80], self.dtype[:20], self.length, self.problem[:140])
        return json.dumps(asdict(cut)).encode().ljust(HEADER_BYTES)  # at most 12 bytes a letter

    @staticmethod
    def from_bytes(data: bytes) -> Header:
        """What `to_bytes` made into bytes."""
        return Header(**json.loads(data))

    def __str__(self) -> str:
        if self.op == FINISH:
            return "has come to its end"
        if self.op == GROUP:
            return f"makes a group of {self.label}"
        return f"calls {self.op} ({self.label!r})"


def check_agreement(headers: Sequence[Header]) -> None:
    """Raises a `ValueError` unless the headers of ranks 0, 1, … are those of one collective."""
    first = headers[0]
    for rank, header in enumerate(headers):
        if header.op != first.op or (header.op == GROUP and header.label != first.label):
            raise ValueError(
                f"rank 0 {first}, rank {rank} {header}; "
                "all ranks call the same collectives in the same order"
            )
    for rank, header in enumerate(headers):
        if header.problem:
            raise ValueError(f"the array of rank {rank} {header.problem}")
    sums = first.op in (ALL_REDUCE, REDUCE_SCATTER)
    for rank, header in enumerate(headers):
        if header.dtype != first.dtype:
            raise ValueError(
                f"the array of rank {rank} is of {header.dtype}, the array of rank 0 of "
                f"{first.dtype}; dtypes must be equal"
            )
        if sums and header.length != first.length:
            raise ValueError(
                f"the array of rank {rank} has {header.length} elements, that of rank 0 "
                f"{first.length}; lengths must be equal"
            )
    n, length = len(headers), first.length
    if first.op == REDUCE_SCATTER and length % n:
        raise ValueError(
            f"arrays of {length} elements cannot be cut into {n} equal blocks; pad them "
            f"to {length + -length % n}"
        )
