"""Student code in the same process: values, gradients, and every way to go wrong."""

import sys
import textwrap

import numpy as np
import pytest
import torch

from grader.testing.local import LocalStudent
from grader.testing.problems import (
    Crashed,
    ImportFailed,
    MissingFile,
    Misuse,
    NotStarted,
    StudentError,
)


@pytest.fixture
def student(tmp_path):
    def write(source, **others):
        (tmp_path / "work.py").write_text(textwrap.dedent(source))
        for name, text in others.items():
            (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
        return LocalStudent(tmp_path, ["work.py", *(f"{name}.py" for name in others)])

    return write


def test_calls_and_unpacks(student):
    call = student("def f(x, k=1): return x * k, None, [x]").call("f", torch.ones(2), k=3)
    assert torch.equal(call.value[0], torch.full((2,), 3.0))
    assert call.value[1] is None
    assert call.profile.launches == ()


def test_gradients_keep_the_strides_of_dy(student):
    source = """
        import torch
        class Square(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, g):
                ctx.save_for_backward(x, g)
                return x * x * g
            @staticmethod
            def backward(ctx, dy):
                assert dy.stride() == (0, 0), dy.stride()
                x, g = ctx.saved_tensors
                return dy * 2 * x * g, (dy * x * x).sum(0)
    """
    x, g = torch.randn(3, 4), torch.randn(4)
    dy = torch.ones(()).expand(3, 4)
    y, dx, dg = student(source).gradients("Square.apply", x, g, dy=dy).value
    assert torch.equal(y, x * x * g)
    assert torch.equal(dx, 2 * x * g)
    assert torch.equal(dg, (x * x).sum(0))


def test_unwritten_memory_is_nan(student):
    source = """
        import torch
        def f(x): return torch.empty_like(x), torch.empty(3), x.new_empty(2)
    """
    for value in student(source).call("f", torch.ones(2)).value:
        assert value.isnan().all()
    assert not torch.are_deterministic_algorithms_enabled()


def test_an_exception_shows_the_students_frames_only(student):
    source = """
        def helper(x):
            return x[7]
        def f(x):
            return helper(x)
    """
    with pytest.raises(StudentError) as caught:
        student(source).call("f", torch.ones(2))
    text = str(caught.value)
    assert [(frame.file, frame.line) for frame in caught.value.frames] == [
        ("work.py", 5),
        ("work.py", 3),
    ]
    assert "work.py:3 in helper\n    return x[7]" in text
    assert text.endswith("IndexError: index 7 is out of bounds for dimension 0 with size 2")
    assert "running.py" not in text


@pytest.mark.parametrize(
    ("raised", "barred"),
    [
        ("PermissionError(13, 'Permission denied')", True),
        ("OSError(1, 'Operation not permitted')", True),
        ("FileNotFoundError(2, 'No such file')", False),
        ("PermissionError('not yours')", False),
    ],
)
def test_what_is_barred_in_grading_is_said(student, raised, barred):
    with pytest.raises(StudentError) as caught:
        student(f"def f():\n    raise {raised}").call("f")
    words = "; graded code may write files only into the folder in which it is started, and opens"
    assert (words in caught.value.message) is barred


def test_a_wrong_signature_is_said(student):
    with pytest.raises(StudentError, match=r"f\(\) takes 1 positional argument but 2 were given"):
        student("def f(x): return x").call("f", 1, 2)


def test_runaway_recursion_is_bounded(student):
    with pytest.raises(StudentError, match="RecursionError") as caught:
        student("def f(x): return f(x)").call("f", 1)
    assert len(caught.value.frames) <= 10


def test_a_stub_is_not_started(student):
    stub = student('def f(x):\n    raise NotImplementedError("work 2: square it")')
    with pytest.raises(NotStarted, match=r"^not started: work 2: square it$"):
        stub.call("f", 1)


def test_torchs_own_not_implemented_is_an_error(student):
    source = """
        import torch
        def f(x):
            torch.ones(2, device="meta").item()
            return torch.ops.aten.nonzero(torch.ones(2, device="meta"))
    """
    with pytest.raises(StudentError):
        student(source).call("f", 1)


def test_a_triton_stub_is_not_started(student):
    source = """
        import torch, triton
        import triton.language as tl

        @triton.jit
        def inner(x_ptr):
            raise NotImplementedError("work 1: "
                                      "load it")

        @triton.jit
        def kernel(x_ptr):
            inner(x_ptr)

        def f(x):
            kernel[(1,)](x)
    """
    with pytest.raises(NotStarted, match=r"^not started: work 1: load it$"):
        student(source).call("f", torch.ones(2))


def test_a_compile_error_names_the_line_in_the_file(student):
    source = """
        import torch, triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr):
            y = tl.load(x_ptr)
            tl.store(x_ptr, y + nothing)

        def f(x):
            kernel[(1,)](x)
    """
    with pytest.raises(StudentError) as caught:
        student(source).call("f", torch.ones(2))
    frame = caught.value.frames[-1]
    assert (frame.file, frame.line, frame.function) == ("work.py", 8, "kernel")
    assert "nothing is not defined" in caught.value.message


def test_a_changed_input_is_named(student):
    work = student("def f(x, g):\n    g.mul_(2)\n    return x")
    with pytest.raises(Misuse, match=r"^g was changed by f"):
        work.call("f", torch.ones(2), torch.ones(2))


def test_nan_in_an_input_is_no_change(student):
    student("def f(x): return x + 1").call("f", torch.full((2,), torch.nan))


def test_a_changed_dy_is_named(student):
    source = """
        import torch
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, g): return x * 1
            @staticmethod
            def backward(ctx, dy):
                return dy.mul_(2), dy
    """
    with pytest.raises(Misuse, match=r"^dy was changed by F\.apply"):
        student(source).gradients("F.apply", torch.ones(2), torch.ones(2), dy=torch.ones(2))


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("def f(x, g): return 3", "returned a int; a tensor was expected"),
        ("def f(x, g): return x[:1]", r"returned shape \(1,\); \(2,\) was expected"),
        ("def f(x, g): return x.detach() * 2", "does not depend on its inputs"),
        ("def f(x, g): return x * 2", "gave no gradient .* for g"),
    ],
)
def test_gradients_that_cannot_be(student, source, complaint):
    with pytest.raises(Misuse, match=complaint):
        student(source).gradients("f", torch.ones(2), torch.ones(2), dy=torch.ones(2))


