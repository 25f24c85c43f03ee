"""Takes the KV heads of rank 0 for those of the fullest rank.

breaks: 8
"""

from comm_sim import LinkSpec, t_formula
from hw_specs import Chip
from llm_math import ModelConfig


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
    fullest = len(kv_group_of_device(model, n, 0))  # wrong: another may have more
    kv_per_token = model.kv_bytes_per_token(kv_bytes) * fullest / model.n_kv_heads
    t_math = batch * model.flops_per_token(ctx) / n / chip.peak_flops(compute_prec)
    t_mem = (model.matmul_params() * w_bytes / n + batch * ctx * kv_per_token) / chip.mem_bw
    n_allreduce = 2 * model.n_layers
    msg_bytes = batch * model.d_model * act_bytes
    t_comm = n_allreduce * t_formula(algo, n, msg_bytes, link.alpha, link.bw)
    return {
        "t_math": t_math,
        "t_mem": t_mem,
        "t_comm": t_comm,
        "t_step": max(t_math, t_mem) + t_comm,
        "kv_per_chip_per_token": kv_per_token,
        "n_allreduce": n_allreduce,
        "msg_bytes": msg_bytes,
    }
