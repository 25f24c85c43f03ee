"""What a person sees in a terminal, and what a pipe gets."""

import contextlib
import io

import numpy as np
import pytest
from console import print_header, print_observations, print_table
from rich.cells import cell_len


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    """`terminal(function, …)`: what that prints where standard output is a terminal, 40 wide."""
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "40")

    def printed(function, *args):
        with contextlib.redirect_stdout(Terminal()) as stream:
            function(*args)
        return stream.getvalue()

    return printed


ROWS = [
    ["标准注意力", 1, 8192, 2 / 3, None, "64×200"],
    ["FA-2", 22, np.int64(512), np.float64(12), True, "8.75 GB"],
    ["[red]x[/red] | y", 333, 1_000_000, 1e-15, "两 种", "−3"],
]


def test_a_table_in_a_pipe(capsys):
    print_table(["方法", "n", "N", "x", "mixed", "blocks"], ROWS)
    assert capsys.readouterr().out == (
        "| 方法              |   n |         N |      x | mixed |  blocks |\n"
        "|-------------------|-----|-----------|--------|-------|---------|\n"
        "| 标准注意力        |   1 |     8,192 | 0.6667 | –     |  64×200 |\n"
        "| FA-2              |  22 |       512 |     12 | True  | 8.75 GB |\n"
        "| [red]x[/red] \\| y | 333 | 1,000,000 |  1e-15 | 两 种 |      −3 |\n"
    )


def test_every_line_of_a_table_is_equally_wide_on_the_screen(terminal):
    output = terminal(
        print_table, ["方法", "n", "N", "x", "blocks"], [row[:4] + row[5:] for row in ROWS]
    )
    assert {cell_len(plain(line)) for line in output.splitlines()} == {40}
    assert "标准" in output


def plain(line):
    """Without the escape sequences of colours."""
    while (start := line.find("\x1b")) >= 0:
        line = line[:start] + line[line.index("m", start) + 1 :]
    return line


def test_a_pipe_gets_no_colours_and_whole_lines(capsys):
    print_header("Heading " * 40)
    print_table(["a", "b"], [["x" * 300, "y"]])
    print_observations(["z " * 300])
    output = capsys.readouterr().out
    assert "\x1b" not in output
    assert "Heading " * 40 in output
    assert "x" * 300 + " | y |" in output
    assert "- " + "z " * 300 in output


def test_a_terminal_gets_colours_and_its_own_width(terminal):
    output = terminal(print_header, "演示 2：显存读写随序列长度变化（d = 64，M = 100 KB）")
    output += terminal(print_table, ["a", "b"], [["word " * 30, 1]])
    output += terminal(print_observations, ["word " * 30])
    assert "\x1b[1;36m" in output
    assert max(cell_len(plain(line)) for line in output.splitlines()) <= 40
    assert plain(output).count("word") == 60


def test_the_lines_of_a_title_stand_one_below_the_other(terminal):
    lines = terminal(print_table, ["bytes\n(MB)"], [[1]]).splitlines()
    assert [plain(line) for line in lines[:4]] == [
        "╭───────╮",
        "│ bytes │",
        "│  (MB) │",
        "├───────┤",
    ]


def test_header(capsys):
    print_header("演示 [1]")
    assert capsys.readouterr().out == "\n演示 [1]\n========\n"


def test_observations(capsys):
    print_observations(["**exact** attention, [not] an approximation", "second"])
    assert capsys.readouterr().out == (
        "\n- **exact** attention, [not] an approximation\n- second\n"
    )


def test_emphasis_in_a_terminal(terminal):
    output = terminal(print_observations, ["an **exact** sum", "2 ** 3 is 8"])
    assert "an \x1b[1mexact\x1b[0m sum" in output
    assert "2 ** 3 is 8" in output


@pytest.mark.parametrize("row", [[], ["a"], ["a", "b", "c"]], ids=len)
def test_a_row_of_another_length_is_refused(row):
    with pytest.raises(ValueError, match=f"row 2 has {len(row)} cells, but there are 2 headers"):
        print_table(["x", "y"], [["1", "2"], row])


def test_tables_without_rows_and_cells_of_several_lines(capsys):
    print_table(["a", "b"], [])
    print_table(["a", "b\n(c)"], [("one\ntwo", "")])
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "| a | b |",
        "|---|---|",
        "| a       | b (c) |",
        "|---------|-------|",
        "| one two |       |",
    ]
