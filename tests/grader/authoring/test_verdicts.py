"""Judges single tasks of rmsnorm with the real grader."""

import pytest

from grader import house, manifest
from grader.authoring import overlay
from grader.authoring.verdicts import Case, judge_case

RMSNORM = manifest.load("rmsnorm")
VARIANTS = {variant.name: variant for variant in overlay.variants(RMSNORM)}


@pytest.fixture
def case(tmp_path):
    """A case of a variant, judged by some tasks."""

    def make(name: str, breaks: tuple[str, ...] | None, *tasks: str) -> Case:
        overlay.write(RMSNORM, VARIANTS[name], tmp_path)
        return Case(name, tmp_path, breaks, tasks)

    return make


def test_a_variant_that_does_as_it_says_has_no_faults(case) -> None:
    finding = judge_case("rmsnorm", case("wrong_no_correction", ("2",), "1", "2"))
    assert (finding.faults, finding.points) == ([], "breaks 2")


def test_one_that_breaks_more_than_it_says(case) -> None:
    finding = judge_case("rmsnorm", case("wrong_no_correction", (), "2"))
    assert len(finding.faults) == 1
    assert finding.faults[0].startswith("task 2 loses points: 2.")


def test_one_that_breaks_less(case) -> None:
    finding = judge_case("rmsnorm", case("wrong_no_correction", ("1", "3"), "1"))
    assert finding.points == "breaks nothing"
    assert finding.faults == [
        "task 3 is to be broken, but is written in another file than this variant's",
        "task 1 keeps all of its 30 points, but it is broken",
    ]


def test_a_starter_that_has_started() -> None:
    case = Case("solution as a starter", house.solution("rmsnorm"), None, ("1",))
    finding = judge_case("rmsnorm", case)
    assert len(finding.faults) == len(RMSNORM.tasks[0].tests)
    assert "is passed, should be not started" in finding.faults[0]
