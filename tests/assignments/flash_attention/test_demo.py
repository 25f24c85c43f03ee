"""The demo runs, says what the reference documents say, draws, and survives what is not started."""

import re
import shutil
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tests.assignments.loading import load

HOUSE = Path(__file__).resolve().parents[3]
SOLUTION = HOUSE / "solutions/flash_attention"
FILES = ("attention_kernels", "flash_lab", "flash_triton")


demo = load(HOUSE / "assignments/flash_attention/demo.py")


def invoke(*arguments):
    return CliRunner().invoke(demo.main, [str(argument) for argument in arguments])


def cells(output: str, label: str) -> list[str]:
    """The cells beside the one row that begins with the label."""
    (row,) = (
        line for line in output.splitlines() if re.match(rf"\| +{re.escape(label)} +\|", line)
    )
    return [cell.strip() for cell in row.strip("|").split("|")][1:]


@pytest.fixture(scope="module")
def printed(tmp_path_factory) -> tuple[str, Path]:
    """What the demo prints for the solution, and the folder with its plots."""
    plots = tmp_path_factory.mktemp("demo") / "plots"
    result = invoke("--submission", SOLUTION, "--png", plots)
    assert result.exit_code == 0, result.output
    return result.output, plots


class TestOfTheSolution:
    def test_nothing_is_amiss(self, printed):
        output, _ = printed
        for word in ("not started", "left out", "✗", "nan", "inf"):
            assert word not in output, word
        assert [line[:2] for line in output.splitlines() if re.match(r"\d\. ", line)] == [
            f"{part}." for part in (1, 2, 3, 4, 5)
        ]

    def test_exactness(self, printed):
        output, _ = printed
        part = output[output.index("\n1. ") : output.index("\n2. ")]
        errors = [float(error) for error in re.findall(r"\d\.\de-\d\d", part)]
        assert len(errors) == 16 + 4
        assert max(errors) < 1e-13
        # 300 rows in blocks of 64 are 5; a causal mask leaves 15 of 25 tiles.
        assert cells(output, "flash_forward")[1:3] == ["25", "0"]
        assert cells(output, "flash_forward, causal")[1:3] == ["15", "10"]

    def test_bytes_against_n(self, printed):
        output, _ = printed
        assert cells(output, "512") == [
            *("2.36 MB", "733 kB", "1.18 MB", "656 kB"), "3.2", "17.5", "28.1",
        ]  # fmt: skip
        assert cells(output, "8,192") == [
            *("541 MB", "134 MB", "271 MB", "136 MB"), "4.0", "12.5", "25.2",
        ]  # fmt: skip
        assert "standard attention moves 4.0 times what FA1's order does" in output
        assert "FA2's moves 2.0 times as much" in output
        assert "With 128×64 it moves 1.0 times as much" in output
        assert "The operations are the same, 1.000 times" in output

    def test_bytes_against_sram(self, printed):
        output, _ = printed
        assert cells(output, "16 KB") == ["32×32", "207 MB", "135 MB", "16.8 MB", "1.0"]
        assert cells(output, "256 KB") == ["64×512", "13.9 MB", "68.2 MB", "1.05 MB", "2.0"]
        assert "Standard attention moves 136 MB, whatever the SRAM" in output
        assert "15 times less for 16 times the SRAM" in output

    def test_roofline(self, printed):
        output, _ = printed
        for label, figures in {
            "standard, counted": ["824.6", "25.4 GB", "2.64 ms", "16.3 ms", "≥ 16.3 ms"],
            "flash 64×200, counted": ["962.1", "8.75 GB", "3.08 ms", "5.63 ms", "≥ 5.63 ms"],
            "flash 128×128, counted": ["962.1", "7.69 GB", "3.08 ms", "4.94 ms", "≥ 4.94 ms"],
            "standard, measured": ["66.6", "40.3 GB", "–", "–", "41.7 ms"],
            "flash, measured": ["75.2", "4.4 GB", "–", "–", "7.3 ms"],
        }.items():
            assert cells(output, label) == figures
        assert "does 17% more operations" in output
        assert "25.4 GB against 7.69 GB to 8.75 GB" in output
        assert "attention 6.2 times as long as computing, FlashAttention 1.6 to 1.8" in output
        assert "Blocks of 128×128 move 12% less" in output

    def test_kernels(self, printed):
        output, _ = printed
        for launcher in (
            "attention_forward",
            "attention_forward, causal",
            "attention_backward",
            "attention_backward, causal",
            "attention_decode, 1 query, 8 parts",
        ):
            foretold, counted, mark = cells(output, launcher)
            assert foretold == counted
            assert int(foretold.replace(",", "")) > 100_000
            assert mark == "✓"
        causal, full = (
            int(cells(output, f"attention_forward{mask}")[1].replace(",", ""))
            for mask in (", causal", "")
        )
        assert causal < 0.75 * full

    def test_a_whole_step(self, printed):
        """PyTorch at N = 2,048, element by element: 10 operations, of which 2 scale."""
        output, _ = printed
        N, d = 2048, 64
        matrices = 2 * (N * N + 2 * N * d) + 4 * (N * N + 2 * N * d) + 2 * 2 * N * N + 5 * N * N
        assert cells(output, "PyTorch operations")[2] == demo.fmt_bytes(4 * matrices)
        assert cells(output, "every tensor once")[2:] == [
            demo.fmt_bytes(4 * (12 * N * d + 2 * N)), "1.0×",
        ]  # fmt: skip
        forward = (N + 2 * N * N // 64) * d * 4 + N * (d * 4 + 4)
        backward = N * (2 * d * 4 + 4) + 4 * N * d * 4 + N * N // 64 * (2 * d * 4 + 8)
        backward += N * (3 * d * 4 + 8) + 2 * N * N // 64 * d * 4
        assert cells(output, "kernels, 64×64")[2] == demo.fmt_bytes(forward + backward)

    def test_plots(self, printed):
        output, plots = printed
        assert {path.name for path in plots.iterdir()} == {
            "bytes_against_n.png",
            "bytes_against_sram.png",
            "roofline.png",
        }
        for path in plots.iterdir():
            assert path.read_bytes().startswith(b"\x89PNG")
            assert path.stat().st_size > 20_000
            assert f"Saved {path}" in output


@pytest.fixture
def stubs(tmp_path) -> Path:
    """Three files in which every function is a stub, as a starter's is."""
    for name in FILES:
        (tmp_path / f"{name}.py").write_text(
            "def __getattr__(name):\n"
            "    def stub(*args, **kwargs):\n"
            f"        raise NotImplementedError(f'flash_attention 1: {{name}} of {name}')\n"
            "    return stub\n"
        )
    return tmp_path


class TestOfUnfinishedWork:
    def test_every_part_says_what_is_not_started(self, stubs):
        result = invoke("--submission", stubs, "--png", stubs / "plots")
        assert result.exit_code == 0, result.output
        assert "|" not in result.output  # no table, and nothing to be seen in one
        assert "\n- " not in result.output
        for function in (
            *("flash_forward", "flash_backward", "flash_decode", "flash_fwd", "block_sizes"),
            *("standard_attention", "attention_forward", "attention_backward", "attention_decode"),
        ):
            assert f"not started: flash_attention 1: {function} of " in result.output
        assert not list((stubs / "plots").iterdir())
        assert "Saved" not in result.output

    def test_parts_that_are_written_run_all_the_same(self, stubs):
        shutil.copy(SOLUTION / "flash_triton.py", stubs)
        result = invoke("--submission", stubs)
        assert result.exit_code == 0, result.output
        assert "not started: flash_attention 1: block_sizes of flash_lab" in result.output
        assert cells(result.output, "attention_backward")[2] == "✓"
        assert cells(result.output, "kernels, 64×64")

    def test_within_a_table_too(self, stubs):
        """Task 3 written, 4 and 5 not: two rows, and below them two words."""
        text = (SOLUTION / "attention_kernels.py").read_text()
        for name in ("flash_backward", "flash_decode"):
            text += f"\n\ndef {name}(*args, **kwargs):\n"
            text += f"    raise NotImplementedError('flash_attention: {name}')\n"
        (stubs / "attention_kernels.py").write_text(text)
        result = invoke("--submission", stubs)
        assert cells(result.output, "flash_forward")[1] == "25"
        for label in ("flash_backward, causal", "flash_decode, 1 query, 8 pieces"):
            name = label.partition(",")[0]
            assert f"not started: flash_attention: {name} ({label})" in result.output
            with pytest.raises(ValueError, match="not enough values"):
                cells(result.output, label)

    def test_a_wrong_count_is_marked(self, tmp_path, monkeypatch, capsys):
        """K and V charged once only, though the loops load them for each block of queries."""
        text = (SOLUTION / "flash_lab.py").read_text()
        right = "io += IO(read=2 * (j1 - j0) * d, flops=4 * br * (j1 - j0) * d)  # K_j, V_j"
        assert text.count(right) == 1
        wrong = "io += IO(read=2 * (j1 - j0) * d if i0 == 0 else 0, flops=4 * br * (j1 - j0) * d)"
        (tmp_path / "flash_lab.py").write_text(text.replace(right, wrong))
        N = 512
        monkeypatch.setattr(demo, "LENGTHS", (N,))
        demo.against_length(demo.Submission(tmp_path))
        found, formula = 4 * N * 64 + N, 2 * N * 64 + N + 8 * 2 * N * 64
        assert (
            "✗ flash_fwd and fa_io_formula differ in elements: "
            f"N = {N}, fa2: counted {found:,}, formula {formula:,}"
        ) in capsys.readouterr().out

    def test_wrong_bytes_of_a_kernel_are_marked(self, tmp_path, capsys):
        """A forward pass that runs its kernel twice."""
        (tmp_path / "flash_triton.py").write_text(
            (SOLUTION / "flash_triton.py").read_text() + "\n\n_once = attention_forward\n\n\n"
            "def attention_forward(*args, **kwargs):\n"
            "    _once(*args, **kwargs)\n"
            "    return _once(*args, **kwargs)\n"
        )
        demo.kernels_against_formulas(demo.Submission(tmp_path))
        output = capsys.readouterr().out
        foretold, counted, mark = cells(output, "attention_forward")
        assert int(counted.replace(",", "")) == 2 * int(foretold.replace(",", ""))
        assert mark == "✗"
        assert cells(output, "attention_backward")[2] == "✓"

    def test_a_file_that_is_missing(self, stubs):
        (stubs / "flash_triton.py").unlink()
        result = invoke("--submission", stubs)
        assert result.exit_code == 0
        assert result.output.count(f"left out: there is no {stubs / 'flash_triton.py'}") == 2

    def test_no_files(self, tmp_path):
        result = invoke("--submission", tmp_path)
        assert result.exit_code == 1
        assert "there is none of attention_kernels.py, flash_lab.py, flash_triton.py in" in (
            result.output
        )

    def test_a_file_stands_for_its_folder(self, stubs):
        result = invoke("--submission", stubs / "flash_lab.py")
        assert result.output.startswith(f"Running the files in {stubs}\n")


def test_without_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(click.ClickException, match="pip install matplotlib"):
        demo.plot_sram(demo.Submission(SOLUTION), tmp_path / "sram.png")
