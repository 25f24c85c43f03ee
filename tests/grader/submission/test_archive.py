import io
import stat
import struct
import zipfile
from pathlib import Path

import pytest

from grader.submission import read


class Zip:
    """Builds archives in memory; those that `zipfile` would not write are patched afterwards."""

    def __init__(self) -> None:
        self._bytes = io.BytesIO()
        self._archive = zipfile.ZipFile(self._bytes, "w", zipfile.ZIP_DEFLATED)

    def add(self, name: str, content: str | bytes = "x = 1\n", *, mode: int = 0, **info) -> "Zip":
        member = zipfile.ZipInfo(name)
        member.compress_type = info.get("compress_type", zipfile.ZIP_DEFLATED)
        member.external_attr = mode << 16
        # ZipInfo normalises names on construction; a forger's tool does not.
        member.filename = name
        self._archive.writestr(member, content)
        return self

    def data(self) -> bytes:
        self._archive.close()
        return self._bytes.getvalue()


@pytest.fixture
def handed_in(reader):
    def read(archive: "Zip | bytes", name: str = "hw.zip", files=("softmax.py",), **limits: int):
        data = archive if isinstance(archive, bytes) else archive.data()
        return reader(reader.put(name, data), files, **limits)

    return read


@pytest.fixture
def refusal(handed_in, only):
    def refuse(archive: "Zip | bytes", **limits: int) -> str:
        problem = only(handed_in(archive, **limits))
        assert problem.kind == "refused"
        assert "Traceback" not in problem.message
        return problem.message

    return refuse


@pytest.mark.parametrize("name", ["hw.zip", "HW.ZIP", "submission"])
def test_the_declared_file(handed_in, text_of, name: str) -> None:
    found = handed_in(Zip().add("softmax.py", "a = 1\n").add("torch.py").add("notes.txt"), name)
    assert text_of(found) == "a = 1\n"
    assert (found.notes, found.problems) == ([], [])


def test_as_macos_makes_it(handed_in, text_of) -> None:
    archive = Zip().add("hw 1/", b"", mode=stat.S_IFDIR | 0o755)
    archive.add("hw 1/softmax.py", b"\xef\xbb\xbfa = 1\r\n", mode=stat.S_IFREG | 0o644)
    archive.add("__MACOSX/hw 1/._softmax.py", b"\0\5\x16\7")
    archive.add("hw 1/.DS_Store", b"\0")
    found = handed_in(archive)
    assert text_of(found) == "a = 1\n"
    assert found.problems == []


def test_stored_members(handed_in, text_of) -> None:
    found = handed_in(Zip().add("softmax.py", "a = 1\n", compress_type=zipfile.ZIP_STORED))
    assert text_of(found) == "a = 1\n"


def test_a_file_missing_in_a_zip(handed_in, only) -> None:
    problem = only(handed_in(Zip().add("hw/soft_max.py")))
    assert problem.kind == "missing file"
    assert problem.message.endswith("found hw/soft_max.py, expected softmax.py: rename it")


def test_several_candidates(refusal) -> None:
    assert "a/softmax.py, b/softmax.py" in refusal(Zip().add("a/softmax.py").add("b/softmax.py"))


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("../softmax.py", "leads out of the zip"),
        ("a/../../softmax.py", "leads out of the zip"),
        ("a/../softmax.py", "leads out of the zip"),
        ("..", "leads out of the zip"),
        ("/tmp/softmax.py", "has an absolute path"),
        ("C:/softmax.py", "has an absolute path"),
        ("c:softmax.py", "has an absolute path"),
        ("a\\softmax.py", "has a backslash"),
        ("..\\softmax.py", "has a backslash"),
        (".", "has no name"),
    ],
)
def test_names_that_lead_elsewhere(refusal, name: str, what: str) -> None:
    message = refusal(Zip().add("softmax.py").add(name))
    assert what in message
    assert message.startswith(repr(name)[:3])


