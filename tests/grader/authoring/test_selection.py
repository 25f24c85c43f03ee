"""Tests of rmsnorm on their slices of its solution, and those that can judge a variant."""

from pathlib import Path

import pytest

from grader import house, manifest
from grader.authoring.selection import Reach, only_tests, reaches, select
from grader.verdict import GradeReport, Verdict, empty_report

RMSNORM = manifest.load("rmsnorm")
SOLUTION = house.solution("rmsnorm") / "rmsnorm.py"


class OtherJudge:
    """Finds that the tests of some numbers pass; keeps what it was given to judge."""

    def __init__(self, *passing: str) -> None:
        self.passing = passing
        self.texts: dict[str, str] = {}

    def grade_path(self, assignment: manifest.Assignment, path: Path) -> GradeReport:
        report = empty_report(assignment, 0, "")
        (test,) = report.tests
        self.texts[test.number] = (path / "rmsnorm.py").read_text(encoding="utf-8")
        verdict = Verdict.PASSED if test.number in self.passing else Verdict.FAILED
        return report.with_result(test.model_copy(update={"verdict": verdict, "seconds": 2.0}))


class TestReaches:
    def test_a_test_is_run_on_its_slice_alone(self):
        judge = OtherJudge("4.1")
        reaches(judge, RMSNORM, RMSNORM.tasks[3])
        assert set(judge.texts) == {test.number for test in RMSNORM.tasks[3].tests}
        for text in judge.texts.values():
            assert "def rmsnorm_backward_persistent" in text
            assert "def rmsnorm_forward" not in text
            assert "class RMSNorm" not in text

    def test_what_it_mentions_is_known_if_it_passes(self):
        first, second, *_ = reaches(OtherJudge("4.1"), RMSNORM, RMSNORM.tasks[3])
        assert (first.number, first.seconds) == ("4.1", 2.0)
        assert {"rmsnorm_backward_persistent", "rmsnorm_bwd_persistent_kernel"} <= first.names
        assert "rmsnorm_forward" not in first.names
        assert (second.number, second.names) == ("4.2", None)


FOUND = [
    Reach("1.1", frozenset({"rmsnorm_forward", "warps_for"}), 3.0),
    Reach("1.2", frozenset({"rmsnorm_forward"}), 1.0),
    Reach("3.1", None, 2.0),
    Reach("4.1", frozenset({"rmsnorm_backward_persistent"}), 4.0),
]


class TestSelection:
    @staticmethod
    def selected(folder: Path, old: str, new: str) -> list[str]:
        text = SOLUTION.read_text(encoding="utf-8")
        assert old in text
        (folder / "rmsnorm.py").write_text(text.replace(old, new), encoding="utf-8")
        return [reach.number for reach in select(RMSNORM, FOUND, folder)]

    def test_those_that_reach_the_change_and_those_of_which_nothing_is_known(self, tmp_path):
        changed = "def warps_for(more, "
        assert self.selected(tmp_path, "def warps_for(", changed) == ["3.1", "1.1"]

    def test_the_quickest_first(self, tmp_path):
        changed = "def rmsnorm_forward(more, "
        assert self.selected(tmp_path, "def rmsnorm_forward(", changed) == ["1.2", "3.1", "1.1"]

    def test_all_if_anything_may_have_changed(self, tmp_path):
        numbers = self.selected(tmp_path, "\nimport torch\n", "\nimport torch\n\nprint(1)\n")
        assert numbers == ["1.2", "3.1", "1.1", "4.1"]

    def test_none_if_nothing_has(self, tmp_path):
        assert self.selected(tmp_path, "import torch", "import torch") == []


@pytest.mark.parametrize("numbers", [("1.2",), ("4.1", "1.1", "1.3"), ()])
def test_an_assignment_of_some_tests(numbers):
    some = only_tests(RMSNORM, set(numbers))
    assert {test.number for test in some.tests()} == set(numbers)
    assert all(task.tests for task in some.tasks)
