"""results.json, in the format that Gradescope's harness reads.

Format: https://gradescope-autograders.readthedocs.io/en/latest/specs/#output-format

Nothing that a student may not see is in it: of a hidden test there are its verdict and points, but
no message, measurement or print. (What is hidden today can be published with one click tomorrow.)
"""

from __future__ import annotations

import io
import json
import os
import re
import tempfile
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
from rich.console import Console

from grader.report import tables
from grader.verdict import GradeReport, TestResult, Verdict

#: Gradescope cuts an output at 100,000 characters; ours end before that, and say so.
MOST_CHARACTERS = 20_000
#: Columns of the text tables.
_WIDTH = 130
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")

#: What may be said of a hidden test: the verdict in a sentence, nothing of what was measured.
_HIDDEN = "This test is hidden: its inputs and what it measured are not shown."


def results(report: GradeReport) -> dict[str, Any]:
    """The content of results.json.

    Times and memory are under `execution_time` and `extra_data.resources`; all else depends only
    on the submission and the seed.
    """
    leaderboard = [
        entry.model_dump() for test in report.tests if test.passed for entry in test.leaderboard
    ]
    content: dict[str, Any] = {
        "score": report.points,
        "execution_time": round(report.seconds),
        "output": _bounded(_summary(report)),
        "output_format": "text",
        "test_output_format": "text",
        "test_name_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "extra_data": {
            "assignment": report.assignment,
            "seed": report.seed,
            "max_score": report.max_points,
            "protections": report.protections,
            "resources": {
                test.number: {"seconds": round(test.seconds, 3), "peak_memory": test.peak_memory}
                for test in report.tests
            },
        },
        "tests": [_test(test, report) for test in report.tests],
    }
    if leaderboard:
        content["leaderboard"] = leaderboard
    return content


def _test(test: TestResult, report: GradeReport) -> dict[str, Any]:
    task = next(task for task in report.tasks if task.id == test.task)
    return {
        "number": test.number,
        "name": _bounded(f"{task.title}: {test.title}", 200),
        "score": test.points,
        "max_score": test.max_points,
        "status": "passed" if test.passed else "failed",
        "output": _bounded(_output(test)),
        "output_format": "text",
        "visibility": test.visibility,
        "tags": [f"task {test.task}", test.verdict.value],
        "extra_data": {"verdict": test.verdict.value},
    }


def _summary(report: GradeReport) -> str:
    parts = [_text(tables.table("", tables.TASK_HEADERS, tables.task_rows(report), plain=True))]
    if report.grader_errors:
        numbers = ", ".join(test.number for test in report.grader_errors)
        parts.append(
            f"THE GRADER FAILED on {numbers}: that is no fault of this submission. "
            "Please tell the course staff."
        )
    parts += [f"problem: {problem}" for problem in report.problems]
    parts += [f"note: {note}" for note in report.notes]
    return "\n".join(parts)


def _output(test: TestResult) -> str:
    """What a student reads below a test."""
    if test.hidden:
        return f"{test.verdict.value}\n{_HIDDEN}"
    parts = [test.verdict.value]
    if test.message:
        if test.verdict is Verdict.GRADER_ERROR:
            # A traceback of the grader's own may quote expected values.
            parts.append("The grader failed here; that is no fault of this submission.")
        else:
            parts.append(test.message)
    if outputs := tables.output_rows([test]):
        parts.append(_text(tables.table("", tables.OUTPUT_HEADERS, outputs, plain=True)))
    if traffic := tables.traffic_rows([test]):
        parts.append(_text(tables.table("", tables.TRAFFIC_HEADERS, traffic, plain=True)))
    if test.printed:
        parts.append(f"printed by the submission:\n{test.printed}")
    return "\n".join(parts)


def _text(table: Any) -> str:
    stream = io.StringIO()
    Console(file=stream, width=_WIDTH, color_system=None, force_terminal=False).print(table)
    return "\n".join(line.rstrip() for line in stream.getvalue().rstrip().splitlines())


def _bounded(text: str, most: int = MOST_CHARACTERS) -> str:
    text = _CONTROL.sub("�", text)
    return text if len(text) <= most else text[: most - 12] + " … (cut off)"


def schema() -> dict[str, Any]:
    """The JSON Schema of results.json."""
    text = resources.files("grader.report").joinpath("results.schema.json").read_text("utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def validate(content: Any) -> None:
    """Checks results against the format.

    Raises:
        ValueError: they do not fit; the text says where and why.
    """
    validator = jsonschema.Draft202012Validator(schema())
    errors = sorted(validator.iter_errors(content), key=lambda error: list(error.absolute_path))
    if errors:
        where = "/".join(map(str, errors[0].absolute_path)) or "the top"
        raise ValueError(f"results.json, at {where}: {errors[0].message}")
    try:
        json.dumps(content, allow_nan=False)
    except ValueError as error:
        raise ValueError("results.json holds a number that is not finite") from error


def write(report: GradeReport, path: Path) -> None:
    """Writes results.json, all of it or nothing: a reader never sees half a file.

    Raises:
        ValueError: the report does not fit the format.
        OSError: the file cannot be written.
    """
    content = results(report)
    validate(content)
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
