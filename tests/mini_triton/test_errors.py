"""Errors as people read them: with lines of source only where these are the process's own."""

from __future__ import annotations

import copy
import pickle
import traceback

import mini_triton
import pytest
import torch
import triton
import triton.language as tl
from mini_triton import KernelError, Location, OutOfBounds, OverBudget, settings
from mini_triton.finding import Place
from mini_triton.launch import Launch

from tests.mini_triton.comparing import line_of, simulator_only

HERE = Location(__file__, 1)


def test_an_error_without_a_place_is_its_text() -> None:
    assert str(KernelError("as it came")) == "as it came"
    assert KernelError("as it came").report(lambda *_: "source") == "as it came"


def test_the_parts_of_a_message() -> None:
    error = OutOfBounds.at(
        HERE,
        "k",
        "it is outside",
        "here",
        also=[Place(__file__, 2, "", "and here")],
        facts=[("x_ptr", "shape (2,)")],
        hint="mend it",
    )
    assert error.report(lambda file, line: f"line {line}").splitlines() == [
        "out of bounds: it is outside",
        "  --> test_errors.py:1, kernel k",
        "    1 | line 1",
        "      | ^^^^^^ here",
        "  --> test_errors.py:2",
        "    2 | line 2",
        "      | ^^^^^^ and here",
        "  x_ptr: shape (2,)",
        "  note: no memory was changed",
        "  do: mend it",
    ]


def test_source_is_shown_of_the_process_own_kernels_only() -> None:
    error = OutOfBounds.at(HERE, "k", "it is outside", "here")
    assert "Errors as people read them" not in str(error)
    error.own = True
    assert "Errors as people read them" in str(error)


def test_who_raises_an_error_need_not_know_where() -> None:
    error = OutOfBounds("it is outside")
    error.locate(HERE, "k")
    assert "--> test_errors.py:1, kernel k\n" in str(error)
    error.locate(Location("other.py", 2), "other")
    assert "other" not in str(error)


def test_a_setting_is_named_in_the_process_that_launched_only() -> None:
    error = OverBudget.at(HERE, "k", "too much")
    error.setting = "MINI_TRITON_MEMORY to 5"
    assert "MINI_TRITON" not in str(error)
    assert "MINI_TRITON" not in error.report(lambda *_: "")
    error.own = True
    assert str(error).endswith("\n  or: set MINI_TRITON_MEMORY to 5, for this process")


@pytest.mark.parametrize("clone", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))])
def test_a_copy_says_the_same(clone) -> None:
    error = OutOfBounds.at(HERE, "k", "it is outside", "here")
    error.own = True
    assert str(clone(error)) == str(error)


@triton.jit
def endless_kernel(x_ptr):
    k = tl.load(x_ptr)
    while k < 10:
        tl.store(x_ptr, k)


@simulator_only("a GPU would hang")
def test_an_endless_loop_says_what_to_do() -> None:
    with settings.use(steps=1000), pytest.raises(OverBudget) as caught:
        endless_kernel[(2,)](torch.zeros(2))
    message = str(caught.value)
    number = line_of(endless_kernel, "while").rpartition(":")[2]
    assert f"    {number} |     while k < 10:\n" in message
    assert "does its condition ever become false" in message
    assert "or: set MINI_TRITON_STEPS to more than 1000, for this process" in message


@simulator_only("a GPU has no such errors")
def test_the_traceback_has_no_frames_of_what_ran_the_kernel() -> None:
    with settings.use(steps=1000), pytest.raises(OverBudget) as caught:
        endless_kernel[(2,)](torch.zeros(2))
    files = [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert files[0] == __file__
    assert not any("execute" in file for file in files)


def test_a_device_reads_no_file_that_a_program_names(tmp_path) -> None:
    """A judge executes programs of others, which may name any file."""
    secret = tmp_path / "secret.py"
    secret.write_text("the expected answer\n")
    ttir = f"""module {{
  tt.func public @k(%x: !tt.ptr<f32>) {{
    %one = arith.constant 1 : i32
    %p = tt.addptr %x, %one : !tt.ptr<f32>, i32
    %v = tt.load %p : !tt.ptr<f32> loc("{secret}":1:1)
    tt.return
  }}
}}"""
    launch = Launch("k", ttir, (1, 1, 1), [torch.zeros(1)], ["x"])
    with pytest.raises(OutOfBounds) as caught:
        mini_triton.LocalDevice().launch(launch)
    assert "--> secret.py:1, kernel k" in str(caught.value)
    assert "answer" not in str(caught.value)
