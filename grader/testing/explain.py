"""Turns an exception out of student code into a `StudentProblem` that shows the student's frames.

What is kept: the frames that lie in submitted files, the exception's own words (a compile error of
Triton's with its excerpt, an error of the simulator's as it is), nothing of the harness. A stub
(`raise NotImplementedError("rmsnorm 2: …")`, in Python or inside a `@triton.jit` function) is *not
started*; an attempt to end the process is a *crash*.
"""

from __future__ import annotations

import ast
import errno
import functools
import itertools
import linecache
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from mini_triton import KernelError
from mini_triton.backend.advice import advice

from grader.environment import explain_absent
from grader.testing.problems import (
    Crashed,
    Frame,
    ImportFailed,
    NotStarted,
    StudentError,
    StudentProblem,
)

#: A message longer than this many characters is cut; frames beyond these are left out.
LONGEST_MESSAGE = 6_000
FIRST_FRAMES, LAST_FRAMES = 3, 7
#: A stub is recognised by the statement itself, so that torch's own "not implemented" is not one.
_STUB = "raise NotImplementedError"
#: Why the judge's system lets something fail that works elsewhere.
_BARRED = (
    "graded code may write files only into the folder in which it is started, and opens no sockets"
)


def explain(error: BaseException, folder: Path, name: str) -> StudentProblem:
    """What an exception raised by a call of student code says to the student.

    Args:
        error: the exception.
        folder: where the submitted files lie.
        name: what was called.

    Returns:
        A `StudentProblem` to raise in its place; `error` itself if it is one already.
    """
    if isinstance(error, StudentProblem):
        return error
    frames = student_frames(error, folder)
    if isinstance(error, SystemExit):
        return Crashed(f"{name} tried to end the process: sys.exit({error.code!r:.40})", frames)
    if (stub := _stub_text(error, frames)) is not None:
        return NotStarted(stub)
    return StudentError(_words(error), frames)


def explain_import(error: BaseException, folder: Path, file: str) -> StudentProblem:
    """As `explain`, for an exception raised while a submitted file was imported."""
    if isinstance(error, StudentProblem):
        return error
    frames = student_frames(error, folder)
    if isinstance(error, SystemExit):
        return Crashed(f"{file} ended the process on import: sys.exit({error.code!r:.40})", frames)
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        place = _relative(error.filename, folder)
        if place is not None:
            text = (error.text or "").strip()
            frames = (*frames, Frame(place, error.lineno, "<module>", text))
            return ImportFailed(f"{type(error).__name__}: {error.msg}", frames)
    words = f"{file} could not be imported: {_words(error)}"
    if isinstance(error, ModuleNotFoundError) and isinstance(error.name, str):
        words += f"; {explain_absent(error.name)}"
    return ImportFailed(words, frames)


def student_frames(error: BaseException, folder: Path) -> tuple[Frame, ...]:
    """The frames of an exception's traceback that lie in submitted files, the outermost first."""
    frames = []
    for frame, line in traceback.walk_tb(error.__traceback__):
        place = _relative(frame.f_code.co_filename, folder)
        if place is not None:
            linecache.checkcache(frame.f_code.co_filename)
            text = linecache.getline(frame.f_code.co_filename, line).strip()
            frames.append(Frame(place, line, frame.f_code.co_name, text))
    for problem in _compile_errors(error):
        if (frame_of_kernel := _kernel_frame(problem, folder)) is not None:
            frames.append(frame_of_kernel)
    if len(frames) > FIRST_FRAMES + LAST_FRAMES:  # a runaway recursion
        frames = [*frames[:FIRST_FRAMES], *frames[-LAST_FRAMES:]]
    return tuple(frames)


def frames_of_stack(frame: FrameType | None, folder: Path) -> tuple[Frame, ...]:
    """The lines of submitted files that are running, the outermost first.

    Args:
        frame: the innermost frame of the stack.
        folder: where the submitted files lie.
    """
    frames: list[Frame] = []
    while frame is not None and len(frames) < LAST_FRAMES:
        code = frame.f_code
        place = _known(code.co_filename, folder)
        if place is not None:
            text = linecache.getline(code.co_filename, frame.f_lineno).strip()
            frames.append(Frame(place, frame.f_lineno, code.co_name, text))
        frame = frame.f_back
    return tuple(reversed(frames))


