"""A kernel's Python arguments as the parameters of its TTIR: flat, and without constants.

A tuple (nested, or named) has a parameter for each of its items; what is a compile-time constant
(`tl.constexpr`, None, an integer 1, a function) has none. A `TensorDescriptor` made by the host has
the parameters that Triton gives it on hardware without TMA: base, shape, strides, whether padding
is NaN, whether loads round to TF32, and then shape and strides once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

#: The type that Triton's signatures give to what is no parameter.
_CONSTANT = "constexpr"

Flatten = Callable[[tuple[Any, ...]], tuple[list[str], list[Any]]]


def flattener(signature: dict[str, Any]) -> Flatten:
    """A function from a kernel's arguments to (names, values) of its parameters.

    signature: type by argument, as Triton has it: "*fp32", "constexpr", "tensordesc<…>", or a tuple
    of such.
    """
    plain = all(isinstance(kind, str) and not _is_descriptor(kind) for kind in signature.values())
    if plain:
        kept = [position for position, kind in enumerate(signature.values()) if kind != _CONSTANT]
        names = [name for name, kind in signature.items() if kind != _CONSTANT]
        return lambda args: (names, [args[position] for position in kept])

    def flatten(args: tuple[Any, ...]) -> tuple[list[str], list[Any]]:
        pairs = [
            pair
            for (name, kind), arg in zip(signature.items(), args, strict=True)
            for pair in _parameters(name, kind, arg)
        ]
        return [name for name, _ in pairs], [value for _, value in pairs]

    return flatten


def _is_descriptor(kind: str) -> bool:
    return kind.startswith("tensordesc")


def _parameters(name: str, kind: Any, arg: Any) -> Iterator[tuple[str, Any]]:
    """(name, value) of the parameters of one argument."""
    if isinstance(kind, tuple):
        fields = getattr(kind, "_fields", None)
        for place, (inner, item) in enumerate(zip(kind, arg, strict=True)):
            own = f"{name}.{fields[place]}" if fields else f"{name}[{place}]"
            yield from _parameters(own, inner, item)
    elif _is_descriptor(kind):
        yield from _of_descriptor(name, arg)
    elif kind != _CONSTANT:
        yield name, arg


def _of_descriptor(name: str, descriptor: Any) -> Iterator[tuple[str, Any]]:
    sizes = [(f"{name}.shape[{axis}]", int(size)) for axis, size in enumerate(descriptor.shape)]
    steps = [(f"{name}.strides[{axis}]", int(n)) for axis, n in enumerate(descriptor.strides)]
    yield name, descriptor.base
    yield from sizes
    yield from steps
    yield f"{name}.padding", int(descriptor.padding == "nan")
    if hasattr(descriptor, "round_f32_to_tf32"):  # not in Triton 3.6
        yield f"{name}.round_f32_to_tf32", int(descriptor.round_f32_to_tf32)
    yield from sizes
    yield from steps
