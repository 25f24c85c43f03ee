"""Cuts parameters by lists of heads, and gathers whole lists of columns and rows at once; KV heads
come from the set of those that the rank's query heads use.
"""

import numpy as np
from llm_math import ModelConfig
from transformer_lab import Config, check_params


def kv_group_of_device(cfg: Config | ModelConfig, n: int, d: int) -> list[int]:
    if n < 1 or cfg.n_heads % n:
        raise ValueError(f"n_heads = {cfg.n_heads} cannot be shared by n = {n} ranks")
    if d < 0 or d >= n:
        raise ValueError(f"rank {d} is not one of the {n} ranks")
    mine = range(d * (cfg.n_heads // n), (d + 1) * (cfg.n_heads // n))
    return sorted({h * cfg.n_kv_heads // cfg.n_heads for h in mine})


def shard_params_tp(params: Params, cfg: Config, n: int) -> list[Params]:
    check_model(cfg, n)
    check_params(params, cfg)
    tied = params.get("lm_head") is None
    head = np.ascontiguousarray(params["embed"].T) if tied else params["lm_head"]
    q = np.arange(cfg.n_heads * cfg.d_head).reshape(n, -1)
    f = np.arange(cfg.d_ff).reshape(n, -1)
    columns = np.arange(cfg.n_kv_heads * cfg.d_head).reshape(cfg.n_kv_heads, cfg.d_head)
    ranks = []
    for r in range(n):
        mine = {key: params[key].copy() for key in ("embed", "final_norm")}
        mine["tied"] = tied
        mine["kv_groups"] = kv_group_of_device(cfg, n, r)
        mine["lm_head"] = head.reshape(cfg.d_model, n, -1)[:, r]
        mine["layers"] = []
        for whole in params["layers"]:
            layer = {"attn_norm": whole["attn_norm"].copy(), "mlp_norm": whole["mlp_norm"].copy()}
            for name in ("wk", "wv"):
                layer[name] = whole[name][:, columns[mine["kv_groups"]].ravel()]
            layer["wq"] = whole["wq"][:, q[r]]
            layer["wo"] = whole["wo"][q[r], :]
            for name in ("w_gate", "w_up"):
                layer[name] = whole[name].take(f[r], axis=1)
            layer["w_down"] = whole["w_down"].take(f[r], axis=0)
            mine["layers"].append(layer)
        ranks.append(mine)
    return ranks
