"""Attention in tiles of PyTorch tensors: exact, and without an N × N matrix in memory.

Attention lets each query gather values, weighted by how well their keys match it:

    S = scale · Q Kᵀ          (Nq, Nk)   scores
    P = softmax(S), by rows   (Nq, Nk)   weights, which sum to 1 in each row
    O = P V                   (Nq, d)    output

The straightforward program writes S to memory, reads it back to normalise it, writes P, and reads
that back to multiply it by V. FlashAttention computes the same O from blocks of Q, K and V that fit
into a processor's own memory. It is no approximation; all that changes is the order of the sums.
Here every order is spelled out in plain PyTorch, one slice for each tile that a GPU would load:

    task  function                                        what it does
    1     state_of_scores, merge_states                   softmax of a row that comes in pieces
    2     standard_attention                              the definition, S and P in full
    3     flash_forward                                   blocks of queries outside, of keys inside
    4     flash_backward                                  P is computed again, not kept
    5     flash_decode                                    few queries: the keys, in pieces
    6     attention_flops, io_standard, io_flash          what it costs, as formulas

Notation, the same in code, comments and handout:

    Nq, Nk        queries, keys (N: as many of both)
    d             numbers in a query, a key, a value
    Br, Bc        rows of a block of queries, rows of a block of keys and values
    q, O, dO, dQ  (..., Nq, d): the leading dimensions, batch and heads, are carried along
    k, v, dK, dV  (..., Nk, d)
    m             a row's largest score
    l             ℓ in the papers: the row's Σ exp(S − m)
    L             (..., Nq): log Σ exp(S) = m + log l, a row's log-sum-exp (natural logarithm)
    dX            the derivative of the loss by X, for any X

Causal attention: query i stands at position q_start + i, and sees the keys at positions up to its
own. **A row without a visible key** (q_start is negative, or Nk is 0) is a softmax over nothing.
Its O is 0, its L is −inf, and no gradient flows through it; it must never be NaN. What makes NaN of
it is −inf − (−inf), which therefore has a guard wherever it could arise.

References:
    M. Milakov, N. Gimelshein, "Online normalizer calculation for softmax", 2018, arXiv:1805.02867,
        algorithm 3 and section 3.1: the state (m, l), and that merging it is associative.
    T. Dao, D. Fu, S. Ermon, A. Rudra, C. Ré, "FlashAttention: Fast and Memory-Efficient Exact
        Attention with IO-Awareness", NeurIPS 2022, arXiv:2205.14135 ("FA1").
    T. Dao, "FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning",
        2023, arXiv:2307.08691 ("FA2"), algorithms 1 and 2: tasks 3 and 4.
    T. Dao, D. Haziza, F. Massa, G. Sizov, "Flash-Decoding for long-context inference",
        2023: task 5.
"""

import math
from dataclasses import dataclass

import torch

# -------------------------------------------------------------------------------------------------
# Given: what every function below relies on
# -------------------------------------------------------------------------------------------------

NEG_INF = float("-inf")
DTYPES = (torch.float32, torch.float64)


