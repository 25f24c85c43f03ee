"""Source paths in cached TTIR, put right.

Triton's compile cache is keyed by source text and line numbers, not by path: a kernel that was
first compiled in another folder comes back with that folder's path in its locations, and bytes and
errors would be reported for a file that is not the one running. Here the paths are replaced by
those of the kernel at hand and of the `@triton.jit` functions that it can reach.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from triton.runtime.jit import JITCallable

_PATH = re.compile(r'loc\("((?:[^"\\]|\\.)+)":\d+:\d+')


def relocated(ttir: str, kernel: Any) -> str:
    """`ttir` with the source paths of `kernel`, a `JITFunction`, and of the functions it uses.

    A path is replaced if it is none of theirs and exactly one of them has its file name.
    """
    files = {function.fn.__code__.co_filename for function in reachable(kernel)}
    for path in set(_PATH.findall(ttir)) - files:
        same_name = [file for file in files if PurePath(file).name == PurePath(path).name]
        if len(same_name) == 1:
            ttir = ttir.replace(f'loc("{path}":', f'loc("{same_name[0]}":')
    return ttir


def reachable(kernel: JITCallable) -> Iterator[JITCallable]:
    """The kernel and the `@triton.jit` functions that it can reach."""
    return _reachable(kernel, set())


def _reachable(function: JITCallable, seen: set[int]) -> Iterator[JITCallable]:
    """The function and all that its code names, by itself or as a module's attribute."""
    from triton.runtime.jit import JITCallable  # Triton imports this package while it is imported

    if id(function) in seen or not hasattr(function.fn, "__code__"):
        return
    seen.add(id(function))
    yield function
    names = function.fn.__code__.co_names
    scope = function.fn.__globals__
    for name in names:
        value = scope.get(name)
        candidates = (
            [getattr(value, attribute, None) for attribute in names]
            if isinstance(value, ModuleType)
            else [value]
        )
        for candidate in candidates:
            if isinstance(candidate, JITCallable):
                yield from _reachable(candidate, seen)
