"""What the tests expect: one device's results, and index arithmetic for who holds which part.

Logits come from `transformer_lab.forward`, gradients from PyTorch's autograd through the same
forward, so that no slip in a derivation can be in both a submission and its test. What a rank adds
is computed head by head, by definition: nothing here knows of blocks of heads, or of collectives.

A rank's part of a matrix is gathered number by number, from the numbers of its heads; no function
cuts an axis into equal parts. Formulas of seconds are written out from the published sizes.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from transformer_lab import Config, KVCache, forward

Array = np.ndarray
Tensor = torch.Tensor
Params = dict[str, Any]

#: The matrices of a layer of which a rank has columns, or rows.
COLUMNS = ("wq", "wk", "wv", "w_gate", "w_up")
ROWS = ("wo", "w_down")
NORMS = ("attn_norm", "mlp_norm")


def config(H: int, G: int, dh: int = 2, **others: Any) -> Config:
    """A small model of H query heads and G KV heads, of sizes of which no two are equal.

    So an axis taken for another fits nowhere. ε and θ are not those that `Config` has by itself: a
    program that does not take them from its config is wrong.
    """
    sizes = {
        "n_layers": 2,
        "d_model": 22,
        "d_ff": 144,
        "vocab": 120,
        "max_seq": 17,
        "norm_eps": 0.02,
        "rope_theta": 100.0,
    }
    return Config(n_heads=H, n_kv_heads=G, d_head=dh, **(sizes | others))


# -------------------------------------------------------------------------------------------------
# Who holds what
# -------------------------------------------------------------------------------------------------


def query_heads(cfg: Any, n: int, r: int) -> list[int]:
    """The query heads of rank r: those of which it has the r-th share, counted one by one."""
    return [h for h in range(cfg.n_heads) if h // (cfg.n_heads // n) == r]


def kv_heads(cfg: Any, n: int, r: int) -> list[int]:
    """The KV heads that rank r's query heads use, ascending."""
    return sorted({kv_head(cfg, h) for h in query_heads(cfg, n, r)})


def kv_head(cfg: Any, h: int) -> int:
    """The KV head that query head h uses."""
    return h // (cfg.n_heads // cfg.n_kv_heads)


def holders(cfg: Any, n: int, kv: int) -> list[int]:
    """The ranks that hold a KV head, ascending."""
    return [r for r in range(n) if kv in kv_heads(cfg, n, r)]


def elements(heads: Sequence[int], dh: int) -> list[int]:
    """The columns of wq (or of wk and wv, or the rows of wo) that belong to some heads."""
    return [h * dh + i for h in heads for i in range(dh)]


