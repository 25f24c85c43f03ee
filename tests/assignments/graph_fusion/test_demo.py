"""The demo runs, its figures are those of arithmetic done by hand, and it survives what is open."""

import re
import sys
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import click
import pytest
from click.testing import CliRunner
from console.demo import load as load_submission
from console.demo import run
from graph_ir.ops import causal_mask
from graph_ir.trace import bernoulli, exp, kv_write, rms_norm, softmax

from tests.assignments.loading import load

HOUSE = Path(__file__).resolve().parents[3]
SOLUTION = HOUSE / "solutions/graph_fusion"
BW, PRODUCTS = 3.35e12, 989e12  # of an H100

demo = load(HOUSE / "assignments/graph_fusion/demo.py")
layers, emitted, plots = demo.layers, demo.emitted, demo.plots
fmt_bytes, fmt_time = layers.fmt_bytes, layers.fmt_time


def invoke(*arguments):
    return CliRunner().invoke(demo.main, [str(argument) for argument in arguments])


def part(output: str, title: str) -> str:
    """What is printed from a heading that begins so to the next one."""
    return output[output.index(f"\n{title}") :].split("===\n", 1)[1].partition("===\n")[0]


def rows(output: str, label: str) -> list[list[str]]:
    """The cells beside each row that begins with the label."""
    lines = [line for line in output.splitlines() if re.match(rf"\| *{re.escape(label)} +\|", line)]
    return [[cell.strip() for cell in line.strip("|").split("|")][1:] for line in lines]


@pytest.fixture(scope="module")
def printed(tmp_path_factory) -> tuple[str, Path]:
    """What the demo prints for the solution, and the folder with its plots."""
    folder = tmp_path_factory.mktemp("demo") / "plots"
    result = invoke("--submission", SOLUTION, "--png", folder)
    assert result.exit_code == 0, result.output
    return result.output, folder


