"""Two sides' results side by side: counts, explanations, and where the sides part."""

import json

import pytest

from tests.fidelity.triton_suite import EXPLAINED
from tests.fidelity.triton_table import (
    Explanation,
    Result,
    compare,
    markdown,
    read_explanations,
    read_results,
)


def by_test(*results):
    return {result.test: result for result in results}


OURS = by_test(
    Result("a.py::one[f32-1]", "passed"),
    Result("a.py::one[f32-2]", "failed", "needs TMA\nand more"),
    Result("a.py::two", "failed", "wrong value"),
    Result("a.py::three", "skipped", "for HIP only"),
    Result("b.py::four", "passed"),
)
INTERPRETER = by_test(
    Result("a.py::one[f32-1]", "passed"),
    Result("a.py::one[f32-2]", "failed", "it too"),
    Result("a.py::two", "passed"),
    Result("a.py::three", "passed"),
    Result("a.py::of_the_interpreter", "passed"),
)
EXPLANATIONS = [
    Explanation("a.py::one[f32*]", "TMA hardware", "TMA.*more"),
    Explanation("a.py::two", "printed otherwise", "^printed"),
]


def test_counts_by_test_by_file_and_in_all():
    comparison = compare(OURS, INTERPRETER, EXPLANATIONS)
    one = comparison.rows["a.py::one"]
    assert (one.ours, one.interpreter) == ({"passed": 1, "failed": 1}, {"passed": 1, "failed": 1})
    assert (one.explained, one.unexplained) == (1, 0)
    assert comparison.by_file()["b.py"].only_ours == 1
    total = comparison.total()
    assert total.ours == {"passed": 2, "failed": 2, "skipped": 1}
    assert total.interpreter == {"passed": 4, "failed": 1}
    assert (total.explained, total.unexplained) == (1, 1)
    assert (total.only_interpreter, total.only_ours) == (2, 1)


def test_names_of_what_is_not_explained_and_of_what_one_side_passes():
    comparison = compare(OURS, INTERPRETER, EXPLANATIONS)
    assert [r.test for r in comparison.unexplained] == ["a.py::two"]
    assert [r.test for r in comparison.only_interpreter] == ["a.py::three", "a.py::two"]
    assert comparison.reasons == {"TMA hardware": 1}
    assert comparison.skips == {"for HIP only": 1}
    assert [e.reason for e in comparison.idle] == ["printed otherwise"]
    # A test that is not for the interpreter says nothing of it.
    assert comparison.only_ours == []
    failed_there = by_test(Result("b.py::four", "failed", "NaN"))
    assert [r.message for r in compare(OURS, failed_there).only_ours] == ["NaN"]


@pytest.mark.parametrize(
    ("pattern", "test", "fits"),
    [
        ("a.py::one*", "a.py::one[x-1]", True),
        ("a.py::one[x-*]", "a.py::one[x-1]", True),
        ("a.py::one[x-*]", "a.py::one[y-1]", False),
        ("a.py::one[xy]", "a.py::onex", False),  # brackets are no sets of characters
    ],
)
def test_patterns_are_of_the_names_that_pytest_prints(pattern, test, fits):
    assert Explanation(pattern, "why").fits(Result(test, "failed")) is fits


def test_results_of_a_later_run_count_except_that_it_skipped(tmp_path):
    path = tmp_path / "results.jsonl"
    lines = [
        {"test": "t", "outcome": "skipped", "message": "for Blackwell", "seconds": 0.5},
        {"test": "t", "outcome": "passed"},
        {"test": "t", "outcome": "skipped", "message": "not for Ampere"},
        {"test": "u", "outcome": "skipped", "message": "for HIP"},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert read_results(path) == by_test(Result("t", "passed"), Result("u", "skipped", "for HIP"))


def test_the_table_as_markdown():
    text = markdown(compare(OURS, INTERPRETER, EXPLANATIONS))
    assert "| a | 1 / 2 / 1 | 4 / 1 / 0 | 1 | 2 | – |" in text
    assert "| **all** | **2 / 2 / 1** | **4 / 1 / 0** | **1** | **2** | **1** |" in text
    assert "| 1 | TMA hardware |" in text
    assert "- `a.py::two`: wrong value" in text
    assert "| 1 | for HIP only |" in text


def test_every_explanation_of_the_project_has_a_pattern_and_a_reason():
    explanations = read_explanations(EXPLAINED)
    assert explanations
    assert all("::" in e.tests and len(e.reason.split()) > 3 for e in explanations)


def test_a_key_that_is_none_is_refused(tmp_path):
    path = tmp_path / "explained.toml"
    path.write_text('[[explained]]\ntests = "a"\nwhy = "typo"\n')
    with pytest.raises(TypeError, match="why"):
        read_explanations(path)
