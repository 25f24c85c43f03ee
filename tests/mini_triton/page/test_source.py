"""Lines of source with what they moved."""

from mini_triton.groups import Group
from mini_triton.hardware import HardwareRecord
from mini_triton.hardware.record import AccessRecord, Resources
from mini_triton.launch import LaunchRecord
from mini_triton.location import Location
from mini_triton.page.source import listing


def record(file, lines):
    found = LaunchRecord("k", (1, 1, 1))
    for line in lines:
        found.add("x", Location(file, line), "loaded", line, 4)
    return found


def source(tmp_path, count=100):
    path = tmp_path / "k.py"
    path.write_text("".join(f"line {n}\n" for n in range(1, count + 1)))
    return str(path)


def test_lines_far_apart_have_a_gap_between(tmp_path):
    file = source(tmp_path)
    found = listing([Group(1, record(file, [10, 20, 90]), 1)])[file]
    assert [line.number for line in found] == [*range(7, 24), 0, *range(87, 94)]
    assert [line.text for line in found if line.moves] == ["line 10", "line 20", "line 90"]


def test_launches_add_up_and_the_hottest_is_one(tmp_path):
    file = source(tmp_path)
    groups = [Group(1, record(file, [5]), 3), Group(2, record(file, [5, 6]), 1)]
    moved = [line for line in listing(groups)[file] if line.moves]
    assert [line.loaded for line in moved] == [4 * 5 * 4, 6 * 4]
    assert [line.heat for line in moved] == [1.0, 24 / 80]


def test_sectors_stand_beside_bytes(tmp_path):
    file = source(tmp_path)
    launch = record(file, [5])
    resources = Resources(True, "", 4, 3, 32, 0, 0, 16, "threads", 1.0)
    access = AccessRecord(file, 5, "x", "load", "ld", 4, True, 1, 32, 4, 32, 32)
    launch.hardware = HardwareRecord("H100", resources, [access, access])
    (line,) = (line for line in listing([Group(1, launch, 2)])[file] if line.moves)
    assert (line.sectors, line.ideal, line.efficiency) == (128, 16, 1 / 8)


def test_the_end_of_a_file_and_a_file_that_is_gone(tmp_path):
    file = source(tmp_path, 4)
    assert [line.number for line in listing([Group(1, record(file, [3]), 1)])[file]] == [1, 2, 3, 4]
    (line,) = (
        x for x in listing([Group(1, record("/gone/k.py", [7]), 1)])["/gone/k.py"] if x.moves
    )
    assert (line.number, line.text, line.efficiency) == (7, "", None)
