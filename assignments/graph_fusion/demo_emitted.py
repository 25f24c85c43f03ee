"""Part 5 of the demo: fused kernels as Triton, run on the simulator, their bytes counted there."""

from collections.abc import Callable, Sequence
from types import ModuleType

import demo_layers as layers
import mini_triton
import numpy as np
import torch
from console import print_header, print_observations, print_table
from graph_ir import Graph, Kernel, Tensor, trace
from graph_ir.emit import Program, emit, torch_dtype
from graph_ir.execute import evaluator, show, start
from graph_ir.layout import KernelError
from graph_ir.ops import Array, Context
from graph_ir.trace import rms_norm, rot_pairs, silu, softmax

WRITTEN = ("pointwise", "rowwise")


def values(graph: Graph, inputs: dict[str, Array]) -> dict[int, Array]:
    """The array of every node that has memory, rounded to its dtype."""
    memory, context = start(graph, inputs, None, rounding=True)
    evaluate = evaluator(graph, context, seed=0, rounding=True)
    for node in graph:
        if node.computes:
            operands = [show(graph, memory, i, context) for i in node.inputs]
            memory[node.id] = evaluate(node, operands)
    return memory


def computed(kernel: Kernel, known: dict[int, Array]) -> dict[int, Array]:
    """What a kernel makes of what it loads, in float64."""
    graph, context = kernel.graph, Context()
    chip = {i: known[i] for i in kernel.inputs}
    chip |= {node.id: known[node.id] for node in graph if node.op == "scalar"}
    for node in kernel.nodes:
        operands = [show(graph, chip, i, context) for i in node.inputs]
        chip[node.id] = node.spec.evaluate(operands, node.attrs, context)
    return chip


class Launch:
    """One launch of an emitted kernel.

    Attributes:
        program: its source.
        loaded, stored: bytes that the simulator counted.
        error: largest difference from float64, over the largest element.
    """

    def __init__(self, kernel: Kernel, known: dict[int, Array]) -> None:
        self.program: Program = emit(kernel)
        tensors = {
            i: torch.tensor(known[i]).to(torch_dtype(kernel.graph[i].dtype)).contiguous()
            for i in kernel.inputs
        }
        with mini_triton.profile(host=False) as profile:
            results = self.program.launch(tensors)
        self.loaded, self.stored = profile.loaded_bytes, profile.stored_bytes
        expected = computed(kernel, known)
        self.error = max(
            float(np.max(np.abs(tensor.double().numpy() - expected[i])) / np.abs(expected[i]).max())
            for i, tensor in results.items()
        )


def beside(counted: int, predicted: int) -> str:
    """Counted bytes, and whether they are the predicted ones."""
    return f"{counted:,} B ✓" if counted == predicted else f"✗ {counted:,} B"


def emitted(lab: ModuleType) -> None:
    """The small layer's pointwise and rowwise kernels, and what fusion saves of each composite."""
    print_header(
        "5. Fused kernels of the small layer as Triton, on mini_triton: counted bytes beside those "
        "of the graph"
    )
    compiler = layers.Compiler(lab)
    graph, x = layers.small_layer()
    graph = compiler.optimized(graph, attention=False)
    known = values(graph, {"x": x})
    rows, first = [], None
    try:
        for number, kernel in enumerate(lab.fuse(graph)):
            if kernel.kind not in WRITTEN:
                continue
            launch = Launch(kernel, known)
            first = first or launch.program
            rows.append(
                [
                    *(str(number), kernel.kind, kernel.label),
                    *(f"{kernel.reads:,} B", beside(launch.loaded, kernel.reads)),
                    *(f"{kernel.writes:,} B", beside(launch.stored, kernel.writes)),
                    f"{launch.error:.1e}",
                ]
            )
    except KernelError as error:
        print(f"✗ {error}")
    headers = ["#", "kind", "operations", "loads", "counted", "stores", "counted", "error"]
    if rows:
        print_table(headers, rows)
    if first is not None:
        print(f"\nThe first of them, {first.programs} program(s):\n")
        print("\n".join(f"    {line}".rstrip() for line in first.source.splitlines()))
    print("\nPrograms by themselves, not fused and fused:")
    table = [row for name, case in PROGRAMS.items() if (row := _saved(compiler, name, case))]
    if table:
        headers = ["program", "kernels", "counted", "fused", "counted", "of that"]
        print_table(headers, table)
        remarks = [
            "Counted is what the simulator saw the kernels load and store, ✓ where it is what the "
            "graph says. Errors are those of storing bf16, 2⁻⁹ of a result at most.",
            "Operands that are repeated, as the norm's weight or the cosines, are loaded once.",
        ]
        apart = [str(row[0]).partition(" ")[0] for row in table if row[3] != 1]
        if apart:
            remarks.append(
                f"**{', '.join(apart)}**: several kernels are left, though all that is computed "
                "has elements at the same places. One kernel would move fewer bytes."
            )
        print_observations(remarks)
    compiler.say_what_is_left_out()


def _rotated(p: dict[str, Tensor], x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    return x * cos + rot_pairs(x) * sin


T, D, H, DH, F = (
    *(layers.TOKENS, layers.SMALL.d, layers.SMALL.H, layers.SMALL.dh, layers.SMALL.f),
)
#: By name, a program and the shapes of its inputs.
PROGRAMS: dict[str, tuple[Callable[..., Tensor], dict[str, Sequence[int]]]] = {
    "RMSNorm": (lambda p, x, w: rms_norm(x, w), {"x": (T, D), "w": (D,)}),
    "softmax": (lambda p, x: softmax(x), {"x": (H, T, T)}),
    "SwiGLU": (lambda p, x, y: silu(x) * y, {"x": (T, F), "y": (T, F)}),
    "RoPE": (_rotated, {"x": (T, H, DH), "cos": (T, 1, DH), "sin": (T, 1, DH)}),
}


def _saved(
    compiler: layers.Compiler,
    name: str,
    case: tuple[Callable[..., Tensor], dict[str, Sequence[int]]],
) -> list[object]:
    """A program's kernels and counted bytes, one kernel a node and fused; [] if not started."""
    program, shapes = case
    rng = np.random.default_rng(1)
    inputs = {key: rng.standard_normal(tuple(shape)) for key, shape in shapes.items()}
    cells: list[object] = [f"{name} {' '.join(str(tuple(shape)) for shape in shapes.values())}"]
    totals = []
    try:
        graph = compiler.apply("decompose", trace(program, shapes))
        known = values(graph, inputs)
        for enable in (False, True):
            kernels = compiler.lab.fuse(graph, enable=enable)
            launches = [Launch(kernel, known) for kernel in kernels]
            totals.append(sum(launch.loaded + launch.stored for launch in launches))
            cells += [len(kernels), beside(totals[-1], layers.moved(kernels))]
    except NotImplementedError as stub:
        compiler.say(stub)
        return []
    except KernelError as error:
        print(f"✗ {name}: {error}")
        return []
    return [*cells, f"{totals[1] / totals[0]:.0%}"]
