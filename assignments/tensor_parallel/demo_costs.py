"""Parts 4 to 6 of the demo: memory, a decode step, and Pope's layouts, by your formulas."""

import math
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
from comm_sim import IB_NDR, NVLINK4, LinkSpec, t_formula
from console import fmt_bytes, fmt_time, print_header, print_observations, print_table
from hw_specs import H100, TPU_V5P
from llm_math import LLAMA3_8B, LLAMA3_70B, ModelConfig
from transformer_lab import TINY, Config, init_params

BF16 = 2  # bytes of an element, of weights, activations and KV
BATCH, CTX = 32, 8192  # sequences, and cached positions of each
MODELS = (LLAMA3_8B, LLAMA3_70B)
GPUS = 8  # in a node: as far as NVLink reaches


def counts_of_ranks(model: ModelConfig) -> list[int]:
    """The n of parts 4 and 5: powers of two that share the query heads."""
    return [2**k for k in range(10) if model.n_heads % 2**k == 0]


# -------------------------------------------------------------------------------------------------
# 4. Memory
# -------------------------------------------------------------------------------------------------


def fullest(lab: ModuleType, model: ModelConfig | Config, n: int) -> int:
    """KV heads of the rank that holds the most of them."""
    return max(len(lab.kv_group_of_device(model, n, rank)) for rank in range(n))


