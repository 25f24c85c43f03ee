"""Attention with a meter on its memory: NumPy, one head, every element read and written counted.

The processor of this file has two memories. The large one, the GPU's HBM, holds the arguments and
the results. The small one, its SRAM, holds M numbers, and all arithmetic happens there. What counts
is the traffic between the two, in elements, which is what decides how long attention takes (a GPU
multiplies far faster than it reads):

    task  function                      elements read and written, with Nq = Nk = N and no mask
    7     standard_attention            4·N² + 4·N·d
    7     block_sizes, fa_io_formula    the blocks that fit into M; the next two rows, as functions
    7     flash_fwd, order="fa1"        2·N·d + Tc·(3·N·d + 4·N)
    7     flash_fwd, order="fa2"        2·N·d + N + Tr·2·N·d
    8     standard_attention_bwd        7·N² + 9·N·d
    8     flash_bwd                     Tc·(4·N·d + 2·N) + 7·N·d + N

`flash_fwd` comes in two orders of the same two loops, and they differ in what they read again:

    FA1   blocks of keys outside. K and V are read once. Q, and the unfinished O, ℓ and m, pass by
          once for each of the Tc = ⌈Nk/Bc⌉ blocks of keys, O, ℓ and m in both directions.
    FA2   blocks of queries outside. Q is read once, and O, finished, written once. K and V pass by
          once for each of the Tr = ⌈Nq/Br⌉ blocks of queries. And no block of queries waits for
          another: each can be a program of its own.

Standard attention moves Θ(N·d + N²) elements. FA1's order, with blocks of keys as large as M
allows, has Tc ≈ 4·N·d/M and moves Θ(N²d²/M): FA1, theorem 2, for d ≤ M ≤ N·d. (FA2's order does the
same if it is the blocks of queries that grow with M.) Proposition 3 says that no exact algorithm
moves o(N²d²/M) for every such M: but for a factor, there is nothing left to gain.

Notation, the same in code, comments and handout:

    Nq, Nk        queries, keys (N: as many of both)
    d             numbers in a query, a key, a value
    M             numbers that the SRAM holds
    Br, Bc        rows of a block of queries, rows of a block of keys and values
    Tr, Tc        how many blocks: ⌈Nq/Br⌉, ⌈Nk/Bc⌉
    br, bc        rows of one block: Br, Bc, or fewer in the last one
    Q, O, dO, dQ  (Nq, d)
    K, V, dK, dV  (Nk, d)
    S, P, dS, dP  (Nq, Nk), or a (br, bc) tile of it
    m, ℓ, L       (Nq,): a row's largest score; its Σ exp(S − m); m + log ℓ, its log-sum-exp
    dX            the derivative of the loss by X, for any X

Scores are S = Q Kᵀ / √d. All arithmetic is in float64, so that the orders can be compared to the
last bits. Causal attention aligns the last query with the last key: query i stands at position
Nk − Nq + i, and sees the keys at positions up to its own. **A row without a visible key** (Nq > Nk,
or no keys at all) has P = 0, O = 0, L = −inf and gradients 0; it must never be NaN.

References:
    T. Dao, D. Fu, S. Ermon, A. Rudra, C. Ré, "FlashAttention: Fast and Memory-Efficient Exact
        Attention with IO-Awareness", NeurIPS 2022, arXiv:2205.14135 ("FA1"): algorithm 0 is
        `standard_attention`, algorithm 1 is `flash_fwd` in order "fa1", algorithms 3 and 4 are the
        backward passes.
    T. Dao, "FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning",
        2023, arXiv:2307.08691 ("FA2"): algorithm 1 is `flash_fwd` in order "fa2".
"""

import math
from dataclasses import dataclass

import numpy as np

# -------------------------------------------------------------------------------------------------
# Given: what every function below relies on
# -------------------------------------------------------------------------------------------------

ORDERS = ("fa1", "fa2")


