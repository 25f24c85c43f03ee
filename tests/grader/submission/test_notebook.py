import json
import logging
import warnings
from typing import Any

import nbformat
import pytest
from nbformat import v3, v4


def code(source: str | list[str], *tags: str, **more: Any) -> dict[str, Any]:
    metadata = {"tags": list(tags)} if tags else {}
    cell = {"cell_type": "code", "source": source, "metadata": metadata, "outputs": []}
    return {**cell, "execution_count": None, **more}


def prose(source: str = "# Homework") -> dict[str, Any]:
    return {"cell_type": "markdown", "source": source, "metadata": {}}


def book(*cells: dict[str, Any], minor: int = 5) -> str:
    return json.dumps(
        {"nbformat": 4, "nbformat_minor": minor, "metadata": {}, "cells": list(cells)}
    )


@pytest.fixture
def handed_in(reader):
    def read(notebook: str | bytes, files=("softmax.py",), name: str = "hw.ipynb", **limits: int):
        return reader(reader.put(name, notebook), files, **limits)

    return read


def test_all_cells_if_none_is_tagged(handed_in, text_of) -> None:
    found = handed_in(book(prose(), code("a = 1"), code("b = 2\nc = 3"), code("  \n")))
    assert text_of(found) == "# cell 2\na = 1\n\n# cell 3\nb = 2\nc = 3\n"
    assert found.problems == []
    assert found.notes == [
        "softmax.py was made from cells of hw.ipynb",
        "no cell is tagged softmax.py, so all 2 code cells were taken; tag those to be graded, or "
        "begin them with `# file: softmax.py`",
    ]


@pytest.mark.parametrize(
    "mine",
    [
        code("b = 2", "softmax.py"),
        code("b = 2", "softmax"),
        code("b = 2", "todo", "softmax"),
        code("# file: softmax.py\nb = 2"),
        code("\n#file:softmax.py  \nb = 2"),
        code("%%writefile softmax.py\nb = 2"),
        code("%%writefile -a softmax.py\nb = 2"),
        code("%%writefile ./src/softmax.py\nb = 2"),
        code('%%file "softmax.py"\nb = 2'),
    ],
)
def test_only_the_cells_for_the_file(handed_in, text_of, mine: dict[str, Any]) -> None:
    found = handed_in(book(code("a = 1"), mine, code("# file: other.py\nc = 3")))
    assert found.problems == []
    assert found.notes == ["softmax.py was made from cells of hw.ipynb"]
    scope: dict[str, Any] = {}
    exec(text_of(found), scope)
    assert {"a", "b", "c"} & set(scope) == {"b"}


@pytest.mark.parametrize(
    "source",
    [
        "b = 2\n# file: softmax.py",
        "# file: softmax.py and more\nb = 2",
        "# profile: softmax.py\nb = 2",
        "%%writefile softmax.py extra.py\nb = 2",
        "%%writefile 'softmax.py\nb = 2",
        "%%writefiles softmax.py\nb = 2",
    ],
)
def test_what_does_not_name_a_file(handed_in, source: str, text_of) -> None:
    found = handed_in(book(code("a = 1", "softmax"), code(source)))
    assert text_of(found) == "# cell 1\na = 1\n"


def test_several_files_from_one_notebook(handed_in, text_of) -> None:
    found = handed_in(
        book(
            code("a = 1", "softmax"), code("b = 2", "masks.py"), code("c = 3", "softmax", "masks")
        ),
        files=("softmax.py", "masks.py"),
    )
    assert text_of(found) == "# cell 1\na = 1\n\n# cell 3\nc = 3\n"
    assert text_of(found, "masks.py") == "# cell 2\nb = 2\n\n# cell 3\nc = 3\n"
    assert found.cell_of("masks.py", 5) == (3, 1)


def test_several_files_and_no_tags(handed_in) -> None:
    found = handed_in(book(code("a = 1", "masks")), files=("softmax.py", "masks.py"))
    assert found.files == ["masks.py"]
    [problem] = found.problems
    assert (problem.kind, problem.file) == ("missing file", "softmax.py")
    assert "give its cells the tag softmax, or the first line `# file: softmax.py`" in (
        problem.message
    )


def test_no_code_at_all(handed_in, only) -> None:
    assert only(handed_in(book(prose()))).kind == "missing file"
    assert only(handed_in(book())).kind == "missing file"