def check_arguments(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    O: torch.Tensor | None = None,  # noqa: E741 - the papers' name
    L: torch.Tensor | None = None,
    dO: torch.Tensor | None = None,
) -> None:
    """Raise ValueError, saying which tensor and how, unless shapes, dtypes and devices fit.

    q:     (..., Nq, d), d ≥ 1
    k, v:  (..., Nk, d), with q's leading dimensions; Nk may be 0
    O, dO: like q
    L:     (..., Nq)
    All are float32, or all are float64; their strides may be any.
    """
    if q.dim() < 2 or q.shape[-1] == 0:
        raise ValueError(f"q must be (..., Nq, d) with d ≥ 1, but has shape {tuple(q.shape)}")
    batch, d = q.shape[:-2], q.shape[-1]
    if k.dim() < 2 or (*k.shape[:-2], k.shape[-1]) != (*batch, d):
        expected = ", ".join(map(str, (*batch, "Nk", d)))
        raise ValueError(
            f"k has shape {tuple(k.shape)}; with q {tuple(q.shape)} it must be ({expected})"
        )
    shapes = {"v": (v, k.shape), "O": (O, q.shape), "L": (L, q.shape[:-1]), "dO": (dO, q.shape)}
    for name, (tensor, shape) in shapes.items():
        if tensor is not None and tensor.shape != shape:
            raise ValueError(
                f"{name} has shape {tuple(tensor.shape)}; with q {tuple(q.shape)} and "
                f"k {tuple(k.shape)} it must be {tuple(shape)}"
            )
    if q.dtype not in DTYPES:
        raise ValueError(f"q is {q.dtype}; it must be float32 or float64")
    for name, tensor in {"k": k, "v": v, "O": O, "L": L, "dO": dO}.items():
        if tensor is not None and tensor.dtype != q.dtype:
            raise ValueError(f"{name} is {tensor.dtype}, but q is {q.dtype}: pass both in one")
        if tensor is not None and tensor.device != q.device:
            raise ValueError(f"{name} is on {tensor.device}, but q is on {q.device}")


def check_blocks(Br: int, Bc: int) -> None:
    """Raise ValueError unless a block has at least one row. Blocks may exceed Nq and Nk."""
    for name, rows in (("Br", Br), ("Bc", Bc)):
        if rows < 1:
            raise ValueError(f"{name} is a number of rows: it must be at least 1, but is {rows}")


def scale_of(q: torch.Tensor, scale: float | None) -> float:
    """`scale` itself, or by default 1/√d for q (..., Nq, d); 0 is a scale like any other."""
    return 1 / math.sqrt(q.shape[-1]) if scale is None else scale


def in_the_future(
    q_from: int, q_to: int, k_from: int, k_to: int, like: torch.Tensor
) -> torch.Tensor:
    """The causal mask of a tile: True where the key's position is beyond the query's.

    q_from, q_to: positions of the tile's queries, from q_from to before q_to
    k_from, k_to: positions of its keys, likewise
    like:         any tensor on the device that the mask is to be on

    Returns (q_to − q_from, k_to − k_from), bool.
    """
    queries = torch.arange(q_from, q_to, device=like.device)
    keys = torch.arange(k_from, k_to, device=like.device)
    return keys > queries[:, None]


def add_to(stats: dict[str, int] | None, **amounts: int) -> None:
    """Add each amount to the count of its name, which begins at 0; nothing, if stats is None."""
    if stats is not None:
        for name, amount in amounts.items():
            stats[name] = stats.get(name, 0) + amount


# -------------------------------------------------------------------------------------------------
# Task 1: the softmax of a row that comes in pieces
# -------------------------------------------------------------------------------------------------


@dataclass
class SoftmaxState:
    """What has to be kept of some scores s_1 … s_n of a row, and of the values that go with them.

        m = max s_i                  (...)     the base of the exponentials, so that none overflows
        l = Σ exp(s_i − m)           (...)     1 ≤ l ≤ n
        o = Σ exp(s_i − m) · v_i     (..., d)  not yet divided by the denominator; None without v

    The softmax's denominator is Σ exp(s_i) = l · exp(m), and the attention output is o / l: the
    factor exp(m) cancels. Of no scores at all, m = −inf, l = 0 and o = 0.
    """

    m: torch.Tensor
    l: torch.Tensor  # noqa: E741 - the papers' ℓ
    o: torch.Tensor | None = None