class TestOfTheSolution:
    def test_nothing_is_amiss(self, printed):
        output, _ = printed
        for word in ("not started", "✗", "nan", "inf "):
            assert word not in output, word
        parts = [line[:2] for line in output.splitlines() if re.match(r"\d\. ", line)]
        assert parts == ["1.", "2.", "3.", "4.", "5."]

    def test_a_small_layer(self, printed):
        output, _ = printed
        text = part(output, "1. ")
        d, f, T, H, G, dh = 128, 344, 16, 8, 2, 16
        both = 2 * T * dh  # cosines and sines
        expected = [  # elements loaded and stored
            (T * d, T * d),
            (T * d + d * H * dh + both, T * H * dh),
            (T * d + d * G * dh + both, T * G * dh),
            (T * d + d * G * dh, T * G * dh),
            (T * H * dh + 2 * T * G * dh, T * H * dh),
            (T * H * dh + H * dh * d + T * d, T * d),
            (T * d, T * d),
            (T * d + d * f, T * f),
            (T * d + d * f + T * f, T * f),
            (T * f + f * d + T * d, T * d),
        ]
        for number, (loads, stores) in enumerate(expected):
            (cells,) = rows(text, str(number))
            assert cells[-3:] == [fmt_bytes(2 * loads), fmt_bytes(2 * stores), "✓"]
        total = fmt_bytes(2 * sum(map(sum, expected)))
        assert f"Decomposed and not fused 45 kernels, 750 kB; now 10, {total}." in text
        error = re.search(r"off by (\S+) at most", text)
        assert error is not None and float(error[1]) < 1e-13
        assert "A norm is in kernels 0, 6, of kind rowwise." in text
        assert "A rotation (RoPE) is in kernels 1, 2, of kind matmul." in text

    def test_prefill(self, printed):
        text = part(printed[0], "2. ")
        expected = {
            "eager": ["26", "3.62 GB", "963", "1.75 ms", "1.86 ms", "1.00×"],
            "decomposed": ["45", "5.81 GB", "963", "2.41 ms", "2.59 ms", "0.72×"],
            "fused": ["12", "2.06 GB", "963", "1.26 ms", "1.31 ms", "1.42×"],
            "fused, FlashAttention": ["10", "975 MB", "962", "996 µs", "1.04 ms", "1.79×"],
        }
        for name, cells in expected.items():
            assert rows(text, name) == [cells]
        scores = 2 * 32 * 2048**2
        (softmax,) = [row for row in rows(text, "rowwise") if row[0].startswith("max")]
        assert softmax[1:] == [fmt_bytes(scores), fmt_bytes(scores), fmt_time(2 * scores / BW)]
        shares = [row[-1] for row in rows(text, "matmul") if row[-1].endswith("%")]
        assert shares == ["7%", "3%", "3%", "9%", "20%", "26%", "22%"]
        assert "the scores, 268 MB," in text and "needs 47% of the bytes" in text

    def test_decode(self, printed):
        text = part(printed[0], "3. ")
        expected = {
            "eager": (27, "455 MB", 135.8e-6),
            "decomposed": (46, "457 MB", 136.4e-6),
            "fused": (14, "454 MB", 135.6e-6),
            "fused, FlashAttention": (12, "453 MB", 135.3e-6),
        }
        for name, (kernels, moved, roofline) in expected.items():
            launches = 4e-6 * kernels
            (cells,) = rows(text, name)
            assert cells[:5] == [
                *(str(kernels), moved, fmt_time(roofline), fmt_time(launches)),
                f"{launches / (launches + roofline):.0%}",
            ]
            assert int(cells[5]) == pytest.approx(1 / 32 / (launches + roofline), abs=0.6)
        weights = 2 * (2 * 4096 + 2 * 4096**2 + 2 * 4096 * 1024 + 3 * 4096 * 14336)
        assert f"Weights are {fmt_bytes(weights)}" in text and "the cache 16.8 MB" in text

    def test_what_pytorch_2_measured_is_quoted(self, printed):
        text = part(printed[0], "4. ")
        assert rows(text, "everything") == [["1.91×", "1.45×"]]
        assert rows(text, "without fusion and inlining") == [["0.80×", "0.59×"]]
        assert "ASPLOS 2024, table 4; not by this program" in text

    def test_emitted_kernels_move_what_the_graph_says(self, printed):
        text = printed[0][printed[0].index("\n5. ") :]
        T, d, f, H = 16, 128, 344, 8
        bytes_of = {  # not fused: what each operation loads and stores; fused: once
            f"RMSNorm ({T}, {d}) ({d},)": (7 * T * d + d + 8 * T, 2 * T * d + d),
            f"softmax ({H}, {T}, {T})": (8 * H * T * T + 4 * H * T, 2 * H * T * T),
            f"SwiGLU ({T}, {f}) ({T}, {f})": (12 * T * f, 3 * T * f),
        }
        for name, (apart, fused) in bytes_of.items():
            ((_, before, kernels, after, share),) = rows(text, name)
            assert (before, after) == (f"{2 * apart:,} B ✓", f"{2 * fused:,} B ✓")
            assert (kernels, share) == ("1", f"{fused / apart:.0%}")
        for number in ("0", "5", "8"):
            (cells,) = rows(text, number)
            assert cells[2:6] == ["4,096 B", "4,096 B ✓"] * 2
            assert float(cells[6]) < 2**-8  # bf16 has eight digits
        assert "    @triton.jit\n    def fused_mul_sum_div_add_rsqrt(in0, out0):" in text
        assert "- **RoPE**: several kernels are left" in text

    def test_plots(self, printed):
        output, folder = printed
        assert {path.name for path in folder.iterdir()} == {
            *("graph.png", "roofline.png", "bytes.png"),
        }
        for path in folder.iterdir():
            assert path.read_bytes().startswith(b"\x89PNG")
            assert path.stat().st_size > 20_000
            assert f"Saved {path}" in output


def changed(folder: Path, text: str) -> ModuleType:
    """The solution with definitions that replace its own."""
    solution = (SOLUTION / "graph_lab.py").read_text()
    (folder / "graph_lab.py").write_text(solution + "\n\n" + text)
    return load_submission(folder / "graph_lab.py")


def not_started(name: str, task: int) -> str:
    return f"def {name}(*args, **kw):\n    raise NotImplementedError('graph_fusion {task}: do')\n"


