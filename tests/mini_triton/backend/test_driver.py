"""Triton's own machinery on the simulator: grids, warmup, autotune, heuristics, hooks, timing."""

import mini_triton
import numpy as np
import pytest
import torch
import triton
import triton.language as tl
import triton.testing

from tests.mini_triton.comparing import assert_same, normal


@triton.jit
def inner(x, factor):
    return x * factor


@triton.jit
def outer(x, factor):
    return inner(inner(x, factor), 2)


@triton.jit
def scale_kernel(x_ptr, y_ptr, n, factor, BLOCK: tl.constexpr):
    i = (tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, outer(tl.load(x_ptr + i, mask=i < n), factor), mask=i < n)


@pytest.mark.parametrize(
    "grid",
    [(4,), (2, 2), (2, 2, 1), lambda meta: (triton.cdiv(20, meta["BLOCK"]), 2), [3]],
    ids=["one", "two", "three", "callable", "list"],
)
def test_grids(grid):
    x, y = normal(20), torch.zeros(20)
    scale_kernel[grid](x, y, 20, 1.5, BLOCK=8)
    assert_same(y, x * 3.0)


@pytest.mark.parametrize("grid", [(torch.tensor(3),), (np.int64(3),)], ids=["torch", "numpy"])
def test_what_else_is_an_integer(grid):
    x, y = normal(20), torch.zeros(20)
    scale_kernel[grid](x, y, 20, 1.5, BLOCK=8)
    assert_same(y, x * 3.0)


def test_an_occupancy_can_be_computed_as_in_tritons_tutorial_of_softmax():
    x, y = normal(20), torch.zeros(20)
    kernel = scale_kernel.warmup(x, y, 20, 2.0, BLOCK=8, grid=(1,))
    kernel._init_handles()
    gpu = triton.runtime.driver.active.utils.get_device_properties(0)
    threads = gpu["warpSize"] * kernel.metadata.num_warps
    occupancy = min(
        gpu["max_num_regs"] // (kernel.n_regs * threads),
        gpu["max_shared_mem"] // kernel.metadata.shared,
    )
    assert 1 <= occupancy <= 2048 // threads


@pytest.mark.parametrize("axis", [4.0, "4", None, torch.tensor(4.0)], ids=repr)
def test_a_grid_of_anything_else_is_refused_as_by_the_launcher_of_a_gpu(axis):
    # On an H200: TypeError: 'float' object cannot be interpreted as an integer.
    x, y = normal(20), torch.zeros(20)
    with pytest.raises(TypeError, match=r"integer.*; divide with triton\.cdiv or //") as caught:
        scale_kernel[(1, axis)](x, y, 20, 1.5, BLOCK=8)
    assert "kernel scale_kernel, grid (" in str(caught.value)
    assert not y.any()


def test_keyword_arguments_and_defaults_of_launches():
    x, y = normal(20), torch.zeros(20)
    scale_kernel[(3,)](n=20, y_ptr=y, x_ptr=x, factor=2.0, BLOCK=8, num_warps=8, num_stages=2)
    assert_same(y, x * 4.0)
    with pytest.raises(AssertionError, match="num_warps must be a power of 2"):
        scale_kernel[(3,)](x, y, 20, 2.0, BLOCK=16, num_warps=3)


def test_options_of_other_backends_and_options_of_none():
    x, y = normal(20), torch.zeros(20)
    scale_kernel[(3,)](x, y, 20, 2.0, BLOCK=8, maxnreg=64, waves_per_eu=2, kpack=1)
    assert_same(y, x * 4.0)
    with pytest.raises(KeyError, match="waves_per_cu was specified but unrecognised"):
        scale_kernel[(3,)](x, y, 20, 2.0, BLOCK=8, waves_per_cu=2)


def test_triton_s_default_for_fused_multiplication_holds(monkeypatch):
    monkeypatch.setattr(triton.knobs.language, "default_fp_fusion", False)
    compiled = scale_kernel.warmup(torch.float16, torch.float16, 20, 0.25, BLOCK=8, grid=(3,))
    assert compiled.metadata.enable_fp_fusion is False


