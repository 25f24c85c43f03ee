"""Tensor parallelism: one model on n devices, with every byte between them accounted for.

A model that does not fit one device, or is too slow on one, is cut into shards. Two questions
follow, and this file answers both: how do the parts make up exactly what one device would compute,
and what has to travel for it?

    task  function                                  what travels
    1     shard, unshard                            nothing
    1     all_gather, reduce_scatter, all_reduce    an array along one of its axes, or a sum
    2     matmul_case1 … matmul_case4               A, the sum, or B: whatever is the axis' fault
    3     kv_group_of_device, shard_params_tp       nothing: who holds which part of the parameters
    4     tp_forward                                2 all-reduces a layer, and the logits
    5     tp_caches, tp_generate                    as task 4, but two numbers instead of the logits
    6     tp_forward_sp                             2 reduce-scatters and 2 all-gathers a layer
    7     tp_backward                               2 all-reduces a layer, there and back; gradients
                                                    of keys and values that several ranks hold
    8     tp_decode_step, pope_ffn_comm             seconds, by formula

**What the lists hold.** Every function that takes `comm` takes and returns lists with one entry
for each rank *that this process holds* (JAX calls them addressable shards). In a simulation one
process holds them all: `comm.ranks` is (0, 1, …, n−1). On real ranks each process holds one:
`comm.ranks` is (2,), say, and every list has one entry. So

    comm.n              is how many ranks there are;  len(xs) is not
    comm.ranks[i]       is the rank that entry i belongs to;  i is not

and a program that looks into another rank's entry works in the simulation alone. You are graded on
real ranks. The same file runs there:

    tp_forward(shard_params_tp(params, cfg, 4), cfg, tokens, make_comm(4))       # one process
    tp_forward([mine], cfg, tokens, comm)                                        # one of four

`comm` (`spmd.Communicator`) offers all_reduce, all_gather and reduce_scatter of **1-D** arrays, and
`comm.group(ranks)`, a communicator of some of the ranks, which all of them make, members or not.
Nothing else is shared.

Notation, the same in code, comments and handout:

    n, r          ranks; one of them
    B, T          sequences, positions
    d, f, v       widths of the residual stream (cfg.d_model), the MLP (cfg.d_ff), the vocabulary
    H, G, dh      query heads, KV heads (groups), width of a head
    R             H/G, the query heads that share a KV head: query head h uses KV head h // R
    L             layers
    A[I_X, J]     the matrix A with its axis I cut over the ranks, and J whole ("How to Scale Your
                  Model", part 3)

Arrays are numpy's. Parameters are those of `transformer_lab`: matrices stored (in, out), so x W.

References:
    M. Shoeybi et al., "Megatron-LM", 2019, arXiv:1909.08053, section 3: columns first, then rows;
        f and g.
    V. Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models", 2022,
        arXiv:2205.05198, section 4.2.2: sequence parallelism.
    R. Pope et al., "Efficiently Scaling Transformer Inference", 2022, arXiv:2211.05102, section 3.2
        and appendix A: three layouts of the feedforward layer.
    J. Austin et al., "How to Scale Your Model", 2025, part 3: four cases of sharded products.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from comm_sim import NVLINK4, Comm, LinkSpec, switch, t_formula
from hw_specs import Chip
from llm_math import ModelConfig
from spmd import Communicator
from transformer_lab import (
    Config,
    KVCache,
    apply_rope,
    apply_rope_backward,
    attention_core,
    attention_core_backward,
    check_params,
    rms_norm,
    rms_norm_backward,
    rope_angles,
    silu,
    silu_backward,
)

Params = dict[str, Any]

# -------------------------------------------------------------------------------------------------
# Given: what every function below relies on
# -------------------------------------------------------------------------------------------------


def make_comm(n: int, link: LinkSpec = NVLINK4, byte_scale: float = 1.0) -> Comm:
    """n simulated devices on one switch; this process holds all of them.

    byte_scale: what a byte counts for; 0.25 where float64 stands for bfloat16.
    """
    return Comm(switch(n, link), byte_scale=byte_scale)


def check_model(cfg: Config, n: int) -> None:
    """ValueError, naming the size, unless n ranks can share the model's heads, d_ff and vocab."""
    if n < 1:
        raise ValueError(f"n is {n}; there is 1 rank or more")
    for name in ("n_heads", "d_ff", "vocab"):
        if getattr(cfg, name) % n:
            raise ValueError(f"{name} is {getattr(cfg, name)}; {n} ranks cannot share it equally")