def state_of_scores(s: torch.Tensor, v: torch.Tensor | None = None) -> SoftmaxState:
    """The state of one piece, straight from `SoftmaxState`'s definition.

    s: (..., n) scores of the last axis; −inf where a key is masked; n may be 0
    v: (..., n, d) with s (..., rows, n), or None

    Returns m and l (...), in s's dtype, and o (..., d) or None. Where all scores are −inf, or n is
    0: m = −inf, l = 0, o = 0.
    """
    raise NotImplementedError(
        "flash_attention 1: m; exp(s − m), guarded where m is −inf; its sum l; with v, o"
    )


def merge_states(a: SoftmaxState, b: SoftmaxState) -> SoftmaxState:
    """The state of two pieces of a row together, from the states of each.

    a, b: m and l (...) of equal shapes, o (..., d) or None

    The exponentials of both are brought to a common base, the larger of their m. To change the base
    from m_a to m is to multiply by exp(m_a − m), which is at most 1:

        m = max(m_a, m_b)
        l = l_a · exp(m_a − m) + l_b · exp(m_b − m)
        o = o_a · exp(m_a − m) + o_b · exp(m_b − m)

    By definition, the result is the state of all scores of a and b, whichever way they were split.
    Merging is thus associative and commutative, and the state of no scores (−inf, 0, 0) leaves the
    other as it is. That is why pieces may come one after the other (task 3) or be summed up in
    parallel and merged in any order (task 5).

    Returns o as None unless both have one. Two states of no scores make a third: never NaN.
    """
    raise NotImplementedError(
        "flash_attention 1: the larger m; both l and both o rescaled to it, and added"
    )


# -------------------------------------------------------------------------------------------------
# Task 2: the definition
# -------------------------------------------------------------------------------------------------