@dataclass(frozen=True)
class IO:
    """Traffic between the two memories, and the work done: elements and operations.

    read:  elements read from the large memory
    write: elements written to it
    flops: floating-point operations of matrix products: 2·a·b·c for (a, b) times (b, c). Sums and
           exponentials are left out.
    """

    read: int = 0
    write: int = 0
    flops: int = 0

    @property
    def total(self) -> int:
        """Elements moved, in either direction."""
        return self.read + self.write

    def __add__(self, other: "IO") -> "IO":
        """Both one after the other: `io += IO(read=q.size)` charges a load of q."""
        return IO(self.read + other.read, self.write + other.write, self.flops + other.flops)


def check_head(**arrays: np.ndarray) -> list[np.ndarray]:
    """The arrays in float64; ValueError, saying which and how, unless their shapes fit.

    Q, then K and V, then any of O, dO, dQ (like Q), L (Nq,) and P (Nq, Nk), by name. Q must be
    (Nq, d) with d ≥ 1, K and V (Nk, d). Nq and Nk may be 0.
    """
    converted = {name: np.asarray(array, dtype=np.float64) for name, array in arrays.items()}
    Q, K = converted["Q"], converted["K"]
    if Q.ndim != 2 or Q.shape[1] == 0:
        raise ValueError(f"Q must be one head, (Nq, d) with d ≥ 1, but has shape {Q.shape}")
    if K.ndim != 2 or K.shape[1] != Q.shape[1]:
        raise ValueError(f"K has shape {K.shape}; with Q {Q.shape} it must be (Nk, {Q.shape[1]})")
    expected = {"V": K.shape, "L": Q.shape[:1], "P": (len(Q), len(K))}
    for name, array in converted.items():
        shape = expected.get(name, Q.shape)
        if name != "K" and array.shape != shape:
            raise ValueError(
                f"{name} has shape {array.shape}; with Q {Q.shape} and K {K.shape} it must be "
                f"{shape}"
            )
    return list(converted.values())


def check_blocks(Br: int, Bc: int) -> None:
    """Raise ValueError unless a block has at least one row. Blocks may exceed Nq and Nk."""
    for name, rows in (("Br", Br), ("Bc", Bc)):
        if rows < 1:
            raise ValueError(f"{name} is a number of rows: it must be at least 1, but is {rows}")


def scale_of(d: int) -> float:
    """1/√d: the factor of the scores, and thus of dQ and dK. It keeps scores near 1 for large d."""
    return 1 / math.sqrt(d)


def in_the_future(q_from: int, q_to: int, k_from: int, k_to: int) -> np.ndarray:
    """The causal mask of a tile: True where the key's position is beyond the query's.

    q_from, q_to: positions of the tile's queries, from q_from to before q_to
    k_from, k_to: positions of its keys, likewise

    Returns (q_to − q_from, k_to − k_from), bool.
    """
    return np.arange(k_from, k_to) > np.arange(q_from, q_to)[:, None]


# -------------------------------------------------------------------------------------------------
# Task 7: forward
# -------------------------------------------------------------------------------------------------


def standard_attention(
    Q: np.ndarray, K: np.ndarray, V: np.ndarray, causal: bool = False
) -> tuple[np.ndarray, np.ndarray, IO]:
    """Attention as it is defined, by three kernels that hand S and P on through memory.

    Q: (Nq, d), K and V: (Nk, d)

    Returns (O, P, IO): O (Nq, d), P (Nq, Nk). Each kernel is charged with its inputs once and its
    result once, as if caches were ideal within a kernel:

        S = Q Kᵀ / √d    reads Q and K                   writes S
        P = softmax(S)   reads S                         writes P
        O = P V          reads P and V                   writes O

    The mask is made from positions, and costs nothing; it saves nothing either: causal or not,
    4·Nq·Nk + 2·Nq·d + 2·Nk·d elements and 4·Nq·Nk·d operations. FA1, algorithm 0.
    """
    Q, K, V = check_head(Q=Q, K=K, V=V)
    raise NotImplementedError(
        "flash_attention 7: S, masked; P, guarded in rows without a visible key; O; and what the "
        "three kernels read, write and compute"
    )


