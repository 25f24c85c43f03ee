"""What tensor parallelism costs: products, a forward, all-reduces, memory, decoding, layouts.

    python assignments/tensor_parallel/demo.py               the solution, or else your file
    python assignments/tensor_parallel/demo.py --submission starter/tensor_parallel --png plots

Six parts, each a table or two and what to see in them. Parts whose task is not started say so.
Parts 1 to 3 (`demo_simulated.py`) run your functions on simulated devices, parts 4 to 6
(`demo_costs.py`) are arithmetic with your formulas; the plots are here.
"""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy is: threads are slower on small arrays

import demo_costs as costs
import demo_simulated as simulated
from console import fmt_bytes
from console.demo import command, module_of, pyplot
from hw_specs import H100
from llm_math import LLAMA3_8B
from transformer_lab import TINY

PARTS = (
    simulated.products,
    simulated.forward_on_ranks,
    simulated.key_value_heads,
    simulated.functions_at_4,
    simulated.all_reduces,
    costs.memory,
    costs.decode_step,
    costs.layouts,
)

# -------------------------------------------------------------------------------------------------
# Plots
# -------------------------------------------------------------------------------------------------

INK = {
    **{"ring": "#4c72b0", "rd": "#c44e52", "rab": "#55a868", "tree": "#8172b3", "innet": "#444444"},
    **{"1d": "#c44e52", "2d": "#4c72b0", "gathered": "#55a868"},
    **{"shards": "#4c72b0", "embedding, norms": "#8172b3", "KV": "#dd8452"},
}


def finish(plt: Any, figure: Any, png: Path) -> None:
    """Saves a figure, and forgets it."""
    figure.savefig(png, dpi=150)
    plt.close(figure)


def logarithmic(axes: Any, ns: Sequence[int] | None = None) -> None:
    """Logarithmic axes; the lower one with these ticks, powers of two."""
    axes.set_xscale("log", base=10 if ns is None else 2)
    axes.set_yscale("log")
    if ns is not None:
        axes.xaxis.set_ticks(ns, [str(n) for n in ns])
        axes.xaxis.set_ticks([], minor=True)
    axes.grid(alpha=0.25)


def plot_layer(lab: ModuleType, png: Path) -> None:
    """The messages of one layer on 4 devices, with x of 1,024 tokens of Llama-3.1-8B.

    Left the forward, two all-reduces; right sequence parallelism, where the same messages are cut
    elsewhere, and behind them x and the logits are gathered.
    """
    pyplot()
    cfg, n = replace(TINY, n_layers=1), 4
    params, tokens = simulated.inputs(cfg)
    stands_for = costs.BF16 * 1024 * LLAMA3_8B.d_model
    comm = lab.make_comm(n, byte_scale=stands_for / (8 * simulated.X))
    shards = lab.shard_params_tp(params, cfg, n)
    lab.tp_forward(shards, cfg, tokens, comm, gather_logits=False)
    lab.tp_forward_sp(shards, cfg, tokens, comm)
    comm.timeline(png)


def plot_all_reduces(lab: ModuleType, png: Path) -> None:
    """Time of an all-reduce against its size, by algorithm."""
    plt, n = pyplot(), simulated.GPUS
    figure, axes = plt.subplots(figsize=(7.5, 5), layout="constrained")
    sizes = [10 ** (3 + k / 4) for k in range(25)]
    for algo in simulated.ALGOS:
        times = [1e6 * simulated.reduce_time(lab, n, algo, size) for size in sizes]
        style = "--" if algo == "innet" else "-"
        axes.plot(sizes, times, style, color=INK[algo], label=algo)
    for pair in simulated.MEETINGS:
        size = simulated.crossover(n, *pair)
        time = 1e6 * simulated.reduce_time(lab, n, pair[0], size)
        axes.plot(size, time, "o", color="black", ms=5)
        axes.annotate(
            f"{' = '.join(pair)}: {fmt_bytes(size)}", (size, time), xytext=(8, -12),
            textcoords="offset points",
        )  # fmt: skip
    token = costs.BF16 * costs.BATCH * LLAMA3_8B.d_model
    for size, tokens, y in ((token, "1 token", 0.6), (1024 * token, "1,024 tokens", 0.02)):
        axes.axvline(size, color="gray", lw=0.8, ls=":")
        words = f"{LLAMA3_8B.name}, {costs.BATCH} × {tokens}"
        axes.annotate(
            words, (size, y), xycoords=("data", "axes fraction"), xytext=(3, 0),
            textcoords="offset points", rotation=90, color="gray", size=8,
        )  # fmt: skip
    logarithmic(axes)
    axes.set(
        xlabel="bytes of the array",
        ylabel="µs, simulated",
        title=f"All-reduce on {n} devices, NVLink 4",
    )
    axes.legend()
    finish(plt, figure, png)


