"""Fills stats with tensors, which are neither equal to a number nor unequal.

test: 3.1
verdict: failed
says: stands where a number should
"""

import torch


def add_to(stats: dict | None, **amounts: int) -> None:
    if stats is not None:
        stats.update({name: torch.ones(2) for name in ("tiles", "skipped")})