def block_sizes(M: int, d: int) -> tuple[int, int]:
    """The blocks that FA1's algorithm 1, line 1, chooses for M numbers of SRAM: (Br, Bc).

    Bc = ⌈M / 4d⌉, so that blocks of Q, K, V and O, 4·Bc·d numbers, fill the SRAM; Br = min(Bc, d),
    so that the tile of S, Br·Bc numbers, is no larger than one of those, M / 4.
    """
    if M < 1 or d < 1:
        raise ValueError(f"M and d must be at least 1, but M = {M} and d = {d}")
    raise NotImplementedError("flash_attention 7: Bc, rounded up, and Br")


def fa_io_formula(N: int, d: int, M: int, order: str) -> int:
    """What `flash_fwd` reads and writes in all, with N queries and keys and `block_sizes(M, d)`.

    No mask. order is "fa1" or "fa2". `flash_fwd` says where the terms come from; with Tc = ⌈N/Bc⌉
    and Tr = ⌈N/Br⌉, blocks of keys and of queries,

        FA1   2·N·d + Tc·(3·N·d + 4·N)
        FA2   2·N·d + N + Tr·2·N·d
    """
    if order not in ORDERS:
        raise ValueError(f"order must be 'fa1' or 'fa2', but is {order!r}")
    raise NotImplementedError(
        "flash_attention 7: the blocks' sizes, how many there are, and the formula"
    )


def flash_fwd(
    Q: np.ndarray,
    K: np.ndarray,
    V: np.ndarray,
    Br: int,
    Bc: int,
    causal: bool = False,
    order: str = "fa2",
) -> tuple[np.ndarray, np.ndarray, IO]:
    """FlashAttention in one of two orders: the same O, read and written differently.

    Q:      (Nq, d), K and V: (Nk, d)
    Br, Bc: at least 1; neither has to divide Nq or Nk, and the last block is as short as it must be
    order:  "fa1" or "fa2"

    Returns (O, L, IO): O (Nq, d), L (Nq,).

    **In either order** a tile of scores S_ij = Q_i K_jᵀ / √d, (br, bc), changes what is known of
    the br rows. Their largest score so far is m, the sum of exp(S − m) so far ℓ. With
    m' = max(m, rowmax(S_ij)) as the new base, P̃ = exp(S_ij − m') is the tile's share, and what was
    summed up at the old base is multiplied by exp(m − m'):

        ℓ' = ℓ · exp(m − m') + rowsum(P̃)

    A causal tile whose keys are all beyond all its queries is skipped: nothing of it is loaded,
    written or computed. A tile that is computed costs 4·br·bc·d operations. What stands outside the
    inner loop below is done for every block, also for one whose tiles are all skipped.

    **"fa1"**, FA1's algorithm 1: blocks of keys outside. O, ℓ and m lie in memory and start as 0, 0
    and −inf, which is not charged. O is kept normalised:

        for each block of keys:                  reads K_j, V_j
            for each block of queries:           reads Q_i, O_i, ℓ_i, m_i
                O_i = (O_i · ℓ · exp(m − m') + P̃ V_j) / ℓ'
                ℓ_i, m_i = ℓ', m'                writes O_i, ℓ_i, m_i

    Without a mask: 2·Nk·d + Tc·(3·Nq·d + 4·Nq) elements. L = m + log ℓ is for whoever asks, from ℓ
    and m, and is not charged.

    **"fa2"**, FA2's algorithm 1: blocks of queries outside. O, ℓ and m stay in SRAM until a block
    is finished, so O need not be normalised before:

        for each block of queries:               reads Q_i
            acc = 0, ℓ = 0, m = −inf
            for each block of keys:              reads K_j, V_j
                acc = acc · exp(m − m') + P̃ V_j
                ℓ, m = ℓ', m'
            O_i = acc / ℓ, L_i = m + log ℓ       writes O_i, L_i

    Without a mask: Nq·d + Tr·2·Nk·d + Nq·d + Nq elements.
    """
    Q, K, V = check_head(Q=Q, K=K, V=V)
    check_blocks(Br, Bc)
    if order not in ORDERS:
        raise ValueError(f"order must be 'fa1' or 'fa2', but is {order!r}")
    raise NotImplementedError(
        "flash_attention 7: the two loops in either order, with every load and store charged; skip "
        "tiles in the future; guard rows that have not seen a key"
    )