def weights_of_rank(model: ModelConfig | Config, n: int, kv_heads: int) -> tuple[int, int]:
    """Numbers that a rank with so many KV heads holds: (its shards, what every rank has whole)."""
    d, dh, L = model.d_model, model.d_head, model.n_layers
    layer = d * dh * (2 * model.n_heads // n + 2 * kv_heads) + 3 * d * model.d_ff // n
    whole = model.vocab * d + (2 * L + 1) * d  # embedding, norms
    return L * layer + d * model.vocab // n, whole


def memory_of_rank(lab: ModuleType, model: ModelConfig, n: int) -> tuple[float, float, float]:
    """Bytes of the fullest rank: (its shards, what is whole, KV)."""
    kv_heads = fullest(lab, model, n)
    cut, whole = weights_of_rank(model, n, kv_heads)
    kv = BATCH * CTX * model.kv_bytes_per_token(BF16) * kv_heads / model.n_kv_heads
    return BF16 * cut, BF16 * whole, kv


def arrays_in(parameters: Any) -> Iterator[np.ndarray]:
    """The arrays in dictionaries and lists."""
    if isinstance(parameters, np.ndarray):
        yield parameters
    elif isinstance(parameters, dict | list):
        parts = parameters.values() if isinstance(parameters, dict) else parameters
        for part in parts:
            yield from arrays_in(part)


def check_on_tiny(lab: ModuleType) -> str:
    """Whether TINY's shards hold as many numbers as `weights_of_rank` says."""
    for n in (1, 2, 4, 8):
        foretold = sum(weights_of_rank(TINY, n, fullest(lab, TINY, n)))
        for rank, shard in enumerate(lab.shard_params_tp(init_params(TINY), TINY, n)):
            held = sum(array.size for array in arrays_in(shard))
            if held != foretold:
                return f"✗ TINY, n = {n}: rank {rank} holds {held:,} numbers, not {foretold:,}"
    return "TINY's shards at n = 1, 2, 4 and 8 hold as many numbers as this table's formula says. ✓"


def memory(lab: ModuleType) -> None:
    """Weights and KV of the fullest rank against n."""
    print_header(
        f"4. Memory of the fullest rank, bf16, with {BATCH} sequences of {CTX:,} positions; "
        f"an {H100.name} has {fmt_bytes(H100.mem_bytes)}"
    )
    rows = []
    for model in MODELS:
        for n in counts_of_ranks(model):
            parts = memory_of_rank(lab, model, n)
            fits = "yes" if sum(parts) <= H100.mem_bytes else "no"
            sizes = map(fmt_bytes, (*parts, sum(parts)))
            rows.append([model.name, n, fullest(lab, model, n), *sizes, fits])
    print_table(
        ["model", "n", "KV heads", "shards", "embedding, norms", "KV", "together", "fits"], rows
    )
    try:
        checked = [check_on_tiny(lab)]
    except NotImplementedError:
        checked = []
    G, most = LLAMA3_8B.n_kv_heads, counts_of_ranks(LLAMA3_8B)[-1]
    cut, whole, kv = memory_of_rank(lab, LLAMA3_8B, most)
    print_observations(
        [
            f"Up to n = G = {G} the KV of a rank shrinks. Beyond, it stays, {fmt_bytes(kv)} with "
            "the smaller model: heads are copied, and more ranks make room for no more sequences.",
            f"The embedding is whole at every rank: {whole / (cut + whole):.0%} of the smaller "
            f"model's weights there at n = {most}. Cut by tokens it would be "
            f"{fmt_bytes(whole / most)}, for one more all-reduce a step.",
            *checked,
        ]
    )


# -------------------------------------------------------------------------------------------------
# 5. A decode step
# -------------------------------------------------------------------------------------------------

DECODE_ALGOS = ("ring", "rd", "innet")


def step(
    lab: ModuleType, model: ModelConfig, n: int, algo: str = "ring", link: LinkSpec = NVLINK4
) -> dict[str, float]:
    """Task 8's decode step: H100s, bf16, BATCH sequences of CTX positions."""
    return lab.tp_decode_step(model, H100, link, n, BATCH, CTX, algo=algo)


def step_on_nodes(lab: ModuleType, model: ModelConfig, n: int) -> float:
    """Seconds of a step on nodes of 8: all-reduces within them on NVLink, across on InfiniBand."""
    found = step(lab, model, n)
    alphas, bws = (NVLINK4.alpha, IB_NDR.alpha), (NVLINK4.bw, IB_NDR.bw)
    reduce = t_formula("hier", (GPUS, n // GPUS), found["msg_bytes"], alphas, bws)
    return found["t_step"] - found["t_comm"] + found["n_allreduce"] * reduce


def decode_step(lab: ModuleType) -> None:
    """Seconds of a decode step against n, by all-reduce."""
    for model in MODELS:
        print_header(
            f"5. A decode step of {model.name} on n {H100.name}: {BATCH} sequences of {CTX:,} "
            "positions, bf16, NVLink 4"
        )
        rows, totals = [], {algo: {} for algo in DECODE_ALGOS}
        for n in counts_of_ranks(model):
            for algo in DECODE_ALGOS:
                totals[algo][n] = step(lab, model, n, algo)["t_step"]
            ring = step(lab, model, n)
            kv = BATCH * CTX * ring["kv_per_chip_per_token"] / H100.mem_bw
            parts = (ring["t_math"], ring["t_mem"], kv, ring["t_comm"])
            times = (*parts, *(totals[algo][n] for algo in DECODE_ALGOS))
            rows.append([n, *map(fmt_time, times)])
        print_table(
            ["n", "t_math", "t_mem", "KV of it", "t_comm, ring"]
            + [f"t_step, {algo}" for algo in DECODE_ALGOS],
            rows,
        )
        best = {algo: min(of, key=of.__getitem__) for algo, of in totals.items()}
        words = [f"{n} with {algo} ({fmt_time(totals[algo][n])})" for algo, n in best.items()]
        G, two = model.n_kv_heads, 2 * GPUS
        ring = step(lab, model, two)
        on_ib = step(lab, model, two, link=IB_NDR)["t_step"]
        latency = ring["n_allreduce"] * t_formula("ring", two, 0, NVLINK4.alpha, NVLINK4.bw)
        print_observations(
            [
                f"The best n is {', '.join(words)}. Without communication it would be the largest.",
                f"{ring['n_allreduce']} all-reduces of {fmt_bytes(ring['msg_bytes'])} take "
                f"{fmt_time(ring['t_comm'])} in rings at n = {two}, and "
                f"{latency / ring['t_comm']:.0%} of that is latency: more bandwidth does not "
                "help, fewer steps do.",
                f"From n = {G} to {2 * G} reading the weights takes half as long, and reading the "
                "KV as long as before.",
                f"If NVLink ends at {GPUS} GPUs, n = {two} on two nodes takes "
                f"{fmt_time(step_on_nodes(lab, model, two))} with hierarchical all-reduces over "
                f"InfiniBand NDR, and {fmt_time(on_ib)} with rings all on InfiniBand; n = {GPUS} "
                f"in one node takes {fmt_time(totals['ring'][GPUS])} with rings.",
            ]
        )


# -------------------------------------------------------------------------------------------------
# 6. Pope's layouts
# -------------------------------------------------------------------------------------------------

#: A feedforward layer as wide as PaLM 540B's (A. Chowdhery et al., "PaLM", 2022, table 1), with
#: two matrices, on 64 chips.
E, F, CHIPS = 18_432, 73_728, 64
VARIANTS = ("1d", "2d", "gathered")


def layout_times(lab: ModuleType, tokens: float) -> tuple[dict[str, float], float]:
    """Seconds of communication by layout, and the N of "gathered"."""
    one, two, (gathered, N) = (
        lab.pope_ffn_comm(variant, tokens, E, F, CHIPS, TPU_V5P.link_bw) for variant in VARIANTS
    )
    return dict(zip(VARIANTS, (one, two, gathered), strict=True)), N


def crossovers() -> dict[str, float]:
    """Tokens from which on weights that travel beat activations that do, by the other layout.

    With the best N = √(t·n/F) gathering moves 4E·√(t·F/n) elements. That equals the 8tE/√n of "2d"
    at t = F/4, and the 2tE of "1d" at t = 4F/n.
    """
    return {"2d": F / 4, "1d": 4 * F / CHIPS}


def layouts(lab: ModuleType) -> None:
    """Communication of a feedforward layer against the tokens of a step."""
    print_header(
        f"6. A feedforward layer, E = {E:,}, F = {F:,} (PaLM 540B), on {CHIPS} {TPU_V5P.name}: "
        "communication, bf16"
    )
    rows = []
    for tokens in (64, 256, 1024, 4096, F // 4, 65_536, 262_144, 1_048_576):
        times, N = layout_times(lab, tokens)
        least = min(times.values())
        best = " = ".join(name for name in VARIANTS if math.isclose(times[name], least))
        rows.append([tokens, *map(fmt_time, times.values()), f"{N:.1f}", best])
    print_table(["tokens", *VARIANTS, "N", "least"], rows)
    meet = []
    for other, tokens in crossovers().items():
        times, _ = layout_times(lab, tokens)
        meets = math.isclose(times[other], times["gathered"])
        meet.append(f"{other} at {tokens:,.0f} tokens {'✓' if meets else '✗'}")
    print_observations(
        [
            "Activations that travel, 1d and 2d, cost the more the more tokens there are. 2d costs "
            f"4/√n times as much as 1d, here {4 / math.sqrt(CHIPS):g}: less from n = 17 on.",
            "Weights that travel cost 4E·√(t·F/n) elements with the best N, which grows with √t. "
            f"They meet 8tE/√n at t = F/4 and 2tE at t = 4F/n: {', '.join(meet)}.",
            "So decoding moves activations, and a long prompt weights. Pope et al. change from one "
            "to the other between prompt and decoding, with the same cut of the weights in memory.",
        ]
    )
