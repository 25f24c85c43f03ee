"""Results that are as they must be have no differences; each fault is one, and says so."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from grader import house, manifest
from grader.gradescope.submissions import Attempt, attempts, differences, verdicts
from grader.house import House
from grader.packing import PackingError
from grader.report import gradescope
from grader.verdict import Verdict, empty_report

RMSNORM = manifest.load("rmsnorm")


def attempt(name: str) -> Attempt:
    return next(one for one in attempts(RMSNORM, house.here()) if one.name == name)


def results(verdict: Verdict, points: bool = False) -> dict[str, Any]:
    """As the grader would write them if every test had ended so."""
    report = empty_report(RMSNORM, RMSNORM.seed, "")
    for test in report.tests:
        changed = {"verdict": verdict, "points": test.max_points if points else 0.0}
        report = report.with_result(test.model_copy(update=changed))
    return gradescope.results(report)


SOLUTION = results(Verdict.PASSED, points=True)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("solution", SOLUTION),
        ("starter", results(Verdict.NOT_STARTED)),
        ("syntax error", results(Verdict.IMPORT_ERROR)),
        ("empty", results(Verdict.MISSING_FILE)),
    ],
)
def test_right_results_are_right_for_their_submission_alone(
    name: str, content: dict[str, Any]
) -> None:
    for one in attempts(RMSNORM, house.here()):
        assert (differences(content, RMSNORM, one) == []) == (one.name == name), one.name


def change(where: str, value: object) -> Callable[[dict[str, Any]], None]:
    return lambda content: content.update({where: value})


def change_test(where: str, value: object) -> Callable[[dict[str, Any]], None]:
    return lambda content: content["tests"][4].update({where: value})


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (change("score", 99.5), "score is 99.5, expected 100"),
        (change("score", float("nan")), "not finite"),
        (change("visibility", "sometimes"), "visibility"),
        (change("extra", 1), "extra"),
        (change_test("score", 2.0), "the tests' points sum up to"),
        (change_test("max_score", 30.0), "1.5 has (maximum, visibility) (30.0, 'visible')"),
        (change_test("visibility", "hidden"), "1.5 has (maximum, visibility)"),
        (change_test("extra_data", {"verdict": "crashed"}), "1 crashed (1.5)"),
        (change_test("extra_data", {}), "1 None (1.5)"),
        (lambda content: content["tests"].pop(), "tests are 1.1"),
        (lambda content: content.pop("tests"), "'tests' is a required property"),
    ],
)
def test_each_fault_is_found(fault: Callable[[dict[str, Any]], None], said: str) -> None:
    content = copy.deepcopy(SOLUTION)
    fault(content)
    found = differences(content, RMSNORM, attempt("solution"))
    assert said in "\n".join(found)


@pytest.mark.parametrize("content", [[], "text", 3, None, {}])
def test_what_is_no_results_at_all(content: Any) -> None:
    assert differences(content, RMSNORM, attempt("solution"))


def test_verdicts_are_counted() -> None:
    assert verdicts(SOLUTION) == {"passed": len(list(RMSNORM.tests()))}


def test_the_files_of_each_submission(tmp_path: Path) -> None:
    written = {}
    for one in attempts(RMSNORM, house.here()):
        folder = tmp_path / one.name
        folder.mkdir()
        one.write(folder)
        written[one.name] = {path.name: path.read_text() for path in folder.iterdir()}
    solution = (house.solution("rmsnorm") / "rmsnorm.py").read_text()
    starter = (house.starter("rmsnorm") / "rmsnorm.py").read_text()
    assert written["solution"] == {"rmsnorm.py": solution}
    assert written["starter"] == {"rmsnorm.py": starter}
    assert written["empty"] == {}
    with pytest.raises(SyntaxError):
        compile(written["syntax error"]["rmsnorm.py"], "rmsnorm.py", "exec")


def test_a_tree_without_solutions(tmp_path: Path) -> None:
    (tmp_path / "assignments" / "rmsnorm").mkdir(parents=True)
    (tmp_path / "assignments" / "rmsnorm" / "assignment.toml").touch()
    with pytest.raises(PackingError, match=r"there is no solutions/rmsnorm/rmsnorm\.py"):
        attempts(RMSNORM, House(tmp_path))
