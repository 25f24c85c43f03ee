"""The picture of a log, and its table: read back from what was drawn."""

import itertools

import pytest
from comm_sim import (
    Comm,
    all_reduce_hierarchical,
    all_reduce_in_network,
    all_reduce_ring,
    hierarchical,
    torus,
)
from matplotlib.figure import Figure

from tests.comm_sim.comparing import LINK, SLOW, idle, numbers


def bars(axes):
    """(device, "sends" or "receives", start, end) of all bars, in the unit of the axis."""
    found = []
    for collection in axes.collections:
        for path in collection.get_paths():
            box = path.get_extents()
            row = round(box.y0 + 0.42) if box.y0 % 1 > 0.1 else round(box.y0)
            half = "receives" if abs(box.y0 - row) < 0.01 else "sends"
            found.append((row, half, box.x0, box.x1))
    return sorted(found)


def test_every_message_has_a_bar_where_it_is_sent_and_one_where_it_arrives():
    comm = idle(3)
    all_reduce_ring(comm, numbers(3, 100))
    comm.exchange([(0, 2, numbers(1, 50)[0]), (1, 2, numbers(1, 50)[0])], "both to 2")
    axes = comm.timeline(Figure().add_subplot())
    expected = [
        bar
        for m in comm.messages
        for bar in ((m.src, "sends", m.start, m.end), (m.dst, "receives", m.start, m.end))
    ]
    drawn = bars(axes)
    assert len(drawn) == len(expected) == 2 * 14
    for got, want in zip(drawn, sorted(expected), strict=True):
        assert got[:2] == want[:2]
        assert got[2:] == pytest.approx([1e6 * seconds for seconds in want[2:]])


def test_one_row_a_device_and_one_colour_a_label():
    comm = Comm(hierarchical(2, 2, LINK, SLOW))
    all_reduce_hierarchical(comm, numbers(4, 100))
    axes = comm.timeline(Figure().add_subplot())
    assert [t.get_text() for t in axes.get_yticklabels()] == [f"device {i}" for i in range(4)]
    assert axes.get_ylim() == (3.5, -0.5)
    assert [t.get_text() for t in axes.get_legend().get_texts()] == list(
        dict.fromkeys(m.label for m in comm.messages)
    )
    faces = {tuple(c.get_facecolor()[0][:3]) for c in axes.collections}
    assert len(faces) == len({m.label for m in comm.messages}) == 4
    assert axes.get_title(loc="left") == "2 nodes of 2: all-reduce"
    assert axes.get_xlim()[1] == pytest.approx(1.01e6 * comm.time)


def test_where_a_device_has_several_ports_no_bar_covers_another():
    comm = Comm(torus((3, 3), LINK))
    x = numbers(1, 1000)[0]
    comm.exchange([(4, neighbour, x) for neighbour in (1, 3, 5, 7)])  # four at once
    comm.exchange([(1, 4, x), (7, 4, x[:500]), (0, 1, x)])
    axes = comm.timeline(Figure().add_subplot())
    boxes = [p.get_extents() for c in axes.collections for p in c.get_paths()]
    assert len(boxes) == 2 * len(comm.messages)
    for box, other in itertools.combinations(boxes, 2):
        width = min(box.x1, other.x1) - max(box.x0, other.x0)
        height = min(box.y1, other.y1) - max(box.y0, other.y0)
        assert width < 1e-9 or height < 1e-9
    heights = sorted({round(box.height, 3) for box in boxes})
    assert heights == [0.105, 0.21, 0.42]


def test_the_switch_has_no_row():
    comm = idle(2)
    all_reduce_in_network(comm, numbers(2, 100))
    axes = comm.timeline(Figure().add_subplot())
    assert len(bars(axes)) == len(comm.messages) == 4
    assert {t.get_text() for t in axes.texts} == {"→ switch", "← switch"}


def test_computing_is_grey_and_times_have_a_fitting_unit():
    comm = idle(2)
    comm.compute(1, 2e-3, "matmul")
    axes = comm.timeline(Figure().add_subplot())
    assert axes.get_xlabel() == "time in ms"
    assert bars(axes) == [(1, "sends", 0, pytest.approx(2))]
    assert [t.get_text() for t in axes.texts] == ["matmul"]
    assert [t.get_text() for t in axes.get_legend().get_texts()] == ["computing"]


def test_an_idle_network_is_an_empty_picture():
    axes = idle(3).timeline(Figure().add_subplot())
    assert bars(axes) == []
    assert len(axes.get_yticks()) == 3


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_a_file_is_written(tmp_path, suffix):
    comm = idle(2)
    all_reduce_ring(comm, numbers(2, 10))
    path = tmp_path / f"ring.{suffix}"
    comm.timeline(path if suffix == "png" else str(path))
    begin = path.read_bytes()[:5]
    assert begin == (b"\x89PNG\r" if suffix == "png" else b"<?xml")


def test_the_table_has_a_row_a_message(capsys):
    comm = idle(2)
    all_reduce_in_network(comm, numbers(2, 1000))
    comm.show(limit=3)
    lines = capsys.readouterr().out.splitlines()
    assert "switch of 2: 4 messages in 10.0 µs" in lines
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "|" in line]
    assert cells[0] == ["from", "to", "bytes", "start", "end", "label"]
    assert cells[2] == ["0", "switch", "8.00 kB", "0.00 µs", "7.00 µs", "all-reduce: in the switch"]
    assert len(cells) == 2 + 3
    assert lines[-1] == "… and 1 more: show(limit=None)"
    comm.show(limit=None)
    assert "more" not in capsys.readouterr().out
