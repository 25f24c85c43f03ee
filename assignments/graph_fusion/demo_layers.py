"""Parts 1 to 4 of the demo: a small layer, prefill, decode, and what PyTorch 2 measured."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import ModuleType
from typing import Any

import numpy as np
from console import fmt_bytes, fmt_time, print_header, print_observations, print_table
from graph_ir import (
    H100,
    LLAMA8B,
    Graph,
    Kernel,
    LayerCfg,
    decode_layer,
    execute,
    graph_cost,
    kernel_time,
    layer_params,
    prefill_layer,
    trace,
)
from graph_ir.layout import KernelError
from graph_ir.memory import check_kernels, run

SMALL, TOKENS = LayerCfg(128, 8, 2, 16, 344), 16
PREFILL, POSITIONS = 2048, 4096
#: In this order; match_attention looks for a softmax, so it comes before decompose.
PASSES = (
    *("match_attention", "decompose", "cse", "constant_fold", "simplify", "fold_norm_weight"),
)
VARIANTS = ("eager", "decomposed", "fused", "fused, FlashAttention")


class Compiler:
    """A student's passes, one after the other.

    Attributes:
        lab: the student's module.
        left_out: what the passes that are not started say.
    """

    def __init__(self, lab: ModuleType) -> None:
        self.lab = lab
        self.left_out: dict[str, None] = {}

    def apply(self, name: str, graph: Graph) -> Graph:
        """The graph after one pass; NotImplementedError if it is not started."""
        try:
            result = getattr(self.lab, name)(graph)
        except NotImplementedError as stub:
            self.left_out[f"{stub} ({name})"] = None
            raise
        return result[0] if isinstance(result, tuple) else result

    def optimized(self, graph: Graph, attention: bool = True) -> Graph:
        """The graph after all passes; those that are not started leave it as it is."""
        for name in PASSES if attention else PASSES[1:]:
            with suppress(NotImplementedError):
                graph = self.apply(name, graph)
        return graph

    def variants(self, graph: Graph, bind: Mapping[str, int]) -> dict[str, list[Kernel]]:
        """Kernels by variant, of those that can be made; NotImplementedError if none can."""
        fuse = self.lab.fuse
        found = {"eager": fuse(graph, enable=False, bind=bind)}
        make = {
            "decomposed": lambda: fuse(self.apply("decompose", graph), enable=False, bind=bind),
            "fused": lambda: fuse(self.optimized(graph, attention=False), bind=bind),
            "fused, FlashAttention": lambda: fuse(self.optimized(graph), bind=bind),
        }
        for name, kernels in make.items():
            try:
                found[name] = kernels()
            except NotImplementedError as stub:
                self.say(stub)
        return found

    def say(self, stub: NotImplementedError) -> None:
        """Notes what is not started, unless that is noted already."""
        if not any(words.startswith(str(stub)) for words in self.left_out):
            self.left_out[str(stub)] = None

    def say_what_is_left_out(self) -> None:
        """A line for each pass that is not started."""
        for words in self.left_out:
            print(f"not started: {words}")


def small_layer() -> tuple[Graph, np.ndarray]:
    """A layer that runs in no time, and an input of it."""
    graph = trace(prefill_layer(SMALL, TOKENS), {"x": (TOKENS, SMALL.d)}, layer_params(SMALL))
    return graph, np.random.default_rng(0).standard_normal((TOKENS, SMALL.d))


def prefill() -> Graph:
    """A layer of Llama-3.1-8B on many tokens; of parameters only shapes."""
    x = {"x": (PREFILL, LLAMA8B.d)}
    return trace(prefill_layer(LLAMA8B, PREFILL), x, LLAMA8B.shapes())


def decode() -> Graph:
    """The same layer on one token, with S positions, whatever S is."""
    G, dh = LLAMA8B.G, LLAMA8B.dh
    inputs: dict[str, tuple[Any, ...]] = {
        "x": (1, LLAMA8B.d),
        "k_cache": (G, "S", dh),
        "v_cache": (G, "S", dh),
        "cos": (1, 1, dh),
        "sin": (1, 1, dh),
    }
    return trace(decode_layer(LLAMA8B, "P"), inputs, LLAMA8B.shapes())


#: What is compared: by name, the graph's maker and values of its names.
LAYERS: dict[str, tuple[Any, dict[str, int]]] = {
    f"prefill, {PREFILL:,} tokens": (prefill, {}),
    f"decode, S = {POSITIONS:,}": (decode, {"S": POSITIONS}),
}


def moved(kernels: Sequence[Kernel]) -> int:
    """Bytes that kernels load and store."""
    return int(graph_cost(kernels)["bytes"])


# -------------------------------------------------------------------------------------------------
# 1. A small layer
# -------------------------------------------------------------------------------------------------


def small(lab: ModuleType) -> None:
    """Its kernels: what each loads and stores, as the graph says and as a memory measures."""
    print_header(
        f"1. The kernels of a small layer, bf16: d = {SMALL.d}, H = {SMALL.H}, G = {SMALL.G}, "
        f"dh = {SMALL.dh}, f = {SMALL.f}, {TOKENS} tokens"
    )
    compiler = Compiler(lab)
    graph, x = small_layer()
    optimized = compiler.optimized(graph)
    kernels = lab.fuse(optimized)
    try:
        check_kernels(optimized, kernels)
        measured = run(optimized, kernels, {"x": x})
    except KernelError as error:
        print(f"✗ {error}")
        return
    rows = []
    for number, kernel in enumerate(kernels):
        both = (measured.reads[number], measured.writes[number])
        as_said = both == (kernel.reads, kernel.writes)
        rows.append(
            [
                *(str(number), kernel.kind, kernel.label, len(kernel.nodes)),
                *(fmt_bytes(kernel.reads), fmt_bytes(kernel.writes)),
                "✓" if as_said else f"✗ {both[0]:,} B, {both[1]:,} B",
            ]
        )
    headers = ["#", "kind", "operations", "nodes", "loads", "stores", "measured"]
    print_table(headers, rows)
    error = np.max(np.abs(measured.outputs[0] - execute(graph, {"x": x})[0]))
    remarks = [
        f"Run kernel by kernel, the layer's output is off by {error:.1e} at most from that of the "
        "graph before all passes, both in float64.",
        f"{len(kernels)} kernels, {fmt_bytes(moved(kernels))}.",
    ]
    try:
        unfused = lab.fuse(compiler.apply("decompose", graph), enable=False)
        remarks[1] = (
            f"Decomposed and not fused {len(unfused)} kernels, {fmt_bytes(moved(unfused))}; now "
            f"{len(kernels)}, {fmt_bytes(moved(kernels))}."
        )
    except NotImplementedError as stub:
        compiler.say(stub)
    print_observations([*remarks, *_what_to_see(kernels)])
    compiler.say_what_is_left_out()


def _what_to_see(kernels: Sequence[Kernel]) -> list[str]:
    """Which kernels took in what."""
    remarks = []
    names = {"sum": "A norm", "rot_pairs": "A rotation (RoPE)"}
    for op, name in names.items():
        found = [i for i, k in enumerate(kernels) if op in [n.op for n in k.nodes]]
        if found:
            kinds = sorted({kernels[i].kind for i in found})
            where = ", ".join(map(str, found))
            remarks.append(f"{name} is in kernels {where}, of kind {' and '.join(kinds)}.")
    views = sum(node.kind == "view" for node in kernels[0].graph)
    remarks.append(f"{views} views, which split, share and merge heads, are in no kernel.")
    return remarks


# -------------------------------------------------------------------------------------------------
# 2. and 3. Llama-3.1-8B
# -------------------------------------------------------------------------------------------------


def prefill_2048(lab: ModuleType) -> None:
    """Four ways to run a prefill, and where the bytes go."""
    print_header(
        f"2. A layer of Llama-3.1-8B, prefill of {PREFILL:,} tokens, bf16 on an {H100.name}: a "
        f"roofline for each kernel, and {fmt_time(H100.launch)} a launch"
    )
    compiler = Compiler(lab)
    found = compiler.variants(prefill(), {})
    costs = {name: graph_cost(kernels) for name, kernels in found.items()}
    print_table(
        ["variant", "kernels", "bytes", "GFLOP", "rooflines", "with launches", "speed"],
        [
            [
                *(name, cost["kernels"], fmt_bytes(cost["bytes"])),
                *(f"{cost['flops'] / 1e9:.0f}", fmt_time(cost["t"]), fmt_time(cost["t_total"])),
                f"{costs['eager']['t_total'] / cost['t_total']:.2f}×",
            ]
            for name, cost in costs.items()
        ],
    )
    if "fused" in found:
        print("\nfused, the four slowest kernels:")
        slowest = sorted(found["fused"], key=kernel_time, reverse=True)[:4]
        print_table(["kind", "operations", "loads", "stores", "time"], map(_row, slowest))
    if "fused, FlashAttention" in found:
        kernels = found["fused, FlashAttention"]
        print("\nfused, FlashAttention, bytes by kernel:")
        share = [f"{(k.reads + k.writes) / moved(kernels):.0%}" for k in kernels]
        rows = [[*_row(k), part] for k, part in zip(kernels, share, strict=True)]
        print_table(["kind", "operations", "loads", "stores", "time", "of all bytes"], rows)
    remarks = []
    if "decomposed" in costs:
        ratio = costs["decomposed"]["bytes"] / costs["eager"]["bytes"]
        remarks.append(
            f"Decomposed and not fused, the layer moves {ratio:.2f}× the bytes of eager: a softmax "
            "that was one kernel is five now, and each reads and writes all scores."
        )
    if costs.keys() >= {"fused", "fused, FlashAttention"}:
        scores = 2 * LLAMA8B.H * PREFILL**2
        share = costs["fused, FlashAttention"]["bytes"] / costs["fused"]["bytes"]
        remarks.append(
            f"Fusion leaves the scores, {fmt_bytes(scores)}, which are written and read twice: a "
            "softmax reduces rows that a product has not finished. FlashAttention, which is "
            "another algorithm and not a grouping, needs "
            f"{share:.0%} of the bytes."
        )
    if remarks:
        print_observations(remarks)
    compiler.say_what_is_left_out()


def _row(kernel: Kernel) -> list[str]:
    numbers = [fmt_bytes(kernel.reads), fmt_bytes(kernel.writes), fmt_time(kernel_time(kernel))]
    return [kernel.kind, kernel.label, *numbers]


def decode_4096(lab: ModuleType) -> None:
    """Four ways to run a decode step: the bytes are weights, so it is launches that count."""
    print_header(
        f"3. The same layer, decode of one token with S = {POSITIONS:,}, traced for any S: bf16 on "
        f"an {H100.name}"
    )
    compiler = Compiler(lab)
    found = compiler.variants(decode(), {"S": POSITIONS})
    rows, shares = [], {}
    for name, kernels in found.items():
        cost = graph_cost(kernels)
        launches = cost["kernels"] * H100.launch
        shares[name] = launches / cost["t_total"]
        rows.append(
            [
                *(name, cost["kernels"], fmt_bytes(cost["bytes"]), fmt_time(cost["t"])),
                *(fmt_time(launches), f"{shares[name]:.0%}"),
                f"{1 / (32 * cost['t_total']):.0f}",
            ]
        )
    headers = ["variant", "kernels", "bytes", "rooflines", "launches", "of the time"]
    print_table([*headers, "tokens/s, 32 layers"], rows)
    weights = 2 * sum(int(np.prod(shape)) for shape in LLAMA8B.shapes().values())
    cache = 2 * 2 * LLAMA8B.G * POSITIONS * LLAMA8B.dh
    remarks = [
        f"Weights are {fmt_bytes(weights)} of the bytes and the cache {fmt_bytes(cache)}, whatever "
        "is fused."
    ]
    if len(shares) == len(VARIANTS):
        first, last = (shares[name] for name in ("decomposed", "fused, FlashAttention"))
        remarks.append(
            f"What is saved is launches: from {first:.0%} of the time to {last:.0%}. A CUDA graph "
            "makes each cheaper; a megakernel has one."
        )
    print_observations(remarks)
    compiler.say_what_is_left_out()


# -------------------------------------------------------------------------------------------------
# 4. What PyTorch 2 measured
# -------------------------------------------------------------------------------------------------

#: J. Ansel et al., "PyTorch 2", ASPLOS 2024, table 4: inference, training.
ABLATION = {
    "everything": (1.91, 1.45),
    "without loop/layout reordering": (1.91, 1.28),
    "without matmul templates": (1.85, 1.41),
    "without parameter freezing": (1.85, 1.45),
    "without pattern matching": (1.83, 1.45),
    "without cudagraphs": (1.81, 1.37),
    "without fusion": (1.68, 1.27),
    "without inlining": (1.58, 1.31),
    "without fusion and inlining": (0.80, 0.59),
}


def pytorch_2(lab: ModuleType) -> None:
    """The paper's ablation of TorchInductor. Needs nothing of the student's."""
    print_header(
        "4. TorchInductor without some of its optimizations: speed against eager, geometric mean "
        "over HuggingFace models, float16 on an A100"
    )
    rows = [[name, *(f"{speed:.2f}×" for speed in speeds)] for name, speeds in ABLATION.items()]
    print_table(["TorchInductor", "inference", "training"], rows)
    print_observations(
        [
            "Measured by J. Ansel et al., *PyTorch 2*, ASPLOS 2024, table 4; not by this program.",
            "Without fusion and inlining compiled code is slower than eager, for the reason of "
            "part 2: composites are decomposed, and nothing puts them together again.",
            "Fusion merges kernels that are scheduled; inlining copies a pointwise computation to "
            "each of its users. Either does much of the other's work, so that one alone is missed "
            "little.",
        ]
    )
