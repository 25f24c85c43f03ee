"""The kernels run right: against torch, against Triton's interpreter, and in what they count."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import mini_triton
import pytest
import torch

from tests.kernels import (
    cross_entropy,
    examples,
    flash_attention,
    layer_norm,
    layer_norm_backward,
    matmul,
    persistent_matmul,
    softmax,
    vector_add,
)
from tests.mini_triton.comparing import from_triton

EXAMPLES = examples.examples()


@pytest.mark.parametrize("name", EXAMPLES)
def test_agrees_with_torch(name: str) -> None:
    triton, reference = EXAMPLES[name]
    for actual, expected in zip(triton(), reference(), strict=True):
        torch.testing.assert_close(actual, expected, rtol=2e-5, atol=2e-5)


@from_triton((3, 7), "its interpreter takes arrays of one element for numbers; NumPy 2.4 does not")
def test_agree_with_triton_s_interpreter(tmp_path: Path) -> None:
    saved = tmp_path / "interpreted.pt"
    subprocess.run(
        [sys.executable, examples.__file__, str(saved)],
        check=True,
        timeout=240,
        env=os.environ | {"TRITON_INTERPRET": "1"},
    )
    interpreted = torch.load(saved)
    assert interpreted.keys() == EXAMPLES.keys()
    for name, outputs in interpreted.items():
        for actual, expected in zip(EXAMPLES[name][0](), outputs, strict=True):
            torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5, msg=name)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_16_bit_kernels_round_once_at_the_end(dtype: torch.dtype) -> None:
    make = torch.Generator().manual_seed(1)
    x = torch.randn(5, 200, generator=make).to(dtype)
    assert softmax.softmax(x).dtype == dtype
    torch.testing.assert_close(softmax.softmax(x), softmax.reference(x.double()).to(dtype))
    a, b = (torch.randn(64, 64, generator=make).to(dtype) for _ in range(2))
    exact = a.double() @ b.double()
    error = (matmul.matmul(a, b, (32, 32, 32)).double() - exact).abs()
    unit = torch.finfo(dtype).eps / 2
    assert (error <= exact.abs() * unit + 1e-4).all()


def test_tf32_is_what_hardware_would_give() -> None:
    # 1 + 2⁻¹¹ needs 11 bits of mantissa; TF32 has 10 and rounds the tie away from zero.
    a = torch.full((16, 16), 1 + 2.0**-11)
    b = torch.eye(16)
    assert (matmul.matmul(a, b, (16, 16, 16), precision="tf32") == 1 + 2.0**-10).all()
    assert (matmul.matmul(a, b, (16, 16, 16), precision="ieee") == a).all()


def test_vector_add_moves_each_element_once() -> None:
    x = torch.randn(1000)
    with mini_triton.profile() as p:
        vector_add.add(x, x)
    assert (p.loaded, p.stored) == (2000, 1000)
    assert (p.loaded_bytes, p.stored_bytes) == (8000, 4000)


def test_layer_norm_reads_a_row_three_times() -> None:
    x, w = torch.randn(7, 300), torch.randn(300)
    with mini_triton.profile() as p:
        layer_norm.layer_norm(x, w, w, block=128)
    (launch,) = p.launches
    assert launch.tensors["x_ptr"].loaded == 3 * 7 * 300
    assert launch.tensors["w_ptr"].loaded == launch.tensors["b_ptr"].loaded == 7 * 300
    assert launch.stored == 7 * 300


def test_layer_norm_backward_reads_a_row_once_and_weights_once_a_program() -> None:
    x, w, dy = torch.randn(7, 300), torch.randn(300), torch.randn(7, 300)
    with mini_triton.profile(host=False) as p:
        layer_norm_backward.layer_norm_backward(
            x, w, *layer_norm_backward.statistics(x), dy, programs=3
        )
    (launch,) = p.launches
    assert launch.tensors["x_ptr"].loaded == launch.tensors["dy_ptr"].loaded == 7 * 300
    assert launch.tensors["w_ptr"].loaded == 3 * 300
    assert launch.tensors["mean_ptr"].loaded == launch.tensors["rstd_ptr"].loaded == 7
    assert launch.tensors["dx_ptr"].stored == 7 * 300
    assert launch.tensors["dw_ptr"].stored == launch.tensors["db_ptr"].stored == 3 * 300


def test_cross_entropy_reads_no_logit_of_an_ignored_row() -> None:
    x, target = torch.randn(5, 300), torch.tensor([3, -100, 299, 0, -100])
    with mini_triton.profile(host=False) as p:
        cross_entropy.cross_entropy(x, target, block=128)
    (launch,) = p.launches
    assert launch.tensors["x_ptr"].loaded == 3 * (2 * 300 + 1)
    assert launch.tensors["dx_ptr"].stored == 5 * 300
    assert launch.tensors["loss_ptr"].stored == 5


def test_persistent_matmul_moves_what_one_program_a_tile_would() -> None:
    a, b = torch.randn(100, 72), torch.randn(72, 90)
    loaded = []
    for programs in (1, 5, 12):
        with mini_triton.profile() as p:
            c = persistent_matmul.persistent_matmul(a, b, (32, 32, 16), programs=programs)
        torch.testing.assert_close(c, a @ b, rtol=2e-5, atol=2e-5)
        loaded.append(p.loaded)
        assert p.stored == 100 * 90
    assert set(loaded) == {3 * 100 * 72 + 4 * 72 * 90}


@pytest.mark.parametrize(("m", "n", "k"), [(64, 64, 64), (100, 90, 72), (33, 17, 16)])
def test_matmul_reads_a_once_per_column_of_tiles(m: int, n: int, k: int) -> None:
    a, b = torch.randn(m, k), torch.randn(k, n)
    with mini_triton.profile() as p:
        matmul.matmul(a, b, (32, 16, 16))
    (launch,) = p.launches
    tiles_m, tiles_n = -(-m // 32), -(-n // 16)
    # Rows and columns wrap round at the edge (% M), so that a tail tile is read in full.
    assert launch.tensors["a_ptr"].loaded == tiles_n * tiles_m * 32 * k
    assert launch.tensors["b_ptr"].loaded == tiles_m * tiles_n * 16 * k
    assert launch.tensors["c_ptr"].stored == m * n


@pytest.mark.parametrize("causal", [False, True])
def test_flash_forward_reads_keys_once_per_block_of_queries(causal: bool) -> None:
    heads, n, d, block_m, block_n = 2, 100, 32, 32, 16
    q, k, v = (torch.randn(heads, n, d) for _ in range(3))
    with mini_triton.profile() as p:
        flash_attention.flash_forward(q, k, v, causal=causal, block=(block_m, block_n))
    (launch,) = p.launches
    blocks = range(-(-n // block_m))
    ends = [min((i + 1) * block_m, n) if causal else n for i in blocks]
    keys = sum(min(-(-end // block_n) * block_n, n) for end in ends)
    assert launch.tensors["q_ptr"].loaded == heads * n * d
    assert launch.tensors["k_ptr"].loaded == launch.tensors["v_ptr"].loaded == heads * keys * d
    assert launch.tensors["o_ptr"].stored == heads * n * d
    assert launch.tensors["lse_ptr"].stored == heads * n
