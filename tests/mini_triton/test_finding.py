"""Findings as people read them."""

from __future__ import annotations

from mini_triton import Finding, Location
from mini_triton.finding import MOST_REPORTED, Place, distinct, in_words, times

SOURCE = {
    ("/home/me/rms.py", 9): "    tl.store(dg_ptr + cols, dg + dy, mask=mask)\n",
    ("/home/me/rms.py", 8): "    dg = rows.load(dg_ptr)",
}


def source(file: str, line: int) -> str:
    return SOURCE.get((file, line), "")


def found(**changes: object) -> Finding:
    where = Location("/home/me/rms.py", 9)
    called = Location("/home/me/rms.py", 8, Location("/home/me/rms.py", 20))
    parts: dict[str, object] = {
        "check": "races",
        "message": "dg_ptr[3] is loaded and stored",
        "kernel": "bwd",
        "places": (
            Place.of(where, "store", "program (0, 0, 0) stores dg_ptr[3]"),
            Place.of(called, "load", "program (1, 0, 0) loads dg_ptr[3]"),
        ),
        "tensor": "dg_ptr",
        "index": (3,),
        "programs": ((0, 0, 0), (1, 0, 0)),
        "why": "chance",
        "hint": "use atomics",
    }
    return Finding(**(parts | changes))  # type: ignore[arg-type]


def test_a_report_shows_both_lines_with_the_access_underlined() -> None:
    assert found().report(source) == "\n".join(
        [
            "race: dg_ptr[3] is loaded and stored",
            "  --> rms.py:9, kernel bwd",
            "    9 |     tl.store(dg_ptr + cols, dg + dy, mask=mask)",
            "      |     ^^^^^^^^ program (0, 0, 0) stores dg_ptr[3]",
            "  --> rms.py:8, called at line 20",
            "    8 |     dg = rows.load(dg_ptr)",
            "      |          ^^^^^^^^^ program (1, 0, 0) loads dg_ptr[3]",
            "  why: chance",
            "  do: use atomics",
        ]
    )
    assert (found().file, found().line, found().other_line) == ("/home/me/rms.py", 9, 8)


def test_facts_come_before_what_to_do() -> None:
    report = found(places=(), facts=(("x_ptr", "shape (2,)"),), why="").report(source)
    assert report.splitlines()[2:] == ["  x_ptr: shape (2,)", "  do: use atomics"]


def test_what_is_about_no_word_underlines_the_code_without_its_comment() -> None:
    place = Place("/home/me/rms.py", 1, "", "here")
    lines = found(places=(place,)).report(lambda *_: "    while k < n:  # to the end").splitlines()
    assert lines[2:4] == ["    1 |     while k < n:  # to the end", "      |     ^^^^^^^^^^^^ here"]


def test_without_source_it_says_what_the_access_did() -> None:
    report = found(why="", hint="").report(lambda file, line: "")
    assert report.splitlines()[1:3] == [
        "  --> rms.py:9, kernel bwd",
        "    program (0, 0, 0) stores dg_ptr[3]",
    ]


def test_a_forged_file_name_cannot_repaint_a_terminal() -> None:
    place = Place("/tmp/\x1b[2J\nx.py", 1, "load", "loads")
    report = found(places=(place,)).report(source)
    assert "\x1b" not in report
    assert report.splitlines()[1] == "  --> \ufffd[2J\ufffdx.py:1, kernel bwd"


def test_a_finding_without_places() -> None:
    nowhere = found(places=(), why="", hint="")
    assert (nowhere.file, nowhere.line, nowhere.other_line) == ("", 0, 0)
    assert nowhere.report(source) == "race: dg_ptr[3] is loaded and stored\n  --> kernel bwd"


def test_plain_data_reads_back_the_same() -> None:
    one = found(facts=(("x_ptr", "shape (2,)"),))
    assert Finding.from_dict(one.to_dict()) == one


def test_a_fault_is_reported_once() -> None:
    same = [found(), found(index=(4,), message="dg_ptr[4] is loaded and stored")]
    assert distinct([*same, found(tensor="x_ptr")]) == [found(), found(tensor="x_ptr")]
    many = [found(tensor=f"t{number}") for number in range(MOST_REPORTED + 2)]
    assert in_words(many, source).count("race:") == MOST_REPORTED
    assert in_words(many, source).endswith("and 2 findings more")
    assert in_words([], source) == ""


def test_how_many_elements_more() -> None:
    assert (times(1), times(1001)) == ("", " (and 1,000 more)")
