"""A kernel that Triton rejects: Triton's own words, with file and line of the kernel's author."""

import traceback

import mini_triton
import pytest
import torch
import triton
import triton.language as tl
from triton.compiler.errors import CompilationError

from tests.mini_triton.comparing import TRITON, line_of


@triton.jit
def not_a_power(x_ptr):
    i = tl.arange(0, 12)
    tl.store(x_ptr + i, 1.0)


@triton.jit
def missing_constexpr(x_ptr, N):
    i = tl.arange(0, N)
    tl.store(x_ptr + i, 1.0)


@triton.jit
def unknown_name(x_ptr):
    tl.store(x_ptr, undefined_thing)  # noqa: F821


@triton.jit
def mismatched(x_ptr):
    tl.store(x_ptr + tl.arange(0, 8), tl.arange(0, 8) + tl.arange(0, 16))


@triton.jit
def small_dot(x_ptr):
    a = tl.zeros((4, 4), tl.float32)
    tl.store(x_ptr + tl.arange(0, 4)[:, None] * 4 + tl.arange(0, 4)[None, :], tl.dot(a, a))


@triton.jit
def dot_of_k(x_ptr):
    a = tl.zeros((16, 32), tl.float32)
    tl.store(x_ptr, tl.sum(tl.dot(a, a)))


@triton.jit
def two_returns(n):
    if n > 2:
        return 1
    return 2.5


@triton.jit
def return_mismatch(x_ptr, n):
    tl.store(x_ptr, two_returns(n))


@triton.jit
def loop_changes(x_ptr, n):
    a = 0
    for _ in range(n):
        a = a + 1.5
    tl.store(x_ptr, a)


@triton.jit
def branch_changes(x_ptr, n):
    a = 0
    if n > 1:
        a = tl.zeros((4,), tl.float32)
    tl.store(x_ptr, a)


@triton.jit
def bad_types(x_ptr):
    tl.store(x_ptr, x_ptr * 2)


@triton.jit
def no_attribute(x_ptr):
    tl.store(x_ptr, tl.gelu(1.0))


@triton.jit
def helper(x):
    return x + tl.arange(0, 3)


@triton.jit
def in_helper(x_ptr):
    tl.store(x_ptr + tl.arange(0, 4), helper(1))


@triton.jit
def unsupported_python(x_ptr):
    squares = [i * i for i in range(3)]
    tl.store(x_ptr, squares[2])


#: kernel → (Triton's words, a part of the line that they are about, arguments behind the tensor).
REJECTED = {
    not_a_power: ("arange's range must be a power of 2", "tl.arange", ()),
    missing_constexpr: ("arange's arguments must be of type tl.constexpr", "tl.arange", (8,)),
    unknown_name: ("undefined_thing is not defined", "undefined_thing", ()),
    mismatched: ("incompatible dimensions at index 0: 8 and 16", "tl.store", ()),
    small_dot: ("Input shapes should have M >= 1, N >= 1 and K >= ", "tl.dot", ()),
    dot_of_k: ("must have equal reduction dimensions", "tl.dot", ()),
    loop_changes: ("Loop-carried variable a has initial type int32", "for _ in", (3,)),
    branch_changes: ("initial value for `a` is of type int32", "if n > 1", (3,)),
    bad_types: ("invalid operands of type pointer<fp32>", "x_ptr * 2", ()),
    no_attribute: ("has no attribute 'gelu'", "tl.gelu", ()),
    unsupported_python: ("only tuple comprehensions are supported", "squares = [", ()),
}


@pytest.mark.parametrize("kernel", REJECTED, ids=lambda kernel: kernel.fn.__name__)
def test_words_and_line(kernel):
    words, text, more = REJECTED[kernel]
    with pytest.raises(CompilationError) as caught:
        kernel[(1,)](torch.zeros(64), *more)
    assert words in str(caught.value)
    assert caught.value.__notes__[0] == f"in {line_of(kernel, text)}"


#: What Triton blames for types that differ: 3.6 the last return, later ones the function.
_BLAMED = "return 2.5" if TRITON < (3, 7) else "def two_returns"


@pytest.mark.parametrize(
    ("kernel", "callee", "text", "more", "words"),
    [
        (in_helper, helper, "tl.arange(0, 3)", (), "arange's range must be a power of 2"),
        (return_mismatch, two_returns, _BLAMED, (3,), "eturn type"),
    ],
    ids=["helper", "returns"],
)
def test_in_a_function_that_is_called(kernel, callee, text, more, words):
    with pytest.raises(CompilationError) as caught:
        kernel[(1,)](torch.zeros(64), *more)
    note = caught.value.__notes__[0]
    first, second = note.split("\n")
    assert first.startswith(f"in {line_of(callee, text)}: ")
    assert words in first
    assert second == f"  called at {line_of(kernel, 'tl.store')}"


def test_what_python_prints():
    """No frame of the simulator's, but the one that adds the note, and at the end where it is."""
    with pytest.raises(CompilationError) as caught:
        not_a_power[(1,)](torch.zeros(64))
    frames = [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert [name for name in frames if "/mini_triton/" in name and "/tests/" not in name] == [
        mini_triton.backend.rejections.__file__
    ]
    printed = traceback.format_exception(caught.value)
    assert printed[-2].strip() == f"in {line_of(not_a_power, 'tl.arange')}"
    assert printed[-1].startswith("do: round it up with triton.next_power_of_2")


def test_arguments_that_do_not_fit():
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'n'"):
        loop_changes[(1,)](torch.zeros(64))


def test_once_however_often_it_is_launched():
    for _ in range(2):
        with pytest.raises(CompilationError) as caught:
            not_a_power[(1,)](torch.zeros(64))
        assert len(caught.value.__notes__) == 2