def test_import_problems(student, tmp_path):
    with pytest.raises(ImportFailed, match="No module named 'nowhere'") as caught:
        student("import nowhere").call("f")
    assert caught.value.frames[0].text == "import nowhere"
    assert "no module nowhere where submissions are graded: they may import" in str(caught.value)
    with pytest.raises(ImportFailed, match="SyntaxError") as caught:
        student("def f(:").call("f")
    assert (caught.value.frames[-1].file, caught.value.frames[-1].line) == ("work.py", 1)
    with pytest.raises(Crashed, match=r"on import: sys.exit\(0\)"):
        student("import sys; sys.exit(0)").call("f")
    with pytest.raises(MissingFile, match=r"other\.py was not submitted"):
        LocalStudent(tmp_path, ["other.py"]).call("f")


def test_sys_exit_is_a_crash(student):
    with pytest.raises(Crashed, match=r"f tried to end the process: sys.exit\(0\)"):
        student("import sys\ndef f(): sys.exit(0)").call("f")


def test_an_unknown_name_is_said(student):
    with pytest.raises(Misuse, match=r"work\.py defines no g\.h"):
        student("def f(): pass").call("g.h")


def test_files_see_each_other_and_nothing_else(student, tmp_path):
    (tmp_path / "torch.py").write_text("raise SystemExit('shadowed')")
    (tmp_path / "helper.py").write_text("")
    work = student(
        """
        import torch, other
        def f(): return other.g()
        def h(): import helper
        """,
        other="def g(): return 5",
    )
    assert work.call("f").value == 5
    assert work.call("other:g").value == 5
    with pytest.raises(StudentError, match="No module named 'helper'"):
        work.call("h")
    assert str(tmp_path) not in sys.path


def test_source_is_given_for_submitted_files_only(student, tmp_path):
    work = student("def f():\n    return 1")
    (tmp_path / "secret.py").write_text("secret")
    assert work.source("work.py", 2) == "return 1"
    assert work.source("secret.py", 1) == ""
    assert work.source("/etc/passwd", 1) == ""


def test_a_kernel_launched_while_the_file_is_imported_is_no_part_of_the_call(student):
    source = """
        import torch
        import triton
        import triton.language as tl

        @triton.jit
        def copy_kernel(x_ptr, y_ptr, BLOCK: tl.constexpr):
            lanes = tl.arange(0, BLOCK)
            tl.store(y_ptr + lanes, tl.load(x_ptr + lanes))

        def f(x):
            y = torch.empty_like(x)
            copy_kernel[(1,)](x, y, BLOCK=16)
            return y

        EXAMPLE = f(torch.ones(16))
    """
    call = student(source).call("f", torch.zeros(16))
    assert len(call.profile.launches) == 1
    assert len(call.trace.steps) == 1


def test_the_last_call_for_people(student):
    work = student("def f(*args, **kwargs): pass")
    work.call("work:f", torch.ones(2, 3), torch.ones(1, dtype=torch.float64), 0.1, k=[None, 2])
    assert work.last == "f((2, 3), (1,) float64, 0.1, k=[None, 2])"
    work.call("work:f", np.ones((2, 3), np.float32), [np.ones(4)], torch.ones(1))
    assert work.last == "f((2, 3) float32, [(4,) float64], (1,))"


def test_a_kernel_without_end_shows_its_line_and_no_setting(student, monkeypatch):
    """With the limits that hold in grading, which a student cannot set."""
    monkeypatch.setattr("grader.testing.local.MOST_STEPS", 400)
    code = student("""
        import torch, triton, triton.language as tl
        @triton.jit
        def kernel(x_ptr):
            k = tl.load(x_ptr)
            while k < 1:
                k = tl.load(x_ptr)
            tl.store(x_ptr, k)
        def f(x):
            kernel[(1,)](x)
    """)
    with pytest.raises(StudentError) as caught:
        code.call("f", torch.zeros(1))
    message = caught.value.message
    assert message.startswith("over budget: more than 400 operations")
    assert "--> work.py:" in message
    assert " |         k = tl.load(x_ptr)\n" in message
    assert "MINI_TRITON" not in message


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("kernel[(1,)](x, 100)", "do: round it up with triton.next_power_of_2"),
        ("kernel[1](x, 128)", "do: the grid of a launch is a tuple"),
    ],
)
def test_a_beginners_fault_comes_with_advice(student, line, words):
    code = student(f"""
        import triton, triton.language as tl
        @triton.jit
        def kernel(x_ptr, BLOCK: tl.constexpr):
            tl.store(x_ptr + tl.arange(0, BLOCK), 0.0)
        def f(x):
            {line}
        def g(x):
            len(1)
    """)
    with pytest.raises(StudentError) as caught:
        code.call("f", torch.zeros(128))
    assert words in caught.value.message.splitlines()[-1]
    with pytest.raises(StudentError) as caught:
        code.call("g", torch.zeros(128))
    assert "do:" not in caught.value.message
