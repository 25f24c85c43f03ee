"""Text from student code, made fit to be shown."""

from __future__ import annotations

import re
from typing import Any

#: Control characters except newline and tab: they could repaint a terminal.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def clean(text: Any, longest: int) -> str:
    """Text from a worker: no control characters, bounded.

    Args:
        text: the text.
        longest: characters of it that are kept.
    """
    shown = _CONTROL.sub("�", str(text))
    return shown if len(shown) <= longest else shown[:longest] + " … (cut)"