def plot_memory(lab: ModuleType, png: Path) -> None:
    """What the fullest rank holds against n, as bars."""
    plt = pyplot()
    figure, both = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
    for axes, model in zip(both, costs.MODELS, strict=True):
        ns = costs.counts_of_ranks(model)
        names, bottom = [str(n) for n in ns], [0.0] * len(ns)
        rows = [costs.memory_of_rank(lab, model, n) for n in ns]
        for part, name in enumerate(("shards", "embedding, norms", "KV")):
            sizes = [row[part] / 1e9 for row in rows]
            axes.bar(names, sizes, bottom=bottom, color=INK[name], label=name)
            bottom = [below + size for below, size in zip(bottom, sizes, strict=True)]
        axes.axhline(H100.mem_bytes / 1e9, color="black", lw=0.8, ls=":", label=H100.name)
        axes.set(xlabel="n", ylabel="GB a rank", title=model.name)
        axes.legend()
    finish(plt, figure, png)


def plot_decode_step(lab: ModuleType, png: Path) -> None:
    """A decode step against n, with what it would read if KV heads could be cut."""
    plt = pyplot()
    figure, both = plt.subplots(1, 2, figsize=(11, 4.8), layout="constrained")
    for axes, model in zip(both, costs.MODELS, strict=True):
        ns = costs.counts_of_ranks(model)
        one = costs.step(lab, model, 1)["t_mem"]
        axes.plot(ns, [1e3 * one / n for n in ns], ":", color="gray", label="t_mem(1)/n")
        memory = [1e3 * costs.step(lab, model, n)["t_mem"] for n in ns]
        axes.plot(ns, memory, "--", color="gray", label="t_mem")
        for algo in costs.DECODE_ALGOS:
            times = [1e3 * costs.step(lab, model, n, algo)["t_step"] for n in ns]
            axes.plot(ns, times, "o-", ms=4, color=INK[algo], label=f"t_step, {algo}")
            best = times.index(min(times))
            axes.plot(ns[best], times[best], "o", ms=11, mfc="none", color=INK[algo])
        axes.axvline(model.n_kv_heads, color="gray", lw=0.8)
        logarithmic(axes, ns)
        axes.set(xlabel="n (line: n = G; circles: the best n)", ylabel="ms", title=model.name)
        axes.legend()
    figure.suptitle(
        f"A decode step on {H100.name}, bf16, NVLink 4: {costs.BATCH} sequences of "
        f"{costs.CTX:,} positions"
    )
    finish(plt, figure, png)


def plot_layouts(lab: ModuleType, png: Path) -> None:
    """Communication by layout against the tokens of a step."""
    plt = pyplot()
    figure, axes = plt.subplots(figsize=(7.5, 5), layout="constrained")
    tokens = [2 ** (4 + k / 2) for k in range(33)]
    found = [costs.layout_times(lab, t)[0] for t in tokens]
    for name in costs.VARIANTS:
        axes.plot(tokens, [1e3 * times[name] for times in found], color=INK[name], label=name)
    for other, t in costs.crossovers().items():
        time = 1e3 * costs.layout_times(lab, t)[0][other]
        axes.plot(t, time, "o", color="black", ms=5)
        axes.annotate(
            f"{t:,.0f}", (t, time), xytext=(-6, 6), textcoords="offset points", ha="right"
        )
    logarithmic(axes)
    axes.set(
        xlabel="tokens of the step",
        ylabel="ms of communication",
        title=f"A feedforward layer of PaLM 540B on {costs.CHIPS} chips, bf16",
    )
    axes.legend()
    finish(plt, figure, png)


PLOTS = {
    "one_layer.png": plot_layer,
    "all_reduces.png": plot_all_reduces,
    "memory.png": plot_memory,
    "decode_step.png": plot_decode_step,
    "layouts.png": plot_layouts,
}

# -------------------------------------------------------------------------------------------------


main = command(__file__, __doc__, module_of("shard_lab"), PARTS, PLOTS)

if __name__ == "__main__":
    main()
