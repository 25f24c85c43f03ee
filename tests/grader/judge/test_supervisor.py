"""Whole runs with real processes: every verdict, and what a report holds."""

import os
import shutil

import pytest

from grader.judge.supervisor import Judge
from grader.report import gradescope
from grader.submission import read
from grader.verdict import Verdict


def test_the_solution_gets_everything(grade):
    report = grade()
    assert [test.verdict for test in report.tests] == [Verdict.PASSED] * 6, [
        test.message for test in report.tests
    ]
    assert (report.points, report.max_points) == (10, 10)
    first = report.tests[0]
    assert first.title == "y = 2x, loaded and stored once"
    assert [row.kind for row in first.evidence] == ["output", "traffic", "traffic"]
    assert first.evidence[1].formula == "M·N·s = 4·8·4 = 128 B"
    assert first.evidence[1].bytes == 128
    assert {line.loaded for line in first.evidence[1].lines} == {128, 0}
    assert report.tests[4].leaderboard[0].name == "speed"
    assert first.peak_memory > 0


def test_results_come_one_by_one(grade):
    seen = []
    grade(listener=lambda result, report: seen.append((result.number, report.points)))
    assert seen == [("1.1", 3), ("1.2", 5), ("2.1", 6), ("2.2", 7), ("2.3", 9), ("2.4", 10)]


def test_the_same_seed_gives_the_same_results(grade):
    def content():
        results = gradescope.results(grade("def double(x): return x * 2.001"))
        del results["execution_time"], results["extra_data"]["resources"]
        return results

    assert content() == content()


def test_a_missing_file(judge, toy, toy_house, tmp_path):
    (tmp_path / "other.py").write_text("")
    (tmp_path / "more.py").write_text("")
    report = judge.grade_path(toy, tmp_path, house=toy_house)
    assert {test.verdict for test in report.tests} == {Verdict.MISSING_FILE}
    assert report.points == 0
    assert "toy.py" in report.tests[0].message


def test_an_import_error_shows_the_line(first):
    result = first("import nowhere", alone=True)
    assert result.verdict is Verdict.IMPORT_ERROR
    assert "toy.py:1\n    import nowhere" in result.message
    assert "No module named 'nowhere'" in result.message
    assert "grader" not in result.message


def test_a_syntax_error_shows_the_line(first):
    result = first("x = 1\ndef f(:\n", alone=True)
    assert result.verdict is Verdict.IMPORT_ERROR
    assert "line 2" in result.message


def test_stubs_are_not_started(grade):
    report = grade(
        """
        @triton.jit
        def double_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
            raise NotImplementedError("toy 1: double it")

        def strides(x, e, scale):
            raise NotImplementedError("toy 2: add them")
        """
    )
    assert [test.verdict for test in report.tests[:3]] == [Verdict.NOT_STARTED] * 3
    assert report.tests[0].message == "not started: toy 1: double it"
    assert report.tests[2].message == "not started: toy 2: add them"


def test_an_exception_shows_the_students_frames_only(first):
    result = first("def double(x):\n    return x[99]")
    assert result.verdict is Verdict.FAILED
    assert result.message.startswith("  toy.py:")
    assert "IndexError" in result.message
    assert "running.py" not in result.message


#: Ways to hand tensors to a kernel: as items of a tuple, by descriptors, by addresses.
WAYS = {
    "a tuple": """
        @triton.jit
        def double_kernel(pair, n, BLOCK: tl.constexpr):
            at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(pair[1] + at, 2 * tl.load(pair[0] + at, mask=at < n), mask=at < n)

        def double(x):
            y = torch.empty_like(x)
            double_kernel[(triton.cdiv(x.numel(), 16),)]((x, y), x.numel(), BLOCK=16)
            return y
    """,
    "descriptors": """
        from triton.tools.tensor_descriptor import TensorDescriptor

        @triton.jit
        def double_kernel(source, target, BLOCK: tl.constexpr):
            at = tl.program_id(0) * BLOCK
            target.store([at], 2 * source.load([at]))

        def double(x):
            y = torch.empty_like(x)
            both = [TensorDescriptor(t, [t.numel()], [1], [16]) for t in (x, y)]
            double_kernel[(triton.cdiv(x.numel(), 16),)](*both, BLOCK=16)
            return y
    """,
    "addresses": """
        @triton.jit
        def double_kernel(x_address, y_address, n, BLOCK: tl.constexpr):
            at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            source = x_address.to(tl.pointer_type(tl.float32))
            target = y_address.to(tl.pointer_type(tl.float32))
            tl.store(target + at, 2 * tl.load(source + at, mask=at < n), mask=at < n)

        def double(x):
            y = torch.empty_like(x)
            places = x.data_ptr(), y.data_ptr()
            double_kernel[(triton.cdiv(x.numel(), 16),)](*places, x.numel(), BLOCK=16)
            return y
    """,
}