# -------------------------------------------------------------------------------------------------
# Task 8: backward
# -------------------------------------------------------------------------------------------------


def standard_attention_bwd(
    Q: np.ndarray, K: np.ndarray, V: np.ndarray, P: np.ndarray, dO: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, IO]:
    """The gradients of Q, K and V from a P that was kept, by five kernels.

    Q, dO: (Nq, d), K and V: (Nk, d); P: (Nq, Nk) as `standard_attention` returns it, in which the
    mask already is

    Returns (dQ, dK, dV, IO). A row p of P is the softmax of a row s of S: ∂p_k/∂s_j =
    p_k (δ_kj − p_j), where δ_kj is 1 for k = j and else 0. Hence dS_j = p_j (dP_j − Σ_k p_k dP_k).

        dV = Pᵀ dO                      reads P, dO      writes dV
        dP = dO Vᵀ                      reads dO, V      writes dP
        dS = P ∘ (dP − rowsum(P ∘ dP))  reads P, dP      writes dS
        dQ = dS K / √d                  reads dS, K      writes dQ
        dK = dSᵀ Q / √d                 reads dS, Q      writes dK

    To these come the zeros that dQ starts from: it is written once more, as `flash_bwd`'s has to
    be. In all 7·Nq·Nk + 5·Nq·d + 4·Nk·d elements, and 8·Nq·Nk·d operations. FA1, algorithm 3.
    """
    Q, K, V, P, dO = check_head(Q=Q, K=K, V=V, P=P, dO=dO)
    raise NotImplementedError(
        "flash_attention 8: the five kernels, and what each reads, writes and computes; the zeros "
        "of dQ"
    )


def flash_bwd(
    Q: np.ndarray,
    K: np.ndarray,
    V: np.ndarray,
    O: np.ndarray,  # noqa: E741 - the papers' name
    dO: np.ndarray,
    L: np.ndarray,
    Br: int,
    Bc: int,
    causal: bool = False,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, IO]:
    """The gradients of Q, K and V without P: it is computed again from L, tile by tile.

    Q, dO: (Nq, d), K and V: (Nk, d); O (Nq, d) and L (Nq,) as `flash_fwd` returns them

    Returns (dQ, dK, dV, IO).

    L is the logarithm of the softmax's denominator, so P = exp(S − L) comes out normalised. What is
    left to know of a row as a whole is the rowsum(P ∘ dP) in `standard_attention_bwd`'s dS. With
    dP_k = dO · V_k (a dot product for each key k) it is Σ_k p_k dP_k = dO · Σ_k p_k V_k = dO · O,
    so D = rowsum(dO ∘ O) gives it before any tile is computed. FA1, algorithm 4:

        D = rowsum(dO ∘ O)                       reads O, dO; writes D
        dQ = 0                                   writes dQ
        for each block of keys:                  reads K_j, V_j
            dK_j = 0, dV_j = 0                   in SRAM
            for each block of queries:           reads Q_i, dO_i, L_i, D_i
                P = exp(Q_i K_jᵀ / √d − L_i)
                dV_j += Pᵀ dO_i
                dS = P ∘ (dO_i V_jᵀ − D_i)
                dQ_i += dS K_j / √d              reads dQ_i; writes dQ_i
                dK_j += dSᵀ Q_i / √d
            dK_j and dV_j are finished           writes dK_j, dV_j

    Without a mask: Tc·(4·Nq·d + 2·Nq) + 4·Nk·d + 3·Nq·d + Nq elements. A tile costs 10·br·bc·d
    operations, five products where standard attention's backward pass has four. Skipped tiles as in
    `flash_fwd`: nothing of them is loaded, written or computed.
    """
    Q, K, V, O, dO, L = check_head(Q=Q, K=K, V=V, O=O, dO=dO, L=L)  # noqa: E741
    check_blocks(Br, Bc)
    raise NotImplementedError(
        "flash_attention 8: D; zeros of dQ; the loops, with every load and store charged; skip "
        "tiles in the future; guard rows with L = −inf"
    )