def standard_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    causal: bool = False,
    q_start: int = 0,
    scale: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention as it is defined, with S and P as whole matrices.

    q, k, v: see `check_arguments`
    causal:  query i sees the keys at positions up to q_start + i, instead of all
    q_start: position of the first query; positions of keys begin at 0. May be negative.
    scale:   factor of the scores; None is 1/√d

    Returns (O, L): O (..., Nq, d) and L (..., Nq), in q's dtype. A row without a visible key has
    O = 0 and L = −inf.
    """
    check_arguments(q, k, v)
    scale = scale_of(q, scale)
    raise NotImplementedError(
        "flash_attention 2: S, masked; L, its rows' log-sum-exp; P = exp(S − L), guarded where L "
        "is −inf; O"
    )


# -------------------------------------------------------------------------------------------------
# Task 3: FlashAttention, forward
# -------------------------------------------------------------------------------------------------


def flash_forward(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    Br: int = 64,
    Bc: int = 64,
    causal: bool = False,
    q_start: int = 0,
    scale: float | None = None,
    stats: dict[str, int] | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """`standard_attention`, tile by tile: never more than a (Br, Bc) piece of S at a time.

    It is FA2's algorithm 1. Blocks of queries are outside: on a GPU, one program each, which need
    not know of one another. Each goes through the blocks of keys with a state (m, l, acc) that it
    keeps in registers:

        for each block of queries Q_i:                    loaded once
            m = −inf, l = 0, acc = 0
            for each block of keys and values K_j, V_j:   loaded once for each block of queries
                S     = scale · Q_i K_jᵀ                   (Br, Bc)
                m_new = max(m, rowmax(S))
                P̃     = exp(S − m_new)                     not divided by anything yet
                l     = l · exp(m − m_new) + rowsum(P̃)
                acc   = acc · exp(m − m_new) + P̃ V_j
                m     = m_new
            O_i = acc / l,  L_i = m + log l               stored once

    The step inside is `merge_states`, except that the new piece is computed at the common base from
    the start, so that only the old one needs rescaling. To divide once, at the end, is one of the
    improvements of FA2 on FA1, which kept O normalised all the way.

    Br, Bc: at least 1; neither has to divide Nq or Nk, and the last block is as short as it must be
    stats:  a dict to add counts to, or None. All three are there afterwards, also if 0:
            tiles:    tiles computed
            skipped:  tiles left out, because causal and all their keys are beyond all their queries
            rescales: rows of tiles whose m grew, when it was not −inf any more
            A tile counts once for all leading dimensions together, since a slice holds them all;
            a row counts for each of them.
    The others as for `standard_attention`.

    Returns (O, L), as `standard_attention` does.
    """
    check_arguments(q, k, v)
    check_blocks(Br, Bc)
    scale = scale_of(q, scale)
    add_to(stats, tiles=0, skipped=0, rescales=0)
    raise NotImplementedError(
        "flash_attention 3: for each block of queries, go through the blocks of keys with m, l and "
        "acc; skip tiles in the future; guard rows that have not seen a key; store O, L"
    )


# -------------------------------------------------------------------------------------------------
# Task 4: FlashAttention, backward
# -------------------------------------------------------------------------------------------------


def flash_backward(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    O: torch.Tensor,  # noqa: E741 - the papers' name
    L: torch.Tensor,
    dO: torch.Tensor,
    Br: int = 64,
    Bc: int = 64,
    causal: bool = False,
    scale: float | None = None,
    stats: dict[str, int] | None = None,
    q_start: int = 0,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The gradients of q, k and v, tile by tile, from what the forward kept: O, and L.

    P is not kept. A tile of it is P = exp(S − L), in one step and already normalised: L is the
    logarithm of the softmax's denominator.

    **Derivation.** O = P V gives dV = Pᵀ dO and dP = dO Vᵀ. A row p of P is the softmax of a row s
    of S, and ∂p_k/∂s_j = p_k (δ_kj − p_j), where δ_kj is 1 for k = j and else 0. So

        dS_j = Σ_k dP_k · p_k (δ_kj − p_j) = p_j · (dP_j − Σ_k p_k dP_k)

    and S = scale · Q Kᵀ gives dQ = scale · dS K and dK = scale · dSᵀ Q. The sum over k runs over a
    whole row, which no tile has. But with dP_k = dO · V_k (a dot product for each key k),

        Σ_k p_k dP_k = dO · Σ_k p_k V_k = dO · O = D

    which both passes have at hand: one number a row, D = rowsum(dO ∘ O), computed once before the
    tiles. That is what lets the backward go in tiles: **dS = P ∘ (dP − D)**, FA2, algorithm 2:

        D = rowsum(dO ∘ O)
        for each block of keys and values K_j, V_j:        loaded once, as dK_j and dV_j are stored
            dK_j = 0, dV_j = 0
            for each block of queries Q_i, dO_i, L_i, D_i:
                P = exp(scale · Q_i K_jᵀ − L_i)
                dV_j += Pᵀ dO_i
                dS = P ∘ (dO_i V_jᵀ − D_i)
                dQ_i += scale · dS K_j                     added to in memory, for each j
                dK_j += scale · dSᵀ Q_i

    On a GPU there is one program for each block of keys, and all of them add to the same dQ: by
    atomic additions. That is what `stats` counts.

    q, k, v, Br, Bc, causal, scale, q_start: as given to `flash_forward` (Br and Bc may differ)
    O, L:  as it returned them
    dO:    (..., Nq, d), of any strides: expanded, as `O.sum().backward()` makes it, too
    stats: a dict to add a count to, or None. dq_atomic_adds: elements that are added to dQ, of one
           head: Σ br · d over the tiles that are not skipped, br being the rows of the tile

    Returns (dQ, dK, dV) in the shapes and the dtype of q, k and v. Rows of q without a visible key
    have dQ = 0 and add nothing to dK and dV, whatever their dO; never NaN.
    """
    check_arguments(q, k, v, O, L, dO)
    check_blocks(Br, Bc)
    scale = scale_of(q, scale)
    add_to(stats, dq_atomic_adds=0)
    raise NotImplementedError(
        "flash_attention 4: D; for each block of keys, go through the blocks of queries, skip "
        "tiles in the future, compute P again (guard L = −inf) and dS, add to dQ, dK and dV"
    )


