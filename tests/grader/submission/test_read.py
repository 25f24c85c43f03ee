import os
from pathlib import Path

import pytest

from grader.submission import read


def test_a_single_file(reader, text_of) -> None:
    found = reader(reader.put("softmax.py", "a = 1\n"))
    assert text_of(found) == "a = 1\n"
    assert (found.notes, found.problems) == ([], [])


@pytest.mark.parametrize("name", ["hw1.py", "Softmax.PY", "softmax (2).py"])
def test_a_single_file_of_another_name_is_taken_and_said(reader, text_of, name: str) -> None:
    found = reader(reader.put(name, "a = 1\n"))
    assert text_of(found) == "a = 1\n"
    assert found.notes == [f"{name} was taken as softmax.py"]
    assert found.problems == []


def test_a_single_file_where_several_are_declared(reader) -> None:
    found = reader(reader.put("masks.py"), files=("softmax.py", "masks.py"))
    assert found.files == ["masks.py"]
    assert [(one.kind, one.file) for one in found.problems] == [("missing file", "softmax.py")]


def test_a_single_file_of_another_name_where_several_are_declared(reader) -> None:
    found = reader(reader.put("mask.py"), files=("softmax.py", "masks.py"))
    assert found.files == []
    assert found.problems[1].message.endswith("found mask.py, expected masks.py: rename it")


@pytest.mark.parametrize("name", ["softmax.tar.gz", "softmax.rar", "softmax.txt", "softmax"])
def test_another_kind_of_file(reader, only, name: str) -> None:
    problem = only(reader(reader.put(name, b"\x1f\x8b")))
    assert problem.kind == "refused"
    assert problem.message == (f"{name} is not a folder, a zip, a .py file or a notebook (.ipynb)")


@pytest.mark.parametrize("name", ["nothing", "n" * 300, "nul\0"])
def test_nothing_there(reader, only, name: str) -> None:
    problem = only(reader(reader.folder / name))
    assert problem.kind == "missing file"
    assert problem.file is None
    assert "there is no" in problem.message


def test_a_device(reader, only, tmp_path: Path) -> None:
    pipe = tmp_path / "softmax.py"
    os.mkfifo(pipe)
    assert only(reader(pipe)).message == "softmax.py is neither a file nor a folder"


def test_a_problem_about_all_is_one_of_each_file(reader) -> None:
    found = reader(reader.folder / "nothing", files=("softmax.py", "masks.py"))
    assert found.problem_of("masks.py") == found.problems[0]


def test_a_folder_in_use_is_not_written_to(reader, tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "rest.py").touch()
    with pytest.raises(ValueError, match="is not empty"):
        read(reader.put("softmax.py"), reader.assignment("softmax.py"), tmp_path / "x")
