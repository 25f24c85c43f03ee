"""The table of traffic and the annotated source."""

import mini_triton
from mini_triton.launch import LaunchRecord, Location, Traffic
from rich.console import Console

from tests.mini_triton.comparing import normal
from tests.mini_triton.test_profiler import twice


def shown(renderable):
    console = Console(width=120, color_system=None)
    with console.capture() as capture:
        console.print(renderable)
    return capture.get()


def rows(text):
    """The cells of each line of a printed table."""
    return [[cell.strip() for cell in line.split("│")[1:-1]] for line in text.splitlines()]


def test_a_row_for_each_tensor_and_operation():
    x = normal(2000)
    with mini_triton.profile() as p:
        twice(x).sum()
    found = rows(shown(p.table()))
    assert ["twice_kernel [250, 1, 1]", "x_ptr", "2,000", "–", "8,000", "–"] in found
    assert ["", "y_ptr", "–", "2,000", "–", "8,000"] in found
    assert ["host", "sum", "2,000", "1", "8,000", "4"] in found
    assert ["all kernels", "", "2,000", "2,000", "8,000", "8,000"] in found
    assert ["all host operations", "", "2,000", "1", "8,000", "4"] in found


def test_bytes_stand_beside_their_source_line():
    with mini_triton.profile() as p:
        twice(normal(2000))
    listing = shown(p.listing())
    assert "test_profiler.py" in listing
    (line,) = (line for line in listing.splitlines() if "tl.store(y_ptr" in line)
    assert line.split()[:2] == ["8,000", "8,000"]
    (quiet,) = (line for line in listing.splitlines() if "i = tl.program_id(0)" in line)
    assert "8,000" not in quiet


def test_names_with_brackets_and_files_that_are_gone():
    """Rich's markup in names is shown as it is; a source that cannot be read leaves its lines."""
    record = LaunchRecord("odd[bold]kernel", (1, 1, 1))
    record.add("x[red]", Location("/gone/k.py", 3), "loaded", 5, 4)
    profile = mini_triton.Profile([record])
    assert "odd[bold]kernel" in shown(profile.table())
    assert "x[red]" in shown(profile.table())
    (line,) = (line for line in shown(profile.listing()).splitlines() if "20" in line)
    assert line.split() == ["20", "3"]


def test_an_empty_profile(capsys):
    profile = mini_triton.Profile()
    assert "no kernel moved any byte" in shown(profile.listing())
    assert ["all kernels", "", "–", "–", "–", "–"] in rows(shown(profile.table()))
    profile.show()
    assert "Memory traffic" in capsys.readouterr().out
    assert vars(profile.total) == vars(Traffic())