def test_a_name_with_a_nul(refusal) -> None:
    data = Zip().add("softmax.py").add("softmax.py#.txt").data()
    assert "has a NUL character" in refusal(data.replace(b"softmax.py#.txt", b"softmax.py\0.txt"))


def test_litter_may_not_lead_elsewhere_either(refusal) -> None:
    assert "leads out" in refusal(Zip().add("softmax.py").add("__MACOSX/../../x"))


@pytest.mark.parametrize("name", ["softmax.py", "other"])
def test_symbolic_links(refusal, name: str) -> None:
    archive = Zip().add(name, "/etc/passwd", mode=stat.S_IFLNK | 0o777)
    assert refusal(archive).startswith(f"{name} in the zip is a symbolic link")


@pytest.mark.parametrize("kind", [stat.S_IFIFO, stat.S_IFCHR, stat.S_IFSOCK])
def test_special_files(refusal, kind: int) -> None:
    archive = Zip().add("softmax.py", b"", mode=kind | 0o644)
    assert "is not an ordinary file" in refusal(archive)


def patch_member(data: bytes, offset: int, value: bytes, local: int | None = None) -> bytes:
    """Changes the first member's record in the central directory, and its local header."""
    patched = bytearray(data)
    at = data.index(b"PK\x01\x02")
    patched[at + offset : at + offset + len(value)] = value
    if local is not None:
        patched[local : local + len(value)] = value
    return bytes(patched)


def test_encrypted_members(refusal) -> None:
    data = Zip().add("softmax.py").data()
    message = refusal(patch_member(data, 8, struct.pack("<H", 1), local=6))
    assert "softmax.py in the zip is encrypted; make a zip without a password" in message


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_methods_that_cannot_be_bounded(refusal, method: int) -> None:
    archive = Zip().add("softmax.py", b"#" * 100_000, compress_type=method)
    assert f"compressed by method {method}" in refusal(archive)


def test_a_bomb(refusal) -> None:
    message = refusal(Zip().add("softmax.py", b"\0" * (8 << 20)))
    assert "as only a zip bomb does" in message


def test_a_bomb_beside_the_file(refusal) -> None:
    assert "bomb" in refusal(Zip().add("softmax.py").add("data.bin", b"\0" * (8 << 20)))


def test_small_files_may_be_repetitive(handed_in) -> None:
    found = handed_in(Zip().add("softmax.py", "# no entropy here\n" * 14_000))
    assert found.problems == []


def test_a_bomb_that_lies_about_its_size(refusal) -> None:
    """Ten bytes are announced, 8 MiB would come: no more than announced are ever decompressed."""
    data = Zip().add("softmax.py", b"#" * (8 << 20)).data()
    message = refusal(patch_member(data, 24, struct.pack("<I", 10), local=22))
    assert message.startswith("softmax.py in the zip is damaged")


def test_too_large_in_total(refusal) -> None:
    archive = Zip()
    for index in range(5):
        archive.add(f"{index}.txt", b"ab" * 150)
    assert "would unpack to 1,500 bytes" in refusal(archive, total_bytes=1499)


def test_too_large_a_file(refusal) -> None:
    archive = Zip().add("softmax.py", b"#" * 1001)
    assert "softmax.py has more than 1,000 bytes" in refusal(archive, file_bytes=1000)


def test_too_large_a_zip(refusal) -> None:
    archive = Zip().add("softmax.py", bytes(range(256)), compress_type=zipfile.ZIP_STORED)
    assert "the most there may be are 200" in refusal(archive, archive_bytes=200)


def test_too_many_members(refusal, handed_in) -> None:
    archive = Zip().add("softmax.py")
    for index in range(29):
        archive.add(f"{index}.txt", b"")
    data = archive.data()
    assert "more than 29 files" in refusal(data, entries=29)
    assert handed_in(data, entries=30).problems == []


