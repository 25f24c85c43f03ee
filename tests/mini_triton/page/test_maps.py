"""Pictures of tensors."""

from mini_triton.hardware.access_map import AccessMap
from mini_triton.page.colours import of_program
from mini_triton.page.maps import pictures


def access_map(rows, columns, reads, writes=None, reader=None, writer=None):
    cells = rows * columns
    nobody = [-1] * cells
    return AccessMap(
        rows,
        columns,
        (rows, columns),
        [1] * cells,
        reads,
        writes or [0] * cells,
        reader or nobody,
        writer or nobody,
    )


def test_neighbours_of_one_program_are_one_rectangle():
    found = access_map(16, 32, [1] * 512, reader=[row for row in range(16) for _ in range(32)])
    (picture,) = pictures(found, 16)
    assert len(picture.rects) == 16
    assert {rect.width for rect in picture.rects} == {picture.width}
    assert picture.rects[0].fill == of_program(0, 16)
    assert picture.note == "programs 0 to 15; all read once"


def test_few_cells_hold_numbers():
    found = access_map(1, 4, [1] * 4, writes=[1] * 4, reader=[0, 0, 1, 1], writer=[0, 0, 1, 1])
    reader, writer = pictures(found, 2)
    assert [rect.text for rect in reader.rects] == ["0", "0", "1", "1"]
    assert writer.title == "first writer"


def test_several_reads_are_a_picture_of_their_own():
    reader, times = pictures(access_map(1, 4, [1, 2, 4, 0], reader=[0, 0, 0, -1]), 9)
    assert (reader.title, times.title) == ("first reader", "times read")
    assert [rect.text for rect in times.rects] == ["1", "2", "4"]
    assert [rect.opacity for rect in times.rects] == sorted(r.opacity for r in times.rects)
    assert times.note == "0 to 4 times"
    assert reader.note == "program 0"


def test_programs_that_no_cell_shows_are_in_the_range():
    found = access_map(1, 2, [1, 8], reader=[0, 500])
    found.last_reader = 511
    assert pictures(found, 512)[0].note == "programs 0 to 511"


def test_what_nobody_touched_has_no_picture():
    assert pictures(access_map(2, 2, [0] * 4), 1) == []


def test_colours_walk_with_the_program():
    colours = [of_program(p, 64) for p in range(64)]
    assert len(set(colours)) == 64
    assert of_program(0, 1) == colours[0]


def test_cells_too_narrow_for_their_numbers_hold_none():
    found = access_map(1, 64, [1] * 64, reader=list(range(64)))
    (picture,) = pictures(found, 64)
    assert len(picture.rects) == 64
    assert not any(rect.text for rect in picture.rects)
