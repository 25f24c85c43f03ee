"""Puts stats into stats.

test: 3.1
verdict: failed
says: RecursionError
"""


def add_to(stats: dict | None, **amounts: int) -> None:
    if stats is not None:
        stats["tiles"] = [stats]
