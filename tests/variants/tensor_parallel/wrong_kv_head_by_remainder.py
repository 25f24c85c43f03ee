"""Query head j of a rank uses KV head j mod g of the rank's g.

breaks: 4, 5, 6, 7
"""

from transformer_lab import Config


def kv_head_of_query(p: Params, cfg: Config, n: int, r: int) -> list[int]:
    # wrong: query heads of a group lie side by side
    return [j % len(p["kv_groups"]) for j in range(cfg.n_heads // n)]