# -------------------------------------------------------------------------------------------------
# Task 5: Flash-Decoding
# -------------------------------------------------------------------------------------------------


def flash_decode(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    n_split: int,
    scale: float | None = None,
) -> tuple[torch.Tensor, list[SoftmaxState]]:
    """Attention for few queries and many keys, as when a model writes one token after the other.

    A single query makes a single block of queries: with `flash_forward`'s order one program would
    read all keys, and the rest of the GPU be idle. So the keys are split into n_split pieces, in
    order and as equal as can be (their lengths differ by at most 1). Each piece's state is computed
    on its own (on a GPU, by a program of its own), and a second, small step merges the states.

    The queries are the newest tokens, which see every key: there is no mask.

    q:       (..., Nq, d), Nq usually 1
    k, v:    (..., Nk, d)
    n_split: at least 1; if it exceeds Nk some pieces are empty, with the state of no scores
    scale:   None is 1/√d

    Returns (O, parts): O (..., Nq, d), which is 0 if there are no keys at all; and the n_split
    states in the order of the pieces, m and l (..., Nq), o (..., Nq, d).
    """
    check_arguments(q, k, v)
    if n_split < 1:
        raise ValueError(f"n_split must be at least 1, but is {n_split}")
    scale = scale_of(q, scale)
    raise NotImplementedError(
        "flash_attention 5: the state of each piece of the keys; merge them; O = o / l, guarded "
        "where there was no key"
    )


# -------------------------------------------------------------------------------------------------
# Task 6: what it costs
# -------------------------------------------------------------------------------------------------


def attention_flops(
    N: int, d: int, causal: bool = False, backward: bool = False, recompute: bool = True
) -> int:
    """Floating-point operations in the matrix products of one head, N queries and N keys.

    A product of (a, b) and (b, c) is 2·a·b·c operations: b multiplications and b additions for each
    of its elements. Exponentials and sums are left out, being fewer by a factor of about d.

        forward    S = Q Kᵀ, O = P V                                 2 products
        backward   dV = Pᵀ dO, dP = dO Vᵀ, dQ = dS K, dK = dSᵀ Q     4 products
                   S = Q Kᵀ again, if recompute                      and 1

    causal:    half as many, which holds for large N: of N² pairs N (N + 1) / 2 are visible
    backward:  the backward pass alone, instead of the forward pass
    recompute: whether the backward pass computes S again, as FlashAttention does; of no meaning in
               the forward pass
    """
    raise NotImplementedError(
        "flash_attention 6: how many products of 2·N²·d operations; half if causal"
    )


def io_standard(N: int, d: int) -> int:
    """Elements that standard attention's forward pass reads and writes for one head.

    Three kernels, each of which reads its inputs once and writes its result once, if caches are
    ideal within a kernel:

        S = Q Kᵀ         reads Q and K, 2·N·d            writes S, N²
        P = softmax(S)   reads S, N²                     writes P, N²
        O = P V          reads P and V, N² + N·d         writes O, N·d

    4·N² of the sum are S and P. FA1, algorithm 0 and theorem 2: Θ(N·d + N²).
    """
    raise NotImplementedError("flash_attention 6: the sum of the table")


def io_flash(N: int, d: int, Br: int, kv_cached: bool = False) -> int:
    """Elements that `flash_forward`'s order reads and writes for one head, without a mask.

    Q is read once, and O and L are written once. K and V are read once for each of the ⌈N/Br⌉
    blocks of queries.

    Br:        rows of a block of queries, at least 1
    kv_cached: K and V are read from memory once only, and by all blocks but the first from a cache
               that holds both. For a GPU's L2 this often comes close.
    """
    check_blocks(Br, 1)
    raise NotImplementedError(
        "flash_attention 6: Q, O and L once, K and V as often as they are read"
    )