@pytest.mark.parametrize("way", WAYS)
def test_the_judge_executes_kernels_that_take_tensors_in_other_ways(grade, way):
    report = grade(WAYS[way])
    assert report.tests[0].verdict is Verdict.PASSED, report.tests[0].message


def test_a_kernels_error_is_shown_as_it_is(first):
    result = first(
        """
        @triton.jit
        def double_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
            at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(y_ptr + at + 1, 2 * tl.load(x_ptr + at))
        """
    )
    assert result.verdict is Verdict.FAILED
    assert "kernel double_kernel" in result.message
    assert "element 32 of y_ptr" in result.message


def test_a_budget_names_tensor_and_line(first):
    result = first(
        """
        @triton.jit
        def double_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
            at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + at, mask=at < n)
            again = tl.load(x_ptr + (n - 1) - at, mask=at < n)
            tl.store(y_ptr + at, 2 * x + 0 * again, mask=at < n)
        """
    )
    assert result.verdict is Verdict.FAILED
    assert "double loads 256 B, over the budget of M·N·s = 4·8·4 = 128 B (2.00×)" in result.message
    assert "256 B  x_ptr" in result.message
    assert "again = tl.load(x_ptr + (n - 1) - at, mask=at < n)" in result.message


def test_no_kernel_is_said(first):
    result = first("def double(x): return x * 2")
    assert result.verdict is Verdict.FAILED
    assert "double launched no Triton kernel" in result.message


def test_a_changed_input_is_named(first):
    assert first("def double(x): return x.mul_(2)").message.startswith("x was changed by double")


def test_a_kernel_that_changes_its_input_is_seen(first):
    result = first(
        """
        def double(x):
            double_kernel[(2,)](x, x, 32, BLOCK=16)
            return x
        """
    )
    assert result.message.startswith("x was changed by double")


def test_what_is_printed_is_kept(first):
    result = first("def double(x):\n    print('here', x.shape)\n    return None")
    assert result.printed == "here torch.Size([4, 8])\n"
    assert "y is a NoneType" in result.message


@pytest.mark.parametrize(
    ("score", "points"), [("4", 2), ("1", 0.5), ("500", 2), ("-3", 0), ("0", 0)]
)
def test_partial_credit_is_clamped(grade, score, points):
    result = grade(f"def score(): return {score}", only=("2",)).tests[2]
    assert result.points == points
    assert result.verdict is (Verdict.PASSED if points == 2 else Verdict.FAILED)


def test_a_test_that_fails_says_why_and_keeps_the_score_it_has_set(grade):
    result = grade("def score(): return 3", only=("2",)).tests[2]
    assert (result.verdict, result.points) == (Verdict.FAILED, 1.5)
    assert "one of the fours is missing" in result.message


def test_a_score_that_is_no_number_gives_nothing(grade):
    result = grade("def score(): return float('nan')", only=("2",)).tests[2]
    assert (result.verdict, result.points) == (Verdict.GRADER_ERROR, 0)


@pytest.mark.parametrize(
    ("test_body", "complaint"),
    [
        ("raise RuntimeError('broken oracle')", "broken oracle"),
        ("self.skipTest('not today')", "skipped itself"),
        ("pass", "without calling any student code"),
        (
            "self.assert_close('y', self.student.call('double', self.zeros(2, 2)).value,"
            " self.zeros(2, 2).double())",
            "all zeros",
        ),
    ],
)
def test_a_broken_test_is_the_graders_error(judge, toy, toy_house, tmp_path, test_body, complaint):
    root = tmp_path / "house"
    shutil.copytree(toy_house.root, root)
    (root / "assignments/toy/public/test_toy.py").write_text(
        "from grader.testing import AssignmentTestCase\n"
        "class TestToy(AssignmentTestCase):\n"
        f"    def test_double(self):\n        {test_body}\n"
    )
    report = judge.grade_path(toy, root / "solutions/toy", only=("1",), house=type(toy_house)(root))
    assert report.tests[0].verdict is Verdict.GRADER_ERROR
    assert complaint in report.tests[0].message
    assert report.tests[1].verdict is Verdict.PASSED
    assert report.grader_errors == (report.tests[0],)


def test_a_notebook_is_located_by_cell(judge, toy, toy_house, tmp_path):
    nbformat = pytest.importorskip("nbformat")
    cells = [
        nbformat.v4.new_code_cell("import torch"),
        nbformat.v4.new_code_cell("def double(x):\n    y = x\n    return y[99]"),
    ]
    path = tmp_path / "toy.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    report = judge.grade_path(toy, path, only=("1",), house=toy_house)
    assert "cell 2:3 in double\n    return y[99]" in report.tests[0].message