def test_warmup_compiles_and_runs_nothing():
    x, y = normal(20), torch.zeros(20)
    with mini_triton.profile() as p:
        compiled = scale_kernel.warmup(x, y, 20, 0.25, BLOCK=8, grid=(3,))
        assert "tt.func public @scale_kernel" in compiled.asm["ttir"]
        by_dtype = scale_kernel.warmup(torch.float32, torch.float32, 20, 0.25, BLOCK=8, grid=(3,))
        assert by_dtype.metadata.num_warps == 4
    assert p.launches == []
    assert not y.any()
    compiled[(3, 1, 1)](x, y, 20, 0.25, 8)
    assert_same(y, x * 0.5)


@triton.autotune(
    configs=[triton.Config({"BLOCK": 4}), triton.Config({"BLOCK": 16}, num_warps=8)], key=["n"]
)
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def tuned_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        tl.store(y_ptr + i, tl.load(x_ptr + i) + 1)
    else:
        tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n) + 1, mask=i < n)


@pytest.mark.parametrize("n", [32, 21])
def test_autotune_over_heuristics(n):
    """Each configuration is tried, one is kept, and torch's counters see nothing of it."""
    x, y = normal(n), torch.zeros(n)
    with mini_triton.profile() as p:
        tuned_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, n)
    assert_same(y, x + 1)
    assert {launch.grid[0] for launch in p.launches} == {triton.cdiv(n, 4), triton.cdiv(n, 16)}
    assert {launch.loaded for launch in p.launches} == {n}
    assert p.host == []
    with mini_triton.profile() as p:
        tuned_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, n)
    assert len(p.launches) == 1
    assert tuned_kernel.best_config.kwargs["BLOCK"] == 4  # both move as much: the first


