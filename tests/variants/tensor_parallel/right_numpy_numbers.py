"""Counts and computes with numpy's numbers, and returns these."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from comm_sim import LinkSpec, t_formula
from hw_specs import Chip
from llm_math import ModelConfig
from transformer_lab import Config, KVCache


def kv_group_of_device(cfg: Config | ModelConfig, n: int, d: int) -> list[int]:
    if n < 1 or cfg.n_heads % n:
        raise ValueError(f"n_heads is {cfg.n_heads}; {n} ranks cannot share it equally")
    if not 0 <= d < n:
        raise ValueError(f"there is no rank {d}; there are {n}, from 0")
    per_rank, per_group = cfg.n_heads // n, cfg.n_heads // cfg.n_kv_heads
    return list(np.unique(np.arange(d * per_rank, (d + 1) * per_rank) // per_group))


def kv_head_of_query(p: Params, cfg: Config, n: int, r: int) -> list[int]:
    heads = np.arange(cfg.n_heads // n) + r * (cfg.n_heads // n)
    return list(np.searchsorted(p["kv_groups"], heads // (cfg.n_heads // cfg.n_kv_heads)))


def tp_caches(cfg: Config, dev_params: Sequence[Params], batch: int) -> list[KVCache]:
    widths = [p["layers"][0]["wk"].shape[1] // cfg.d_head for p in dev_params]
    return [
        KVCache(replace(cfg, n_heads=g, n_kv_heads=g), batch, max_len=cfg.max_seq) for g in widths
    ]


def tp_decode_step(
    model: ModelConfig,
    chip: Chip,
    link: LinkSpec,
    n: int,
    batch: int,
    ctx: int,
    w_bytes: float = 2.0,
    kv_bytes: float = 2.0,
    act_bytes: float = 2.0,
    algo: str = "ring",
    compute_prec: str = "bf16",
) -> dict[str, float]:
    fullest = np.max([len(kv_group_of_device(model, n, r)) for r in np.arange(n)])
    kv = np.float64(model.kv_bytes_per_token(kv_bytes)) / model.n_kv_heads * fullest
    math_and_mem = np.array(
        [
            batch * model.flops_per_token(ctx) / n / chip.peak_flops(compute_prec),
            (model.matmul_params() * w_bytes / n + batch * ctx * kv) / chip.mem_bw,
        ]
    )
    calls, size = np.int64(2 * model.n_layers), np.float64(batch * model.d_model * act_bytes)
    t_comm = calls * t_formula(algo, n, size, link.alpha, link.bw)
    return {
        "t_math": math_and_mem[0],
        "t_mem": math_and_mem[1],
        "t_comm": t_comm,
        "t_step": math_and_mem.max() + t_comm,
        "kv_per_chip_per_token": kv,
        "n_allreduce": calls,
        "msg_bytes": size,
    }


def pope_ffn_comm(
    variant: str,
    tokens: float,
    E: int,
    F: int,
    n: int,
    bw: float,
    bytes_per_elem: float = 2.0,
) -> float | tuple[float, float]:
    N = np.clip(np.sqrt(tokens * n / F), 1, n)
    elements = {
        "1d": 2 * tokens * E,
        "2d": 8 * tokens * E / np.sqrt(n),
        "gathered": 2 * E * F * N / n + 2 * tokens * E / N,
    }
    if variant not in elements:
        raise ValueError(f"no layout {variant!r}; there are {', '.join(elements)}")
    seconds = elements[variant] * bytes_per_elem / bw
    return (seconds, N) if variant == "gathered" else seconds
