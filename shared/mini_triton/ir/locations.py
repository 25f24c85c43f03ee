"""Source locations of TTIR: `#loc` aliases, call sites and names, resolved to a file and a line.

An operation inlined from Triton's own library (`tl.sum` lives in `triton/language/standard.py`)
belongs to the line of the kernel that called it; one inlined from a student's helper belongs to the
helper's line. So: the innermost frame that is not Triton's.
"""

from __future__ import annotations

import re

from mini_triton.errors import UNKNOWN, Location

_ALIAS = re.compile(r"^(#loc\d*) = loc\((.*)\)$", re.MULTILINE)
_FILE = re.compile(r'^"((?:[^"\\]|\\.)*)":(\d+):\d+(?: to .*)?$')
_NAMED = re.compile(r'^"(?:[^"\\]|\\.)*"\((.*)\)$')
_LIBRARY = re.compile(r"[\\/]triton[\\/](?:language|experimental)[\\/]")


class Locations:
    """The location aliases of one module."""

    def __init__(self, text: str) -> None:
        self._aliases = dict(_ALIAS.findall(text))
        self._resolved: dict[str, Location] = {}

    def resolve(self, body: str) -> Location:
        """The place that `loc(body)` names, `UNKNOWN` when it names none."""
        if body not in self._resolved:
            frames = self._frames(body, depth=0)
            own = [frame for frame in frames if not _LIBRARY.search(frame.file)]
            self._resolved[body] = (own or frames or [UNKNOWN])[0]
        return self._resolved[body]

    def _frames(self, body: str, depth: int) -> list[Location]:
        """Frames from the innermost to the outermost."""
        if depth > 200:  # a chain of calls that deep is a cycle of hostile text
            return []
        if body.startswith("#"):
            return self._frames(self._aliases.get(body, "unknown"), depth + 1)
        if match := _FILE.match(body):
            return [Location(match.group(1).replace("\\\\", "\\"), int(match.group(2)))]
        if match := _NAMED.match(body):
            return self._frames(match.group(1), depth + 1)
        if body.startswith("callsite("):
            callee, _, caller = body[len("callsite(") : -1].rpartition(" at ")
            return self._frames(callee, depth + 1) + self._frames(caller, depth + 1)
        if body.startswith("fused"):
            inner = body[body.index("[") + 1 : body.rindex("]")] if "[" in body else ""
            return [f for part in inner.split(", ") for f in self._frames(part, depth + 1)]
        return []


def strip_aliases(text: str) -> str:
    """`text` without its alias lines (kept as empty lines, so that line numbers stay)."""
    return _ALIAS.sub("", text)
