"""What a terminal shows of a modelled launch."""

import mini_triton
import torch
from mini_triton.hardware.display import efficiency, hardware_tables, wasteful
from rich.console import Console

from tests.mini_triton.comparing import normal
from tests.mini_triton.hardware.test_model import column_kernel, modelled, scale_kernel


def shown(renderable, width=100):
    console = Console(width=width, color_system=None, force_terminal=True)
    with console.capture() as capture:
        console.print(renderable)
    return capture.get()


def test_launches_and_what_they_take():
    x, y = normal(8192), torch.empty(8192)
    record = modelled(lambda: scale_kernel[(8,)](x, y, 8192, BLOCK=1024))
    text = shown(hardware_tables([record, record]))
    (row, place) = (line.split() for line in text.splitlines() if "scale_kernel" in line)
    label = ["scale_kernel", "[8]", "×", "2"]
    assert row[:9] == [*label, "65.5", "kB", "65.5", "kB", "65.5"]
    assert row[-6:] == ["100%", "8.19", "k", "13.7", "ns", "DRAM"]
    resources = record.hardware.resources
    assert place[4:6] == ["4", str(resources.registers)]
    assert "all modelled launches" in text
    assert max(map(len, text.splitlines())) <= 100


def test_unique_bytes_stand_beside_those_that_moved():
    x, y = normal(256, 64), torch.empty(64, 256)
    with mini_triton.profile(hardware="H200", host=False) as p:
        column_kernel[(32,)](x, y, 64, BLOCK=256)
    rows = [line.split("│") for line in shown(p.table()).splitlines()]
    cells = [[cell.strip() for cell in row[2:-1]] for row in rows if len(row) > 3]
    assert ["x_ptr", "32,768", "–", "32,768", "–"] in cells
    assert ["y_ptr", "–", "32,768", "–", "32,768"] in cells
    assert ["", "32,768", "32,768", "32,768", "32,768"] in cells


def test_lines_that_waste_sectors_are_named():
    x, y = normal(256, 64), torch.empty(64, 256)
    record = modelled(lambda: column_kernel[(64,)](x, y, 64, BLOCK=256))
    (sentence,) = wasteful([record])
    assert sentence.startswith("test_model.py:")
    assert "asks for 16,384 sectors of x_ptr where 2,048 would do (ld, " in sentence


def test_what_does_not_fit_is_said():
    x, y = normal(64), torch.empty(64)
    record = modelled(lambda: scale_kernel[(1,)](x, y, 64, BLOCK=64))
    record.hardware.resources.error = "out of resource: [red]shared memory"
    text = shown(hardware_tables([record]))
    assert "does not fit" in text
    assert "scale_kernel [1]: out of resource: [red]shared memory" in text


def test_nothing_modelled_nothing_shown():
    assert hardware_tables([mini_triton.LaunchRecord("k", (1, 1, 1))]) is None
    assert efficiency(0.999).plain == "99%"
    assert efficiency(1.0).plain == "100%"


def test_a_profile_shows_it_all(capsys):
    x, y = normal(256, 64), torch.empty(64, 256)
    with mini_triton.profile(hardware="H200") as p:
        column_kernel[(64,)](x, y, 64, BLOCK=256)
    p.show()
    text = capsys.readouterr().out
    for part in ("Memory traffic", "On H200", "On a multiprocessor", "22%", "2,048 would do"):
        assert part in text
    (line,) = (line for line in text.splitlines() if "tl.load(x_ptr + rows" in line)
    assert line.rstrip().endswith("tl.load(x_ptr + rows * stride + column))")
