"""Costs from the sizes: the fullest rank's KV heads counted head by head, the gathered layout's N
by cases.
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
    if n < 1 or model.n_heads % n:
        raise ValueError(f"{n} ranks cannot share n_heads = {model.n_heads} equally")
    H, G = model.n_heads, model.n_kv_heads
    held = [{h * G // H for h in range(H) if h * n // H == r} for r in range(n)]
    one_head = model.kv_bytes_per_token(kv_bytes) / G
    seconds = {
        "t_math": batch * model.flops_per_token(ctx) / (n * chip.peak_flops(compute_prec)),
        "t_mem": (
            w_bytes * model.matmul_params() / n / chip.mem_bw
            + max(map(len, held)) * one_head * batch * ctx / chip.mem_bw
        ),
        "t_comm": 0.0,
    }
    message = act_bytes * batch * model.d_model
    for _ in range(2 * model.n_layers if n > 1 else 0):
        seconds["t_comm"] += t_formula(algo, n, message, link.alpha, link.bw)
    return seconds | {
        "t_step": seconds["t_comm"] + max(seconds["t_math"], seconds["t_mem"]),
        "kv_per_chip_per_token": max(map(len, held)) * one_head,
        "n_allreduce": 2 * model.n_layers,
        "msg_bytes": message,
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
    bandwidth = bw / bytes_per_elem  # elements a second
    activation = tokens * E
    match variant:
        case "1d":
            return 2 * activation / bandwidth
        case "2d":
            return 8 * activation / n**0.5 / bandwidth
        case "gathered":
            N = (tokens * n / F) ** 0.5
            if N < 1:
                N = 1
            elif n < N:
                N = n
            return 2 * E * F / n * N / bandwidth + 2 * activation / N / bandwidth, N
        case _:
            raise ValueError(f"there is no {variant!r}; choose '1d', '2d' or 'gathered'")