@functools.lru_cache(maxsize=1024)
def _known(filename: str, folder: Path) -> str | None:
    """As `_relative`, remembered: collectives ask for the same files thousands of times."""
    return _relative(filename, folder)


def _relative(filename: str, folder: Path) -> str | None:
    """A path inside the submission as the student knows it, else None."""
    try:
        return Path(filename).resolve().relative_to(folder.resolve()).as_posix()
    except (ValueError, OSError):
        return None


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An exception and its causes, outermost first; bounded, since causes can form a cycle."""
    link: BaseException | None = error
    for _ in range(20):
        if link is None:
            return
        yield link
        link = link.__cause__


def _compile_errors(error: BaseException) -> Iterator[BaseException]:
    """Triton's front-end errors in the chain: they carry an `ast` node, not a frame."""
    for link in _chain(error):
        if isinstance(getattr(link, "node", None), ast.AST) and hasattr(link, "src"):
            yield link


def _kernel_frame(error: BaseException, folder: Path) -> Frame | None:
    """Where in the submitted file the kernel line of a compile error stands.

    Triton gives a line relative to the kernel's own source text, so that text is looked up.
    """
    source, node = getattr(error, "src", None), getattr(error, "node", None)
    line_in_kernel = getattr(node, "lineno", None)
    if not isinstance(source, str) or not isinstance(line_in_kernel, int):
        return None
    for file in sorted(folder.glob("*.py")):
        try:
            whole = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        start = whole.find(source)
        if source and start >= 0:
            line = whole.count("\n", 0, start) + line_in_kernel
            name = source.removeprefix("def ").partition("(")[0].strip()
            text = linecache.getline(str(file), line).strip()
            return Frame(file.name, line, name, text)
    return None


def _stub_text(error: BaseException, frames: tuple[Frame, ...]) -> str | None:
    """The text of the stub that raised this, or None if it was no stub."""
    if isinstance(error, NotImplementedError):
        if frames and frames[-1].text.startswith(_STUB):
            return _safe_str(error)
        return None
    for problem in _compile_errors(error):
        match getattr(problem, "node", None):
            case ast.Raise(exc=ast.Name(id="NotImplementedError")):
                return ""
            case ast.Raise(exc=ast.Call(func=ast.Name(id="NotImplementedError"), args=args)):
                texts = itertools.islice(args, 1)
                return "".join(str(a.value) for a in texts if isinstance(a, ast.Constant))
    return None


def _words(error: BaseException) -> str:
    """An exception's own words: type and text; the causes' as well for compile errors."""
    links = list(_compile_errors(error))
    if links:
        words = "\n".join(f"{type(link).__name__}: {_safe_str(link)}" for link in links)
        return _cut(words + _advice(links[-1]))
    if isinstance(error, KernelError):  # says itself what, where and what next
        return _cut(_report(error))
    text = _safe_str(error)
    if isinstance(error, OSError) and error.errno in (errno.EACCES, errno.EPERM):
        text += f"; {_BARRED}"
    words = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return _cut(words + _advice(error))


def _advice(error: BaseException) -> str:
    """What to do about an error, on a line of its own, if Triton raised it and that is known."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    if not frames or "triton" not in Path(frames[-1].f_code.co_filename).parts:
        return ""
    try:
        text = advice(error)
    except Exception:  # a student's class, which may do anything
        return ""
    return f"\n  do: {text}" if text else ""


def _safe_str(error: BaseException) -> str:
    """`str(error)`, even if the exception's class is student code that raises."""
    try:
        return str(error)
    except Exception:
        return "(its text could not be printed)"


def _report(error: KernelError) -> str:
    """An error of the simulator's with its lines of source, but no settings, which grading fixes.

    This process has compiled the kernel, so it may read the files that the kernel names.
    """
    try:
        return str(error.report(linecache.getline))
    except Exception:
        return _safe_str(error)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_MESSAGE else text[:LONGEST_MESSAGE] + " … (cut)"
