"""The text of docs/language.md: what the simulator executes, looked up where it is executed.

A test holds the file to what this prints, with the Triton that the project is pinned to.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from types import ModuleType

from mini_triton.docs.language_table import GROUPS, PARTS, Entry
from mini_triton.execute.operations.libdevice import FUNCTIONS
from mini_triton.execute.prepare import HANDLER_MODULES, TERMINATORS
from mini_triton.execute.registry import FRAMED, LAZY, PURE

_INTRODUCTION = """\
# The language that the simulator executes

This file is written by `python -m mini_triton.docs`; change the code, not this file.

A kernel is compiled by Triton's own front end and its target-independent passes; what is executed
here is the TTIR that they leave. So types, errors of compilation, constants, `tl.static_print`,
`tl.static_assert`, autotuning and caching are Triton's own. Below is every operation that the front
end of Triton {version} can make ({count} methods of its `ir.builder`), what an author writes for
it, which file under `shared/mini_triton/execute/` executes it, and what is different from hardware.
An operation without a file is written out in others before it arrives.
"""

_ARGUMENTS = """\
## Arguments

Tensors (on the CPU, strided), numbers, booleans, None, `tl.constexpr`, functions, (named) tuples of
all these, nested, and host-made `TensorDescriptor`s, which pass shape and strides as numbers. A
kernel reaches the memory between a tensor's first and last element, and nothing else: any other
access is an error that names program, lane and tensor. Addresses in memory may lead to tensors of
the same process that are no arguments; those become part of the launch.

## Operations of TTIR that the front end does not make

They come from Triton's passes, or are calls of functions with `noinline=True`; they are executed as
well: {others}.

Among them are those that Triton 3.9 has anew: `tl.atomic_load` and `tl.atomic_store`, which move
what plain accesses do, and the waits of programmatic launches, which change nothing. Its
`tl.atomic_poll` waits for as long as a clock says, and is refused by name.
"""


def page() -> str:
    """The text of docs/language.md."""
    import triton

    parts = [_INTRODUCTION.format(version=triton.__version__, count=len(list(methods())))]
    for title, entries in GROUPS.items():
        parts.append(f"## {title}\n\n" + "\n".join(_table(entries)) + "\n")
    made = {name for entries in GROUPS.values() for entry in entries for name in entry.ttir}
    others = sorted({*PURE, *LAZY, *FRAMED} - made)
    parts.append(_ARGUMENTS.format(others=", ".join(f"`{name}`" for name in others)))
    return "\n".join(parts)


def methods() -> Iterator[str]:
    """Names of the builder's methods that make operations, without `create_`."""
    from triton._C.libtriton import ir

    for name in sorted(dir(ir.builder)):
        operation = name.removeprefix("create_")
        if name != operation and operation not in PARTS:
            yield operation


def _table(entries: tuple[Entry, ...]) -> Iterator[str]:
    yield "| builder | an author writes | executed by | limits |"
    yield "|---|---|---|---|"
    for entry in entries:
        builder = ", ".join(f"`{name}`" for name in entry.builder)
        files = ", ".join(f"`{name}.py`" for name in _files(entry))
        limits = entry.limits.format(libdevice=len(_libdevice() & FUNCTIONS.keys()))
        yield f"| {builder} | {entry.written} | {files} | {limits} |"


def _libdevice() -> set[str]:
    """Names of the functions that `tl.extra.libdevice` calls."""
    from triton.language.extra.cuda import libdevice

    return set(re.findall(r'"(__nv_\w+)"', inspect.getsource(libdevice)))


def _files(entry: Entry) -> list[str]:
    """The files that execute an entry's operations. Raises KeyError for one that none executes."""
    if {"branch", "cond_branch"} & set(entry.builder):
        assert "cf.br" in TERMINATORS
        return ["control"]
    found = dict.fromkeys(_file(name) for name in entry.ttir)
    return list(found)


def _file(operation: str) -> str:
    for table in (FRAMED, PURE, LAZY):
        handler = table.get(operation)
        if handler is not None:
            return _home(handler.__module__)
    raise KeyError(operation)


def _home(module: str) -> str:
    homes: dict[str, ModuleType] = {home.__name__: home for home in HANDLER_MODULES}
    return homes[module].__name__.removeprefix("mini_triton.execute.").replace(".", "/")
