import io

from rich.console import Console

from grader.report import terminal
from grader.verdict import Verdict


def shown(report, **options):
    stream = io.StringIO()
    terminal.show(report, Console(file=stream, width=140, **options))
    return stream.getvalue()


def test_a_pipe_gets_plain_text(report):
    text = shown(report)
    assert "\x1b[" not in text.replace("\x1b[31m", "")  # the student's own escape is not ours
    assert text.isascii() or "│" not in text
    assert "Task 1: Double" in text
    assert "1.1   passed        3/3  Any width" in text
    assert "| 1.1  | y " in text
    assert "| 1    | Double | 3 / 8.5 |" in text
    assert "note: line ends were changed" in text
    assert "seed 5, 12.3 s" in text


def test_a_terminal_gets_colour(report):
    assert "\x1b[32mpassed" in shown(report, force_terminal=True, color_system="standard")


def test_a_message_that_repeats_is_shown_once(report):
    same = {"verdict": Verdict.NOT_STARTED, "message": "not started: toy 1: double it"}
    for test in report.tests[:3]:
        report = report.with_result(test.model_copy(update=same))
    text = shown(report)
    assert text.count("toy 1: double it") == 1
    assert text.count("as 1.1") == 2


def test_a_message_or_a_print_that_repeats_in_another_task_is_shown_once(report):
    same = {"verdict": Verdict.IMPORT_ERROR, "message": "no module x", "printed": "hello student"}
    for test in report.tests:
        report = report.with_result(test.model_copy(update=same))
    task = report.tasks[0].model_copy(update={"id": "2"})
    tests = tuple(test.model_copy(update={"number": f"2{test.number[1:]}"}) for test in task.tests)
    report = report.model_copy(
        update={"tasks": (*report.tasks, task.model_copy(update={"tests": tests}))}
    )
    text = shown(report)
    assert text.count("no module x") == text.count("hello student") == 1
    assert text.count("as 1.1") == 2 * (len(report.tests) - 1)


def test_brackets_in_a_message_are_no_markup(report):
    test = report.tests[1].model_copy(update={"message": "x[/bold] y[0, 3]"})
    assert "x[/bold] y[0, 3]" in shown(report.with_result(test))
