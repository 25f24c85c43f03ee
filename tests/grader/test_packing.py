import os
import stat
import zipfile
from pathlib import Path

import pytest

from grader.packing import PackingError, Parcel, without_packages


def tree(root: Path) -> Path:
    """A folder with files to be packed and litter that is not."""
    (root / "package" / "__pycache__").mkdir(parents=True)
    (root / "package" / "__pycache__" / "a.cpython-311.pyc").write_bytes(b"stale")
    (root / "package" / "a.py").write_text("a = 1\n")
    (root / "package" / ".a.py.swp").write_text("litter")
    (root / "bytewise.egg-info").mkdir()
    (root / "bytewise.egg-info" / "PKG-INFO").write_text("litter")
    (root / "run").write_text("#!/bin/sh\n")
    (root / "run").chmod(0o700)
    (root / "private.txt").write_text("text")
    (root / "private.txt").chmod(0o600)
    return root


def packed(root: Path, to: Path, folder: str = "") -> zipfile.ZipFile:
    parcel = Parcel(folder)
    parcel.add("z.txt", "written first, sorted last")
    parcel.add_tree("tree", root)
    return zipfile.ZipFile(parcel.write(to))


def test_litter_is_left_out_and_members_are_sorted(tmp_path: Path) -> None:
    with packed(tree(tmp_path / "t"), tmp_path / "x.zip") as archive:
        assert archive.namelist() == ["tree/package/a.py", "tree/private.txt", "tree/run", "z.txt"]
        assert archive.testzip() is None


def test_permissions_are_those_of_a_program_or_of_a_text(tmp_path: Path) -> None:
    with packed(tree(tmp_path / "t"), tmp_path / "x.zip") as archive:
        modes = {info.filename: info.external_attr >> 16 for info in archive.infolist()}
    assert modes["tree/run"] == stat.S_IFREG | 0o755
    assert modes["tree/private.txt"] == stat.S_IFREG | 0o644


def test_equal_content_gives_equal_bytes(tmp_path: Path) -> None:
    first, second = tree(tmp_path / "one"), tree(tmp_path / "two")
    for path in second.rglob("*"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
    (second / "private.txt").chmod(0o664)
    packed(first, tmp_path / "1.zip").close()
    packed(second, tmp_path / "2.zip").close()
    assert (tmp_path / "1.zip").read_bytes() == (tmp_path / "2.zip").read_bytes()
    (second / "private.txt").write_text("other text")
    packed(second, tmp_path / "3.zip").close()
    assert (tmp_path / "1.zip").read_bytes() != (tmp_path / "3.zip").read_bytes()


def test_one_folder_around_everything(tmp_path: Path) -> None:
    with packed(tree(tmp_path / "t"), tmp_path / "x.zip", folder="course") as archive:
        assert {name.split("/")[0] for name in archive.namelist()} == {"course"}


def test_what_is_left_out_by_name(tmp_path: Path) -> None:
    parcel = Parcel()
    parcel.add_tree("tree", tree(tmp_path / "t"), ["package", "run"])
    assert parcel.names == ["tree/private.txt"]


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "a/../../b", ""])
def test_names_that_lead_elsewhere_are_refused(name: str) -> None:
    with pytest.raises(PackingError, match="relative path"):
        Parcel().add(name, "text")


def test_links_and_missing_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "link").symlink_to("/etc/passwd")
    with pytest.raises(PackingError, match="not a plain file"):
        Parcel().add_tree("tree", tmp_path / "t")
    with pytest.raises(PackingError, match="there is no"):
        Parcel().add_file("a", tmp_path / "nothing")
    with pytest.raises(PackingError, match="there is no folder"):
        Parcel().add_tree("a", tmp_path / "nothing")
    (tmp_path / "hollow").mkdir()
    with pytest.raises(PackingError, match="nothing in"):
        Parcel().add_tree("a", tmp_path / "hollow")


def test_a_failed_write_leaves_the_old_zip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parcel = Parcel()
    parcel.add("a", "first")
    parcel.write(tmp_path / "x.zip")
    before = (tmp_path / "x.zip").read_bytes()

    def full(*_: object, **__: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(zipfile.ZipFile, "writestr", full)
    with pytest.raises(OSError, match="no space"):
        parcel.write(tmp_path / "x.zip")
    assert (tmp_path / "x.zip").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["x.zip"]


def test_packages_taken_out_of_pyproject() -> None:
    text = 'packages = [\n    "a",\n    "a.b",\n]\n[data]\n"a.b" = ["*.json"]\n"a" = ["*.txt"]\n'
    assert without_packages(text, ["a.b"]) == (
        'packages = [\n    "a",\n]\n[data]\n"a" = ["*.txt"]\n'
    )
    with pytest.raises(PackingError, match=r"0 lines \"a\.c\","):
        without_packages(text, ["a.c"])