def test_lines_lead_back_to_cells(handed_in, text_of) -> None:
    found = handed_in(book(prose(), code("a = 1\nb = 2"), prose(), code("c = 3")))
    lines = text_of(found).split("\n")
    for number, line in enumerate(lines, start=1):
        if "=" in line:
            cell, within = found.cell_of("softmax.py", number)
            assert line == {(2, 1): "a = 1", (2, 2): "b = 2", (4, 1): "c = 3"}[cell, within]
    assert found.locate("softmax.py", 3) == "cell 2, line 2"
    assert found.locate("softmax.py", 1) == "softmax.py, line 1"
    assert found.cell_of("softmax.py", 100) is None
    assert found.cell_of("softmax.py", 0) is None


def test_magics_are_dropped_and_said_with_their_place(handed_in, text_of) -> None:
    source = "%matplotlib inline\nimport torch\nif torch:\n    !nvidia-smi\ntorch.nn?"
    found = handed_in(book(prose(), code(source), code('s = """\n%d\n"""')))
    assert found.notes[2:] == [
        "cell 2, line 1: left out the line magic `%matplotlib inline`",
        "cell 2, line 4: left out the shell line `!nvidia-smi`",
        "cell 2, line 5: left out the help line `torch.nn?`",
    ]
    assert "    pass  # !nvidia-smi\n" in text_of(found)
    assert 's = """\n%d\n"""' in text_of(found)
    assert found.problems == []
    assert found.locate("softmax.py", 3) == "cell 2, line 2"


@pytest.mark.parametrize(
    "magic", ["%%time", "%%capture", "%%capture out --no-stderr", "%%prun -s cumtime", "\n%%time "]
)
def test_the_body_of_a_cell_that_is_timed_or_captured_stays(handed_in, text_of, magic) -> None:
    source = f"{magic}\ndef f():\n    return 1\n%time y = f()"
    found = handed_in(book(code(source), code("%%capture\n\n%%time\nz = y")))
    scope: dict[str, Any] = {}
    exec(text_of(found), scope)
    assert (scope["y"], scope["z"]) == (1, 1)
    line = 1 + magic.count("\n")
    assert found.notes[2:] == [
        f"cell 1, line {line}: left out the cell magic `{magic.strip()}`",
        f"cell 1, line {line + 3}: left out the line magic `%time`",
        "cell 2, line 1: left out the cell magic `%%capture`",
        "cell 2, line 3: left out the cell magic `%%time`",
    ]
    assert found.problems == []


@pytest.mark.parametrize("first", ["# file: softmax.py", "%%writefile softmax.py"])
def test_a_cell_that_is_timed_may_say_its_file(handed_in, text_of, first: str) -> None:
    found = handed_in(book(code(f"%%time\n{first}\na = 1"), code("%%time\nb = 2")))
    scope: dict[str, Any] = {}
    exec(text_of(found), scope)
    assert {"a", "b"} & set(scope) == {"a"}


def test_cells_with_another_cell_magic_are_dropped_and_said(handed_in, text_of) -> None:
    found = handed_in(
        book(code("%%bash\nrm -rf /"), code("\n%%timeit\nf(x)"), code("a = 1"), code("%%file b.py"))
    )
    assert text_of(found).replace("# cell 1\n\n# cell 2\n\n", "").startswith("# cell 3\na = 1\n")
    assert found.notes[2:] == [
        "cell 1: left out, as it begins with `%%bash`",
        "cell 2: left out, as it begins with `%%timeit`, which keeps nothing that it defines",
        "cell 4: left out, as it begins with `%%file b.py`",
    ]
    assert found.problems == []


def test_notes_are_bounded(handed_in) -> None:
    found = handed_in(book(code("\n".join(f"!echo {index}" for index in range(1000)))))
    assert len(found.notes) < 30
    assert found.notes[-1].endswith("more lines and cells were left out")


def test_input_is_not_our_business(handed_in) -> None:
    assert handed_in(book(code("name = input('who? ')"))).problems == []


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (
            [prose(), code("a = 1"), code("b = 2\n\nc = = 3")],
            "cell 3, line 3: SyntaxError: invalid syntax\n    c = = 3\n        ^",
        ),
        ([code("a = (1,"), code("b = 2")], "cell 1, line 1: SyntaxError: '(' was never closed"),
        ([code("def f():"), code("b = 2")], "cell 1, line 1: IndentationError: expected an"),
        ([code('s = """'), code("b = 2")], "cell 1, line 1: SyntaxError: unterminated"),
        ([code("a = 1"), code("  b = 2")], "cell 2, line 1: IndentationError: unexpected indent"),
        ([code("%time f()\nfor"), code("b")], "cell 1, line 2: SyntaxError"),
        (
            [code("a = 1"), code("from __future__ import annotations")],
            "cell 2, line 1: SyntaxError: from __future__ imports must occur at the beginning",
        ),
        ([code("a = 1\nb = '\0'")], "cell 1, line 2: a NUL character"),
        ([code("a = 1\nb = '\ud83d'")], "cell 1, line 2: half of a surrogate pair"),
    ],
)
def test_syntax_errors_are_located_by_cell(handed_in, cells, message: str) -> None:
    found = handed_in(book(*cells))
    [problem] = found.problems
    assert (problem.kind, problem.file) == ("import error", "softmax.py")
    assert problem.message.startswith(message)
    assert found.files == ["softmax.py"]