def check_tokens(tokens: np.ndarray, cfg: Config) -> None:
    """ValueError, naming the first that is wrong, unless tokens are (B, T) of the vocabulary's."""
    if tokens.ndim != 2:
        raise ValueError(f"tokens has shape {tuple(tokens.shape)}; (B, T) was expected")
    for b, t in np.argwhere((tokens < 0) | (tokens >= cfg.vocab))[:1].tolist():
        raise ValueError(
            f"tokens[{b}, {t}] is {tokens[b, t]}; tokens are numbered from 0 to {cfg.vocab - 1}"
        )


def check_shards(dev_params: Sequence[Params], cfg: Config, comm: Communicator) -> None:
    """ValueError, naming rank, layer and parameter, unless these are shards for comm.n ranks."""
    check_model(cfg, comm.n)
    check_held(comm, dev_params=dev_params)
    d, dh, n = cfg.d_model, cfg.d_head, comm.n
    q, f = cfg.n_heads // n * dh, cfg.d_ff // n
    for r, p in zip(comm.ranks, dev_params, strict=True):
        kv = len(p["kv_groups"]) * dh
        shapes = {"wq": (d, q), "wk": (d, kv), "wv": (d, kv), "wo": (q, d)}
        shapes |= {"w_gate": (d, f), "w_up": (d, f), "w_down": (f, d)}
        expected = [(f"layers[{i}].", layer, shapes) for i, layer in enumerate(p["layers"])]
        expected.append(("", p, {"embed": (cfg.vocab, d), "lm_head": (d, cfg.vocab // n)}))
        for where, holder, known in expected:
            for name, shape in known.items():
                if tuple(holder[name].shape) != shape:
                    raise ValueError(
                        f"{where}{name} of rank {r} has shape {tuple(holder[name].shape)}; its "
                        f"shard of {n} has {shape}"
                    )


def check_held(comm: Communicator, **lists: Sequence[Any]) -> None:
    """ValueError, naming the list, unless each has one entry for each rank that is held here."""
    for name, entries in lists.items():
        if len(entries) != len(comm.ranks):
            raise ValueError(
                f"{name} has {len(entries)} entries, but this process holds {len(comm.ranks)} of "
                f"{comm.n} ranks: give one entry for each of them"
            )


# -------------------------------------------------------------------------------------------------
# Task 1: arrays in parts
# -------------------------------------------------------------------------------------------------


def shard(x: np.ndarray, axis: int, n: int) -> list[np.ndarray]:
    """Cuts x along an axis into n equal parts; part r is for rank r.

    Nothing is padded: a part that is silently longer than its neighbours, or filled up with zeros,
    makes a wrong result somewhere else.

    x: any shape. axis: 0 … x.ndim−1, or negative, counted from the end.
    Raises ValueError if n does not divide the length; it names axis, length and n.
    """
    raise NotImplementedError(
        "tensor_parallel 1: refuse a length that n does not divide; return the n parts"
    )


def unshard(shards: Sequence[np.ndarray], axis: int) -> np.ndarray:
    """Joins the parts of all ranks, in rank order: what `shard` has cut.

    For looking at results. On real ranks nobody has all parts.
    """
    raise NotImplementedError("tensor_parallel 1: join the parts along the axis")


def all_gather(comm: Communicator, shards: Sequence[np.ndarray], axis: int) -> list[np.ndarray]:
    """Gives every rank the whole array, of which each held one part along `axis`.

    `comm.all_gather` joins 1-D arrays, in rank order. Joining along axis 0 and laying flat arrays
    one behind the other is the same thing; for other axes, the axis has to be in front while the
    array travels.

    shards: one part a held rank, of one shape; dtypes stay. Every rank sends (n−1)/n of the whole.
    """
    raise NotImplementedError(
        "tensor_parallel 1: bring the axis to the front, flatten, gather; shape the flat arrays "
        "again, and bring the axis back"
    )


def reduce_scatter(comm: Communicator, arrays: Sequence[np.ndarray], axis: int) -> list[np.ndarray]:
    """Sums the arrays of all ranks, and leaves rank r part r of the sum along `axis`.

    `comm.reduce_scatter` does so with 1-D arrays: rank r gets the r-th of n equal blocks.

    arrays: one a held rank, of one shape; dtypes stay. n divides the axis' length: otherwise
    ValueError, which names length and n. Every rank sends (n−1)/n of an array.
    """
    raise NotImplementedError(
        "tensor_parallel 1: refuse a length that n does not divide; bring the axis to the front, "
        "flatten, reduce and scatter, and back"
    )


def all_reduce(
    comm: Communicator, arrays: Sequence[np.ndarray], algo: str = "ring"
) -> list[np.ndarray]:
    """Gives every rank the sum of the arrays of all ranks.

    arrays: one a held rank, of one shape; dtypes stay.
    algo: "ring", "rd" (recursive doubling), "innet", …: the keys of `comm_sim.ALLREDUCE_ALGOS`. In
    a ring every rank sends 2(n−1)/n of an array.
    """
    raise NotImplementedError("tensor_parallel 1: flatten, sum up, shape again")


# -------------------------------------------------------------------------------------------------
# Task 2: the four cases of a sharded product, "How to Scale Your Model", part 3
# -------------------------------------------------------------------------------------------------


def matmul_case1(A_sh: Sequence[np.ndarray], B: np.ndarray) -> list[np.ndarray]:
    """A[I_X, J] · B[J, K] → C[I_X, K]: the axis that is summed over is whole. Nothing travels.

    A_sh: (I/n, J) a held rank. B: (J, K). Returns (I/n, K) a held rank.
    """
    raise NotImplementedError("tensor_parallel 2: multiply")


def matmul_case2(comm: Communicator, A_sh: Sequence[np.ndarray], B: np.ndarray) -> list[np.ndarray]:
    """A[I, J_X] · B[J, K] → C[I, K]: only A is cut where it is summed over. A is gathered.

    Every rank then does all of the work. (It could instead take its rows of B, and sum up: then the
    work is shared, and C travels in place of A.)

    A_sh: (I, J/n) a held rank. B: (J, K), whole at each. Returns (I, K) a held rank.
    """
    raise NotImplementedError("tensor_parallel 2: gather A; multiply")


def matmul_case3(
    comm: Communicator,
    A_sh: Sequence[np.ndarray],
    B_sh: Sequence[np.ndarray],
    scatter_axis: int | None = None,
    algo: str = "ring",
) -> list[np.ndarray]:
    """A[I, J_X] · B[J_X, K] → C[I, K]: both are cut where it is summed over. Parts of a sum travel.

    A_sh: (I, J/n), B_sh: (J/n, K) a held rank.
    scatter_axis: None: every rank gets the whole C, by an all-reduce. 0 or 1: rank r gets part r of
    C along this axis, by a reduce-scatter, for half of the bytes.
    """
    raise NotImplementedError("tensor_parallel 2: multiply what is here; reduce")


def matmul_case4(
    comm: Communicator, A_sh: Sequence[np.ndarray], B_sh: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """A[I_X, J] · B[J, K_X] → C[I_X, K]: cut over the same ranks in two axes that remain.

    Rank r could compute only the block (r, r) of C, and the others nobody: C[I_X, K_X] is no way of
    cutting a matrix. So B is gathered, which makes it case 1.

    A_sh: (I/n, J), B_sh: (J, K/n) a held rank. Returns (I/n, K) a held rank.
    """
    raise NotImplementedError("tensor_parallel 2: gather B; multiply")


# -------------------------------------------------------------------------------------------------
# Task 3: who holds which part of the parameters. Megatron-LM, section 3
# -------------------------------------------------------------------------------------------------


def kv_group_of_device(cfg: Config | ModelConfig, n: int, d: int) -> list[int]:
    """The KV heads that rank d needs, ascending.

    The H query heads are dealt out in order, H/n to each rank. A rank holds the KV heads that its
    own query heads use. Where n divides G these are G/n, and no other rank's. Where it does not, a
    KV head belongs to query heads of several ranks, and each of these ranks holds a copy: it is
    *replicated*. With H = 12, G = 3, n = 2, rank 0 needs KV heads 0 and 1, rank 1 needs 1 and 2.

    Raises ValueError if n does not divide H, or there is no rank d.
    """
    H = cfg.n_heads
    if n < 1 or H % n:
        raise ValueError(f"n_heads is {H}; {n} ranks cannot share it equally")
    if not 0 <= d < n:
        raise ValueError(f"there is no rank {d}; there are {n}, from 0")
    raise NotImplementedError(
        "tensor_parallel 3: from the first and the last query head of the rank, the KV heads that "
        "they use"
    )


def shard_params_tp(params: Params, cfg: Config, n: int) -> list[Params]:
    """The parameters of a model, cut for n ranks; entry r is all that rank r ever gets.

    Returns n dictionaries of the same structure as `params`, with narrower matrices:

        wq                  (d, H/n·dh)     the columns of the rank's query heads
        wk, wv              (d, g·dh)       the columns of its g KV heads, `kv_group_of_device`
        wo                  (H/n·dh, d)     the rows of its query heads
        w_gate, w_up        (d, f/n)        columns
        w_down              (f/n, d)        rows
        lm_head             (d, v/n)        columns; of the transposed embedding, where it is tied
        embed, final_norm, attn_norm, mlp_norm      whole

    and, besides, "kv_groups", the list of its KV heads, and "tied", whether the embedding is the
    head as well (`params["lm_head"]` is None).

    A matrix that is cut by columns is followed by one that is cut by rows: what is between the two
    (heads, elements of the MLP) never has to travel.

    Raises ValueError if parameters do not fit cfg, or n ranks cannot share H, f or v equally.
    """
    check_model(cfg, n)
    check_params(params, cfg)
    raise NotImplementedError(
        "tensor_parallel 3: for each rank, cut wq, wk, wv, w_gate, w_up and the head by columns, "
        "wo and w_down by rows; keep embed and norms whole"
    )


# -------------------------------------------------------------------------------------------------
# Task 4: the forward. Megatron-LM, section 3
# -------------------------------------------------------------------------------------------------


def kv_head_of_query(p: Params, cfg: Config, n: int, r: int) -> list[int]:
    """For each query head of rank r, which of the rank's own KV heads it uses, counted from 0.

    p: the rank's parameters; p["kv_groups"] are its KV heads, as the whole model numbers them.
    """
    raise NotImplementedError(
        "tensor_parallel 4: number the query heads as the whole model does, find their KV heads "
        "there, and count these from the rank's first"
    )


def attention_of_rank(
    p: Params,
    cfg: Config,
    n: int,
    r: int,
    index: int,
    h: np.ndarray,
    pos0: int = 0,
    cache: KVCache | None = None,
) -> np.ndarray:
    """What the heads of rank r add to the residual stream: a part of a sum over the ranks.

    p: the rank's parameters. index: the layer's number. h: (B, T, d), the normed input, of
    positions pos0 … pos0+T−1. cache: holds the rank's own KV heads of the positions before, and
    takes the new ones (`write`, then `read` all); None: there are none before.
    Returns (B, T, d).

    `attention_core` has query head j use KV head j // (heads / KV heads). Where this is not what
    `kv_head_of_query` says, hand it for each query head a KV head of its own.
    """
    raise NotImplementedError(
        "tensor_parallel 4: q, k and v of the rank's heads; rotate q and k by position; write and "
        "read the cache; give each query head its KV head; attend; multiply by wo's rows"
    )


def mlp_of_rank(p: Params, index: int, h: np.ndarray) -> np.ndarray:
    """What rank's part of the MLP adds to the residual stream: a part of a sum over the ranks.

    (silu(h w_gate) · (h w_up)) w_down, with the rank's columns and rows. h: (B, T, d), normed.
    """
    raise NotImplementedError("tensor_parallel 4: the gated MLP, with what this rank holds of it")


def tp_forward(
    dev_params: Sequence[Params],
    cfg: Config,
    tokens: np.ndarray,
    comm: Communicator,
    caches: Sequence[KVCache] | None = None,
    algo: str = "ring",
    gather_logits: bool = True,
) -> Any:
    """Logits of the next token at each position, as one device would compute them.

    In each layer, with h = rms_norm(x), which every rank computes for itself,

        x += all_reduce(attention of the rank's heads on h)
        x += all_reduce(MLP of the rank's columns on h)

    so x is the same on all ranks after every step. In the end each rank multiplies with its columns
    of the head, and the logits are gathered.

    dev_params: a dictionary a held rank, of `shard_params_tp`. tokens: (B, T) whole numbers.
    caches: a cache a held rank, of `tp_caches`: `tokens` come behind what they hold, and are added
    (`length` grows by T once all layers are through). None: `tokens` are the whole sequence.
    algo: of the all-reduces.

    Returns the logits (B, T, v); with gather_logits=False the list of (B, T, v/n), one a held rank,
    and then nothing travels for the head.
    Travels, of each rank: 2L·2(n−1)/n·BTd elements in rings, and (n−1)/n·BTv.
    """
    check_shards(dev_params, cfg, comm)
    check_tokens(tokens, cfg)
    if caches is not None:
        check_held(comm, caches=caches)
    raise NotImplementedError(
        "tensor_parallel 4: embed; in each layer two all-reduces; the head's columns; gather the "
        "logits"
    )


def _normed(
    xs: Sequence[np.ndarray],
    dev_params: Sequence[Params],
    cfg: Config,
    name: str,
    index: int | None = None,
) -> list[np.ndarray]:
    """rms_norm of each held rank's x, by the weights `name` of layer `index`, or of the model."""
    owners = [p if index is None else p["layers"][index] for p in dev_params]
    return [rms_norm(x, o[name], cfg.norm_eps) for x, o in zip(xs, owners, strict=True)]


# -------------------------------------------------------------------------------------------------
# Task 5: decoding
# -------------------------------------------------------------------------------------------------


def tp_caches(cfg: Config, dev_params: Sequence[Params], batch: int) -> list[KVCache]:
    """An empty KV cache a held rank, with room for cfg.max_seq positions of its own KV heads only.

    `KVCache(cfg, batch)` takes the number of KV heads from a Config; `replace(cfg, …)` makes
    another.
    """
    raise NotImplementedError(
        "tensor_parallel 5: for each held rank, a cache for as many KV heads as it has"
    )


def tp_generate(
    dev_params: Sequence[Params], cfg: Config, prompt: np.ndarray, steps: int, comm: Communicator
) -> np.ndarray:
    """Greedy decoding: `steps` times the likeliest next token, which becomes the next input.

    The prompt goes through the model once, then one token at a time, with caches. Of the logits a
    rank sends only its largest and the token that this belongs to, two numbers a sequence instead
    of v/n: the largest of all ranks' largest is the largest of all. Of equal logits, the token with
    the lower number is taken, as `argmax` does it.

    prompt: (B, T), T ≥ 1. Returns the (B, steps) tokens that were chosen, int64, the same on every
    rank; steps = 0 is no token.
    Travels for the head, of each rank: (n−1)·2B numbers a step.
    """
    raise NotImplementedError(
        "tensor_parallel 5: caches; prompt, then token by token, without gathering the logits; "
        "gather (maximum, token) of each rank, and choose"
    )


# -------------------------------------------------------------------------------------------------
# Task 6: sequence parallelism. Korthikanti et al., section 4.2.2
# -------------------------------------------------------------------------------------------------


def tp_forward_sp(
    dev_params: Sequence[Params], cfg: Config, tokens: np.ndarray, comm: Communicator
) -> np.ndarray:
    """As `tp_forward`, but between the blocks every rank has only its own T/n positions of x.

    An all-reduce is a reduce-scatter and an all-gather. Between the two each rank has part of the
    sum, and norms and additions need no more: so the reduce-scatter ends a block, along the
    positions, the all-gather begins the next, of the *normed* part, and the residual stream takes
    1/n of the memory, for the same bytes on the links.

    tokens: (B, T), the whole sequence, n dividing T: otherwise ValueError, which names both.
    Returns the logits (B, T, v), the same on every rank.
    Travels, of each rank: 2L·2(n−1)/n·BTd + (n−1)/n·BTd + (n−1)/n·BTv elements.
    """
    check_shards(dev_params, cfg, comm)
    check_tokens(tokens, cfg)
    raise NotImplementedError(
        "tensor_parallel 6: embed the rank's positions only; before each block gather the normed x "
        "along the positions, after it reduce and scatter; the head's columns; gather"
    )


# -------------------------------------------------------------------------------------------------
# Task 7: the backward. Megatron-LM, section 3: f and g
# -------------------------------------------------------------------------------------------------


def attention_backward_of_rank(
    p: Params, cfg: Config, n: int, r: int, index: int, h: np.ndarray, dy: np.ndarray
) -> tuple[np.ndarray, Params]:
    """The derivative of `attention_of_rank`, without a cache, from position 0 on.

    h: (B, T, d), its input. dy: (B, T, d), the gradient at its result.
    Returns dh (B, T, d), what reached the input by way of this rank's heads, and the gradients of
    the rank's wq, wk, wv and wo, a dictionary.

    Where query heads were handed KV heads of their own, the gradient of a KV head is the sum over
    the query heads that used it.
    """
    raise NotImplementedError(
        "tensor_parallel 7: q, k, v and the heads' results again; back through wo, the attention, "
        "the rotation, and wq, wk, wv"
    )


def mlp_backward_of_rank(
    p: Params, index: int, h: np.ndarray, dy: np.ndarray
) -> tuple[np.ndarray, Params]:
    """The derivative of `mlp_of_rank`.

    h: (B, T, d), its input. dy: (B, T, d), the gradient at its result.
    Returns dh (B, T, d), what reached the input by way of this rank's columns, and the gradients of
    the rank's w_gate, w_up and w_down, a dictionary.
    """
    raise NotImplementedError(
        "tensor_parallel 7: gate and up again; back through w_down, the product, silu, w_up and "
        "w_gate"
    )


def _weight_gradient(x: np.ndarray, dy: np.ndarray) -> np.ndarray:
    """dW of y = x W, summed over batch and positions: x (B, T, a), dy (B, T, b) → (a, b)."""
    return x.reshape(-1, x.shape[-1]).T @ dy.reshape(-1, dy.shape[-1])


def sum_over_replicas(comm: Communicator, cfg: Config, grads: Sequence[Params]) -> list[Params]:
    """Makes the gradients of replicated KV heads whole.

    A KV head whose query heads lie on several ranks is held by each of these, and each has the
    gradient by its own query heads alone. The gradient of the head is the sum of them all, and all
    its holders need it, or their copies would drift apart.

    grads: a dictionary a held rank, whose "layers" have "wk" and "wv", (d, g·dh) each, and whatever
    else. They are left as they are.
    Returns the same, a dictionary a held rank, with the sums in wk and wv.
    Travels among the ranks that hold a replicated KV head, `comm.group(…)`, and no others: the
    2·d·dh numbers of that head's columns in wk and wv, a layer.
    """
    raise NotImplementedError(
        "tensor_parallel 7: copies of wk and wv; for each KV head with several holders, an "
        "all-reduce of its columns in the group of its holders; put the sums in place"
    )


def tp_backward(
    dev_params: Sequence[Params],
    cfg: Config,
    tokens: np.ndarray,
    dlogits: np.ndarray,
    comm: Communicator,
) -> list[Params]:
    """The gradients of a loss by all parameters, each rank's by what it holds.

    The forward is done again, and the residual stream kept. Megatron's pair of operators says what
    travels: *g* ends a block, an all-reduce forward and nothing backward (the gradient of a sum is
    the same for each of its parts); *f* begins it, nothing forward and an all-reduce backward (all
    ranks' heads have used h, so h's gradient is the sum over the ranks). The head begins with an f,
    too.

    dlogits: (B, T, v), the gradient at the whole logits, whole at each rank, which uses its own
    columns.

    Returns a dictionary a held rank: "embed", "final_norm", "lm_head" (None where it is tied: then
    its gradient is part of the embedding's, which is whole on every rank), and "layers", each with
    the nine matrices and norms of `shard_params_tp`, in the shapes of the rank's shards. Gradients
    of what every rank holds whole are whole, and the same on every rank; so are those of a
    replicated KV head on all its holders.
    Travels, of each rank: (4L + 1)·2(n−1)/n·BTd elements in rings; replicated KV heads, see
    `sum_over_replicas`; where the head is tied, (n−1)/n·vd.
    """
    check_shards(dev_params, cfg, comm)
    check_tokens(tokens, cfg)
    raise NotImplementedError(
        "tensor_parallel 7: forward again, keeping x before each block; then backward: head, and "
        "layer by layer MLP and attention, an all-reduce of dh before each norm; add up over the "
        "replicas; the embedding"
    )


# -------------------------------------------------------------------------------------------------
# Task 8: what it costs, in closed form
# -------------------------------------------------------------------------------------------------


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
    """Seconds of one step of decoding on n ranks: a roofline, and the all-reduces.

    Weights and operations are shared equally; every rank reads its share of the weights, and the
    cache of the KV heads that it holds. The step waits for the rank that holds the most of these:
    where query heads do not divide well this is more than max(1, n/G)/n of the cache. Two
    all-reduces a layer, of a (batch, d) activation, overlap with nothing (which is careful). The
    logits are left out.

    model.matmul_params(), .kv_bytes_per_token(kv_bytes), .flops_per_token(ctx), chip.peak_flops(…)
    and chip.mem_bw say what they are; `t_formula(algo, n, bytes, link.alpha, link.bw)` is the time
    of an all-reduce.
    batch: sequences. ctx: positions of each that are cached. …_bytes: of an element.

    Returns seconds t_math, t_mem, t_comm and t_step = max(t_math, t_mem) + t_comm; bytes
    kv_per_chip_per_token, of the fullest rank, and msg_bytes, of an all-reduce; and n_allreduce.
    n = 1 has no communication: t_comm is 0, n_allreduce still 2L.
    Raises ValueError if n does not divide the query heads; it names both.
    """
    raise NotImplementedError(
        "tensor_parallel 8: the KV heads of the fullest rank; operations over peak; bytes of "
        "weights and cache over bandwidth; 2L all-reduces"
    )


def pope_ffn_comm(
    variant: str,
    tokens: float,
    E: int,
    F: int,
    n: int,
    bw: float,
    bytes_per_elem: float = 2.0,
) -> float | tuple[float, float]:
    """Seconds that a feedforward layer's communication takes in three layouts, without latency.

        "1d"        weights stay, cut along F                 2·t·E / bw
        "2d"        weights stay, cut along E and F           8·t·E / (√n·bw)
        "gathered"  weights travel, among N of the n chips    (2·E·F·N/n + 2·t·E/N) / bw

    each times `bytes_per_elem`. The 2-D layout is best for F = 4E, which its 8 supposes. The N with
    the least time is √(t·n/F), where both terms are equal; it is kept between 1 and n.
    Source: Pope et al., section 3.2 and appendix A.

    tokens: t, of the step: batch times positions. E: width of the model. F: of the layer.
    n: chips. bw: bytes a second that a chip sends to the others.

    Returns seconds; for "gathered" (seconds, N).
    Raises ValueError for another variant; it names those that there are.
    """
    raise NotImplementedError("tensor_parallel 8: the three formulas; N within its bounds")
