"""Emitted Triton kernels on the simulator: the values of the executor, the bytes of the graph."""

from __future__ import annotations

import mini_triton
import numpy as np
import pytest
import torch
import triton
from graph_ir import LLAMA8B, Graph, IndexMaps, Kernel, prefill_layer, trace
from graph_ir.emit import Program, emit, load, torch_dtype
from graph_ir.execute import evaluator, show, start
from graph_ir.kernels import total_bytes
from graph_ir.layout import KernelError
from graph_ir.trace import (
    Tensor,
    bernoulli,
    exp,
    maximum,
    rms_norm,
    rot_pairs,
    silu,
    softmax,
    where,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from tests.graph_ir.programs import Sample, samples
from tests.graph_ir.solution import lab


def values(graph: Graph, inputs: dict[str, np.ndarray]) -> dict[int, np.ndarray]:
    """What the executor finds for every node that computes, and the leaves."""
    memory, context = start(graph, inputs, None, rounding=False)
    evaluate = evaluator(graph, context, seed=5, rounding=False)
    for node in graph:
        if node.computes:
            operands = [show(graph, memory, i, context).copy() for i in node.inputs]
            memory[node.id] = evaluate(node, operands)
    return memory


def launched(program: Program, known: dict[int, np.ndarray]) -> mini_triton.Profile:
    """Runs it on the executor's values, and compares what it stores; returns what it moved."""
    graph = program.kernel.graph
    tensors = {
        i: torch.tensor(known[i]).to(torch_dtype(graph[i].dtype)).contiguous()
        for i in program.kernel.inputs
    }
    with mini_triton.profile(host=False) as profile:
        stored = program.launch(tensors)
    precise = graph[program.kernel.nodes[-1].id].dtype == "f64"
    for number, tensor in stored.items():
        result = tensor.double().numpy()
        tolerance = 1e-11 if precise else 2e-2
        assert np.allclose(result, known[number], rtol=tolerance, atol=tolerance, equal_nan=True), (
            program.source
        )
    return profile


def rope(x: Tensor, c: Tensor, s: Tensor) -> Tensor:
    return x * c + rot_pairs(x) * s


def written(graph: Graph) -> list[Kernel]:
    return [k for k in lab.fuse(graph) if k.kind in ("pointwise", "rowwise")]


@settings(max_examples=40, deadline=None)
@given(
    sample=samples(steps=16, impure=False),
    tile=st.sampled_from((2, 8, 1024)),
    side=st.sampled_from((0, 1 << 14)),
    programs=st.sampled_from((None, None, 1, 3)),
)
def test_random_kernels(sample: Sample, tile: int, side: int, programs: int | None) -> None:
    # Simplified: of where(c, x, x) Triton, too, drops the condition, and what it would have loaded.
    graph = lab.simplify(lab.cse(lab.decompose(sample.graph)))[0]
    known = values(graph, sample.copies())
    maps = IndexMaps(graph)
    for kernel in written(graph):
        program = emit(kernel, tile=tile, programs=programs, side=side, maps=maps)
        profile = launched(program, known)
        assert profile.loaded_bytes == program.loaded_bytes >= kernel.reads, program.source
        assert profile.stored_bytes == kernel.writes
        if side and programs is None and tile == 1024:
            assert profile.loaded_bytes == kernel.reads, program.source


@settings(max_examples=15, deadline=None)
@given(sample=samples(steps=16, impure=False, dtypes=("f64", "f32", "bf16", "f16")))
def test_bytes_of_mixed_dtypes(sample: Sample) -> None:
    graph = lab.simplify(lab.cse(lab.decompose(sample.graph)))[0]
    known = values(graph, sample.copies())
    for kernel in written(graph):
        tensors = {
            i: torch.tensor(known[i]).to(torch_dtype(graph[i].dtype)).contiguous()
            for i in kernel.inputs
        }
        with mini_triton.profile(host=False) as profile:
            stored = emit(kernel).launch(tensors)
        assert profile.loaded_bytes == kernel.reads
        assert profile.stored_bytes == kernel.writes
        assert all(t.dtype == torch_dtype(graph[i].dtype) for i, t in stored.items())


def row(p: dict[str, Tensor], x: Tensor) -> Tensor:
    return softmax(x * p["w"] + 1)


@pytest.mark.parametrize("dtype", ["f64", "f32", "bf16"])
@pytest.mark.parametrize("width", [1, 7, 64, 100, 1024, 1025, 3000])
def test_rows_of_any_width(width: int, dtype: str) -> None:
    rng = np.random.default_rng(width)
    w, x = rng.standard_normal(width), rng.standard_normal((5, width))
    graph = lab.decompose(trace(row, {"x": (5, width)}, {"w": w}, dtype=dtype))
    (kernel,) = written(graph)
    assert kernel.kind == "rowwise"
    rounded = torch.tensor(x).to(torch_dtype(dtype)).double().numpy()
    program = emit(kernel, tile=1024)
    profile = launched(program, values(graph, {"x": rounded}))
    size = torch_dtype(dtype).itemsize
    # A row wider than a tile is loaded in three passes: maximum, sum, quotient. The weight is not.
    passes = 3 if width > 1024 else 1
    assert profile.loaded_bytes == (passes * 5 * width + width) * size
    assert profile.stored_bytes == kernel.writes == 5 * width * size
    assert kernel.reads == (5 * width + width) * size


def test_the_kernels_of_a_layer_of_llama_8b() -> None:
    T = 48
    params = {name: np.ones(shape) for name, shape in LLAMA8B.shapes().items() if len(shape) == 1}
    shapes = LLAMA8B.shapes() | params
    graph = trace(prefill_layer(LLAMA8B, T), {"x": (T, LLAMA8B.d)}, shapes)
    graph = lab.fold_norm_weight(lab.cse(lab.decompose(graph)))[0]
    norm, softmax_, other = written(graph)
    rng = np.random.default_rng(0)
    for kernel, shape in ((norm, (T, 4096)), (softmax_, (32, T, T)), (other, (T, 4096))):
        assert kernel.kind == "rowwise" and kernel.reads == kernel.writes == 2 * np.prod(shape)
        x = torch.tensor(rng.standard_normal(shape)).bfloat16()
        with mini_triton.profile(host=False) as profile:
            (y,) = emit(kernel).launch({kernel.inputs[0]: x}).values()
        assert (profile.loaded_bytes, profile.stored_bytes) == (kernel.reads, kernel.writes)
        exact = x.double()
        right = (
            exact.softmax(-1)
            if kernel is softmax_
            else exact / (exact.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt()
        )
        assert torch.allclose(y.double(), right, rtol=5e-3, atol=5e-3)


HOPPER = GPUTarget("cuda", 90, 32)


@pytest.mark.parametrize(
    ("fn", "shapes", "dtype"),
    [
        (lambda p, x, w: rms_norm(x, w), [(64, 4096), (4096,)], "bf16"),  # w at the side
        (lambda p, x: softmax(x), [(64, 5000)], "f32"),  # piece by piece
        (lambda p, x, c, s: rope(-x, c, s), [(64, 32, 128), (64, 1, 128), (64, 1, 128)], "bf16"),
        (lambda p, x, y: silu(x) * y, [(64, 14336)] * 2, "bf16"),
        (lambda p, x, y: where(x < y, maximum(x, y), -0.0), [(8, 100)] * 2, "f64"),
    ],
)
def test_they_compile_for_a_gpu(fn: object, shapes: list[tuple[int, ...]], dtype: str) -> None:
    names = fn.__code__.co_varnames[1 : 1 + len(shapes)]  # type: ignore[attr-defined]
    graph = lab.decompose(trace(fn, dict(zip(names, shapes, strict=True)), dtype=dtype))
    for kernel in written(graph):
        program = emit(kernel)
        function = load(program.source, program.name)
        pointer = {"bf16": "*bf16", "f32": "*fp32", "f64": "*fp64"}[dtype]
        signature = dict.fromkeys(function.arg_names, pointer)
        built = triton.compile(ASTSource(function, signature, {}), target=HOPPER)
        assert built.asm["cubin"]
        assert built.metadata.shared <= 227 * 1024  # what a multiprocessor of an H100 has


def test_several_outputs_shared_rows_and_two_orders_of_one_input() -> None:
    def program(p: dict[str, Tensor], x: Tensor, s: Tensor) -> tuple[Tensor, ...]:
        centred = x - x.max()
        total = exp(centred).sum() * s  # one number a row, an output too
        return centred / total, total, x + x.permute(1, 0)

    graph = trace(program, {"x": (6, 6), "s": (6, 1)}, dtype="f64")
    x, s = np.random.default_rng(1).standard_normal((2, 6, 6))
    known = values(graph, {"x": x, "s": s[:, :1]})
    rows, square = written(graph)
    assert [rows.kind, square.kind] == ["rowwise", "pointwise"]
    assert len(rows.outputs) == 2
    for kernel in (rows, square):
        profile = launched(emit(kernel), known)
        assert profile.loaded_bytes + profile.stored_bytes == kernel.reads + kernel.writes
    # Without a place for x at its side, the second order is loaded again.
    assert launched(emit(square, side=0), known).loaded_bytes == 2 * square.reads


def test_each_program_loads_what_it_keeps_at_its_side() -> None:
    graph = trace(lambda p, x: x * p["w"], {"x": (64, 32)}, {"w": np.ones(32)}, dtype="f32")
    (kernel,) = written(graph)
    known = values(graph, {"x": np.ones((64, 32))})
    for programs in (1, 2, 7):
        profile = launched(emit(kernel, tile=64, programs=programs), known)
        assert profile.loaded_bytes == kernel.reads + (programs - 1) * 32 * 4


def test_rope_moves_elements_within_rows_of_any_even_width() -> None:
    for width in (2, 6, 8, 130):
        graph = trace(
            lambda p, x, c, s: rope(-x, c, s),
            {"x": (5, 3, width), "c": (5, 1, width), "s": (5, 1, width)},
            dtype="f64",
        )
        (kernel,) = written(graph)
        x, c, s = np.random.default_rng(width).standard_normal((3, 5, 3, width))
        known = values(graph, {"x": x, "c": c[:, :1], "s": s[:, :1]})
        for tile in (1, 1024):
            profile = launched(emit(kernel, tile=tile), known)
            assert profile.loaded_bytes == kernel.reads
            assert profile.stored_bytes == kernel.writes


def test_infinities_nan_and_zeros_of_both_signs() -> None:
    def program(p: dict[str, Tensor], x: Tensor) -> tuple[Tensor, ...]:
        return -x, x + -0.0, maximum(x, 0.0), where(x < 0.0, x * float("inf"), x), x.max()

    graph = trace(program, {"x": (2, 4)}, dtype="f64")
    x = np.array([[0.0, -0.0, np.nan, 1.0], [np.inf, -np.inf, -0.0, 0.0]])
    known = values(graph, {"x": x})
    for kernel in written(graph):
        program_ = emit(kernel)
        stored = program_.launch({i: torch.tensor(known[i]) for i in kernel.inputs})
        for number, tensor in stored.items():
            assert np.array_equal(tensor.numpy(), known[number], equal_nan=True)
            there = ~np.isnan(known[number])
            expected = np.signbit(known[number])[there]
            if graph[number].op != "maximum":  # of two zeros either may be the larger
                assert np.array_equal(np.signbit(tensor.numpy())[there], expected)


def test_what_is_not_written() -> None:
    graph = trace(lambda p, x: x @ x + bernoulli(x, 0.5), {"x": (4, 4)})
    product, drawn, _ = lab.fuse(graph)
    for kernel in (product, drawn):
        with pytest.raises(KernelError, match="is not written in Triton"):
            emit(kernel)
    graph = trace(lambda p, x: exp(x), {"x": (4, 4)})
    with pytest.raises(ValueError, match="tile is 12; a power of two"):
        emit(lab.fuse(graph)[0], tile=12)
    program = emit(lab.fuse(graph)[0])
    with pytest.raises(ValueError, match=r"%0 is \(4, 4\) bf16, contiguous; .*float32"):
        program.launch({0: torch.ones(4, 4)})
    assert total_bytes(lab.fuse(graph)) == 64
