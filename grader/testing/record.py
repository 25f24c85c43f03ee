"""`Record`: how a dataclass travels between tests and a submission, which share no class."""

from __future__ import annotations

import dataclasses
from typing import Any


class NoField(AttributeError, AssertionError):
    """A Record has no such field: in a test, a failure of the submission that returned it."""


class Record:
    """The fields of a dataclass or named tuple, by name, and the name of its class.

    As an argument it becomes an instance of that class of the submission; what a submission returns
    arrives as a Record. Its fields can be read as attributes: `record.m`.

    Args:
        kind: the name of the class, e.g. `SoftmaxState`.
        **fields: its fields, as any value that travels.

    Attributes:
        kind: the name of the class.
        fields: the fields by name, in order.

    Raises:
        NoField: for an attribute that is no field.
    """

    def __init__(self, kind: str, /, **fields: Any) -> None:
        self.kind = kind
        self.fields = fields

    def __getattr__(self, name: str) -> Any:
        fields = self.__dict__.get("fields", {})
        if name in fields:
            return fields[name]
        raise NoField(f"{self.__dict__.get('kind')} has no field {name!r}")

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in self.fields.items())
        return f"Record({self.kind!r}, {inside})"


def fields_of(value: Any) -> dict[str, Any] | None:
    """The fields of a dataclass instance or a named tuple, in order; None for anything else."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, tuple) and type(value) is not tuple:
        names = getattr(type(value), "_fields", None)
        if isinstance(names, tuple) and len(names) == len(value):
            return dict(zip(names, value, strict=True))
    return None