class TestOfUnfinishedWork:
    def test_nothing_is_started(self, tmp_path, capsys):
        names = (*layers.PASSES, "fuse")
        lab = changed(tmp_path, "\n\n".join(not_started(name, 6) for name in names))
        for one in demo.PARTS:
            if one is not layers.pytorch_2:
                run(one, lab)
        for plot in demo.PLOTS.values():
            assert not run(plot, lab, tmp_path / "none.png")
        output = capsys.readouterr().out
        assert output.count("not started: graph_fusion 6: do") >= 7
        assert "|" not in output  # no table, and nothing to be seen in one
        assert "\n- " not in output
        assert not (tmp_path / "none.png").exists()

    def test_a_pass_that_is_not_started_is_left_out(self, tmp_path, capsys):
        lab = changed(tmp_path, not_started("fold_norm_weight", 4))
        run(layers.small, lab)
        output = capsys.readouterr().out
        assert "not started: graph_fusion 4: do (fold_norm_weight)" in output
        (cells,) = rows(output, "0")
        assert cells[1] == "mul + sum + div + add + rsqrt + mul + mul"
        assert cells[-1] == "✓"

    def test_without_decompose(self, tmp_path, capsys):
        lab = changed(tmp_path, not_started("decompose", 1))
        run(layers.decode_4096, lab)
        output = capsys.readouterr().out
        assert "not started: graph_fusion 1: do" in output
        assert rows(output, "decomposed") == []
        assert rows(output, "eager")[0][0] == "27"
        assert "What is saved is launches" not in output

    def test_kernels_that_cannot_be_are_marked(self, tmp_path, capsys):
        """The first two kernels in the other order: the second runs on what is not there."""
        lab = changed(
            tmp_path,
            "_fuse = fuse\n\n\n"
            "def fuse(g, enable=True, bind=None):\n"
            "    first, second, *rest = _fuse(g, enable, bind)\n"
            "    return [second, first, *rest]\n",
        )
        run(layers.small, lab)
        assert re.search(
            r"✗ .* needs %\d+, which no earlier kernel has stored", capsys.readouterr().out
        )

    def test_bytes_that_are_not_so_are_marked(self, tmp_path, capsys, monkeypatch):
        """A kernel that says that it loads half of what it does."""
        lab = load_submission(SOLUTION / "graph_lab.py")
        monkeypatch.setattr(layers.Kernel, "reads", property(lambda kernel: 2048))
        run(layers.small, lab)
        run(emitted.emitted, lab)
        output = capsys.readouterr().out
        assert "✗ 4,096 B, 4,096 B" in output
        assert "✗ 4,096 B |" in output

    def test_no_file(self, tmp_path):
        result = invoke("--submission", tmp_path)
        assert result.exit_code == 1
        assert f"there is no {tmp_path / 'graph_lab.py'}" in result.output


def test_no_two_boxes_of_a_row_overlap():
    lab = load_submission(SOLUTION / "graph_lab.py")
    for layer in layers.LAYERS:
        for kernels in plots.variants(lab, layer, plots.SHOWN).values():
            arrows = plots.edges(kernels)
            boxes = plots.placed(kernels, arrows)
            assert all(boxes[a].row < boxes[b].row for a, b in arrows)
            for row in {box.row for box in boxes}:
                xs = sorted(box.x for box in boxes if box.row == row)
                assert all(b - a > plots.WIDTH for a, b in pairwise(xs))


def test_without_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    lab = load_submission(SOLUTION / "graph_lab.py")
    with pytest.raises(click.ClickException, match="pip install matplotlib"):
        plots.plot_graph(lab, tmp_path / "graph.png")


