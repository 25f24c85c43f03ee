"""The course's reference documents run unmodified on our modules, and their figures come out.

The documents are not part of the repository. Where a folder `shared/reference` lies beside the
checkout they are run; elsewhere these tests are skipped and say so.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from comm_sim import NVLINK4, Comm, switch, t_formula
from hw_specs import H100
from llm_math import LLAMA3_8B
from transformer_lab import TINY, KVCache, forward, init_params

HOUSE = Path(__file__).resolve().parents[2]
REFERENCE = HOUSE.parent / "shared" / "reference"


def run(name: str, *folders: str) -> str:
    """What the document prints to a pipe; it imports from these folders of the repository."""
    document = REFERENCE / name
    if not document.exists():
        pytest.skip(f"the reference document {name} is not beside this checkout")
    done = subprocess.run(
        [sys.executable, str(document)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(str(HOUSE / folder) for folder in folders)},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def tables(output: str) -> list[list[list[str]]]:
    """The tables that `console` has printed: for each its rows of cells, without the headers."""
    found: list[list[list[str]]] = []
    inside = False
    for line in output.splitlines():
        if line.startswith("|--"):
            found.append([])
        elif line.startswith("|") and inside:
            found[-1].append([cell.strip() for cell in line.strip("|").split("|")])
        inside = line.startswith("|") and bool(found)
    return found


UNITS = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "µs": 1e-6, "ms": 1e-3, "s": 1}


def quantity(text: str) -> float:
    """ "8.75 GB" in bytes, "16.3 ms" in seconds."""
    match = re.match(r"([\d.,]+) ([A-Za-zµ]+)", text)
    assert match is not None, text
    return float(match[1].replace(",", "")) * UNITS[match[2]]


def printed(value: float) -> object:
    """What three significant digits make of a number."""
    return pytest.approx(value, rel=0.005)


def test_rmsnorm() -> None:
    output = run("05_triton_rmsnorm.py")
    differences = [float(x) for x in re.findall(r"\d\.\de[+-]\d+", output)]
    assert len(differences) == 9
    assert max(differences) < 1e-5
    counts = [int(c.replace(",", "")) for c in re.findall(r"\d{3},\d{3}", output)]
    m, n = 256, 1024
    assert counts == [m * n, 2 * m * n, m * n + m, 3 * m * n + m, 2 * m * n]
    assert counts[1:] == [524_288, 262_400, 786_688, 524_288]


@pytest.fixture(scope="module")
def flash_forward() -> str:
    return run("02_flash_forward.py", "shared", "solutions/flash_attention")


@pytest.fixture(scope="module")
def four(flash_forward: str) -> list[list[list[str]]]:
    """Its four tables."""
    found = tables(flash_forward)
    assert [len(rows) for rows in found] == [8, 5, 6, 5]
    return found


class TestFlashForward:
    """`02_flash_forward.py`: each figure of its tables from arithmetic, each claim of its text."""

    D = 64
    M = 51_200  # 100 KB of 16-bit numbers

    def fa1(self, N: int, Bc: int) -> int:
        return 2 * N * self.D + -(-N // Bc) * (3 * N * self.D + 4 * N)

    def fa2(self, N: int, Br: int) -> int:
        return 2 * N * self.D + N + -(-N // Br) * 2 * N * self.D

    def standard(self, N: int) -> int:
        return 4 * N * N + 4 * N * self.D

    def test_both_orders_are_exact(self, four: list[list[list[str]]]) -> None:
        errors = [float(cell) for row in four[0] for cell in row[3:]]
        assert len(errors) == 16
        assert 0 < max(errors) <= 1e-14

    def test_bytes_against_n(self, four: list[list[list[str]]]) -> None:
        ratios = []
        for row, N in zip(four[1], (512, 1024, 2048, 4096, 8192), strict=True):
            moved = self.standard(N), self.fa1(N, 200), self.fa2(N, 64), self.fa2(N, 128)
            standard, first, second, wider = moved
            unit = N * N * self.D**2 / self.M
            assert int(row[0].replace(",", "")) == N
            assert [quantity(cell) for cell in row[1:5]] == [printed(2 * n) for n in moved]
            shown = [standard / first, first / unit, second / unit]
            assert row[5:8] == [f"{ratio:.1f}" for ratio in shown]
            assert row[8] == "1.000"  # tiles add no operation
            # "3–4 times less than standard attention": 4.04 at N = 8,192.
            assert 3 <= float(row[5]) <= 4.1
            # "÷ (N²d²/M)" is about 12 to 25 and hardly depends on N.
            assert 12 <= float(row[6]) <= float(row[7]) <= 28.2
            ratios.append((second / first, wider / first))
        # For long sequences FA-2's order moves twice what algorithm 1 does (400 / 196 = 2.04 times)
        # with 64 × 200, and as much (1.02 times) with 128 × 64.
        assert [twice for twice, _ in ratios] == sorted(twice for twice, _ in ratios)
        assert ratios[-1] == (pytest.approx(2, abs=0.05), pytest.approx(1, abs=0.05))
        assert all(1.6 < twice < 2.05 and 0.87 < equal < 1.03 for twice, equal in ratios)

    def test_bytes_against_sram(self, flash_forward: str, four: list[list[list[str]]]) -> None:
        N = 4096
        times_m = []
        for row, kb in zip(four[2], (16, 32, 64, 100, 192, 256), strict=True):
            M = kb * 512
            Bc = -(-M // (4 * self.D))
            Br = min(Bc, self.D)
            assert row[:2] == [f"{kb} KB", f"{Br}×{Bc}"]
            moved = self.fa1(N, Bc), self.fa2(N, Br), N * N * self.D**2 / M
            assert [quantity(cell) for cell in row[2:5]] == [printed(2 * n) for n in moved]
            assert row[5] == f"{self.standard(N) / self.fa2(N, Br):.1f}"
            assert moved[2] < min(moved[:2])
            times_m.append(moved[0] * M)
            # From 32 KB on Br is capped at d, and FA-2's order gains no more.
            assert kb < 32 or moved[1] == self.fa2(N, 64)
        # Algorithm 1 moves about 1/M.
        assert max(times_m) < 1.1 * min(times_m)
        standard = next(
            line
            for line in flash_forward.splitlines()
            if " MB" in line and not line.startswith(("|", "-"))
        )
        found = re.search(r"[\d.]+ MB", standard)
        assert found is not None and quantity(found[0]) == printed(2 * self.standard(N))

    def test_gpt2_medium(self, four: list[list[list[str]]]) -> None:
        N, d, heads = 1024, self.D, 1024
        standard, papers, square, *measured = four[3]
        product = 2 * N * N * d * heads  # operations

        def backward(Bc: int) -> int:
            return -(-N // Bc) * (4 * N * d + 2 * N) + 7 * N * d + N

        moved = [
            2 * heads * (self.standard(N) + 7 * N * N + 9 * N * d),
            2 * heads * (self.fa2(N, 64) + backward(200)),
            2 * heads * (self.fa2(N, 128) + backward(128)),
        ]
        for row, products, n in zip((standard, papers, square), (6, 7, 7), moved, strict=True):
            assert row[1] == f"{products * product / 1e9:.1f}"
            assert quantity(row[2]) == printed(n)
            compute, memory, bound = (quantity(cell) for cell in row[3:])
            assert compute == printed(products * product / 312e12)
            assert memory == printed(n / 1.555e12)
            assert bound == memory > compute
        # 25 GB against 7.7 to 8.8 GB, about a third; 16.3 ms against 4.9 to 5.6 ms.
        assert [row[2] for row in (standard, papers, square)] == ["25.4 GB", "8.75 GB", "7.69 GB"]
        assert [row[5] for row in (standard, papers, square)] == ["16.3 ms", "5.63 ms", "4.94 ms"]
        assert all(2.8 < moved[0] / n < 3.4 for n in moved[1:])
        # 14 for 12 N²d operations is 17% more; memory is 6 times compute, then 1.6 to 1.8 times.
        assert float(papers[1]) / float(standard[1]) == pytest.approx(14 / 12, abs=1e-3)
        assert quantity(standard[4]) / quantity(standard[3]) == pytest.approx(6, abs=0.3)
        assert quantity(square[4]) / quantity(square[3]) == pytest.approx(1.6, abs=0.05)
        assert quantity(papers[4]) / quantity(papers[3]) == pytest.approx(1.8, abs=0.05)
        # Blocks of 128 × 128 move about 12% less than those of 64 × 200.
        assert 1 - moved[2] / moved[1] == pytest.approx(0.12, abs=0.005)
        # What the paper measured is quoted.
        assert [row[1:3] for row in measured] == [["66.6", "40.3 GB"], ["75.2", "4.4 GB"]]
        assert [quantity(row[5]) for row in measured] == [0.0417, 0.0073]


@pytest.fixture(scope="module")
def fusion() -> list[list[list[str]]]:
    """The tables of `03_fusion.py`."""
    found = tables(run("03_fusion.py", "shared", "solutions/graph_fusion"))
    assert [len(rows) for rows in found] == [10, 4, 4, 4, 9]
    return found


class TestFusion:
    """`03_fusion.py`: each cell that is a figure of the facts, and what its text observes."""

    # Kernels, bytes, seconds of the rooflines, seconds with launches.
    PREFILL = (
        (26, 3.62e9, 1754e-6, 1858e-6),
        (45, 5.81e9, 2408e-6, 2588e-6),
        (12, 2.06e9, 1262e-6, 1310e-6),
        (10, 0.975e9, 996e-6, 1036e-6),
    )
    DECODE = (
        (27, 0.4551e9, 135.8e-6, 243.8e-6),
        (46, 0.4569e9, 136.4e-6, 320.4e-6),
        (14, 0.4543e9, 135.6e-6, 191.6e-6),
        (12, 0.4533e9, 135.3e-6, 183.3e-6),
    )

    def test_a_small_layer(self, fusion: list[list[list[str]]]) -> None:
        rows = fusion[0]
        d, T, H, G, dh, f = 128, 16, 8, 2, 16, 344
        assert [row[1] for row in rows].count("matmul") == 7
        # The norm reads x and writes x̂, nothing else.
        assert [rows[0][1], rows[0][3]] == ["rowwise", "6"]
        assert [quantity(cell) for cell in rows[0][4:]] == [printed(2 * T * d)] * 2
        # Products of Q and K have the rotation in their epilogues, that of V has none.
        assert [row[2].endswith("mul + rot_pairs + mul + add") for row in rows[1:4]] == [1, 1, 0]
        both = 2 * (2 * T * dh)  # cosines and sines
        reads = [2 * (T * d + d * n * dh) + extra for n, extra in ((H, both), (G, both), (G, 0))]
        assert [quantity(row[4]) for row in rows[1:4]] == [printed(n) for n in reads]
        assert rows[4][2] == "flash_attention"
        assert rows[7][2].endswith("neg + exp + add + div") and rows[8][2].endswith(" + mul")
        assert quantity(rows[8][4]) == printed(2 * (T * d + d * f + T * f))
        assert rows[5][2].endswith(" + add") and rows[9][2].endswith(" + add")

    def test_prefill(self, fusion: list[list[list[str]]]) -> None:
        eager = self.PREFILL[0][3]
        for row, (kernels, moved, roofline, launched) in zip(fusion[1], self.PREFILL, strict=True):
            assert int(row[1]) == kernels
            assert quantity(row[2]) == printed(moved)
            assert int(row[3]) == pytest.approx(963, abs=1)
            assert [quantity(cell) for cell in row[4:6]] == [printed(roofline), printed(launched)]
            assert row[6] == f"{eager / launched:.2f}×"
        # Decomposed and not fused is slower than eager.
        assert float(fusion[1][1][6].rstrip("×")) < 1

    def test_the_slowest_kernels(self, fusion: list[list[list[str]]]) -> None:
        gate, up, down, softmax = fusion[2]
        for row in (gate, up, down):
            product = 2 * 2048 * 4096 * 14336 / 989e12
            assert row[0] == "matmul"
            assert quantity(row[4]) == pytest.approx(product, rel=0.01)  # bound by arithmetic
        assert softmax[0] == "rowwise"
        scores = 32 * 2048 * 2048 * 2
        assert [quantity(cell) for cell in softmax[2:4]] == [printed(scores)] * 2
        assert quantity(softmax[4]) == printed(2 * scores / 3.35e12)

    def test_decode(self, fusion: list[list[list[str]]]) -> None:
        for row, (kernels, moved, roofline, launched) in zip(fusion[3], self.DECODE, strict=True):
            assert int(row[1]) == kernels
            assert quantity(row[2]) == printed(moved)
            assert quantity(row[3]) == printed(roofline)
            assert quantity(row[4]) == printed(kernels * 4e-6)
            assert row[5] == f"{kernels * 4e-6 / launched:.0%}"
            assert int(row[6]) == pytest.approx(1 / (32 * launched), abs=0.6)
        # From 46 kernels, whose launches take longer than their work, to 12 that take a quarter.
        assert self.DECODE[1][2] < 46 * 4e-6
        assert 12 * 4e-6 / self.DECODE[3][3] == pytest.approx(0.25, abs=0.02)

    def test_what_pytorch_2_found_is_quoted(self, fusion: list[list[list[str]]]) -> None:
        # J. Ansel et al., "PyTorch 2", ASPLOS 2024, table 4: inference and training.
        assert [row[1:] for row in fusion[4]] == [
            [f"{a:.2f}×", f"{b:.2f}×"]
            for a, b in (
                (1.91, 1.45),
                (1.91, 1.28),
                (1.85, 1.41),
                (1.85, 1.45),
                (1.83, 1.45),
                (1.81, 1.37),
                (1.68, 1.27),
                (1.58, 1.31),
                (0.80, 0.59),
            )
        ]


@pytest.fixture(scope="module")
def shard_lab() -> Iterator[ModuleType]:
    document = REFERENCE / "shard_lab.py"
    if not document.exists():
        pytest.skip("the reference document shard_lab.py is not beside this checkout")
    spec = importlib.util.spec_from_file_location("reference_shard_lab", document)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    path = list(sys.path)  # the document puts folders of its course in front
    spec.loader.exec_module(module)
    yield module
    sys.path[:] = path


class TestShardLab:
    """`shard_lab.py`: its self-test, and what that leaves out: caches, tied heads, costs."""

    TOKENS = np.random.default_rng(7).integers(0, TINY.vocab, size=(2, 9))

    def test_its_self_test_passes(self) -> None:
        assert "1/2/4/8" in run("shard_lab.py", "shared")

    @pytest.mark.parametrize("n", [1, 2, 4, 8])
    def test_a_forward_has_two_all_reduces_a_layer(self, shard_lab: ModuleType, n: int) -> None:
        params = init_params(TINY, seed=5)
        comm = shard_lab.make_comm(n)
        shards = shard_lab.shard_params_tp(params, TINY, n)
        logits = shard_lab.tp_forward(shards, TINY, self.TOKENS, comm)
        assert np.max(np.abs(logits - forward(params, TINY, self.TOKENS))) < 1e-12
        assert comm.get_comm_counts() == {
            "all_reduce": 2 * TINY.n_layers,
            "all_gather_into_tensor": 1,
        }
        sums, logits_bytes = 8 * 2 * 9 * TINY.d_model, 8 * 2 * 9 * TINY.vocab
        assert comm.time == pytest.approx(
            2 * TINY.n_layers * t_formula("ring", n, sums, NVLINK4.alpha, NVLINK4.bw)
            + t_formula("all_gather", n, logits_bytes, NVLINK4.alpha, NVLINK4.bw)
        )

    @pytest.mark.parametrize("n", [1, 2, 4, 8])
    def test_it_decodes_with_a_cache_a_device(self, shard_lab: ModuleType, n: int) -> None:
        params = init_params(TINY, seed=6, tied=True)
        shards = shard_lab.shard_params_tp(params, TINY, n)
        caches = shard_lab.tp_caches(TINY, shards, batch=2)
        logits = [
            shard_lab.tp_forward(shards, TINY, tokens, Comm(switch(n, NVLINK4)), caches)
            for tokens in (self.TOKENS[:, :6], self.TOKENS[:, 6:7], self.TOKENS[:, 7:])
        ]
        whole = forward(params, TINY, self.TOKENS)
        assert np.max(np.abs(np.concatenate(logits, axis=1) - whole)) < 1e-12
        # At n = 8 each of four KV heads is kept twice.
        copies = max(1, n // TINY.n_kv_heads)
        assert sum(cache.nbytes for cache in caches) == copies * KVCache(TINY, batch=2).nbytes

    @pytest.mark.parametrize("n", [1, 2, 8, 16])
    def test_a_decode_step_of_llama_8b(self, shard_lab: ModuleType, n: int) -> None:
        batch, ctx = 16, 4096
        step = shard_lab.tp_decode_step(LLAMA3_8B, H100, NVLINK4, n, batch, ctx)
        kv = 131_072 * max(1, n / 8) / n
        operations = 2 * 7_504_658_432 + 4 * 32 * 128 * 32 * ctx
        messages = 0 if n == 1 else 64 * (2 * (n - 1) * (1.9e-6 + batch * 8192 / n / 450e9))
        assert step["kv_per_chip_per_token"] == kv
        assert step["n_allreduce"] == 64
        assert step["t_math"] == pytest.approx(batch * operations / n / 989e12)
        assert step["t_mem"] == pytest.approx((2 * 7_504_658_432 / n + batch * ctx * kv) / 3.35e12)
        assert step["t_comm"] == pytest.approx(messages)
        assert step["t_step"] == pytest.approx(step["t_mem"] + messages)  # memory is the bound
