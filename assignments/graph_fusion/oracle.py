"""What the tests expect, found without any pass: programs written out by hand, and arithmetic.

`llama` writes one layer of Llama-3.1-8B, or of any other size, as a pass would leave it: with
composites or what they are made of, with the norms' weights or without, with attention in three
steps or in one. `unfused` is what a graph costs if every node is a kernel, `fused` what the layer
costs in the kernels of the handout, both as numbers of kernels and bytes.
"""

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from graph_ir import Graph, LayerCfg, Tensor, rewrite, trace
from graph_ir.layers import rope_tables
from graph_ir.ops import causal_mask
from graph_ir.trace import (
    exp,
    flash_attention,
    kv_write,
    rms_norm,
    rot_pairs,
    rsqrt,
    silu,
    softmax,
)


@dataclass(frozen=True)
class Cost:
    """What kernels cost.

    Attributes:
        kernels: how many.
        bytes: what they load and store.
    """

    kernels: int
    bytes: int


def live(graph: Graph) -> Graph:
    """The graph without nodes that nobody needs."""
    return rewrite(graph, lambda build, node, inputs: build.copy(node, inputs))


def ops(graph: Graph) -> Counter[str]:
    """How often each operation is there, leaves and views left out."""
    return Counter(node.op for node in graph if node.computes)


def loads(graph: Graph, number: int) -> set[int]:
    """The roots that one node, alone in a kernel, has to load: not literals, nor what it writes."""
    node = graph[number]
    operands = [i for k, i in enumerate(node.inputs) if k != node.spec.mutates]
    return {graph.root(i) for i in operands if graph[i].op != "scalar"}


def unfused(graph: Graph) -> Cost:
    """The cost if every node that computes is a kernel. All sizes have values."""
    nodes = [node for node in graph if node.computes]
    loaded = sum(graph.nbytes(root) for node in nodes for root in loads(graph, node.id))
    needed = [
        node.id
        for node in nodes
        if graph.readers[node.id] or node.id in graph.needed or node.spec.mutates is not None
    ]
    return Cost(len(nodes), loaded + sum(map(graph.stored_bytes, needed)))


def share(cost: Cost, worst: Cost, reference: Cost) -> float:
    """How far kernels have come from the worst way, 0, to the reference, 1, or beyond it.

    The mean of two shares, of kernels and of bytes: fewer bytes make up for a kernel more.
    """
    kernels = (worst.kernels - cost.kernels) / (worst.kernels - reference.kernels)
    moved = (worst.bytes - cost.bytes) / (worst.bytes - reference.bytes)
    return (kernels + moved) / 2


# -------------------------------------------------------------------------------------------------
# One layer
# -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Form:
    """How a layer is written.

    Attributes:
        written_out: rms_norm, softmax and silu as the operations that they are made of.
        folded: norms have no weights.
        flash: attention is one operation.
    """

    written_out: bool = True
    folded: bool = True
    flash: bool = False


EAGER = Form(written_out=False, folded=False)
DECOMPOSED = Form(folded=False)
OPTIMIZED = Form()
FLASH = Form(flash=True)


def prefill(cfg: LayerCfg, T: int, form: Form, arrays: bool = False, seed: int = 0) -> Graph:
    """A layer on T tokens x (T, d).

    Args:
        cfg: its sizes.
        T: tokens.
        form: how it is written.
        arrays: whether constants have values; else they have shapes alone.
        seed: of the values.
    """
    cos, sin = rope_tables(cfg, T, 0)
    tables = {"cos": cos, "sin": sin, "mask": causal_mask(T, T)}
    if form.flash:
        del tables["mask"]
    params = _params(cfg, tables, form, arrays, seed)

    def layer(p: dict[str, Tensor], x: Tensor) -> Tensor:
        q, k, v = _heads(p, cfg, x, T, p["cos"], p["sin"], form)
        return _rest(p, cfg, x, q, k, v, T, T, p.get("mask"), form, causal=True)

    return trace(layer, {"x": (T, cfg.d)}, params)


def decode(cfg: LayerCfg, form: Form, arrays: bool = False, seed: int = 0) -> Graph:
    """A layer on one token x (1, d), whose key and value go to position P of caches (G, S, dh)."""
    params = _params(cfg, {}, form, arrays, seed)

    def layer(
        p: dict[str, Tensor], x: Tensor, k_cache: Tensor, v_cache: Tensor, cos: Tensor, sin: Tensor
    ) -> Tensor:
        q, k, v = _heads(p, cfg, x, 1, cos, sin, form)
        K, V = kv_write(k_cache, k, "P"), kv_write(v_cache, v, "P")
        return _rest(p, cfg, x, q, K, V, 1, "S", None, form, causal=False)

    cache, table = (cfg.G, "S", cfg.dh), (1, 1, cfg.dh)
    shapes = {"x": (1, cfg.d), "k_cache": cache, "v_cache": cache, "cos": table, "sin": table}
    return trace(layer, shapes, params)


