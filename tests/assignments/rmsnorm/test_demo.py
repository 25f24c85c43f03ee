"""The demo runs, says what the reference documents say, and draws."""

import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tests.assignments.loading import load

HOUSE = Path(__file__).resolve().parents[3]

demo = load(HOUSE / "assignments/rmsnorm/demo.py")


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch):
    monkeypatch.setattr(demo.console, "_width", 120)


def invoke(*arguments):
    return CliRunner().invoke(demo.main, [str(argument) for argument in arguments])


def test_tables_and_plot(tmp_path):
    png = tmp_path / "bytes.png"
    result = invoke("--submission", HOUSE / "solutions/rmsnorm", "--png", png)
    assert result.exit_code == 0, result.output
    for shape in ("(4, 16, 64)", "(37, 100)", "(2, 3, 513)"):
        (line,) = (line for line in result.output.splitlines() if shape in line)
        errors = [float(cell) for cell in line.split("│")[2:5]]
        assert max(errors) < 1e-5
    # forward, backward, persistent backward at 256 × 1024 with P = 16: foretold = counted
    for count in ("524,288", "262,400", "786,688", "524,288", "540,928", "278,528"):
        assert f"{count} │ {count} ✓" in result.output
    assert "✗" not in result.output
    assert png.read_bytes().startswith(b"\x89PNG")
    assert png.stat().st_size > 10_000


def test_fused_moves_less_than_unfused(solution):
    ways = demo.steps(solution)
    unfused, fused, persistent = (sum(demo.bytes_of(step, 64, 256)) for step in ways.values())
    assert unfused > 3 * fused
    assert fused > persistent > sum(demo.every_tensor_once(64, 256))


def test_a_stub_is_named(tmp_path):
    stub = tmp_path / "rmsnorm.py"
    stub.write_text(
        "class RMSNorm:\n"
        "    @staticmethod\n"
        "    def apply(x, g, eps):\n"
        "        raise NotImplementedError('rmsnorm 3: apply the kernels')\n"
    )
    result = invoke("--submission", stub)
    assert result.exit_code == 1
    assert "not started: rmsnorm 3: apply the kernels" in result.output


def test_no_file(tmp_path):
    result = invoke("--submission", tmp_path)
    assert result.exit_code == 1
    assert f"there is no {tmp_path / 'rmsnorm.py'}" in result.output


def test_without_matplotlib(tmp_path, monkeypatch, solution):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(click.ClickException, match="pip install matplotlib"):
        demo.plot(solution, tmp_path / "bytes.png")
