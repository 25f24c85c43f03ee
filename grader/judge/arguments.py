"""Arguments: what travels from the judge to a worker only, besides plain values.

Instances of the dataclasses of `shared/` travel as what they are, since both sides have the class.
Nothing of this is read where it would come from a worker.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
from collections.abc import Mapping
from typing import Any

from grader.judge import wire
from grader.manifest import SHARED
from grader.testing.ranks import COMM, Reference


class ArgumentEncoder(wire.Encoder):
    """Encodes arguments of student code."""

    def value(self, value: Any, depth: int = 0) -> list[Any]:
        """As `wire.Encoder`; also dataclasses of shared packages, `COMM`, and a `Kept`."""
        if value is COMM:
            return ["comm", None]
        if isinstance(value, Reference):
            return ["kept", [value.key, list(value.path)]]
        if _is_shared(value):
            fields = {
                field.name: self.value(_plain(getattr(value, field.name)), depth + 1)
                for field in dataclasses.fields(value)
                if field.init
            }
            return ["shared", [type(value).__module__, type(value).__qualname__, fields]]
        return super().value(value, depth)


class Arguments(wire.Message):
    """A request, in a worker."""

    def value(self, encoded: Any, depth: int = 0) -> Any:
        """As `wire.Message`; also what `ArgumentEncoder` adds."""
        match encoded:
            case ["comm", None]:
                return COMM
            case ["kept", [int(key), list(path)]]:
                return Reference(key, tuple(path))
            case ["shared", [str(module), str(name), dict(fields)]]:
                kind = _shared_class(module, name)
                return kind(**{key: self.value(item, depth + 1) for key, item in fields.items()})
        return super().value(encoded, depth)


def _is_shared(value: Any) -> bool:
    kind = type(value)
    return dataclasses.is_dataclass(kind) and kind.__module__.partition(".")[0] in SHARED


def _plain(value: Any) -> Any:
    """A read-only mapping as a dict: the class makes its own of it."""
    return dict(value) if isinstance(value, Mapping) else value


@functools.cache
def _shared_class(module: str, name: str) -> Any:
    """A dataclass of a shared package.

    Raises:
        ProtocolError: it is none.
    """
    if module.partition(".")[0] not in SHARED:
        raise wire.ProtocolError(f"{module[:40]!r} is no shared package")
    found = functools.reduce(getattr, name.split("."), importlib.import_module(module))
    if not (isinstance(found, type) and dataclasses.is_dataclass(found)):
        raise wire.ProtocolError(f"{name[:40]!r} is no dataclass")
    return found