def _params(cfg: LayerCfg, tables: Any, form: Form, arrays: bool, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    params: dict[str, Any] = {}
    for name, shape in cfg.shapes().items():
        if not (form.folded and len(shape) == 1):
            numbers = rng.standard_normal(shape) if arrays else None
            params[name] = shape if numbers is None else numbers / math.sqrt(shape[0])
    for name, table in tables.items():
        params[name] = table if arrays else table.shape
    return params


def norm(x: Tensor, weight: Tensor | None, eps: float, form: Form) -> Tensor:
    """RMSNorm of rows."""
    if not form.written_out and weight is not None:
        return rms_norm(x, weight, eps)
    scaled = x * rsqrt((x * x).sum() / x.shape[-1] + eps)
    return scaled if weight is None else scaled * weight


def attention_weights(scores: Tensor, form: Form) -> Tensor:
    """Softmax of rows."""
    if not form.written_out:
        return softmax(scores)
    powers = exp(scores - scores.max())
    return powers / powers.sum()


def gate(x: Tensor, form: Form) -> Tensor:
    """SiLU."""
    return x / (exp(-x) + 1) if form.written_out else silu(x)


def _heads(
    p: dict[str, Tensor], cfg: LayerCfg, x: Tensor, T: int, cos: Tensor, sin: Tensor, form: Form
) -> tuple[Tensor, Tensor, Tensor]:
    h = norm(x, p.get("attn_norm"), cfg.eps, form)
    q = (h @ p["wq"]).reshape(T, cfg.H, cfg.dh)
    k = (h @ p["wk"]).reshape(T, cfg.G, cfg.dh)
    v = (h @ p["wv"]).reshape(T, cfg.G, cfg.dh)
    q, k = (y * cos + rot_pairs(y) * sin for y in (q, k))
    return q.permute(1, 0, 2), k.permute(1, 0, 2), v.permute(1, 0, 2)


def _rest(
    p: dict[str, Tensor],
    cfg: LayerCfg,
    x: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    T: int,
    S: Any,
    mask: Tensor | None,
    form: Form,
    causal: bool,
) -> Tensor:
    k, v = (
        y.reshape(cfg.G, 1, S, cfg.dh)
        .expand(cfg.G, cfg.H // cfg.G, S, cfg.dh)
        .reshape(cfg.H, S, cfg.dh)
        for y in (k, v)
    )
    scale = 1 / math.sqrt(cfg.dh)
    if form.flash:
        heads = flash_attention(q, k, v, scale, causal)
    else:
        scores = q @ k.permute(0, 2, 1) * scale
        scores = scores if mask is None else scores + mask
        heads = attention_weights(scores, form) @ v
    x = x + heads.permute(1, 0, 2).reshape(T, cfg.H * cfg.dh) @ p["wo"]
    h = norm(x, p.get("mlp_norm"), cfg.eps, form)
    return x + (gate(h @ p["w_gate"], form) * (h @ p["w_up"])) @ p["w_down"]


def prefill_fused(cfg: LayerCfg, T: int, flash: bool) -> Cost:
    """The kernels of the handout for a prefill layer, in bf16: (kernels, bytes)."""
    return Cost(10 if flash else 12, _fused_bytes(cfg, T, T, flash, masked=True))


def decode_fused(cfg: LayerCfg, S: int, flash: bool) -> Cost:
    """The kernels of the handout for a decode layer with caches of S positions, in bf16."""
    new = 2 * cfg.G * cfg.dh
    writes = 2 * (new + new)  # of K and of V: the new rows come in, and go out
    return Cost(12 if flash else 14, _fused_bytes(cfg, 1, S, flash, masked=False) + writes)


def _fused_bytes(cfg: LayerCfg, T: int, S: int, flash: bool, masked: bool) -> int:
    d, H, G, dh, f = cfg.d, cfg.H, cfg.G, cfg.dh, cfg.f
    stream, q, hidden, table, scores = (
        2 * n for n in (T * d, T * H * dh, T * f, T * dh, H * T * S)
    )
    new, cached = 2 * T * G * dh, 2 * S * G * dh
    weights = 2 * (2 * d * H * dh + 2 * d * G * dh + 3 * d * f)
    attention = q + 2 * cached + q
    if not flash:
        mask = 2 * T * S if masked else 0
        attention += mask + 4 * scores  # stored, loaded, and as often again as weights
    return (
        weights
        + 2 * (stream + stream)  # two norms
        + 3 * stream + 2 * 2 * table + q + 2 * new  # three products, two of them rotated
        + attention
        + q + stream + stream  # heads, x; their sum
        + 2 * stream + hidden + hidden + hidden  # the gate is stored; loaded and multiplied
        + hidden + stream + stream
    )  # fmt: skip
