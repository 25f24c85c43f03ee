"""Source locations of TTIR: `#loc` aliases, call sites and names, resolved to a file and a line.

An operation inlined from Triton's own library (`tl.sum` lives in `triton/language/standard.py`)
belongs to the line of the kernel that called it; one inlined from a student's helper belongs to the
helper's line, and to the line of the kernel that called that. So: the innermost frame that is not
Triton's, and the outermost one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from mini_triton.location import UNKNOWN, Location

_ALIAS = re.compile(r"^(#loc\d*) = loc\((.*)\)$", re.MULTILINE)
_FILE = re.compile(r'^"((?:[^"\\]|\\.)*)":(\d{1,9}):\d+(?:\s*to.*)?$')
_NAMED = re.compile(r'^"(?:[^"\\]|\\.)*"\((.*)\)$')
_LIBRARY = re.compile(r"[\\/]triton[\\/](?:language|experimental)[\\/]")
_MARK = re.compile(r'"(?:[^"\\]|\\.)*"|[(\[]|[)\]]| at |,\s*')
#: Levels of brackets that are looked into. MLIR has one or two, and names what lies deeper by an
#: alias; each level takes a pass over its text.
_DEEPEST = 20
_ESCAPE = re.compile(rb"\\([0-9A-Fa-f]{2}|.)", re.DOTALL)


@dataclass(frozen=True)
class _Others:
    """Places of one operation of which one will do: looked at in order until a frame is found.

    Attributes:
        left: those not looked at yet, the next one last.
        found: how many frames there were before the first of them.
    """

    left: list[str]
    found: int


class Locations:
    """The location aliases of one module."""

    def __init__(self, text: str) -> None:
        self._aliases = dict(_ALIAS.findall(text))
        self._resolved: dict[str, Location] = {}

    def resolve(self, body: str) -> Location:
        """The place that `loc(body)` names, `UNKNOWN` when it names none."""
        if body not in self._resolved:
            self._resolved[body] = self._found(body)
        return self._resolved[body]

    def _found(self, body: str) -> Location:
        """The innermost frame that is not Triton's, else the innermost one, with its caller."""
        frames = self._frames(body)
        if not frames:
            return UNKNOWN
        own = [frame for frame in frames if not _LIBRARY.search(frame.file)] or frames[:1]
        inner, outer = own[0], own[-1]
        return inner if inner == outer else Location(inner.file, inner.line, outer)

    def _frames(self, body: str) -> list[Location]:
        """The call chain, from the innermost frame outwards.

        Enters an alias once: what it led to before, it would lead to again. So aliases that refer
        to each other end, and take linear time; as does all else that a forged program may hold.
        """
        frames: list[Location] = []
        entered: set[str] = set()
        pending: list[tuple[str | _Others, int]] = [(body, 0)]  # with the brackets around it
        while pending:
            part, depth = pending.pop()
            if isinstance(part, _Others):
                if part.left and len(frames) == part.found:
                    pending += [(part, depth), (part.left.pop(), depth)]
            elif part.startswith("#"):
                if part not in entered:
                    entered.add(part)
                    pending.append((self._aliases.get(part, "unknown"), 0))
            elif depth > _DEEPEST:
                continue
            elif match := _FILE.match(part):
                frames.append(Location(unescaped(match.group(1)), int(match.group(2))))
            elif match := _NAMED.match(part):
                pending.append((match.group(1), depth + 1))
            elif part.startswith("callsite("):
                chain = _split(part[len("callsite(") : -1])
                pending += [(link, depth + 1) for link in reversed(chain)]
            elif part.startswith("fused") and "[" in part:
                fused = _split(part[part.index("[") + 1 : part.rfind("]")])
                pending.append((_Others(fused[::-1], len(frames)), depth + 1))
        return frames


def _split(body: str) -> list[str]:
    """The parts of a call site ("callee at caller") or of a list, outside of brackets."""
    parts, start, depth = [], 0, 0
    for mark in _MARK.finditer(body):
        text = mark.group()
        if text in "([":
            depth += 1
        elif text in ")]":
            depth -= 1
        elif depth == 0 and text[0] in " ,":
            parts.append(body[start : mark.start()])
            start = mark.end()
    return [*parts, body[start:]]


def unescaped(text: str) -> str:
    r"""The string that MLIR printed: `\\` is a backslash, `\C3\A9` the two bytes of é."""
    plain = _ESCAPE.sub(_one_byte, text.encode())
    return plain.decode(errors="replace")


def _one_byte(match: re.Match[bytes]) -> bytes:
    code = match.group(1)
    if len(code) == 2:
        return bytes([int(code, 16)])
    return {b"n": b"\n", b"t": b"\t"}.get(code, code)


def strip_aliases(text: str) -> str:
    """`text` without its alias lines (kept as empty lines, so that line numbers stay)."""
    return _ALIAS.sub("", text)
