"""One truth about points: the manifest, the tests' decorators and the handout's tables agree."""

import re

import pytest

from tests.assignments.rmsnorm.in_process import MANIFEST, case_of, load

ENTRIES = [entry for task in MANIFEST["tasks"] for entry in task["tests"]]


def points(entries) -> int:
    return sum(entry["points"] for entry in entries)


def public(task):
    return [entry for entry in task["tests"] if entry["test"].startswith("public/")]


def hidden(task):
    return [entry for entry in task["tests"] if entry["test"].startswith("hidden/")]


def test_a_hundred_points():
    assert points(ENTRIES) == 100
    assert [points(task["tests"]) for task in MANIFEST["tasks"]] == [30, 30, 20, 20]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["number"])
def test_decorators_agree(entry):
    case = case_of(entry["test"])
    method = getattr(case, case._testMethodName)
    assert method.__number__ == entry["number"]
    assert method.__weight__ == entry["points"]
    assert method.__visibility__ == ("hidden" if entry["test"].startswith("hidden/") else "visible")
    assert case.shortDescription(), "its docstring is the title that students see"


def test_every_test_is_in_the_manifest(house):
    written = set()
    for where, folder in (
        ("public", house / "assignments/rmsnorm/public"),
        ("hidden", house / "tests/hidden/rmsnorm"),
    ):
        for file in folder.glob("test_*.py"):
            for name, member in vars(load(file)).items():
                if isinstance(member, type) and member.__module__ == file.stem:
                    methods = [m for m in vars(member) if m.startswith("test")]
                    written |= {f"{where}/{file.name}::{name}::{m}" for m in methods}
    assert written == {entry["test"] for entry in ENTRIES}


class TestHandout:
    @pytest.fixture
    def rows(self, house):
        """The cells of every row of every table."""
        text = (house / "assignments/rmsnorm/README.md").read_text()
        lines = [line for line in text.splitlines() if line.startswith("| ")]
        return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]

    def test_points_of_the_tasks(self, rows):
        for task in MANIFEST["tasks"]:
            (row,) = (row for row in rows if len(row) == 6 and row[0] == task["id"])
            counts = [f(x) for x in (public(task), hidden(task)) for f in (len, points)]
            assert row[1:] == [str(n) for n in (*counts, points(task["tests"]))]
            (first,) = (row for row in rows if row[0] == task["id"] and row[1].startswith("`"))
            assert first[2] == str(points(task["tests"]))

    def test_points_of_the_public_tests(self, rows):
        listed = [row for row in rows if re.fullmatch(r"\d\.\d+", row[0])]
        expected = [
            [entry["number"], case_of(entry["test"]).shortDescription(), str(entry["points"])]
            for task in MANIFEST["tasks"]
            for entry in public(task)
        ]
        assert listed == expected

    def test_total(self, rows):
        (row,) = (row for row in rows if row[0] == "all")
        every = [entry for task in MANIFEST["tasks"] for entry in public(task)]
        rest = [entry for task in MANIFEST["tasks"] for entry in hidden(task)]
        expected = (len(every), points(every), len(rest), points(rest), 100)
        assert row[1:] == [str(n) for n in expected]


def test_the_handout_names_the_time_limit(house):
    text = (house / "assignments/rmsnorm/README.md").read_text()
    assert not [entry for entry in ENTRIES if "time_limit" in entry]
    assert f"A test may take {MANIFEST['time_limit']} seconds" in text
