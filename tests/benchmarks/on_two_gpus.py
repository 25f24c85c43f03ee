"""Real collectives beside comm_sim's, and tensor parallelism on real GPUs beside one GPU.

    PYTHONPATH=shared:. python3 tests/benchmarks/on_two_gpus.py \\
        --shard-lab solutions/tensor_parallel/shard_lab.py

needs two GPUs (`--ranks 4`: four), torch with NCCL, numpy and rich; for the second part, which
`--shard-lab` asks for, array-api-compat as well (a wheel of pure Python, where there is no
network). `--backend gloo --small --largest 65536` tries it on CPUs. It prints tables, and writes
all figures to $OUT/on_two_gpus.json if OUT is set.

1. All-reduce, all-gather and reduce-scatter of 1 KB to 1 GB: α and B are fitted to every second
   size, and foretell the others. Times are medians, of the slowest rank. `algbw` is S/t and `busbw`
   that times 2(n−1)/n or (n−1)/n, as nccl-tests define them (doc/PERFORMANCE.md), where S is the
   whole array; `busbw` is what a link carries, whatever n. If one α and one B are off by more than
   10 % at the median, a fit of two regimes stands beside: NCCL changes its protocol with the size.
2. `tp_forward` on n GPUs, each with its shard alone, beside `forward` on one: largest difference,
   in float32 and float64. Then the time of a step of decoding, beside `tp_decode_step`.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from alpha_beta import Foretold, fit, plain, two_regimes
from console import fmt_bytes, fmt_time, print_header, print_table
from spmd import TorchComm, run

#: By operation: the formula of comm_sim, and busbw ÷ algbw for n ranks.
OPERATIONS: dict[str, tuple[str, Callable[[int], float]]] = {
    "all_reduce": ("ring", lambda n: 2 * (n - 1) / n),
    "all_gather": ("all_gather", lambda n: (n - 1) / n),
    "reduce_scatter": ("reduce_scatter", lambda n: (n - 1) / n),
}
#: Median error of the plain fit from which another one is tried.
BAD = 0.10

# -------------------------------------------------------------------------------------------------
# Time
# -------------------------------------------------------------------------------------------------


def timed(comm: TorchComm, work: Callable[[], Any], calls: int, options: Any) -> float:
    """Seconds of a call, at the slowest rank: the median of samples, each of some calls in a row.

    On a GPU they are its own, between two events; with --graphs without the CPU's part, of which
    short collectives otherwise mostly consist.
    """
    for _ in range(options.warm_up):
        work()
    repeat = partial(repeated, work, calls)
    if comm.device.type == "cuda" and options.graphs:
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        # NCCL's own thread may ask for events meanwhile.
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            repeat()
        repeat = graph.replay
        repeat()
    samples = []
    for _ in range(options.samples):
        if comm.device.type == "cuda":
            torch.cuda.synchronize()
            comm.finish()  # ranks begin together
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            repeat()
            end.record()
            end.synchronize()
            samples.append(start.elapsed_time(end) / 1e3 / calls)
        else:
            comm.finish()
            begun = time.perf_counter()
            repeat()
            samples.append((time.perf_counter() - begun) / calls)
    (all_ranks,) = comm.all_gather([np.array([statistics.median(samples)])])
    return float(all_ranks.max())


def repeated(work: Callable[[], Any], calls: int) -> None:
    """Calls it so often."""
    for _ in range(calls):
        work()


# -------------------------------------------------------------------------------------------------
# Part 1: collectives
# -------------------------------------------------------------------------------------------------


def collective(name: str, n: int, nbytes: int, device: torch.device) -> Callable[[], Any]:
    """One call of it, on a float32 array of so many bytes altogether."""
    whole = torch.zeros(nbytes // 4, device=device)
    if name == "all_reduce":
        return partial(dist.all_reduce, whole)
    part = torch.zeros(nbytes // 4 // n, device=device)
    # Their names since torch 2.13, and before.
    if name == "all_gather":
        gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
        return partial(gather, whole, part)
    scatter = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor
    return partial(scatter, part, whole)


def measure(comm: TorchComm, sizes: Sequence[int], options: Any) -> dict[str, list[float]]:
    """Seconds, by operation and size."""
    seconds: dict[str, list[float]] = {}
    for name in OPERATIONS:
        seconds[name] = []
        for size in sizes:
            calls = min(50, max(5, 2**28 // size))
            work = collective(name, comm.n, size, comm.device)
            seconds[name].append(timed(comm, work, calls, options))
    return seconds


def report_collective(
    name: str, n: int, sizes: Sequence[int], seconds: Sequence[float]
) -> dict[str, Any]:
    """Prints what was measured beside what the fit foretells; all of it as plain data."""
    key, factor = OPERATIONS[name]
    fits = {"plain": plain(key, n, sizes, seconds)}
    if fits["plain"].median > BAD and len(sizes) >= 12:
        fits["two regimes"] = two_regimes(key, n, sizes, seconds)
    print_header(f"{name} of {n} ranks, float32")
    print_table(
        ["size", "measured", "algbw GB/s", "busbw GB/s", "used for"]
        + [heading for fitted in fits for heading in (fitted, "error")],
        [
            [
                fmt_bytes(size),
                fmt_time(t),
                f"{size / t / 1e9:.2f}",
                f"{factor(n) * size / t / 1e9:.2f}",
                "error" if i % 2 else "fit",
            ]
            + [cell for f in fits.values() for cell in (fmt_time(f.seconds[i]), percent(f, i))]
            for i, (size, t) in enumerate(zip(sizes, seconds, strict=True))
        ],
    )
    for fitted, f in fits.items():
        print(f"{fitted}: {f.words}")
        print(f"    error at the other half: median {f.median:.1%}, largest {f.largest:.1%}")
    rates = [factor(n) * s / t for s, t in zip(sizes, seconds, strict=True)]
    return {
        "sizes": list(sizes),
        "seconds": list(seconds),
        "busbw": rates,
        "fits": {fitted: asdict(f) for fitted, f in fits.items()},
    }


def percent(foretold: Foretold, index: int) -> str:
    """The error at a size."""
    return f"{foretold.errors[index]:+.1%}"


# -------------------------------------------------------------------------------------------------
# Part 2: tensor parallelism
# -------------------------------------------------------------------------------------------------


def load(file: Path) -> ModuleType:
    """The student's file, or the solution, as the module `shard_lab`."""
    spec = importlib.util.spec_from_file_location("shard_lab", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["shard_lab"] = module
    spec.loader.exec_module(module)
    return module


def configs(small: bool) -> tuple[dict[str, Any], Any, int, int]:
    """Models to compare outputs of, by name; one to decode with, its batch and its context.

    A layer of the last has the widths of Llama-3.1-405B: one of an ordinary model is so quick on a
    GPU that the time is that of the CPU, which starts a hundred kernels a layer.
    """
    from transformer_lab import TINY, Config

    if small:
        return {"TINY": TINY}, TINY, 2, 16
    middle = Config(
        n_layers=4,
        d_model=2048,
        n_heads=16,
        n_kv_heads=8,
        d_head=128,
        d_ff=8192,
        vocab=32_000,
        max_seq=1024,
    )
    wide = Config(
        n_layers=4,
        d_model=16_384,
        n_heads=128,
        n_kv_heads=8,
        d_head=128,
        d_ff=53_248,
        vocab=32_768,
        max_seq=1056,
    )
    return {"TINY": TINY, "4 layers of 2048": middle}, wide, 8, 1024


def random_params(cfg: Any, dtype: torch.dtype, device: torch.device) -> dict[str, Any]:
    """As `transformer_lab.init_params`, but drawn where they are needed: the same at all ranks."""
    generator = torch.Generator(device).manual_seed(0)
    d, f = cfg.d_model, cfg.d_ff
    q, kv = cfg.n_heads * cfg.d_head, cfg.n_kv_heads * cfg.d_head

    def draw(*shape: int) -> torch.Tensor:
        numbers = torch.randn(shape, generator=generator, dtype=dtype, device=device)
        return numbers.mul_(0.1).add_(1) if len(shape) == 1 else numbers.mul_(shape[0] ** -0.5)

    layers = [
        {
            "attn_norm": draw(d),
            "wq": draw(d, q),
            "wk": draw(d, kv),
            "wv": draw(d, kv),
            "wo": draw(q, d),
            "mlp_norm": draw(d),
            "w_gate": draw(d, f),
            "w_up": draw(d, f),
            "w_down": draw(f, d),
        }
        for _ in range(cfg.n_layers)
    ]
    embed = draw(d, cfg.vocab).T.contiguous()  # as a row of it goes into a layer
    return {
        "embed": embed,
        "final_norm": draw(d),
        "lm_head": draw(d, cfg.vocab),
        "layers": layers,
    }


def own(value: Any) -> Any:
    """A copy of a shard: what it was cut from can go."""
    match value:
        case dict():
            return {name: own(entry) for name, entry in value.items()}
        case list():
            return [own(entry) for entry in value]
        case torch.Tensor():
            return value.clone(memory_format=torch.contiguous_format)
    return value


def caches(shard: dict[str, Any], cfg: Any, batch: int) -> list[Any]:
    """As `tp_caches`, of the library and dtype of the shard, and on its device."""
    from transformer_lab import KVCache

    G = len(shard["kv_groups"])
    return [KVCache(replace(cfg, n_heads=G, n_kv_heads=G), batch, like=shard["embed"])]


def differences(comm: TorchComm, lab: ModuleType, options: Any) -> list[dict[str, Any]]:
    """By model and dtype: how far n GPUs are from one, without a cache and with one."""
    from transformer_lab import forward

    models, *_ = configs(options.small)
    rows = []
    for (name, cfg), dtype in ((m, d) for m in models.items() for d in ("float32", "float64")):
        tokens = np.random.default_rng(0).integers(0, cfg.vocab, (2, 33))
        params = random_params(cfg, getattr(torch, dtype), comm.device)
        expected = forward(params, cfg, tokens)
        shard = own(lab.shard_params_tp(params, cfg, comm.n)[comm.ranks[0]])
        del params
        held = sum(t.nbytes for t in tensors_of(shard))
        logits = lab.tp_forward([shard], cfg, tokens, comm)
        kept = caches(shard, cfg, 2)
        parts = [
            lab.tp_forward([shard], cfg, part, comm, caches=kept)
            for part in (tokens[:, :20], tokens[:, 20:])
        ]
        error, cached = (
            float((found - expected).abs().max()) for found in (logits, torch.cat(parts, dim=1))
        )
        rows.append(
            {
                "model": name,
                "dtype": dtype,
                "device": str(logits.device),
                "bytes": held,
                "largest": float(expected.abs().max()),
                "error": error,
                "error with a cache": cached,
            }
        )
    return rows


def tensors_of(value: Any) -> list[torch.Tensor]:
    """All tensors in dictionaries and lists."""
    match value:
        case torch.Tensor():
            return [value]
        case dict():
            return [t for entry in value.values() for t in tensors_of(entry)]
        case list():
            return [t for entry in value for t in tensors_of(entry)]
    return []


class Silent:
    """A communicator that sends nothing: what is left is a step's time without communication."""

    def __init__(self, comm: TorchComm) -> None:
        self.n, self.ranks = comm.n, comm.ranks

    def all_reduce(self, arrays: Sequence[Any], *_: Any, **__: Any) -> list[Any]:
        """What was given."""
        return list(arrays)


def decode(comm: TorchComm, lab: ModuleType, options: Any) -> list[dict[str, Any]]:
    """Seconds of a step of decoding on one GPU and on n; and of parts of it."""
    _, cfg, batch, ctx = configs(options.small)
    dtype = torch.float32 if comm.device.type == "cpu" else torch.bfloat16
    tokens = np.zeros((batch, 1), dtype=np.int64)
    trusting = TorchComm(check=False)
    alone = trusting.group([comm.ranks[0]])
    message = torch.zeros(batch * cfg.d_model, dtype=dtype, device=comm.device)

    def all_reduces() -> None:
        for _ in range(2 * cfg.n_layers):
            trusting.all_reduce([message])

    rows = []
    for n, connected in ((1, alone), (comm.n, trusting)):
        params = random_params(cfg, dtype, comm.device)
        # With n = 1 every rank decodes alone, at the same time, with nothing to wait for.
        shard = own(lab.shard_params_tp(params, cfg, n)[connected.ranks[0]])
        del params
        kept = caches(shard, cfg, batch)

        def step(with_comm: Any, shard: Any = shard, kept: Any = kept) -> None:
            kept[0].length = ctx  # positions whose keys and values are zeros, which cost as much
            lab.tp_forward([shard], cfg, tokens, with_comm, caches=kept, gather_logits=False)

        seconds = timed(comm, partial(step, connected), 3, options)
        silent = timed(comm, partial(step, Silent(connected)), 3, options)
        weights = tensors_of([shard["layers"], shard["lm_head"]])
        row = {"n": n, "step": seconds, "without communication": silent}
        row["bytes"] = sum(t.nbytes for t in weights if t.ndim == 2)
        row["all-reduces alone"] = timed(comm, all_reduces, 3, options) if n > 1 else 0.0
        rows.append(row)
        del shard, kept, step
    return rows


def report_differences(ranks: Sequence[list[dict[str, Any]]], n: int) -> None:
    """Prints them; of the ranks, the worst."""
    print_header(f"tp_forward on {n} ranks beside forward on one")
    print_table(
        ["model", "dtype", "where", "shard", "largest logit", "difference", "with a cache"],
        [
            [
                of_ranks[0]["model"],
                of_ranks[0]["dtype"],
                of_ranks[0]["device"].removesuffix(":0"),
                fmt_bytes(of_ranks[0]["bytes"]),
                f"{of_ranks[0]['largest']:.3g}",
                f"{max(r['error'] for r in of_ranks):.1e}",
                f"{max(r['error with a cache'] for r in of_ranks):.1e}",
            ]
            for of_ranks in zip(*ranks, strict=True)
        ],
    )


def report_decode(
    rows: Sequence[dict[str, Any]], lab: ModuleType, link: Any, device: str, options: Any
) -> list[dict[str, Any]]:
    """Prints measured and foretold times of a step; all of it as plain data."""
    from hw_specs import CHIPS, H100
    from llm_math import ModelConfig

    _, cfg, batch, ctx = configs(options.small)
    sizes = ("n_layers", "d_model", "n_heads", "n_kv_heads", "d_head", "d_ff", "vocab")
    model = ModelConfig("decoded", **{size: getattr(cfg, size) for size in sizes})
    chip = next((c for name, c in CHIPS.items() if name in device.split()), H100)
    told = [lab.tp_decode_step(model, chip, link, row["n"], batch, ctx) for row in rows]
    print_header(
        f"A step of decoding: {cfg.n_layers} layers of d = {cfg.d_model:,}, {batch} sequences of "
        f"{ctx:,}; foretold for {chip.name}, bf16"
    )
    print_table(
        ["", *(f"n = {row['n']}" for row in rows)],
        [
            ["step, measured", *(fmt_time(row["step"]) for row in rows)],
            ["  without communication", *(fmt_time(r["without communication"]) for r in rows)],
            ["  all-reduces alone", *(fmt_time(row["all-reduces alone"]) for row in rows)],
            ["step, foretold", *(fmt_time(t["t_step"]) for t in told)],
            ["  memory", *(fmt_time(t["t_mem"]) for t in told)],
            ["  arithmetic", *(fmt_time(t["t_math"]) for t in told)],
            ["  all-reduces", *(fmt_time(t["t_comm"]) for t in told)],
            [
                "bytes of weights ÷ time without communication, TB/s",
                *(f"{r['bytes'] / r['without communication'] / 1e12:.2f}" for r in rows),
            ],
        ],
    )
    pairs = zip(rows, told, strict=True)
    return [{"measured": row, "foretold": t, "chip": chip.name} for row, t in pairs]


# -------------------------------------------------------------------------------------------------


def program(comm: TorchComm, options: Any) -> dict[str, Any]:
    """What each rank does."""
    results: dict[str, Any] = {"device": "CPU"}
    if comm.device.type == "cuda":
        results["device"] = torch.cuda.get_device_name(comm.device)
    results["seconds"] = measure(comm, sizes_of(options), options)
    if options.shard_lab:
        lab = load(options.shard_lab)
        with torch.inference_mode():
            results["differences"] = differences(comm, lab, options)
            no_graphs = argparse.Namespace(**{**vars(options), "graphs": False})
            results["decode"] = decode(comm, lab, no_graphs)
    return results


def sizes_of(options: Any) -> list[int]:
    """Powers of two, of bytes."""
    first, last = (math.frexp(size)[1] - 1 for size in (options.smallest, options.largest))
    return [2**power for power in range(first, last + 1)]


def arguments() -> Any:
    """Of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--ranks", type=int, default=2, help="processes, and GPUs")
    parser.add_argument("--backend", choices=("nccl", "gloo"), default="nccl")
    parser.add_argument("--smallest", type=int, default=2**10, help="bytes")
    parser.add_argument("--largest", type=int, default=2**30, help="bytes")
    parser.add_argument("--samples", type=int, default=7, help="of which the median is taken")
    parser.add_argument("--warm-up", type=int, default=5, help="calls before")
    parser.add_argument("--graphs", action="store_true", help="time collectives in CUDA graphs")
    parser.add_argument("--shard-lab", type=Path, help="the file for part 2")
    parser.add_argument("--small", action="store_true", help="small models, for CPUs")
    options = parser.parse_args()
    if options.shard_lab:
        if not options.shard_lab.is_file():
            parser.error(f"there is no {options.shard_lab}")
        if importlib.util.find_spec("array_api_compat") is None:
            parser.error("--shard-lab needs array-api-compat: pip install array-api-compat")
    if len(sizes_of(options)) < 4 or options.smallest < 4 * options.ranks:
        parser.error("give a range of four powers of two or more, and 4 bytes a rank or more")
    return options


def main() -> None:
    """All tables."""
    options = arguments()
    try:
        ranks = run(program, options.ranks, options, backend=options.backend, timeout=600)
    except ValueError as error:  # too few GPUs
        raise SystemExit(str(error)) from None
    n, sizes, device = options.ranks, sizes_of(options), ranks[0]["device"]
    print(f"{n} × {device}, torch {torch.__version__}, {options.backend}")
    data: dict[str, Any] = {"device": device, "ranks": n, "torch": torch.__version__}
    data["options"] = {name: str(value) for name, value in vars(options).items()}
    seconds = ranks[0]["seconds"]
    data["collectives"] = {
        name: report_collective(name, n, sizes, seconds[name]) for name in OPERATIONS
    }
    if options.shard_lab:
        data["differences"] = [rank["differences"] for rank in ranks]
        report_differences(data["differences"], n)
        link = fit("ring", n, sizes[::2], seconds["all_reduce"][::2])
        lab = load(options.shard_lab)
        data["decode"] = report_decode(ranks[0]["decode"], lab, link, device, options)
    if "OUT" in os.environ:
        Path(os.environ["OUT"], "on_two_gpus.json").write_text(json.dumps(data, indent=1))


if __name__ == "__main__":
    main()
