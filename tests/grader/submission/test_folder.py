import os
from pathlib import Path

import pytest


def test_the_declared_files_and_no_others(reader, text_of) -> None:
    reader.put("softmax.py", "a = 1\n")
    reader.put("masks.py", "b = 2\n")
    for name in ("conftest.py", "torch.py", "sitecustomize.py", "Makefile", "x.pth"):
        reader.put(name)
    found = reader(files=("softmax.py", "masks.py"))
    assert found.files == ["softmax.py", "masks.py"]
    assert (found.notes, found.problems) == ([], [])
    assert text_of(found) == "a = 1\n"
    assert text_of(found, "masks.py") == "b = 2\n"


def test_a_nested_folder(reader, text_of) -> None:
    reader.put("homework 1/mine/softmax.py", "a = 1\n")
    found = reader()
    assert found.problems == []
    assert text_of(found) == "a = 1\n"


def test_where_a_file_was_taken_from_is_said_if_there_was_a_choice(reader) -> None:
    reader.put("src/softmax.py")
    reader.put("README.md")
    assert reader().notes == ["softmax.py was taken from src/"]


@pytest.mark.parametrize(
    "litter",
    [
        "__MACOSX/softmax.py",
        "__MACOSX/._softmax.py",
        "._softmax.py",
        ".DS_Store",
        ".ipynb_checkpoints/softmax.py",
        "src/.ipynb_checkpoints/softmax.ipynb",
        ".git/objects/softmax.py",
        "__pycache__/softmax.py",
        "venv/lib/softmax.py",
    ],
)
def test_litter_is_passed_over(reader, litter: str, text_of, only) -> None:
    reader.put(litter, "a = 2\n")
    assert only(reader()).message == "softmax.py is missing: there are no files at all"
    reader.put("softmax.py", "a = 1\n")
    found = reader()
    assert text_of(found) == "a = 1\n"
    assert found.problems == []


def test_several_candidates_are_all_named(reader, only) -> None:
    reader.put("softmax.py")
    reader.put("old/softmax.py")
    problem = only(reader())
    assert (problem.kind, problem.file) == ("refused", "softmax.py")
    assert "old/softmax.py, softmax.py" in problem.message


def test_one_ambiguous_file_does_not_keep_the_others(reader) -> None:
    reader.put("a/softmax.py")
    reader.put("b/softmax.py")
    reader.put("masks.py")
    found = reader(files=("softmax.py", "masks.py"))
    assert found.files == ["masks.py"]
    assert [problem.file for problem in found.problems] == ["softmax.py"]
    assert found.problem_of("masks.py") is None


@pytest.mark.parametrize("name", ["Softmax.py", "SOFTMAX.PY", "soft_max.py", "softmax (1).py"])
def test_a_renamed_file_is_recognised_but_not_taken(reader, only, name: str) -> None:
    reader.put(name)
    reader.put("plot.py")
    problem = only(reader())
    assert problem.kind == "missing file"
    assert problem.message.endswith(f"found {name}, expected softmax.py: rename it")


def test_the_only_python_file_is_taken_for_the_renamed_one(reader, only) -> None:
    reader.put("hw1.py")
    assert "found hw1.py, expected softmax.py: rename it" in only(reader()).message


def test_what_was_found_is_said(reader, only) -> None:
    for name in ("plot.py", "report.pdf", "data/notes.txt"):
        reader.put(name)
    message = only(reader(files=("softmax.py",))).message
    assert message.startswith("softmax.py is missing: found plot.py, expected")
    reader.put("train.py")
    message = only(reader()).message
    assert message == ("softmax.py is missing: found data/notes.txt, plot.py, report.pdf, train.py")


def test_a_long_list_is_cut(reader, only) -> None:
    for index in range(20):
        reader.put(f"data/{index:02}.txt")
    assert only(reader()).message.endswith("data/07.txt and 12 more")


def test_a_zip_inside_is_pointed_at(reader, only) -> None:
    reader.put("hw.zip", b"PK\x03\x04")
    assert only(reader()).message.endswith("found hw.zip; unpack hw.zip and hand in what is in it")


def test_an_empty_folder(reader, only) -> None:
    assert only(reader()).message == "softmax.py is missing: there are no files at all"