PRINTING = """
@triton.jit
def printing_kernel(x_ptr, n):
    tl.device_print("x", tl.load(x_ptr + tl.program_id(0) % n))
    if n == 0:
        tl.store(x_ptr + (1 << 40), 0.0)

def double(x):
    print("before")
    printing_kernel[({programs},)](x, {n})
    print("after")
    return x * 3
"""


def test_what_a_kernel_prints_is_kept_with_what_the_test_printed(first, capfd):
    lines = first(PRINTING.format(programs=2, n=32)).printed.splitlines()
    assert [line.partition(" x: ")[0] for line in lines] == [
        "before",
        "pid (0, 0, 0)",
        "pid (1, 0, 0)",
        "after",
    ]
    assert capfd.readouterr().out == ""


def test_a_kernel_that_prints_much_is_cut_and_its_test_judged(first):
    result = first(PRINTING.format(programs=20_000, n=32))
    assert result.verdict is Verdict.FAILED
    assert len(result.printed) < 10_000
    assert "more was printed" in result.printed


def test_what_a_kernel_without_end_has_printed_is_kept(first):
    source = PRINTING.replace("if n == 0:", "while n > 0:").replace("1 << 40), 0.0", "n % 2), 0.0")
    result = first(source.format(programs=1, n=32), time_limit=4)
    assert result.verdict is Verdict.TIMED_OUT
    assert result.printed.startswith("before\npid (0, 0, 0) x: ")


def test_a_test_that_is_stopped_keeps_its_title(first):
    result = first("def double(x):\n    while True: pass", time_limit=2)
    assert (result.verdict, result.title) == (Verdict.TIMED_OUT, "y = 2x, loaded and stored once")
    assert result.message == "no result after 2 s, in double"


@pytest.mark.parametrize("end", ["while True: pass", "while True: double(torch.ones(3))"])
def test_an_import_without_end_is_waited_for_twice(grade, end):
    report = grade(end, time_limit=2)
    assert {test.verdict for test in report.tests} == {Verdict.TIMED_OUT}
    if "double" not in end:
        assert report.tests[0].message == "no result after 2 s, while toy.py was imported"
    again = "toy.py was not imported again: that had no end in tests 1.1 and 1.2"
    assert [test.message for test in report.tests[2:]] == [again] * 4
    assert report.seconds < 12


def test_only_one_task(grade):
    assert [test.number for test in grade(only=("2",)).tests] == ["2.1", "2.2", "2.3", "2.4"]
    with pytest.raises(KeyError):
        grade(only=("9",))


def test_the_submitted_folder_is_left_as_it_was(judge, toy, toy_house, tmp_path):
    submission = read(toy_house.root / "solutions/toy", toy, tmp_path / "into")
    before = sorted(submission.folder.iterdir())
    judge.grade(toy, submission, only=("1",), house=toy_house)
    assert sorted(submission.folder.iterdir()) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_as_another_user(toy, toy_house):
    with Judge(uid=31_234) as judge:
        report = judge.grade_path(toy, toy_house.root / "solutions/toy", house=toy_house)
    assert report.protections["user"] == "as user 31234"
    assert report.points == 10, [test.message for test in report.tests]


def test_a_kernel_launched_while_the_file_is_imported_is_no_part_of_a_call(grade):
    report = grade("EXAMPLE = double(torch.arange(6.0))")
    assert [test.verdict for test in report.tests] == [Verdict.PASSED] * 6, [
        test.message for test in report.tests
    ]
    assert [row.bytes for row in report.tests[0].evidence[1:]] == [128, 128]


def test_a_module_that_a_container_does_not_have_is_nowhere_to_be_had(
    grade, toy, toy_house, tmp_path
):
    pytest.importorskip("matplotlib")  # which loads it here, so that a judge made now has it, too
    (tmp_path / "toy.py").write_text("import matplotlib\ndef double(x): return x")
    with Judge() as judge:
        report = judge.grade_path(toy, tmp_path / "toy.py", only=("1",), house=toy_house)
    assert {test.verdict for test in report.tests} == {Verdict.IMPORT_ERROR}
    assert "No module named 'matplotlib'; there is no module matplotlib where" in (
        report.tests[0].message
    )
    harmless = "try:\n    import matplotlib\nexcept ImportError:\n    pass"
    assert grade(harmless, only=("1",)).points == 5


def test_all_that_students_files_may_import_can_be_read(grade):
    lines = "import console\nimport mini_triton\n\nassert console.fmt_bytes(1000) == '1.00 kB'\n"
    assert {test.verdict for test in grade(lines).tests} == {Verdict.PASSED}
