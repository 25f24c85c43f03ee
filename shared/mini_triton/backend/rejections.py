"""Where a kernel that Triton rejects stands, added to Triton's own error.

Triton says `at 3:8`, with lines counted from the kernel's `def` and no file. A note, which Python
and pytest print below the message, names file and line, and what was wrong in a function that the
kernel calls, which Triton leaves to the error's cause. Another says what to do, if that is known.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from mini_triton.backend.advice import advice
from mini_triton.backend.versions import place_of
from mini_triton.ir.relocate import reachable

if TYPE_CHECKING:
    from triton.compiler.errors import CompilationError


def install() -> None:
    """From now on compilation errors of kernels have the note, each once."""
    from triton.compiler.compiler import ASTSource

    if not hasattr(ASTSource.make_ir, "__wrapped__"):
        ASTSource.make_ir = _noting(ASTSource.make_ir)


def _noting(make_ir: Callable[..., Any]) -> Callable[..., Any]:
    from triton.compiler.errors import CompilationError

    @functools.wraps(make_ir)
    def wrapper(source: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return make_ir(source, *args, **kwargs)
        except CompilationError as error:
            if text := where(error, source.fn):
                error.add_note(text)
            if text := advice(list(_links(error))[-1]):
                error.add_note(f"do: {text}")
            raise

    return wrapper


def where(error: CompilationError, kernel: Any) -> str:
    """File and line of what was rejected, then of each call that led there; "" if unknown.

    Args:
        error: what Triton raised for the kernel.
        kernel: the `JITFunction`.
    """
    places = [place for link in _links(error) for place in _places(link, kernel)]
    if not places:
        return ""
    innermost = list(_links(error))[-1]
    reason = innermost.error_message if innermost is not error else ""
    text = f"in {places[-1]}" + (f": {reason}" if reason else "")
    return "".join([text, *(f"\n  called at {place}" for place in reversed(places[:-1]))])


def _links(error: BaseException | None) -> Iterator[CompilationError]:
    """The error and its causes, as far as they are compilation errors."""
    from triton.compiler.errors import CompilationError

    while isinstance(error, CompilationError):
        yield error
        error = error.__cause__


def _places(error: CompilationError, kernel: Any) -> Iterator[str]:
    """`file:line` of an error, if one of the functions that the kernel reaches has its text."""
    line = getattr(error.node, "lineno", None)
    for function in reachable(kernel):
        if isinstance(line, int) and function.src == error.src:
            file, first = place_of(function)
            yield f"{file}:{first + line - 1}"
            return
