"""The demo runs, its figures are those of arithmetic done by hand, and it survives what is open."""

import re
import sys
from pathlib import Path
from types import ModuleType

import click
import pytest
from click.testing import CliRunner
from console.demo import load as load_submission
from console.demo import run

from tests.assignments.loading import load

HOUSE = Path(__file__).resolve().parents[3]
SOLUTION = HOUSE / "solutions/tensor_parallel"
STARTER = HOUSE / "starter/tensor_parallel"
ALPHA, BANDWIDTH = 1.9e-6, 450e9  # of NVLink 4
HBM = 3.35e12  # bytes a second, of an H100

demo = load(HOUSE / "assignments/tensor_parallel/demo.py")
fmt_bytes, fmt_time = demo.simulated.fmt_bytes, demo.simulated.fmt_time


def invoke(*arguments):
    return CliRunner().invoke(demo.main, [str(argument) for argument in arguments])


def part(output: str, title: str) -> str:
    """What is printed from a heading that begins so to the next one."""
    return output[output.index(f"\n{title}") :].split("===\n", 1)[1].partition("===\n")[0]


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
        for word in ("not started", "✗", "nan", "inf "):
            assert word not in output, word
        parts = [line[:2] for line in output.splitlines() if re.match(r"\d\. ", line)]
        assert parts == ["1.", "2.", "3.", "4.", "5.", "5.", "6."]

    def test_numbers_are_those_of_one_device(self, printed):
        output, _ = printed
        simulated = part(output, "1. ") + output[output.index("\n2. ") : output.index("\n3. ")]
        errors = [float(error) for error in re.findall(r"\d\.\de[-+]\d\d", simulated)]
        assert len(errors) == 5 + 4 + 7 + 3
        assert max(errors) < 1e-12
        assert "same tokens" in cells(output, "tp_generate, 4 tokens")

    def test_products(self, printed):
        """A is 512 × 1024, B 1024 × 2048, bf16, n = 4."""
        output, _ = printed
        A, B, C = (2 * size for size in (512 * 1024, 1024 * 2048, 512 * 2048))
        for label, case, called, sent, steps in (
            ("A[I_X, J] · B[J, K] → C[I_X, K]", "1", "none", 0, 0),
            ("A[I, J_X] · B[J, K] → C[I, K]", "2", "1 all_gather", 0.75 * A, 3),
            ("A[I, J_X] · B[J_X, K] → C[I, K]", "3", "1 all_reduce", 1.5 * C, 6),
            (
                "A[I, J_X] · B[J_X, K] → C[I, K_X]",
                *("3, scattered", "1 reduce_scatter", 0.75 * C, 3),
            ),
            ("A[I_X, J] · B[J, K_X] → C[I_X, K]", "4", "1 all_gather", 0.75 * B, 3),
        ):
            time = steps * ALPHA + sent / BANDWIDTH
            expected = [case, called, fmt_bytes(sent), "✓", fmt_time(time)]
            assert cells(output, label)[:-1] == expected

    def test_forward(self, printed):
        """2 × 16 tokens of d = 64 and v = 104, in bf16: 2L all-reduces and the logits."""
        output, _ = printed
        x, logits = 2 * 2 * 16 * 64, 2 * 2 * 16 * 104
        rows = part(output, "2. ")
        for n in (1, 2, 4, 8):
            sent = (n - 1) / n * (4 * 2 * x + logits)
            time = (4 * 2 + 1) * (n - 1) * ALPHA + sent / BANDWIDTH
            expected = ["4 all_reduce, 1 all_gather", fmt_bytes(sent), "✓", fmt_time(time)]
            assert cells(rows, str(n))[1:] == expected

    def test_key_value_heads(self, printed):
        output, _ = printed
        for label, heads, held in (
            ("12, 4, 2", "[0,1] [2,3]", "4"),
            ("12, 2, 4", "[0] [0] [1] [1]", "4"),
            ("12, 3, 2", "[0,1] [1,2]", "4"),
            ("12, 4, 6", "[0] [0,1] [1] [2] [2,3] [3]", "8"),
        ):
            assert cells(output, label)[:2] == [heads, held]

    def test_functions(self, printed):
        output, _ = printed
        rows = part(output, "   TINY at n = 4")
        for label, called in (
            ("tp_forward", "4 all_reduce, 1 all_gather"),
            ("tp_generate, 4 tokens", "16 all_reduce, 4 all_gather"),
            ("tp_forward_sp", "6 all_gather, 4 reduce_scatter"),
            ("tp_backward", "9 all_reduce"),
        ):
            assert cells(rows, label)[1] == called
            assert cells(rows, label)[3] == "✓"

    def test_all_reduces(self, printed):
        output, _ = printed
        rows = part(output, "3. ")
        S, n = 1e6, 8
        expected = [
            14 * ALPHA + 1.75 * S / BANDWIDTH,
            3 * (ALPHA + S / BANDWIDTH),
            6 * ALPHA + 1.75 * S / BANDWIDTH,
            6 * (ALPHA + S / BANDWIDTH),
            2 * ALPHA + S / BANDWIDTH,
        ]
        assert cells(rows, "1.00 MB") == [*map(fmt_time, expected), "rd"]
        assert cells(rows, "1.00 GB")[-1] == "rab"
        # lg n·(α + S/B) = 2(n−1)α + 2(n−1)/n·S/B, and with 2 lg n·α for Rabenseifner
        for label, steps in (("rd = ring", 2 * (n - 1)), ("rd = rab", 6)):
            multiple = (steps - 3) / (3 - 2 * (n - 1) / n)
            size = multiple * ALPHA * BANDWIDTH
            both = 3 * (ALPHA + size / BANDWIDTH)
            expected = [f"{multiple:.2f}·αB", fmt_bytes(size), fmt_time(both), "✓"]
            assert cells(rows, label) == expected

    def test_memory(self, printed):
        """Llama-3.1-8B on 16: two heads and a whole KV head a rank, embedding and norms whole."""
        output, _ = printed
        table = part(output, "4. ")
        rows = [line for line in table.splitlines() if "Llama-3.1-8B " in line]
        d, dh, f, v, L = 4096, 128, 14_336, 128_256, 32
        layer = d * dh * (2 * 2 + 2 * 1) + 3 * d * f // 16
        shards, whole = 2 * (L * layer + d * v // 16), 2 * (v * d + (2 * L + 1) * d)
        kv = 32 * 8192 * 2 * L * dh * 2
        sizes = [fmt_bytes(size) for size in (shards, whole, kv, shards + whole + kv)]
        assert [cell.strip() for cell in rows[4].strip("|").split("|")][1:] == [
            *("16", "1", *sizes, "yes")
        ]
        fits = [
            row.strip("| ").split("|")[-1].strip() for row in table.splitlines() if "70B" in row
        ]
        assert fits == ["no", "no", "yes", "yes", "yes", "yes", "yes"]
        assert "TINY's shards at n = 1, 2, 4 and 8 hold as many numbers" in output

    def test_decode_step(self, printed):
        """Llama-3.1-8B: 7,504,658,432 parameters read, and 131,072 B of KV a token, by 8 heads."""
        output, _ = printed
        rows = part(output, "5. A decode step of Llama-3.1-8B")
        for n, held in ((1, 8), (8, 1), (16, 1), (32, 1)):
            kv = 32 * 8192 * 131_072 * held / 8 / HBM
            memory = 2 * 7_504_658_432 / n / HBM + kv
            message = 32 * 4096 * 2
            ring = 64 * 2 * (n - 1) * (ALPHA + message / n / BANDWIDTH)
            doubling = 64 * (n.bit_length() - 1) * (ALPHA + message / BANDWIDTH)
            in_network = 64 * (2 * ALPHA + message / BANDWIDTH) if n > 1 else 0
            times = [memory, kv, ring, *(memory + t for t in (ring, doubling, in_network))]
            assert cells(rows, str(n))[1:] == [fmt_time(time) for time in times]
        assert "The best n is 8 with ring (3.61 ms), 16 with rd (2.20 ms), 32 with innet" in rows
        assert "98% of that is latency" in rows

    def test_across_nodes(self, printed):
        """16 = 2 × 8: 14 steps of an eighth inside, 2 of a sixteenth between, on InfiniBand NDR."""
        output, _ = printed
        rows = part(output, "5. A decode step of Llama-3.1-8B")
        message, memory = 32 * 4096 * 2, 2 * 7_504_658_432 / 16 / HBM + 32 * 8192 * 16_384 / HBM
        inside = 14 * (ALPHA + message / 8 / BANDWIDTH)
        across = 2 * (4e-6 + message / 16 / 50e9)
        flat = 30 * (4e-6 + message / 16 / 50e9)
        hierarchical = fmt_time(memory + 64 * (inside + across))
        assert f"two nodes takes {hierarchical} with hierarchical" in rows
        assert f"{fmt_time(memory + 64 * flat)} with rings all on InfiniBand" in rows

    def test_layouts(self, printed):
        output, _ = printed
        rows = output[output.index("\n6. ") :]
        E, F, n, bw = 18_432, 73_728, 64, 600e9
        assert cells(rows, "64")[:2] == [
            fmt_time(2 * 64 * E * 2 / bw), fmt_time(8 * 64 * E * 2 / (8 * bw)),
        ]  # fmt: skip
        t = 65_536
        N = (t * n / F) ** 0.5
        gathered = (2 * E * F * N / n + 2 * t * E / N) * 2 / bw
        assert cells(rows, "65,536")[2:] == [fmt_time(gathered), f"{N:.1f}", "gathered"]
        assert cells(rows, "18,432")[4] == "2d = gathered"
        assert "2d at 18,432 tokens ✓, 1d at 4,608 tokens ✓" in rows

    def test_plots(self, printed):
        output, plots = printed
        assert {path.name for path in plots.iterdir()} == {
            *("one_layer.png", "all_reduces.png", "memory.png"),
            *("decode_step.png", "layouts.png"),
        }
        for path in plots.iterdir():
            assert path.read_bytes().startswith(b"\x89PNG")
            assert path.stat().st_size > 20_000
            assert f"Saved {path}" in output


def changed(folder: Path, text: str) -> ModuleType:
    """The solution with definitions that replace its own."""
    solution = (SOLUTION / "shard_lab.py").read_text()
    (folder / "shard_lab.py").write_text(solution + "\n\n" + text)
    return load_submission(folder / "shard_lab.py")


class TestOfUnfinishedWork:
    def test_every_part_says_what_is_not_started(self, tmp_path):
        result = invoke("--submission", STARTER, "--png", tmp_path / "plots")
        assert result.exit_code == 0, result.output
        assert "|" not in result.output  # no table, and nothing to be seen in one
        assert "\n- " not in result.output
        for task in (1, 3, 8):
            assert f"not started: tensor_parallel {task}: " in result.output
        assert not list((tmp_path / "plots").iterdir())
        assert "Saved" not in result.output

    def test_within_a_table_too(self, tmp_path, capsys):
        """Of four functions one is not written: three rows, and below them its words."""
        text = (
            "def tp_forward_sp(*args):\n    raise NotImplementedError('tensor_parallel 6: cut')\n"
        )
        run(demo.simulated.functions_at_4, changed(tmp_path, text))
        output = capsys.readouterr().out
        assert "not started: tensor_parallel 6: cut (tp_forward_sp)" in output
        assert cells(output, "tp_backward")[3] == "✓"
        with pytest.raises(ValueError, match="not enough values"):
            cells(output, "tp_forward_sp")

    def test_memory_without_shards(self, tmp_path, capsys):
        """The table needs kv_group_of_device alone."""
        text = (
            "def shard_params_tp(*args):\n    raise NotImplementedError('tensor_parallel 3: cut')\n"
        )
        run(demo.costs.memory, changed(tmp_path, text))
        output = capsys.readouterr().out
        assert "Llama-3.1-70B" in output
        assert "TINY" not in output

    def test_bytes_too_many_are_marked(self, tmp_path, capsys):
        """An all-reduce that is called twice: twice the bytes, and the formula's beside it."""
        text = (
            "_once = all_reduce\n\n\n"
            "def all_reduce(comm, arrays, algo='ring'):\n"
            "    _once(comm, arrays, algo)\n"
            "    return _once(comm, arrays, algo)\n"
        )
        run(demo.simulated.products, changed(tmp_path, text))
        row = cells(capsys.readouterr().out, "A[I, J_X] · B[J_X, K] → C[I, K]")
        assert row[1:4] == ["2 all_reduce", "6.29 MB", "✗ 3.15 MB"]

    def test_shards_too_large_are_marked(self, tmp_path, capsys):
        """Every rank keeps the whole head: 64 · 104 numbers instead of half of them at n = 2."""
        text = (
            "_cut = shard_params_tp\n\n\n"
            "def shard_params_tp(params, cfg, n):\n"
            "    return [p | {'lm_head': params['lm_head']} for p in _cut(params, cfg, n)]\n"
        )
        run(demo.costs.memory, changed(tmp_path, text))
        assert "✗ TINY, n = 2: rank 0 holds 62,784 numbers, not 59,456" in capsys.readouterr().out

    def test_wrong_tokens_are_marked(self, tmp_path, capsys):
        text = (
            "_generate = tp_generate\n\n\n"
            "def tp_generate(*args):\n"
            "    return _generate(*args) + 1\n"
        )
        run(demo.simulated.functions_at_4, changed(tmp_path, text))
        assert cells(capsys.readouterr().out, "tp_generate, 4 tokens")[0] == "✗ other tokens"

    def test_no_file(self, tmp_path):
        result = invoke("--submission", tmp_path)
        assert result.exit_code == 1
        assert f"there is no {tmp_path / 'shard_lab.py'}" in result.output


def test_without_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    lab = load_submission(SOLUTION / "shard_lab.py")
    with pytest.raises(click.ClickException, match="pip install matplotlib"):
        demo.plot_memory(lab, tmp_path / "memory.png")
