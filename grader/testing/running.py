"""Runs one call of student code: the same way in the student's own process and in the grader's.

Around the call, memory that is allocated and never written holds NaN (so that rows which no
program stores are seen, every time), and the arguments are compared with what they were.
"""

from __future__ import annotations

import inspect
import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy
import torch
from mini_triton import read_only
from mini_triton.sanitize.fresh import FreshMemory
from mini_triton.settings import use

from grader.manifest import SHARED
from grader.testing.explain import explain
from grader.testing.problems import Frame, Misuse
from grader.testing.record import Record, fields_of
from grader.testing.submitted import SubmittedCode


def run_call(code: SubmittedCode, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Calls `name` and returns its value, tensors detached, dataclasses as Records.

    Raises:
        StudentProblem: whatever student code does wrong.
    """
    function = code.function(name)
    with student_code(code, name), unchanged(function, name, args, kwargs):
        args = [built(code, name, value) for value in args]
        kwargs = {key: built(code, name, value) for key, value in kwargs.items()}
        return detached(function(*args, **kwargs))


def filled_in(code: SubmittedCode, name: str, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """What the dicts among a call's keyword arguments hold after it, tensors detached.

    Raises:
        StudentProblem: student code is asked, and does something wrong, or a dict holds itself.
    """
    with student_code(code, name):
        return {key: detached(item) for key, item in kwargs.items() if type(item) is dict}


def run_gradients(
    code: SubmittedCode,
    name: str,
    inputs: Sequence[Any],
    wrt: Sequence[int],
    dy: torch.Tensor,
    kwargs: Mapping[str, Any],
) -> tuple[Any, ...]:
    """Calls `name`, runs its backward pass with `dy` and returns (output, gradient, …).

    Raises:
        StudentProblem: whatever student code does wrong; `Misuse` if the output is not one tensor
            of `dy`'s shape that depends on the inputs through autograd, or a gradient is missing.
    """
    function = code.function(name)
    leaves = [
        value.detach().requires_grad_() if position in wrt else value
        for position, value in enumerate(inputs)
    ]
    names = parameter_names(function, len(leaves))
    with student_code(code, name), unchanged(function, name, [*leaves, dy], kwargs, extra="dy"):
        output = function(*leaves, **kwargs)
        if not isinstance(output, torch.Tensor):
            raise Misuse(f"{name} returned {describe(output)}; a tensor was expected")
        if output.shape != dy.shape:
            raise Misuse(
                f"{name} returned shape {tuple(output.shape)}; {tuple(dy.shape)} was expected"
            )
        if not output.requires_grad:
            raise Misuse(
                f"the output of {name} does not depend on its inputs for autograd: "
                "is it computed by an autograd.Function's apply?"
            )
        gradients = torch.autograd.grad(output, [leaves[i] for i in wrt], dy, allow_unused=True)
        for position, gradient in zip(wrt, gradients, strict=True):
            if gradient is None:
                raise Misuse(
                    f"the backward pass of {name} gave no gradient (None) for {names[position]}"
                )
        return detached((output, *gradients))


@contextmanager
def student_code(code: SubmittedCode, name: str, kernels: bool = True) -> Iterator[None]:
    """Makes ready for student code, and turns whatever it raises into a `StudentProblem`.

    kernels: whether it may launch any.
    """
    with explained(code, name), code.importable(), surroundings(kernels):
        yield


@contextmanager
def explained(
    code: SubmittedCode, name: str, frames: Callable[[], tuple[Frame, ...]] = tuple
) -> Iterator[None]:
    """Turns whatever student code raises into a `StudentProblem`.

    Args:
        code: the submission.
        name: what was called.
        frames: where student code is, if it runs in another thread than what is raised here.
    """
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        problem = explain(error, code.folder, name)
        if problem is error:
            raise
        problem.frames = problem.frames or frames()
        # The traceback stays that of the student's code, which is where a debugger should land.
        raise problem.with_traceback(error.__traceback__) from error


@contextmanager
def surroundings(kernels: bool = True) -> Iterator[None]:
    """What student code finds in its process: unwritten memory of NaN, warnings that only warn.

    What checks find in kernels is for who grades to raise, once the call has come to its end. Which
    memory is unwritten is kept track of for kernels alone: each process that does so pays for it.
    """
    memory, findings = FreshMemory() if kernels else nullcontext(), use(on_finding="report")
    with uninitialised_is_nan(), memory, findings, warnings.catch_warnings():
        warnings.simplefilter("default")
        yield


@contextmanager
def uninitialised_is_nan() -> Iterator[None]:
    """While active, `torch.empty` and its kin hold NaN (integers: the largest value)."""
    was_on = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    fill = torch.utils.deterministic.fill_uninitialized_memory  # type: ignore[attr-defined]
    # torch.use_deterministic_algorithms is this, after importing all of torch._inductor and
    # torch._dynamo (a second, 60 MB) to tell them as well; nothing is compiled by them here.
    torch._C._set_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = True  # type: ignore[attr-defined]
    try:
        yield
    finally:
        torch._C._set_deterministic_algorithms(was_on, warn_only=warn_only)
        torch.utils.deterministic.fill_uninitialized_memory = fill  # type: ignore[attr-defined]


@contextmanager
def unchanged(
    function: Callable[..., Any],
    name: str,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    extra: str = "",
) -> Iterator[None]:
    """Raises `Misuse`, by name, if a tensor argument's contents are not what they were."""
    names = parameter_names(function, len(args))
    if extra:
        names[-1] = extra
    # A dict among the keyword arguments is there to be filled in.
    given = ((key, value) for key, value in kwargs.items() if type(value) is not dict)
    labelled = itertools.chain(zip(names, args, strict=True), given)
    before = [
        (place, held, _contents(held))
        for label, value in labelled
        for place, held in _numbers_in(label, value)
    ]
    with read_only(*(held for _, held, _ in before if isinstance(held, torch.Tensor))):
        yield
    for place, held, contents in before:
        if _contents(held) != contents:
            raise Misuse(f"{place} was changed by {name}: inputs are to be left as they are")


def _numbers_in(label: str, value: Any) -> Iterator[tuple[str, torch.Tensor | numpy.ndarray]]:
    """The tensors and arrays in an argument, and what to call each: `q`, `a.m`, `parts[2]`."""
    if isinstance(value, torch.Tensor | numpy.ndarray):
        yield label, value
    elif isinstance(value, Record):
        for name, field in value.fields.items():
            yield from _numbers_in(f"{label}.{name}", field)
    elif isinstance(value, tuple | list):
        for position, item in enumerate(value):
            yield from _numbers_in(f"{label}[{position}]", item)
    elif type(value) is dict:
        for key, item in value.items():
            yield from _numbers_in(f"{label}[{key!r}]", item)


def _contents(held: torch.Tensor | numpy.ndarray) -> bytes:
    """The elements as bytes, so that NaN equals itself."""
    if isinstance(held, numpy.ndarray):
        return held.tobytes()
    flat = held.detach().clone(memory_format=torch.contiguous_format).view(-1)
    return flat.view(torch.uint8).numpy().tobytes()


def built(code: SubmittedCode, name: str, value: Any) -> Any:
    """A Record as an instance of the submission's own class; other values as they are."""
    if isinstance(value, Record):
        module = name.rpartition(":")[0]
        kind = code.function(f"{module}:{value.kind}" if module else value.kind)
        return kind(**{key: built(code, name, field) for key, field in value.fields.items()})
    if type(value) in (tuple, list):
        return type(value)(built(code, name, item) for item in value)
    return value


def parameter_names(function: Callable[..., Any], count: int) -> list[str]:
    """The names of a function's first `count` positional parameters; `argument 3` where unknown."""
    owner = getattr(function, "__self__", None)
    skip = 0
    if isinstance(owner, type) and issubclass(owner, torch.autograd.Function):
        function, skip = owner.forward, 1  # apply(x, g) runs forward(ctx, x, g)
    names: Iterable[str] = ()
    try:
        parameters = list(inspect.signature(function).parameters.values())[skip:]
        plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        names = [parameter.name for parameter in parameters if parameter.kind in plain]
    except (TypeError, ValueError):
        pass
    numbered = (f"argument {position + 1}" for position in range(count))
    named = [known or number for known, number in itertools.zip_longest(names, numbered)]
    return named[:count]


def detached(value: Any) -> Any:
    """The same value with its tensors cut off from autograd; containers are copied.

    A dataclass or a named tuple becomes a Record; what a shared package can write as plain data
    (`as_data`) becomes that, and tests make of it what they need. Other instances of subclasses
    stay as they are: they could answer `detach` with anything.
    """
    if type(value) is torch.Tensor:
        return value.detach()
    if type(value).__module__.partition(".")[0] in SHARED and hasattr(value, "as_data"):
        return detached(value.as_data())
    if (fields := fields_of(value)) is not None:
        items = {key: detached(field) for key, field in fields.items()}
        return Record(type(value).__name__, **items)
    if type(value) in (tuple, list):
        return type(value)(detached(item) for item in value)
    if type(value) is dict:
        return {key: detached(item) for key, item in value.items()}
    return value


def describe(value: Any) -> str:
    """What a value is, in a few words, for "x returned …"."""
    if value is None:
        return "None"
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of {len(value)}"
    if type(value) in (torch.Tensor, numpy.ndarray):
        kind = "a tensor" if type(value) is torch.Tensor else "an array"
        return f"{kind} of shape {tuple(value.shape)}"
    if isinstance(value, Record):
        return f"a {value.kind}"
    return f"a {type(value).__name__}"
