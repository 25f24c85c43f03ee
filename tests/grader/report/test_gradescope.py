import json
import math
from pathlib import Path

import pytest

from grader.report import gradescope
from grader.verdict import LeaderboardEntry, Verdict


def test_results_fit_the_schema(report):
    content = gradescope.results(report)
    gradescope.validate(content)
    assert content["score"] == 3
    assert [test["score"] for test in content["tests"]] == [3, 0, 0, 0]
    assert [test["max_score"] for test in content["tests"]] == [3, 2.5, 2, 1]
    assert [test["status"] for test in content["tests"]] == ["passed", *["failed"] * 3]
    assert content["tests"][1]["number"] == "1.2"
    assert content["leaderboard"] == [{"name": "bytes", "value": 12, "order": "asc"}]


def test_outputs_show_what_was_measured(report):
    text = gradescope.results(report)["tests"][0]["output"]
    assert "2·M·N·s = 2·64·100·4 = 51,200 B" in text
    assert "76,800 B" in text
    assert "150.0%" in text
    assert "2.00e-06" in text  # the worse of two comparisons of y
    assert "1.00e-07" not in text


def test_nothing_of_a_hidden_test_is_shown(report):
    content = gradescope.results(report)
    assert "secret" not in json.dumps(content)
    assert content["tests"][2]["visibility"] == "hidden"
    assert content["tests"][2]["output"].startswith("failed\nThis test is hidden")


def test_a_grader_error_is_told_from_a_zero(report):
    content = gradescope.results(report)
    assert "THE GRADER FAILED on 1.4" in content["output"]
    assert content["tests"][3]["extra_data"] == {"verdict": "grader error"}
    assert "no fault of this submission" in content["tests"][3]["output"]


def test_control_characters_are_replaced(report):
    assert "\x1b" not in json.dumps(gradescope.results(report), ensure_ascii=False)


def test_long_output_is_cut(report):
    test = report.tests[1].model_copy(update={"message": "é" * 500_000})
    output = gradescope.results(report.with_result(test))["tests"][1]["output"]
    assert len(output) == gradescope.MOST_CHARACTERS
    assert output.endswith("(cut off)")


def test_times_and_memory_stand_apart(report):
    later = report.with_result(
        report.tests[1].model_copy(update={"seconds": 9.0, "peak_memory": 99})
    ).model_copy(update={"seconds": 99.0})
    contents = [gradescope.results(one) for one in (report, later)]
    for content in contents:
        del content["execution_time"], content["extra_data"]["resources"]
    assert contents[0] == contents[1]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda c: c.pop("tests"),
        lambda c: c.update(tests=[]),
        lambda c: c.update(score="3"),
        lambda c: c.update(score=-1),
        lambda c: c.update(scores=3),
        lambda c: c.update(score=math.nan),
        lambda c: c.update(output="x" * 100_001),
        lambda c: c.update(output="\0"),
        lambda c: c["tests"][0].update(status="ok"),
        lambda c: c["tests"][0].update(visibility="public"),
        lambda c: c["tests"][0].update(number=1.1),
        lambda c: c["tests"][0].pop("max_score"),
        lambda c: c["leaderboard"][0].update(order="up"),
    ],
)
def test_what_does_not_fit_is_refused(report, spoil):
    content = gradescope.results(report)
    spoil(content)
    with pytest.raises(ValueError, match=r"results\.json"):
        gradescope.validate(content)


def test_writing_is_all_or_nothing(report, tmp_path):
    path = tmp_path / "deep" / "results.json"
    gradescope.write(report, path)
    assert json.loads(path.read_text())["score"] == 3
    assert path.stat().st_mode & 0o777 == 0o644
    bad = LeaderboardEntry(name="bytes", value=math.inf, order="asc")
    broken = report.with_result(report.tests[0].model_copy(update={"leaderboard": (bad,)}))
    with pytest.raises(ValueError, match="not finite"):
        gradescope.write(broken, path)
    assert json.loads(path.read_text())["score"] == 3
    assert [entry.name for entry in Path(path.parent).iterdir()] == ["results.json"]


def test_every_verdict_has_a_status(report):
    for verdict in Verdict:
        one = report.with_result(report.tests[1].model_copy(update={"verdict": verdict}))
        content = gradescope.results(one)
        gradescope.validate(content)
        passed = verdict is Verdict.PASSED
        assert content["tests"][1]["status"] == ("passed" if passed else "failed")
