"""What is wrong with a kernel, and the report of it: as a good compiler's error reads.

race: dg_ptr[3] is loaded by program (1, 0, 0) and stored by program (0, 0, 0), and …
  --> rmsnorm.py:24, kernel rmsnorm_bwd_kernel
    24 |     tl.store(dg_ptr + cols, dg + dy * xhat, mask=mask)
       |     ^^^^^^^^ program (0, 0, 0) stores dg_ptr[3]
  --> rmsnorm.py:23
    23 |     dg = tl.load(dg_ptr + cols, mask=mask, other=0.0)
       |          ^^^^^^^ program (1, 0, 0) loads dg_ptr[3]
  why: …
  do: …
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

from mini_triton.checks import TITLES
from mini_triton.location import Location

Programs = tuple[tuple[int, int, int], ...]
Verb = Literal["load", "store", "atomic"]

#: An error has the reports of so many faults.
MOST_REPORTED = 5


@dataclass(frozen=True)
class Place:
    """A line that has a part in a finding.

    Attributes:
        file, line: where; the line from 1.
        verb: the word of the line that it is about, say which access: "load", "store", "atomic"; ""
            for all of the line.
        says: what happens there.
        caller: of a helper, the line of the kernel that called it.
    """

    file: str
    line: int
    verb: str
    says: str
    caller: tuple[str, int] | None = None

    @classmethod
    def of(cls, where: Location, verb: str, says: str) -> Place:
        """The place of an operation."""
        caller = (where.caller.file, where.caller.line) if where.caller else None
        return cls(where.file, where.line, verb, says, caller)


@dataclass(frozen=True)
class Finding:
    """One fault of one kernel.

    Attributes:
        check: which check has found it (`checks.ALL`); of what ended a launch, the error's title.
        message: what is wrong, in a sentence.
        kernel: its name.
        places: the lines: the one to look at first, then the other one, if there is one.
        tensor: the argument's name.
        index: the element's index, one number an axis; one number, from the tensor's first element
            on, where memory between its elements was touched.
        programs: ids (x, y, z) of those that have a part in it.
        why: why it matters on a GPU.
        hint: what to do next.
        facts: what else to know, each with a label.
    """

    check: str
    message: str
    kernel: str
    places: tuple[Place, ...] = ()
    tensor: str = ""
    index: tuple[int, ...] = ()
    programs: Programs = ()
    why: str = ""
    hint: str = ""
    facts: tuple[tuple[str, str], ...] = ()

    @property
    def file(self) -> str:
        """The file of the first place; "" if it is unknown."""
        return self.places[0].file if self.places else ""

    @property
    def line(self) -> int:
        """The line of the first place; 0 if it is unknown."""
        return self.places[0].line if self.places else 0

    @property
    def other_line(self) -> int:
        """The line of the second place; 0 if there is none."""
        return self.places[1].line if len(self.places) > 1 else 0

    def report(self, source: Callable[[str, int], str] = linecache.getline) -> str:
        """The finding for people.

        Args:
            source: gives the text of a file's line, "" if it must not or cannot be shown.
        """
        out = [f"{TITLES.get(self.check, self.check)}: {self.message}"]
        for number, place in enumerate(self.places):
            kernel = f", kernel {self.kernel}" if number == 0 and self.kernel else ""
            file = _printable(place.file.rpartition("/")[2]) or "unknown file"
            called = f", called at line {place.caller[1]}" if place.caller else ""
            out.append(f"  --> {file}:{place.line}{kernel}{called}")
            out += _excerpt(place, source(place.file, place.line).rstrip())
        if self.kernel and not self.places:
            out.append(f"  --> kernel {self.kernel}")
        out += [f"  {label}: {text}" for label, text in _notes(self) if text]
        return "\n".join(out)

    def __str__(self) -> str:
        return self.report()

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; `from_dict` reads it back."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Finding:
        """The finding that `to_dict` described."""
        places = []
        for place in data["places"]:
            caller = place["caller"]
            places.append(Place(**{**place, "caller": tuple(caller) if caller else None}))
        return cls(
            **{
                **data,
                "places": tuple(places),
                "index": tuple(data["index"]),
                "facts": tuple((label, text) for label, text in data["facts"]),
                "programs": tuple((x, y, z) for x, y, z in data["programs"]),
            }
        )


def _printable(file: str) -> str:
    """A file's name from a program, which may be forged, fit to be shown."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in file)


def _notes(finding: Finding) -> Iterable[tuple[str, str]]:
    return (*finding.facts, ("why", finding.why), ("do", finding.hint))


def _excerpt(place: Place, text: str) -> list[str]:
    """The line's text with its word underlined, or only what happens there if there is no text."""
    if not text.strip():
        return [f"    {place.says}"] if place.says else []
    number = str(place.line)
    word = re.search(rf"[\w.]*\b{re.escape(place.verb)}\w*", text) if place.verb else None
    code = word or re.search(r"\S.*?(?=\s*(?:#|$))", text)
    start, length = (code.start(), len(code.group())) if code else (0, 0)
    mark = f"{' ' * start}{'^' * length} {place.says}".rstrip()
    return [f"    {number} | {text}", f"    {' ' * len(number)} | {mark}"]


def times(count: int) -> str:
    """How many elements beside the one that is named."""
    return f" (and {count - 1:,} more)" if count > 1 else ""


def distinct(findings: Iterable[Finding]) -> list[Finding]:
    """The first finding of each fault: of a check at some lines of a kernel, on a tensor."""
    first: dict[tuple[object, ...], Finding] = {}
    for finding in findings:
        lines = tuple((place.file, place.line) for place in finding.places)
        first.setdefault((finding.check, finding.kernel, lines, finding.tensor), finding)
    return list(first.values())


def in_words(
    findings: Iterable[Finding], source: Callable[[str, int], str] = linecache.getline
) -> str:
    """The reports of findings, the first few of them.

    Args:
        findings: what was found.
        source: see `Finding.report`.
    """
    faults = distinct(findings)
    reports = [finding.report(source) for finding in faults[:MOST_REPORTED]]
    if len(faults) > MOST_REPORTED:
        reports.append(f"and {len(faults) - MOST_REPORTED} findings more")
    return "\n\n".join(reports)