def test_a_definition_may_be_split_over_written_cells(handed_in, text_of) -> None:
    """Each by itself is no Python; together they are, and that is what counts."""
    found = handed_in(
        book(
            code("%%writefile softmax.py\ndef f():\n    if True:"),
            code("%%writefile -a softmax.py\n        return 1"),
        )
    )
    assert found.problems == []


def test_source_as_a_list_of_lines(handed_in, text_of) -> None:
    found = handed_in(book(code(["a = 1\r\n", "b = 2\r\n"])))
    assert text_of(found) == "# cell 1\na = 1\nb = 2\n\n"


def test_version_3(handed_in, text_of) -> None:
    cells = [v3.new_text_cell("markdown", source="# Homework"), v3.new_code_cell("a = 1\n!ls")]
    cells.append(v3.new_code_cell("b = 2", metadata={"tags": ["softmax"]}))
    notebook = v3.new_notebook(worksheets=[v3.new_worksheet(cells=cells)])
    text = json.dumps(notebook)
    assert json.loads(text)["nbformat"] == 3
    found = handed_in(text)
    assert text_of(found) == "# cell 3\nb = 2\n"
    assert found.problems == []


def test_version_3_without_tags(handed_in, text_of) -> None:
    cells = [v3.new_code_cell("a = 1\n%pylab"), v3.new_code_cell("b = = 2")]
    found = handed_in(json.dumps(v3.new_notebook(worksheets=[v3.new_worksheet(cells=cells)])))
    assert found.notes[-1] == "cell 1, line 2: left out the line magic `%pylab`"
    assert found.problems[0].message.startswith("cell 2, line 1: SyntaxError")


def test_version_2(handed_in, text_of) -> None:
    cell = {"cell_type": "code", "input": "a = 1", "language": "python", "outputs": []}
    text = json.dumps({"nbformat": 2, "metadata": {}, "worksheets": [{"cells": [cell]}]})
    assert text_of(handed_in(text)) == "# cell 1\na = 1\n"


def test_as_nbformat_writes_it(handed_in, text_of) -> None:
    notebook = v4.new_notebook(cells=[v4.new_markdown_cell("σ"), v4.new_code_cell("a = 'σ'")])
    nbformat.validate(notebook)
    assert text_of(handed_in(nbformat.writes(notebook))) == "# cell 2\na = 'σ'\n"


@pytest.mark.parametrize("minor", [0, 2, 4, 5, 99])
@pytest.mark.parametrize("ids", [("same", "same"), ("", "b"), (None, None)])
def test_cell_ids_do_not_matter_and_nothing_is_warned_of(
    handed_in, text_of, caplog, capfd, minor: int, ids: tuple[str | None, ...]
) -> None:
    more = [{} if one is None else {"id": one} for one in ids]
    notebook = book(code("a = 1", **more[0]), code("b = 2", **more[1]), minor=minor)
    with warnings.catch_warnings(), caplog.at_level(logging.DEBUG):
        warnings.simplefilter("error")
        found = handed_in(notebook)
    assert text_of(found) == "# cell 1\na = 1\n\n# cell 2\nb = 2\n"
    assert found.problems == []
    assert caplog.records == []
    assert capfd.readouterr() == ("", "")


def test_an_invalid_version_3_is_mended_quietly(handed_in, text_of, caplog, capfd) -> None:
    cell = {"cell_type": "code", "input": "a = 1", "outputs": [], "surprise": 1, "language": 7}
    text = json.dumps({"nbformat": 3, "worksheets": [{"cells": [cell]}], "metadata": {}})
    assert text_of(handed_in(text)) == "# cell 1\na = 1\n"
    assert caplog.records == []
    assert capfd.readouterr() == ("", "")