@triton.autotune(configs=[triton.Config({"ROUNDS": k}) for k in (3, 1, 2)], key=["n"])
@triton.jit
def rereading_kernel(x_ptr, y_ptr, n, ROUNDS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for k in range(ROUNDS):
        x = tl.load(x_ptr + (i + k) % n)
        tl.store(y_ptr + i, x - k)


def test_autotune_takes_what_moves_least():
    x, y = normal(32), torch.zeros(32)
    with mini_triton.profile(host=False) as p:
        rereading_kernel[(1,)](x, y, 32, BLOCK=32)
    assert rereading_kernel.best_config.kwargs["ROUNDS"] == 1
    assert [launch.loaded for launch in p.launches] == [96, 32, 64, 32]
    assert_same(y, x)


@triton.autotune(
    configs=[triton.Config({"BLOCK": 8}), triton.Config({"BLOCK": 32})],
    key=["n"],
    reset_to_zero=["y_ptr"],
)
@triton.jit
def accumulating_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(y_ptr + i % 4, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def test_autotune_resets_what_trials_have_changed():
    x, y = torch.ones(32), torch.zeros(4)
    accumulating_kernel[lambda meta: (triton.cdiv(32, meta["BLOCK"]),)](x, y, 32)
    assert y.tolist() == [8.0] * 4


@triton.heuristics({"BLOCK": lambda args: triton.next_power_of_2(args["n"])})
@triton.jit
def row_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr, tl.sum(tl.load(x_ptr + i, mask=i < n, other=0.0)))


def test_heuristics():
    x, out = torch.arange(11.0), torch.zeros(1)
    row_kernel[(1,)](x, out, 11)
    assert out.item() == 55.0


def test_specialisation_does_not_change_results():
    """Arguments equal to 1 and multiples of 16 are compiled in; others are not."""
    for n in (1, 2, 16, 17, 32):
        x, y = normal(32), torch.zeros(32)
        scale_kernel[(4,)](x, y, n, 1, BLOCK=8)
        assert_same(y[:n], x[:n] * 2)
        assert not y[n:].any()


def test_large_and_negative_scalar_arguments():
    @triton.jit
    def scalars_kernel(out_ptr, a, b, c):
        tl.store(out_ptr, a)
        tl.store(out_ptr + 1, b)
        tl.store(out_ptr + 2, c)

    out = torch.zeros(3, dtype=torch.int64)
    scalars_kernel[(1,)](out, -(2**63), 2**40 + 1, True)
    assert out.tolist() == [-(2**63), 2**40 + 1, 1]
    scalars_kernel[(1,)](out, 2**64 - 1, -7, False)
    assert out.tolist() == [-1, -7, 0]


def test_launches_in_a_dispatch_mode_and_with_gradients():
    """Inputs that require gradients are read like others; torch's modes do not see the kernel."""
    x, y = normal(20).requires_grad_(), torch.zeros(20)
    with torch.utils._python_dispatch.TorchDispatchMode():
        scale_kernel[(3,)](x, y, 20, 0.5, BLOCK=8)
    assert_same(y, x.detach())
    parameter = torch.nn.Parameter(normal(20))
    with torch.inference_mode():
        scale_kernel[(3,)](parameter, y, 20, 1.0, BLOCK=8)
    assert_same(y, parameter.detach() * 2)


def test_timing_by_tritons_own_means():
    x, y = normal(20), torch.zeros(20)
    launch = lambda: scale_kernel[(3,)](x, y, 20, 1.5, BLOCK=8)  # noqa: E731
    assert triton.testing.do_bench(launch, warmup=1, rep=1) > 0
    low, high = triton.testing.do_bench(launch, warmup=1, rep=1, quantiles=[0.2, 0.8])
    assert 0 < low <= high


def test_errors_of_the_front_end_are_tritons_own():
    @triton.jit
    def wrong_kernel(x_ptr):
        tl.store(x_ptr, tl.arange(0, 3))

    with pytest.raises(triton.CompilationError, match="power of 2"):
        wrong_kernel[(1,)](normal(4))


def test_the_emulated_device():
    driver = triton.runtime.driver.active
    assert driver.get_current_device() == 0
    assert driver.get_active_torch_device() == torch.device("cpu")
    assert driver.utils.get_device_properties(0)["multiprocessor_count"] == 132
    driver.set_current_device(0)
    with pytest.raises(mini_triton.BadLaunch, match="device 1 was asked"):
        driver.set_current_device(1)


def test_hooks_around_launches(monkeypatch):
    seen = []
    monkeypatch.setattr(
        triton.knobs.runtime, "launch_enter_hook", lambda metadata: seen.append("enter")
    )
    monkeypatch.setattr(
        triton.knobs.runtime, "launch_exit_hook", lambda metadata: seen.append("exit")
    )
    scale_kernel[(3,)](normal(20), torch.zeros(20), 20, 1.5, BLOCK=8)
    assert seen == ["enter", "exit"]


def test_a_tensor_reinterpreted_as_another_type_of_the_same_size():
    bits = torch.tensor([-1, 2], dtype=torch.int16)
    y = torch.zeros(2)
    scale_kernel[(1,)](triton.reinterpret(bits, tl.uint16), y, 2, 0.5, BLOCK=2)
    assert_same(y, torch.tensor([65535.0, 2.0]))


def test_a_file_of_ttir_runs(tmp_path):
    path = tmp_path / "by_hand.ttir"
    path.write_text(
        """
        module {
          tt.func public @four(%y: !tt.ptr<f32>, %n: i32) {
            %four = arith.constant 4.0 : f32
            %last = tt.addptr %y, %n : !tt.ptr<f32>, i32
            tt.store %last, %four : !tt.ptr<f32>
            tt.return
          }
        }
        """
    )
    y = torch.zeros(3)
    with mini_triton.profile() as p:
        triton.compile(str(path))[(1, 1, 1)](y, 2)
    assert y.tolist() == [0, 0, 4]
    assert p.launches[0].tensors["0"].stored == 1