def share(length: int, n: int, r: int) -> list[int]:
    """The numbers of rank r's share of an axis."""
    return [i for i in range(length) if i * n // length == r]


def columns(logits: Array, n: int) -> list[Array]:
    """The columns (…, v/n) of the logits that each rank computes."""
    return [np.take(logits, share(logits.shape[-1], n, r), axis=-1) for r in range(n)]


def part(layer: Mapping[str, Any], cfg: Config, n: int, r: int) -> Params:
    """Rank r's part of what a layer has: of parameters, or of their gradients."""
    heads, own = query_heads(cfg, n, r), kv_heads(cfg, n, r)
    index = {"wq": heads, "wo": heads, "wk": own, "wv": own}
    at = {name: elements(of, cfg.d_head) for name, of in index.items()}
    at |= dict.fromkeys(("w_gate", "w_up", "w_down"), share(cfg.d_ff, n, r))
    found = {name: layer[name].copy() for name in NORMS}
    found |= {name: np.take(layer[name], at[name], axis=1) for name in COLUMNS}
    return found | {name: np.take(layer[name], at[name], axis=0) for name in ROWS}


def shards(params: Params, cfg: Config, n: int) -> list[Params]:
    """What `shard_params_tp` returns: arrays of their own, so that no rank has another's memory."""
    tied = params["lm_head"] is None
    head = params["embed"].T if tied else params["lm_head"]
    return [
        {
            "embed": params["embed"].copy(),
            "final_norm": params["final_norm"].copy(),
            "kv_groups": kv_heads(cfg, n, r),
            "tied": tied,
            "lm_head": np.take(head, share(cfg.vocab, n, r), axis=1),
            "layers": [part(layer, cfg, n, r) for layer in params["layers"]],
        }
        for r in range(n)
    ]


# -------------------------------------------------------------------------------------------------
# One device
# -------------------------------------------------------------------------------------------------


def of_rank(cfg: Config, n: int, r: int) -> Config:
    """A Config with as many KV heads as rank r holds, for a cache of its own."""
    count = len(kv_heads(cfg, n, r))
    return dataclasses.replace(cfg, n_heads=count, n_kv_heads=count)


def cached(params: Params, cfg: Config, tokens: Array) -> KVCache:
    """A cache of all KV heads that has seen these tokens."""
    cache = KVCache(cfg, len(tokens))
    forward(params, cfg, tokens, cache)
    return cache


def generate(
    params: Params, cfg: Config, prompt: Array, steps: int, among: int | None = None
) -> Array:
    """Greedy decoding, (B, steps): the whole sequence goes through the model for each token.

    `among`: only of the first so many tokens. (Where columns of the head repeat, the later ones'
    logits are equal only but for roundings.)
    """
    tokens = prompt
    for _ in range(steps):
        last = forward(params, cfg, tokens)[:, -1, :among]
        chosen = [int(np.flatnonzero(row == row.max())[0]) for row in last]
        tokens = np.concatenate([tokens, np.array(chosen)[:, None]], axis=1)
    return tokens[:, prompt.shape[1] :]


def gradients(params: Params, cfg: Config, tokens: Array, dlogits: Array) -> Params:
    """The gradients of Σ logits·dlogits by all parameters, in their structure: by autograd.

    Where the head is tied, "lm_head" is None and the embedding's gradient has both its uses.
    """
    leaves = _mapped(params, lambda array: torch.tensor(array, requires_grad=True))
    with torch.enable_grad():
        logits = forward(leaves, cfg, tokens)
        (logits * torch.from_numpy(dlogits)).sum().backward()
    return _mapped(leaves, lambda leaf: leaf.grad.numpy())


def gradient_shards(params: Params, cfg: Config, n: int, tokens: Array, dlogits: Array) -> list:
    """What `tp_backward` returns: rank r's part of the gradients of the whole model."""
    whole = gradients(params, cfg, tokens, dlogits)
    expected = []
    for shard in shards(whole, cfg, n):
        if shard["tied"]:
            shard["lm_head"] = None
        del shard["tied"], shard["kv_groups"]
        expected.append(shard)
    return expected


def summed_over_replicas(grads: Sequence[Params], cfg: Config, n: int) -> list[Params]:
    """What `sum_over_replicas` returns, if rank r gives grads[r]: of other entries, the same."""
    dh = cfg.d_head
    expected = [
        g
        | {"layers": [layer | {w: layer[w].copy() for w in ("wk", "wv")} for layer in g["layers"]]}
        for g in grads
    ]
    for kv in range(cfg.n_kv_heads):
        at = {r: elements([kv_heads(cfg, n, r).index(kv)], dh) for r in holders(cfg, n, kv)}
        for layer in range(cfg.n_layers):
            for w in ("wk", "wv"):
                total = sum(grads[r]["layers"][layer][w][:, own] for r, own in at.items())
                for r, own in at.items():
                    expected[r]["layers"][layer][w][:, own] = total
    return expected


def _mapped(value: Any, change: Any) -> Any:
    """Parameters with every array changed."""
    if isinstance(value, dict):
        return {key: _mapped(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [_mapped(item, change) for item in value]
    return None if value is None else change(value)


# -------------------------------------------------------------------------------------------------
# One rank's part of a block
# -------------------------------------------------------------------------------------------------


def attention_of_heads(
    layer: Mapping[str, Tensor], cfg: Config, heads: Sequence[int], x: Tensor, pos0: int = 0
) -> Tensor:
    """What some query heads add to the residual stream, each by the definition of attention.

    Args:
        layer: the whole layer's matrices.
        cfg: the model's sizes.
        heads: query heads, as the model numbers them.
        x: (B, S, d), the normed input, from position 0 on.
        pos0: the first position that is asked for.

    Returns:
        (B, S − pos0, d).
    """
    S = x.shape[1]
    unseen = torch.ones(S, S, dtype=torch.bool).triu(1)
    total = torch.zeros_like(x)
    for h in heads:
        own, used = elements([h], cfg.d_head), elements([kv_head(cfg, h)], cfg.d_head)
        q, k = _rotated(x @ layer["wq"][:, own], cfg), _rotated(x @ layer["wk"][:, used], cfg)
        scores = (q @ k.mT / math.sqrt(cfg.d_head)).masked_fill(unseen, -math.inf)
        total = total + scores.softmax(-1) @ (x @ layer["wv"][:, used]) @ layer["wo"][own]
    return total[:, pos0:]


def mlp_of_elements(layer: Mapping[str, Tensor], chosen: Sequence[int], x: Tensor) -> Tensor:
    """What some of the d_ff elements of the MLP add to the residual stream: (B, T, d)."""
    gate, up = x @ layer["w_gate"][:, chosen], x @ layer["w_up"][:, chosen]
    return (torch.nn.functional.silu(gate) * up) @ layer["w_down"][chosen]


def _rotated(head: Tensor, cfg: Config) -> Tensor:
    """RoPE on one head (B, S, dh): elements i and i + dh/2 are a complex number, and are turned."""
    half = cfg.d_head // 2
    angle = torch.arange(head.shape[1], dtype=torch.float64)[:, None] * cfg.rope_theta ** (
        -torch.arange(half, dtype=torch.float64) / half
    )
    turned = torch.complex(head[..., :half], head[..., half:]) * torch.exp(1j * angle)
    return torch.cat([turned.real, turned.imag], dim=-1)


def attention_of_rank(
    layer: Mapping[str, Array], cfg: Config, n: int, r: int, x: Array, pos0: int = 0
) -> Array:
    """What rank r's heads add, from the whole layer: (B, S − pos0, d)."""
    tensors = {name: torch.from_numpy(array) for name, array in layer.items()}
    heads = query_heads(cfg, n, r)
    return attention_of_heads(tensors, cfg, heads, torch.from_numpy(x), pos0).numpy()


def mlp_of_rank(layer: Mapping[str, Array], cfg: Config, n: int, r: int, x: Array) -> Array:
    """What rank r's share of the MLP adds, from the whole layer: (B, T, d)."""
    tensors = {name: torch.from_numpy(array) for name, array in layer.items()}
    return mlp_of_elements(tensors, share(cfg.d_ff, n, r), torch.from_numpy(x)).numpy()


def block_gradients(
    layer: Mapping[str, Array], cfg: Config, n: int, r: int, x: Array, dy: Array, block: str
) -> tuple[Array, Params]:
    """Gradients of what rank r adds: by its input, and by its parts of the matrices. By autograd.

    A KV head's are those by the query heads of this rank alone.

    Args:
        layer: the whole layer's matrices.
        cfg: the model's sizes.
        n: ranks.
        r: the rank.
        x: (B, T, d), the normed input.
        dy: (B, T, d), the gradient at what it adds.
        block: "attention" or "mlp".
    """
    leaves = {name: torch.tensor(array, requires_grad=True) for name, array in layer.items()}
    leaf = torch.tensor(x, requires_grad=True)
    with torch.enable_grad():
        if block == "attention":
            y = attention_of_heads(leaves, cfg, query_heads(cfg, n, r), leaf)
        else:
            y = mlp_of_elements(leaves, share(cfg.d_ff, n, r), leaf)
        (y * torch.from_numpy(dy)).sum().backward()
    whole = {
        name: np.zeros(t.shape) if t.grad is None else t.grad.numpy() for name, t in leaves.items()
    }
    names = ("wq", "wk", "wv", "wo") if block == "attention" else ("w_gate", "w_up", "w_down")
    own = part(whole, cfg, n, r)
    return leaf.grad.numpy(), {name: own[name] for name in names}


# -------------------------------------------------------------------------------------------------
# Seconds
# -------------------------------------------------------------------------------------------------


def decode_step(
    model: Any,
    n: int,
    batch: int,
    ctx: int,
    *,
    peak: float,
    mem_bw: float,
    alpha: float,
    bw: float,
    w_bytes: float = 2,
    kv_bytes: float = 2,
    act_bytes: float = 2,
    algo: str = "ring",
) -> dict[str, float]:
    """What `tp_decode_step` returns for a dense model with grouped-query attention.

    From the sizes alone: with L layers, H query and G KV heads, and g KV heads on the fullest rank,
        weights      L·(d·dh·(2H + 2G) + 3·d·f) + v·d
        operations   batch·(2·weights + 4·L·H·dh·ctx) / n
        cache        batch·ctx·2·L·g·dh·kv_bytes
        all-reduces  2L of batch·d·act_bytes

    Args:
        model: an `llm_math.ModelConfig`.
        n: ranks; for "rd" a power of two.
        batch: sequences.
        ctx: positions.
        peak: operations a second.
        mem_bw: bytes a second.
        alpha: a link's seconds a message.
        bw: a link's bytes a second.
        w_bytes, kv_bytes, act_bytes: bytes of an element.
        algo: "ring", "rd" or "innet".
    """
    L, d, H, G = model.n_layers, model.d_model, model.n_heads, model.n_kv_heads
    dh, f, v = model.d_head, model.d_ff, model.vocab
    weights = L * (d * dh * (2 * H + 2 * G) + 3 * d * f) + v * d
    fullest = max(len(kv_heads(model, n, r)) for r in range(n))
    kv_per_token = 2 * L * fullest * dh * kv_bytes
    message = batch * d * act_bytes
    once = {
        "ring": 2 * (n - 1) * (alpha + message / n / bw),
        "rd": math.log2(n) * (alpha + message / bw),
        "innet": (2 * alpha + message / bw) if n > 1 else 0.0,
    }[algo]
    t_math = batch * (2 * weights + 4 * L * H * dh * ctx) / n / peak
    t_mem = (weights * w_bytes / n + batch * ctx * kv_per_token) / mem_bw
    t_comm = 2 * L * once
    return {
        "t_math": t_math,
        "t_mem": t_mem,
        "t_comm": t_comm,
        "t_step": max(t_math, t_mem) + t_comm,
        "kv_per_chip_per_token": kv_per_token,
        "n_allreduce": 2 * L,
        "msg_bytes": message,
    }
