import math

import pytest

from grader.verdict import GradeReport, TaskResult, TestResult, Verdict, clamp, total


def result(number, verdict=Verdict.PASSED, points=1.0, most=1.0):
    return TestResult(
        number=number, title="t", task=number[0], points=points, max_points=most, verdict=verdict
    )


def report(*tests):
    ids = dict.fromkeys(test.task for test in tests)
    return GradeReport(
        assignment="toy",
        title="Toy",
        seed=0,
        tasks=tuple(
            TaskResult(id=id, title=id, tests=tuple(t for t in tests if t.task == id)) for id in ids
        ),
    )


def test_there_are_nine_verdicts():
    assert [verdict.value for verdict in Verdict] == [
        "passed",
        "failed",
        "not started",
        "timed out",
        "out of memory",
        "crashed",
        "import error",
        "missing file",
        "grader error",
    ]


@pytest.mark.parametrize(
    ("points", "clamped"), [(-1, 0), (0.126, 0.13), (3, 3), (500, 5), (1e308, 5)]
)
def test_points_are_clamped_and_rounded(points, clamped):
    assert clamp(points, 5) == clamped


@pytest.mark.parametrize("points", [math.nan, math.inf, -math.inf])
def test_points_that_are_not_finite_are_refused(points):
    with pytest.raises(ValueError, match="not a number of points"):
        clamp(points, 5)


def test_sums_show_no_binary_fractions():
    assert total([0.1] * 3) == 0.3
    assert report(*(result(f"1.{i}", points=0.1) for i in range(20))).points == 2.0


def test_a_result_takes_the_place_of_the_one_before():
    before = report(result("1.1", Verdict.GRADER_ERROR, 0), result("2.1", points=0.5))
    after = before.with_result(result("1.1"))
    assert [test.points for test in after.tests] == [1, 0.5]
    assert (before.points, after.points, after.max_points) == (0.5, 1.5, 2)
    assert len(before.grader_errors) == 1
    assert not after.grader_errors


@pytest.mark.parametrize(
    ("verdicts", "words"),
    [
        (["passed", "passed"], "passed"),
        (["not started", "not started"], "not started"),
        (["passed", "failed", "failed", "crashed"], "2 failed, 1 crashed"),
    ],
)
def test_a_tasks_verdict_in_words(verdicts, words):
    tests = [result(f"1.{i}", Verdict(verdict)) for i, verdict in enumerate(verdicts)]
    assert report(*tests).tasks[0].verdict == words


def test_a_report_survives_json():
    before = report(result("1.1"))
    assert GradeReport.model_validate_json(before.model_dump_json()) == before
