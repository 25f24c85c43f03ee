"""What kernels are looked through for: the checks by name, and which of them are on."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

BOUNDS = "bounds"
UNWRITTEN = "unwritten"
RACES = "races"
MASKED = "masked"
ORDER = "order"
READ_ONLY = "read_only"

#: All there are, in the order in which reports have them. The first is always on.
ALL = (BOUNDS, READ_ONLY, RACES, UNWRITTEN, MASKED, ORDER)
#: What a report calls what each has found.
TITLES = {
    BOUNDS: "out of bounds",
    READ_ONLY: "write to a read-only tensor",
    RACES: "race",
    UNWRITTEN: "load of unwritten memory",
    MASKED: "masked-off lanes matter",
    ORDER: "order of programs matters",
}
#: On unless something else is asked for: what costs nothing where nothing was declared.
DEFAULT = (BOUNDS, READ_ONLY)


def chosen(check: str | Iterable[str] | None) -> tuple[str, ...]:
    """The checks that `profile(check=…)` asks for.

    Args:
        check: "all", a name, several names, `()` for none beyond what is always on; None for
            `DEFAULT`.

    Raises:
        ValueError: no such check.
    """
    if check is None:
        return DEFAULT
    names = ([check] if check != "all" else ALL) if isinstance(check, str) else list(check)
    for name in names:
        if name not in ALL:
            close = difflib.get_close_matches(str(name), (*ALL, "all"), n=1)
            meant = f"; did you mean {close[0]!r}?" if close else ""
            raise ValueError(f'check={name!r}: there are {", ".join(ALL)}, and "all"{meant}')
    return tuple(name for name in ALL if name in names or name == BOUNDS)