class TestHandout:
    """What the handout prints is what its programs, and the demo, print."""

    README = (HOUSE / "assignments/graph_fusion/README.md").read_text(encoding="utf-8")
    BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)

    def test_tables_are_those_of_the_demo(self, printed):
        output, _ = printed
        tables = [text for _, text in self.BLOCKS if text.startswith("|")]
        assert len(tables) == 2
        for text in tables:
            assert text in output

    def test_the_first_graph(self, capsys):
        place = next(
            i for i, (_, text) in enumerate(self.BLOCKS) if "def step(p, x, cache)" in text
        )
        names: dict[str, object] = {}
        exec(self.BLOCKS[place][1], names)
        assert capsys.readouterr().out == self.BLOCKS[place + 1][1]
        g = names["g"]
        assert (g.root(4), g.root(5), g[8].op, g[8].inputs) == (1, 1, "mul", (6, 7))

    def test_a_pass(self):
        (text,) = (text for _, text in self.BLOCKS if "def doubled(g)" in text)
        names: dict[str, object] = {}
        exec(text, names)
        graph = layers.trace(lambda p, x: exp(x * 2), {"x": (4, 6)})
        after = names["doubled"](graph)
        assert [str(node).partition(" :")[0] for node in after][1:] == [
            *("%1 = add(%0, %0)", "%2 = exp(%1)"),
        ]

    def test_programs_of_the_passes(self):
        """Listings are parts of graphs that are printed here."""
        lab = load_submission(SOLUTION / "graph_lab.py")

        def alike(p, x, y):
            return x * y + y * x, -x, bernoulli(x, 0.5) + bernoulli(x, 0.5)

        def products(p, x):
            h = rms_norm(x, p["w"])
            return h @ p["wq"], h @ p["wk"]

        def attend(p, q, k, v):
            mask = q.constant(causal_mask(3, 5), "mask")
            return softmax(q @ k.permute(0, 2, 1) / 4.0 + mask) @ v

        def reads(p, cache, new):
            before = cache.sum()
            return before + kv_write(cache, new, 0).sum(), cache.sum()

        trace = layers.trace
        norm = lab.decompose(
            trace(lambda p, x, w: rms_norm(x, w), {"x": (2, 4), "w": (4,)}),
        )
        weights = {"w": (4,), "wq": (4, 4), "wk": (4, 2)}
        folded = lab.fold_norm_weight(lab.decompose(trace(products, {"x": (2, 4)}, weights)))[0]
        shapes = {"q": (2, 3, 16), "k": (2, 5, 16), "v": (2, 5, 16)}
        attention = trace(attend, shapes)
        written = trace(reads, {"cache": (4, 2), "new": (1, 2)})
        known = {str(node) for g in (norm, folded, attention, written) for node in g}
        twice = trace(alike, {"x": (2, 4), "y": (2, 4)})
        known |= {str(node) for g in (twice, lab.cse(twice)) for node in g}
        listed = [
            line
            for language, text in self.BLOCKS
            if not language and "cache" not in text
            for line in re.split(r"\n| {3,}", text)
            if line.startswith("%")
        ]
        assert len(listed) > 35
        assert [line for line in listed if line not in known] == []

    def test_kernels(self):
        """Every kernel that is printed is one that `fuse` makes of the program beside it."""
        lab = load_submission(SOLUTION / "graph_lab.py")

        def three(p, x, k, cache, new):
            heads = k.reshape(2, 1, 5, 4).expand(2, 3, 5, 4).reshape(6, 5, 4)
            return x * p["b"] + x, exp(heads), kv_write(cache, new, 7)

        def residual(p, x, a):
            h = x + a @ p["wo"]
            return h, rms_norm(h, p["w"])

        trace = layers.trace
        norm = trace(lambda p, x, w: rms_norm(x, w), {"x": (2, 4), "w": (4,)})
        shapes = {"x": (6, 4), "k": (2, 5, 4), "cache": (16, 4), "new": (1, 4)}
        programs = [
            norm,
            trace(three, shapes, {"b": (4,)}),
            trace(residual, {"x": (16, 128), "a": (16, 128)}, {"wo": (128, 128), "w": (128,)}),
            trace(lambda p, x: softmax(x * 2), {"x": (4, 6)}),
        ]
        made = {str(kernel) for g in programs for kernel in lab.fuse(lab.decompose(g))}
        apart = lab.fuse(lab.decompose(norm), enable=False)
        made |= {str(kernel) for kernel in apart}
        shown = re.findall(
            r"(?:pointwise|rowwise|matmul|opaque): [^(\n|]+ \([^)\n]+\)", self.README
        )
        assert len(shown) == 7 + 1 + 3 + 2 + 1
        assert set(shown) <= made
        assert f"\n{layers.moved(apart)} B. " in self.README
