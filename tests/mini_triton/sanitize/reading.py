"""What the tests of the checks look up: the lines that a finding names."""

from __future__ import annotations

import linecache

from mini_triton import Finding


def lines_of(finding: Finding) -> list[str]:
    """The text of its lines, the one to look at first in front."""
    return [linecache.getline(place.file, place.line).strip() for place in finding.places]