def test_a_linked_file_is_refused(reader, only, tmp_path: Path) -> None:
    (tmp_path / "solution.py").write_text("secret = 1\n")
    (reader.folder / "softmax.py").symlink_to(tmp_path / "solution.py")
    problem = only(reader())
    assert problem.kind == "refused"
    assert problem.message.startswith("softmax.py (a symbolic link) is not followed")


def test_a_linked_notebook_is_refused(reader, only, tmp_path: Path) -> None:
    (tmp_path / "other.ipynb").write_text("{}")
    (reader.folder / "softmax.ipynb").symlink_to(tmp_path / "other.ipynb")
    assert "(a symbolic link) is not followed" in only(reader()).message


def test_a_linked_folder_is_not_entered(reader, only, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "softmax.py").write_text("secret = 1\n")
    (reader.folder / "src").symlink_to(outside)
    problem = only(reader())
    assert problem.kind == "missing file"
    assert "found src (a symbolic link)" in problem.message


def test_a_loop_of_links(reader) -> None:
    reader.put("softmax.py")
    (reader.folder / "again").symlink_to(reader.folder)
    assert reader().files == ["softmax.py"]


def test_a_link_as_the_whole_submission(reader, only, tmp_path: Path) -> None:
    reader.put("softmax.py")
    link = tmp_path / "link"
    link.symlink_to(reader.folder)
    assert "link is a symbolic link" in only(reader(link)).message


def test_a_pipe_does_not_hold_up(reader, only) -> None:
    os.mkfifo(reader.folder / "softmax.py")
    assert only(reader()).message == "softmax.py is not an ordinary file"


def test_a_folder_with_a_files_name(reader, only) -> None:
    (reader.folder / "softmax.py").mkdir()
    reader.put("softmax.py/other.txt")
    assert only(reader()).kind == "missing file"


def test_a_file_too_large(reader, only) -> None:
    reader.put("softmax.py", "#" * 1001)
    problem = only(reader(file_bytes=1000))
    assert problem.kind == "refused"
    assert problem.message == "softmax.py has more than 1,000 bytes, which is the most there may be"
    assert reader(file_bytes=1001).problems == []


def test_files_too_large_together(reader) -> None:
    reader.put("softmax.py", "#" * 600)
    reader.put("masks.py", "#" * 600)
    found = reader(files=("softmax.py", "masks.py"), total_bytes=1000)
    assert found.files == ["softmax.py"]
    assert "1,000 bytes together" in found.problems[0].message


def test_too_many_files(reader, only) -> None:
    for index in range(30):
        reader.put(f"data/{index}.txt")
    reader.put("softmax.py")
    assert "more than 20 files" in only(reader(entries=20)).message
    assert reader(entries=40).files == ["softmax.py"]


def test_folders_too_deep(reader, only) -> None:
    reader.put("/".join("abcdef") + "/softmax.py")
    assert "more than 5 deep" in only(reader(depth=5)).message
    assert reader(depth=6).files == ["softmax.py"]


def test_names_that_are_no_text(reader) -> None:
    path = os.fsencode(reader.folder) + b"/\xff\n\x1b[2J.py"
    with open(path, "wb"):  # noqa: PTH123  (a path of bytes)
        pass
    message = reader().problems[0].message
    message.encode()
    assert message.isprintable()


def test_crlf_and_byte_order_mark(reader, text_of) -> None:
    reader.put("softmax.py", b"\xef\xbb\xbfa = 1\r\n")
    found = reader()
    assert text_of(found) == "a = 1\n"
    assert len(found.notes) == 2


def test_a_file_with_a_syntax_error_is_kept_with_its_problem(reader, text_of) -> None:
    reader.put("softmax.py", "a = = 1\n")
    reader.put("masks.py", "b = 2\n")
    found = reader(files=("softmax.py", "masks.py"))
    assert found.files == ["softmax.py", "masks.py"]
    assert text_of(found) == "a = = 1\n"
    problem = found.problem_of("softmax.py")
    assert problem is not None
    assert problem.kind == "import error"
    assert found.problem_of("masks.py") is None
    assert found.locate("softmax.py", 3) == "softmax.py, line 3"


def test_not_utf8(reader, only) -> None:
    reader.put("softmax.py", b"a = '\xff'\n")
    problem = only(reader())
    assert (problem.kind, problem.file) == ("import error", "softmax.py")
    assert "byte 5" in problem.message
