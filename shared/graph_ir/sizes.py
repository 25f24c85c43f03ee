"""Sizes of axes: whole numbers, or names of sizes that are known later, such as "S".

A decode step is traced once for every length of the KV cache: its shape is (8, "S", 128). Passes
work on such shapes as they are; bytes and kernels need numbers (`Graph.bind`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

Size = int | str
Shape = tuple[Size, ...]


def checked_shape(shape: Sequence[Size], what: str) -> Shape:
    """The shape as a tuple.

    Raises:
        ValueError: a size is neither a whole number from 1 on nor a name; `what` opens the message.
    """
    for axis, size in enumerate(shape):
        if isinstance(size, str):
            if not size.isidentifier():
                raise ValueError(f"{what}: size {size!r} of axis {axis} is no name, such as 'S'")
        elif isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise ValueError(
                f"{what}: size {size!r} of axis {axis} is neither a whole number, 1 or more, nor "
                "a name"
            )
    return tuple(shape)


def numel(shape: Sequence[Size]) -> int:
    """How many elements.

    Raises:
        ValueError: a size is a name.
    """
    for size in shape:
        if isinstance(size, str):
            raise ValueError(f"size {size!r} has no value yet; pass bind={{{size!r}: …}}")
    return math.prod(size for size in shape if isinstance(size, int))


def product(shape: Sequence[Size]) -> tuple[int, tuple[str, ...]]:
    """How many elements, as a number times sorted names: equal exactly for shapes of equal size."""
    number = math.prod(size for size in shape if isinstance(size, int))
    return number, tuple(sorted(size for size in shape if isinstance(size, str)))


def bound(shape: Sequence[Size], bind: Mapping[str, int]) -> Shape:
    """The shape with values in place of names, as far as `bind` has them."""
    return tuple(bind.get(size, size) if isinstance(size, str) else size for size in shape)


def broadcast(shapes: Sequence[Shape], what: str) -> Shape:
    """The shape of an elementwise result, by numpy's rule: axes from the right, 1 fits any size.

    Raises:
        ValueError: two sizes differ and neither is 1; `what` opens the message.
    """
    rank = max((len(shape) for shape in shapes), default=0)
    result: list[Size] = []
    for axis in range(-rank, 0):
        sizes = [shape[axis] for shape in shapes if len(shape) >= -axis]
        wide = [size for size in sizes if size != 1]
        if any(size != wide[0] for size in wide):
            raise ValueError(
                f"{what}: shapes {', '.join(map(str, shapes))} do not fit together: "
                f"sizes {', '.join(map(repr, sizes))} of axis {axis}"
            )
        result.append(wide[0] if wide else 1)
    return tuple(result)
