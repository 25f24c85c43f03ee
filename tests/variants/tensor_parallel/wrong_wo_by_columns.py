"""Cuts wo by columns, as wq.

breaks: 3
"""

from transformer_lab import Config, check_params


def shard_params_tp(params: Params, cfg: Config, n: int) -> list[Params]:
    check_model(cfg, n)
    check_params(params, cfg)
    dh = cfg.d_head
    head = params["embed"].T if params["lm_head"] is None else params["lm_head"]
    heads = shard(head, 1, n)
    ranks = []
    for r in range(n):
        groups = kv_group_of_device(cfg, n, r)
        kv = slice(groups[0] * dh, (groups[-1] + 1) * dh)
        layers = [
            {
                "attn_norm": layer["attn_norm"],
                "wq": shard(layer["wq"], 1, n)[r],
                "wk": layer["wk"][:, kv],
                "wv": layer["wv"][:, kv],
                "wo": shard(layer["wo"], 1, n)[r],  # wrong: rows
                "mlp_norm": layer["mlp_norm"],
                "w_gate": shard(layer["w_gate"], 1, n)[r],
                "w_up": shard(layer["w_up"], 1, n)[r],
                "w_down": shard(layer["w_down"], 0, n)[r],
            }
            for layer in params["layers"]
        ]
        ranks.append(
            {
                "embed": params["embed"],
                "final_norm": params["final_norm"],
                "kv_groups": groups,
                "tied": params["lm_head"] is None,
                "lm_head": heads[r],
                "layers": layers,
            }
        )
    return ranks
