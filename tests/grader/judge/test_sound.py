"""Kernels whose results are right by chance fail their test, with what is wrong about them."""

import textwrap

import pytest
import torch

from grader.testing.local import LocalStudent
from grader.testing.problems import KernelFault
from grader.verdict import Verdict

IMPORTS = """
import torch, triton
import triton.language as tl
"""
#: Programs that are right in the simulator: what is found, and a line that the report shows.
FAULTS = {
    "a race": (
        """
        @triton.jit
        def double_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
            at = tl.arange(0, BLOCK)
            program = tl.program_id(0)
            wrong = tl.where(program == 0, 1.0, 0.0)
            tl.store(y_ptr + at, 2 * tl.load(x_ptr + at, at < n, 0.0) + wrong, at < n)

        def double(x):
            y = torch.empty_like(x)
            double_kernel[(2,)](x, y, x.numel(), BLOCK=32)
            return y
        """,
        "race: y_ptr[0, 0] (and 31 more) is stored by program (",
        "tl.store(y_ptr + at",
    ),
    "unwritten memory": (
        """
        @triton.jit
        def double_kernel(x_ptr, y_ptr, most_ptr, n, BLOCK: tl.constexpr):
            at = tl.arange(0, BLOCK)
            most = tl.maximum(tl.load(most_ptr), 2.0)
            tl.store(y_ptr + at, most * tl.load(x_ptr + at, at < n, 0.0), at < n)

        def double(x):
            y = torch.empty_like(x)
            double_kernel[(1,)](x, y, torch.empty(1), x.numel(), BLOCK=32)
            return y
        """,
        "load of unwritten memory: program (0, 0, 0) loads most_ptr[0], which nobody has written",
        "most = tl.maximum(tl.load(most_ptr), 2.0)",
    ),
    "masked-off lanes": (
        """
        @triton.jit
        def double_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
            at = tl.arange(0, BLOCK)
            x = tl.load(x_ptr + at, mask=at < n)
            zero = tl.sum(x) - tl.sum(tl.where(at < n, x, 0.0))
            tl.store(y_ptr + at, 2 * x + zero, mask=at < n)

        def double(x):
            y = torch.empty_like(x)
            double_kernel[(1,)](x, y, x.numel(), BLOCK=64)
            return y
        """,
        "masked-off lanes matter: y_ptr[0, 0] depends on lanes of a load that are masked off",
        "x = tl.load(x_ptr + at, mask=at < n)",
    ),
}


@pytest.mark.parametrize("what", FAULTS)
def test_a_fault_fails_the_test(first, what):
    source, message, line = FAULTS[what]
    result = first(source)
    assert (result.verdict, result.points) == (Verdict.FAILED, 0)
    assert message in result.message
    assert line in result.message
    assert result.message.endswith("in double((4, 8))")


@pytest.mark.parametrize("what", FAULTS)
def test_a_fault_is_found_in_the_students_own_process_as_well(what, tmp_path):
    source, message, line = FAULTS[what]
    (tmp_path / "work.py").write_text(IMPORTS + textwrap.dedent(source))
    student = LocalStudent(tmp_path, ["work.py"])
    with pytest.raises(KernelFault) as raised:
        student.call("double", torch.ones(4, 8))
    assert message in str(raised.value)
    assert line in str(raised.value)


def test_a_fault_cannot_be_caught_or_forgotten(first):
    source, message, _ = FAULTS["unwritten memory"]
    hidden = source.replace("torch.empty(1)", "mark(torch.empty(1))") + (
        """
        def mark(x):
            import mini_triton
            from mini_triton import settings
            settings.use(checks=(), on_finding="report").__enter__()
            return x
        """
    )
    assert message in first(hidden).message


def test_what_led_to_a_students_own_error_is_shown_with_it(first):
    source, message, _ = FAULTS["a race"]
    result = first(source.replace("return y", "raise ValueError('so it is')"))
    assert result.verdict is Verdict.FAILED
    assert "so it is" in result.message
    assert message in result.message


def test_tickets_are_right_whoever_draws_which(first):
    result = first(
        """
        @triton.jit
        def double_kernel(x_ptr, y_ptr, seen_ptr, counter_ptr):
            program = tl.program_id(0)
            ticket = tl.atomic_add(counter_ptr, 1)
            tl.store(seen_ptr + ticket, program)
            tl.store(y_ptr + program, 2 * tl.load(x_ptr + program))

        def double(x):
            y, seen = torch.empty_like(x), torch.empty(x.numel(), dtype=torch.int32)
            counter = torch.zeros(1, dtype=torch.int32)
            double_kernel[(x.numel(),)](x, y, seen, counter)
            return y
        """
    )
    assert "order" not in result.message
    assert "over the budget" in result.message or result.verdict is Verdict.PASSED
