"""Judges single tasks of rmsnorm with the real grader."""

from concurrent.futures import Executor, Future

import pytest

from grader import house, manifest
from grader.authoring import overlay, verdicts
from grader.authoring.selection import Reach
from grader.authoring.verdicts import Case, Finding, judge_case
from grader.judge.supervisor import Judge

RMSNORM = manifest.load("rmsnorm")
VARIANTS = {variant.name: variant for variant in overlay.variants(RMSNORM)}


@pytest.fixture
def case(tmp_path):
    """A case of a variant, judged by some tests."""

    def make(name: str, breaks: tuple[str, ...] | None, *tests: str) -> Case:
        overlay.write(RMSNORM, VARIANTS[name], tmp_path)
        return Case(name, tmp_path, breaks, tests)

    return make


def test_a_variant_that_does_as_it_says_has_no_faults(case) -> None:
    finding = judge_case("rmsnorm", case("wrong_no_correction", ("2",), "1.2", "2.2"))
    assert (finding.faults, finding.points) == ([], "breaks 2")


def test_one_that_breaks_more_than_it_says(case) -> None:
    finding = judge_case("rmsnorm", case("wrong_no_correction", (), "2.2"))
    assert len(finding.faults) == 1
    assert finding.faults[0].startswith("task 2 loses points: 2.2 failed")


def test_one_that_breaks_less(case) -> None:
    finding = judge_case("rmsnorm", case("wrong_no_correction", ("1", "3"), "1.2", "1.3"))
    assert finding.points == "breaks nothing"
    assert finding.faults == [
        "task 3 is to be broken, but none of its tests reaches what this changes",
        "task 1 keeps all of its 7 points, but it is broken",
    ]


def test_one_that_no_test_reaches(case) -> None:
    finding = judge_case("rmsnorm", case("right_cubed_r", ()))
    assert finding.faults == ["no test reaches what it changes"]


def test_a_broken_task_is_run_until_a_test_is_lost(case) -> None:
    judged = case("wrong_no_correction", ("2",), "2.3", "2.2", "2.1", "1.1")
    with Judge() as judge:
        report = verdicts._graded(judge, RMSNORM, judged)
    assert [(test.number, test.passed) for test in report.tests] == [("1.1", True), ("2.3", False)]


def test_a_starter_that_has_started() -> None:
    case = Case("solution as a starter", house.solution("rmsnorm"), None, ("1.1", "1.2"))
    finding = judge_case("rmsnorm", case)
    assert len(finding.faults) == 2
    assert "is passed, should be not started" in finding.faults[0]


def test_time_limits_are_longer_than_for_students() -> None:
    for test in verdicts._patient(RMSNORM).tests():
        assert test.time_limit == 5 * RMSNORM.time_limit


def test_solution_starter_and_variants_are_judged_by_the_tests_that_concern_them(monkeypatch):
    """All of rmsnorm, with a judge's findings made up."""
    judged = {}

    def judge_case(name, case):
        judged[case.name] = case
        return Finding(case.name, "", [])

    def reaches(name, task_id):
        task = next(task for task in RMSNORM.tasks if task.id == task_id)
        names = {"2": frozenset({"rmsnorm_bwd_kernel"}), "3": None}.get(task_id, frozenset())
        return [Reach(test.number, names, float(task_id)) for test in task.tests]

    class Here(Executor):
        def submit(self, function, *arguments):
            future: Future[object] = Future()
            future.set_result(function(*arguments))
            return future

    monkeypatch.setattr(verdicts, "judge_case", judge_case)
    monkeypatch.setattr(verdicts, "_reaches", reaches)
    monkeypatch.setattr(verdicts, "ProcessPoolExecutor", lambda *_, **__: Here())
    findings = list(verdicts.judge_all(RMSNORM))
    assert {finding.case for finding in findings} - judged.keys() == {findings[0].case}
    assert (findings[0].points, findings[0].faults) == ("29 / 37", [])
    assert judged.keys() == {"solution", "starter", *VARIANTS}
    assert judged["solution"].tests is None
    assert (judged["starter"].tests, judged["starter"].breaks) == (None, None)
    of_task = {task.id: tuple(test.number for test in task.tests) for task in RMSNORM.tasks}
    assert judged["right_cubed_r"].tests == of_task["2"] + of_task["3"]
    assert judged["right_two_pass"].tests == of_task["3"]
    order = list(judged)
    assert order.index("right_cubed_r") < order.index("right_two_pass")