def test_members_are_counted_before_any_is_made_an_object(refusal, monkeypatch) -> None:
    def unreachable(*_: object) -> None:
        raise AssertionError("zipfile was asked")

    data = Zip().add("softmax.py").add("b.txt").data()
    monkeypatch.setattr(zipfile, "ZipFile", unreachable)
    assert "more than 1 files" in refusal(data, entries=1)


def test_the_same_name_twice(refusal) -> None:
    with pytest.warns(UserWarning, match="Duplicate name"):
        archive = Zip().add("softmax.py", "a = 1\n").add("softmax.py", "a = 2\n")
    assert refusal(archive).startswith("softmax.py is in the zip 2 times")


def test_the_same_name_spelt_twice(refusal) -> None:
    archive = Zip().add("a/softmax.py").add("a//softmax.py")
    assert refusal(archive).startswith("a/softmax.py is in the zip 2 times")


def corrupt() -> dict[str, bytes]:
    sound = Zip().add("softmax.py", "x = 1\n" * 50).data()
    start = 30 + len("softmax.py")
    stored = Zip().add("softmax.py", "x = 1\n", compress_type=zipfile.ZIP_STORED).data()
    return {
        "empty": b"",
        "text": b"x = 1\n",
        "signature alone": b"PK\x03\x04",
        "end cut off": sound[:-30],
        "beginning cut off": sound[20:],
        "deflated garbage": sound[:start] + b"\xff" * 8 + sound[start + 8 :],
        "wrong checksum": stored.replace(b"x = 1", b"x = 2"),
        "local name differs": sound.replace(b"softmax.py", b"hardmax.py", 1),
        "central directory elsewhere": sound[:-6] + struct.pack("<I", 1 << 31) + sound[-2:],
        "name is no UTF-8": patch_member(
            sound.replace(b"softmax.py", b"\xff\xfeftmax.py"), 8, struct.pack("<H", 1 << 11), 6
        ),
        "unknown version": patch_member(sound, 6, struct.pack("<H", 999)),
        "local header elsewhere": patch_member(sound, 42, struct.pack("<I", 1 << 30)),
    }


@pytest.mark.parametrize("what", corrupt())
def test_damaged_archives(refusal, what: str) -> None:
    assert "damaged" in refusal(corrupt()[what])


@pytest.mark.parametrize("length", range(0, 126, 7))
def test_an_archive_cut_anywhere(refusal, length: int) -> None:
    data = Zip().add("softmax.py").data()
    assert length < len(data)
    assert "damaged" in refusal(data[:length])


def test_every_byte_changed(reader, tmp_path: Path) -> None:
    """Whatever happens to an archive, it is read or refused, and never raises."""
    data = Zip().add("softmax.py", "a = 1\n").data()
    declared = reader.assignment("softmax.py")
    outcomes = set()
    for index in range(len(data)):
        for bits in (0x01, 0x80):
            changed = bytearray(data)
            changed[index] ^= bits
            path = reader.put("hw.zip", bytes(changed))
            found = read(path, declared, tmp_path / f"{index}-{bits}")
            assert bool(found.files) != bool(found.problems)
            outcomes |= {problem.kind for problem in found.problems}
    assert outcomes == {"refused", "missing file"}


def test_a_notebook_in_a_zip(handed_in, text_of) -> None:
    book = (
        '{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [{"cell_type": "code", '
        '"metadata": {}, "outputs": [], "execution_count": null, "source": ["a = 1"]}]}'
    )
    found = handed_in(Zip().add("hw/mine.ipynb", book))
    assert "a = 1\n" in text_of(found)


def test_nothing_is_written_anywhere_else(reader, tmp_path: Path) -> None:
    """What `Reader` asserts of every submission here, with an archive that tries."""
    data = Zip().add("../evil.py").add("softmax.py").data()
    reader(reader.put("hw.zip", data))
    assert not list(tmp_path.rglob("evil.py"))