def test_outputs_do_not_matter(handed_in, text_of) -> None:
    """Such as are not valid, or large."""
    cell = code("a = 1", outputs=[{"output_type": "nonsense", "data": "x" * 2_000_000}])
    assert text_of(handed_in(book(cell))) == "# cell 1\na = 1\n"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a = 1",
        "[]",
        "null",
        "{}",
        '{"nbformat": 4}',
        '{"nbformat": 4, "cells": 7}',
        '{"nbformat": 4, "cells": [7]}',
        '{"nbformat": 4, "cells": [{}]}',
        '{"nbformat": 4, "cells": [{"cell_type": "code"}]}',
        '{"nbformat": 4, "cells": [{"cell_type": "code", "source": 7}]}',
        '{"nbformat": 4, "cells": [{"cell_type": "code", "source": [7]}]}',
        '{"nbformat": 4, "cells": [{"cell_type": "code", "source": "", "metadata": 7}]}',
        '{"nbformat": 5, "cells": []}',
        '{"nbformat": "4", "cells": []}',
        '{"nbformat": -1, "cells": []}',
        '{"nbformat": 3, "worksheets": 7}',
        '{"nbformat": 3, "worksheets": [{"cells": [{}]}]}',
        '{"nbformat": 9999999999999999999999, "cells": []}',
        '{"nbformat": ' + "9" * 10_000 + "}",
        "[" * 100_000,
        '{"a":' * 100_000,
    ],
)
def test_what_is_no_notebook(handed_in, only, text: str) -> None:
    problem = only(handed_in(text))
    assert problem.kind == "import error"
    assert problem.message.startswith("hw.ipynb cannot be read as a notebook (")
    assert "\n" not in problem.message
    assert len(problem.message) < 300


def test_not_utf8(handed_in, only) -> None:
    problem = only(handed_in(b'{"nbformat": 4, "x": "\xff"}'))
    assert problem.kind == "import error"
    assert "hw.ipynb is not UTF-8: byte 22" in problem.message


def test_with_crlf_and_byte_order_mark(handed_in, text_of) -> None:
    text = book(code("a = 1")).replace(", ", ",\r\n")
    found = handed_in(b"\xef\xbb\xbf" + text.encode())
    assert text_of(found) == "# cell 1\na = 1\n"


def test_too_large(handed_in, only) -> None:
    notebook = book(code("#" * 2000))
    message = only(handed_in(notebook, notebook_bytes=1000)).message
    assert "more than 1,000 bytes" in message
    assert "clear its outputs" in message
    message = only(handed_in(notebook, file_bytes=1000)).message
    assert "the cells for softmax.py have more than 1,000 characters" in message


def test_too_many_cells(handed_in, only) -> None:
    cell = '{"cell_type":"code","source":""}'
    text = f'{{"nbformat":4,"cells":[{",".join([cell] * 5_001)}]}}'
    assert "it has 5,001 cells, and 5,000 are the most" in only(handed_in(text)).message
    text = f'{{"nbformat":3,"worksheets":[{{"cells":[{",".join([cell] * 5_001)}]}}]}}'
    assert "it has 5,001 cells, and 5,000 are the most" in only(handed_in(text)).message


def test_a_coding_comment_in_a_cell(handed_in) -> None:
    """It would be the file's second line, and so be obeyed when the file is imported."""
    found = handed_in(book(code("# -*- coding: latin-1 -*-\na = 'é'")))
    assert "declares the encoding" in found.problems[0].message


def test_in_place_of_the_file_in_a_folder(reader, text_of) -> None:
    reader.put("hw1/mine.ipynb", book(code("a = 1")))
    reader.put("hw1/README.md")
    found = reader()
    assert text_of(found) == "# cell 1\na = 1\n"
    assert found.notes[0] == "softmax.py was made from cells of hw1/mine.ipynb"


def test_the_python_file_goes_first(reader, text_of) -> None:
    reader.put("softmax.ipynb", book(code("a = 1")))
    reader.put("softmax.py", "a = 2\n")
    found = reader()
    assert text_of(found) == "a = 2\n"
    assert found.notes == ["softmax.ipynb was passed over, as there is a softmax.py"]


def test_of_several_notebooks_the_one_of_the_same_name(reader, text_of) -> None:
    reader.put("scratch.ipynb", book(code("a = 2")))
    reader.put("softmax.ipynb", book(code("a = 1")))
    assert text_of(reader()) == "# cell 1\na = 1\n"


def test_several_notebooks(reader, only) -> None:
    reader.put("a.ipynb", book(code("a = 2")))
    reader.put("b.ipynb", book(code("a = 1")))
    problem = only(reader())
    assert problem.kind == "refused"
    assert "several notebooks: a.ipynb, b.ipynb; hand in just the one to be graded, or call it" in (
        problem.message
    )


def test_suffix_in_capitals(handed_in, text_of) -> None:
    assert text_of(handed_in(book(code("a = 1")), name="HW.IPYNB")) == "# cell 1\na = 1\n"
