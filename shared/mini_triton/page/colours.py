"""Colours of programs: a hue that walks with the number; neighbours differ in lightness."""

from __future__ import annotations

_FIRST, _LAST = 215.0, 395.0  # blue, by violet and red, to orange


def of_program(program: int, programs: int) -> str:
    """A CSS colour for a program of `programs`, readable on light and dark."""
    share = program / max(1, programs - 1)
    hue = (_FIRST + (_LAST - _FIRST) * share) % 360
    lightness = (58, 48)[program % 2] if programs <= 256 else 53
    return f"hsl({hue:.0f} 62% {lightness}%)"
