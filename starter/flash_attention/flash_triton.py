"""FlashAttention in Triton: forward, backward, decoding, autograd.

Attention lets every query look at every key, and mixes the values by what it sees:

    S = Q Kᵀ · scale        (Nq, Nk)  scores
    P = softmax(S)          (Nq, Nk)  each row sums to 1
    O = P V                 (Nq, d)

S and P are what is large: Nq·Nk numbers for every head. FlashAttention never stores them. A program
holds a block of queries on chip and lets the keys and values pass by, block after block; the
backward pass computes S again, from one number a row that the forward pass keeps. The price is that
K and V are read once for every block of queries, and each function below has a budget of bytes that
says so. For one head, let

    K_rows    the sum over the blocks of queries of the rows in the blocks of keys that each visits:
              ⌈Nq/Br⌉ · Nk without a mask; with it, blocks without a visible key are not visited
    Q_rows    likewise, the sum over the blocks of keys of the query rows that each visits

    task  function             bytes loaded                          bytes stored
    9     attention_forward    B·H·(Nq + 2·K_rows)·d·s               B·H·Nq·(d·s + 4)
    10    attention_backward   B·H·2·Nq·d·s                          B·H·Nq·4
                               B·G·2·Nk·d·s + B·H·Q_rows·(2·d·s + 8) B·G·2·Nk·d·s
                               B·H·(Nq·(2·d·s + 8) + 2·K_rows·d·s)   B·H·Nq·d·s
    11    attention_decode     B·G·2·Nk·d·s + n_split·B·H·Nq·d·s     n_split·B·H·Nq·(d + 2)·4
                               n_split·B·H·Nq·(d + 2)·4              B·H·Nq·(d·s + 4)
    12    FlashAttention       as tasks 9 and 10

with a line for each kernel. Notation, the same in code, comments and handout:

    B, H, G        batch, query heads, key heads; H is a multiple of G, and query head h looks at
                   key head h // (H // G)
    Nq, Nk, d      queries, keys, elements of a head
    Br, Bc         queries in a block (rows of S), keys in a block (columns of S)
    s              bytes of an element: 4 in float32, 2 in bfloat16 and float16
    q, o, dq, do   (B, H, Nq, d)
    k, v, dk, dv   (B, G, Nk, d)
    lse            (B, H, Nq) float32: log Σ exp of a row of S, L in the papers
    delta          (B, H, Nq) float32: Σ do·o of a row, D in the papers
    da             the derivative of the loss by a, for any a

With `causal`, queries and keys are aligned at their ends: query i sees keys 0 … Nk − Nq + i. A
query that sees no key gets o = 0 and lse = −∞, and its gradient is 0.

References:
    T. Dao, D. Fu, S. Ermon, A. Rudra, C. Ré, "FlashAttention", NeurIPS 2022, arXiv:2205.14135.
    T. Dao, "FlashAttention-2", 2023, arXiv:2307.08691: algorithms 1 and 2 are tasks 9 and 10.
    M. Milakov, N. Gimelshein, "Online normalizer calculation for softmax", 2018, arXiv:1805.02867.
    T. Dao, D. Haziza, F. Massa, G. Sizov, "Flash-Decoding for long-context inference", 2023.
    J. Ainslie et al., "GQA", EMNLP 2023, arXiv:2305.13245: several query heads to a key head.
"""

import functools
import math

import torch
import triton
import triton.language as tl

# -------------------------------------------------------------------------------------------------
# Given: what every launcher and kernel below relies on
# -------------------------------------------------------------------------------------------------

DTYPES = (torch.float32, torch.bfloat16, torch.float16)

# GPUs compute 2ˣ, not eˣ: exp(x) = 2^(x · log₂ e). The factor is put where it costs nothing.
LOG2E = tl.constexpr(1.4426950408889634)
LN2 = tl.constexpr(0.6931471805599453)

# What a maximum starts from. With −∞, the difference of two maxima could be −∞ − (−∞), no number.
LOWEST = tl.constexpr(-3.4028234663852886e38)  # of float32


def check_arguments(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    o: torch.Tensor | None = None,
    lse: torch.Tensor | None = None,
    do: torch.Tensor | None = None,
    scale: float | None = None,
    Br: int | None = None,
    Bc: int | None = None,
) -> None:
    """Raise ValueError, saying what is wrong and how, unless the kernels may trust their arguments.

    q, o, do: (B, H, Nq, d), 1 ≤ d ≤ 256
    k, v:     (B, G, Nk, d), H a multiple of G
    lse:      (B, H, Nq), contiguous, float32
    scale:    None or a finite number above 0
    Br, Bc:   None or powers of two, at least 16: `tl.dot` takes no smaller tiles

    All but lse are of one dtype: float32, bfloat16 or float16. Their strides may be any, 0
    included, but for the last, which must be 1.
    """
    for name, tensor in {"q": q, "k": k}.items():
        if tensor.dim() != 4 or not 1 <= tensor.shape[3] <= 256:
            axes = "(B, H, Nq, d)" if name == "q" else "(B, G, Nk, d)"
            raise ValueError(
                f"{name} must be {axes} with d from 1 to 256, but has shape {tuple(tensor.shape)}"
            )
    B, H, Nq, d = q.shape
    G, Nk = k.shape[1], k.shape[2]
    if H % G if G else H:
        raise ValueError(f"q has H = {H} heads and k has G = {G}: H must be a multiple of G")
    like_q, like_k = (B, H, Nq, d), (B, G, Nk, d)
    expected = {
        "q": (q, like_q),
        "k": (k, like_k),
        "v": (v, like_k),
        "o": (o, like_q),
        "lse": (lse, like_q[:3]),
        "do": (do, like_q),
    }
    for name, (tensor, shape) in expected.items():
        if tensor is None:
            continue
        if tensor.shape != shape:
            raise ValueError(
                f"{name} has shape {tuple(tensor.shape)}; with q {like_q} and k {tuple(k.shape)} "
                f"it must be {shape}"
            )
        if name == "lse":
            if not tensor.is_contiguous():
                raise ValueError(
                    f"lse {shape} has strides {tensor.stride()}; pass lse.contiguous()"
                )
        elif d > 1 and tensor.stride(3) != 1:
            raise ValueError(
                f"{name} {shape} has strides {tensor.stride()}: the kernels step through a row one "
                f"element at a time, so the last stride must be 1; pass {name}.contiguous()"
            )
        allowed = (torch.float32,) if name == "lse" else DTYPES if name == "q" else (q.dtype,)
        if tensor.dtype not in allowed:
            names = ", ".join(str(dtype).removeprefix("torch.") for dtype in allowed)
            why = "" if name in ("q", "lse") else ", like q"
            raise ValueError(f"{name} {shape} is {tensor.dtype}; it must be {names}{why}")
        if tensor.device != q.device:
            raise ValueError(f"{name} {shape} is on {tensor.device}, but q is on {q.device}")
    if scale is not None and not (scale > 0 and math.isfinite(scale)):
        raise ValueError(f"scale must be a finite number above 0, but is {scale}")
    for name, block in {"Br": Br, "Bc": Bc}.items():
        if block is not None and (block < 16 or block & (block - 1)):
            raise ValueError(f"{name} must be a power of two, at least 16, but is {block}")


@triton.jit
def open_rows(
    ptr, N, stride, d: tl.constexpr, ROWS: tl.constexpr, BLOCK_D: tl.constexpr, TMA: tl.constexpr
):  # fmt: skip
    """What `load_rows` reads a matrix (N, d) through: a tensor descriptor with TMA, else `ptr`."""
    if TMA:
        return tl.make_tensor_descriptor(ptr, [N, d], [stride, 1], [ROWS, BLOCK_D])
    else:
        return ptr


@triton.jit
def load_rows(
    source, start, N, stride, d: tl.constexpr, ROWS: tl.constexpr, BLOCK_D: tl.constexpr,
    TMA: tl.constexpr,
):  # fmt: skip
    """Rows start, …, start + ROWS − 1 of a matrix (N, d) as a tile (ROWS, BLOCK_D), 0 outside it.

    source: as `open_rows` returned it; the matrix's rows are `stride` elements apart
    TMA:    let the copy engine of a GPU fetch the tile, which leaves its threads free
    """
    if TMA:
        return source.load([start, 0])
    else:
        rows, cols = tl.arange(0, ROWS), tl.arange(0, BLOCK_D)
        mask = (rows < N - start)[:, None] & (cols < d)[None, :]
        first = source + tl.cast(start, tl.int64) * stride  # start · stride may pass 2³¹
        return tl.load(first + rows[:, None] * stride + cols[None, :], mask=mask, other=0.0)


@triton.jit
def store_rows(
    ptr, tile, start, N, d: tl.constexpr, ROWS: tl.constexpr, BLOCK_D: tl.constexpr
):  # fmt: skip
    """Store a tile (ROWS, BLOCK_D) as rows start, … of a contiguous matrix (N, d), in its dtype."""
    rows, cols = tl.arange(0, ROWS), tl.arange(0, BLOCK_D)
    mask = (rows < N - start)[:, None] & (cols < d)[None, :]
    first = ptr + tl.cast(start, tl.int64) * d
    tl.store(first + rows[:, None] * d + cols[None, :], tile, mask=mask)  # rounded once


def tile_width(d: int) -> int:
    """BLOCK_D: d padded to a power of two that `tl.dot` takes; masked, so it costs no bytes."""
    return max(triton.next_power_of_2(d), 16)


TMA_ROWS = 512  # shorter sequences are fetched by the threads themselves


def use_tma(*tensors: torch.Tensor) -> bool:
    """True if the copy engine of Hopper and later GPUs can fetch tiles of all of these tensors.

    It wants addresses and strides in multiples of 16 bytes. Each program has to describe its
    tensors to the engine first, which in short sequences takes longer than is saved. What is saved
    are the instructions and registers of a program's own loads: at N = 4096 and d = 128 an H200 did
    505 TFLOP/s forward with it, and 420 without.
    """
    if not tensors[0].is_cuda or torch.cuda.get_device_capability(tensors[0].device)[0] < 9:
        return False
    for t in tensors:
        steps = [t.data_ptr(), *(stride * t.element_size() for stride in t.stride()[:3])]
        if t.shape[2] < TMA_ROWS or t.stride(2) == 0 or any(step % 16 for step in steps):
            return False
    triton.set_allocator(  # of the memory that the descriptions are kept in
        lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device="cuda")
    )
    return True


# Blocks where none are asked for and there is no GPU to choose them for.
DEFAULT_BLOCK = 64

# (Br, Bc, warps, stages) that suit an H200 in 16 bits, by BLOCK_D. All fit the registers with TMA,
# which takes fewer; the first does without it, too.
FORWARD_BLOCKS = {
    64: [(128, 64, 8, 3), (128, 64, 4, 3)],
    128: [(64, 64, 4, 3), (128, 64, 4, 2), (128, 64, 8, 3)],
    256: [(64, 32, 4, 2), (128, 32, 8, 2)],
}
DKDV_BLOCKS = {
    64: [(64, 64, 4, 2), (64, 64, 4, 3)],
    128: [(32, 64, 4, 3), (64, 64, 4, 2)],
    256: [(16, 64, 8, 2), (32, 64, 8, 2)],
}
DQ_BLOCKS = {
    64: [(64, 64, 4, 3), (64, 64, 4, 2), (128, 64, 8, 3)],
    128: [(64, 64, 4, 2), (128, 64, 8, 3)],
    256: [(64, 32, 8, 2), (64, 32, 4, 2)],
}
# No tensor core multiplies float32 whole: threads hold a product's operands in registers.
FLOAT32_BLOCKS = {64: [(16, 16, 8, 1)], 128: [(16, 16, 16, 1)], 256: [(16, 16, 16, 1)]}


@functools.cache
def tuned(kernel, candidates: tuple[tuple[int, int, int, int], ...], *sizes: int):
    """The kernel with the fastest of some blocks, found out anew for each d, dtype and mask.

    sizes: bits of how long and how many the sequences are: what suits few short ones, which leave
           multiprocessors idle, need not suit many, or long ones
    """
    tries = [*((True, *candidate) for candidate in candidates), (False, *candidates[0])]
    configs = [
        triton.Config({"TMA": tma, "Br": Br, "Bc": Bc}, num_warps=warps, num_stages=stages)
        for tma, Br, Bc, warps, stages in tries
    ]
    return triton.autotune(configs, key=["d", "CAUSAL"])(kernel)


def choose(kernel, blocks: dict, Br: int | None, Bc: int | None, *fetched: torch.Tensor):
    """(kernel to launch, its options): blocks as asked for, or else those that suit the device.

    blocks:  one of the tables above
    fetched: (…, N, d), what the kernel fetches block by block
    """
    N, d = fetched[0].shape[2:]
    if Br is not None or Bc is not None or not fetched[0].is_cuda:
        asked = {"Br": Br or DEFAULT_BLOCK, "Bc": Bc or DEFAULT_BLOCK}
        return kernel, {"TMA": False, "num_stages": 1, **asked}
    float32 = fetched[0].dtype == torch.float32
    candidates = (FLOAT32_BLOCKS if float32 else blocks)[max(tile_width(d), 64)]
    if not float32 and use_tma(*fetched):
        sizes = N.bit_length(), fetched[0].numel().bit_length()
        return tuned(kernel, tuple(candidates), *sizes), {}
    names = ("Br", "Bc", "num_warps", "num_stages")
    return kernel, {"TMA": False, **dict(zip(names, candidates[0], strict=True))}


# -------------------------------------------------------------------------------------------------
# Task 9: forward
# -------------------------------------------------------------------------------------------------


@triton.jit
def attention_fwd_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr,
    q_stride_b, q_stride_h, q_stride_n,
    k_stride_b, k_stride_h, k_stride_n,
    v_stride_b, v_stride_h, v_stride_n,
    H, Nq, Nk, scale,
    d: tl.constexpr, BLOCK_D: tl.constexpr, GROUP: tl.constexpr, CAUSAL: tl.constexpr,
    TMA: tl.constexpr, Br: tl.constexpr, Bc: tl.constexpr,
):  # fmt: skip
    """A program takes a block of Br queries of one head past the keys and values they see.

    Softmax needs the largest score of a row, and the sum, before it can give the first probability.
    The online softmax does without: after some blocks of keys it holds, for each query,

        m    the largest score so far
        l    Σ exp(score − m) so far
        acc  Σ exp(score − m) · value so far, not yet divided

    and a block of scores S with a new maximum m' ≥ m changes the base of what is there:

        α = exp(m − m')        P = exp(S − m')
        l ← α · l + Σ P        acc ← α · acc + P V        m ← m'

    At the end o = acc / l, and lse = m + log l. Of a query that has seen nothing l and acc are 0.
    Scores are in units of log₂ e here: exp is 2ˣ.

    Blocks of keys that all queries of the block see whole come first and need no masks; then come
    those across the diagonal or the end, with masks. `static_range` writes the loop for each.

    H, Nq, Nk, scale:  as above; scale > 0
    *_stride_*:        elements from one batch, head, row to the next; o and lse are contiguous
    d, BLOCK_D:        elements of a row; of a tile's row
    GROUP:             H // G, query heads for each key head
    TMA:               see `use_tma`
    """
    raise NotImplementedError(
        "flash_attention 9: load a block of queries; for each block of keys that they see, update "
        "m, l and acc; store o and lse"
    )


def attention_forward(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    causal: bool = False,
    scale: float | None = None,
    Br: int | None = None,
    Bc: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """softmax(q kᵀ · scale) v; see `check_arguments` for shapes, strides and dtypes allowed.

    q:      (B, H, Nq, d)
    k, v:   (B, G, Nk, d)
    causal: query i sees keys 0 … Nk − Nq + i; otherwise every key
    scale:  1/√d if it is None
    Br, Bc: queries and keys in a block; if None, whatever is fastest

    Returns (o, lse), contiguous: o (B, H, Nq, d) in q's dtype, lse (B, H, Nq) float32. A query that
    sees no key has o = 0 and lse = −∞.

    Bytes: loads q once and, for each block of queries, the blocks of k and v that it sees,
    B·H·(Nq + 2·K_rows)·d·s; stores B·H·Nq·(d·s + 4).
    """
    check_arguments(q, k, v, scale=scale, Br=Br, Bc=Bc)
    raise NotImplementedError(
        "flash_attention 9: allocate o and lse; launch one program a block of queries of each "
        "head; return (o, lse)"
    )


# -------------------------------------------------------------------------------------------------
# Task 10: backward
# -------------------------------------------------------------------------------------------------


@triton.jit
def attention_delta_kernel(
    o_ptr, do_ptr, delta_ptr,
    o_stride_b, o_stride_h, o_stride_n,
    do_stride_b, do_stride_h, do_stride_n,
    H, Nq,
    d: tl.constexpr, BLOCK_D: tl.constexpr, Br: tl.constexpr,
):  # fmt: skip
    """A program computes delta = Σ do·o of Br rows of one head, which softmax's derivative needs.

    Softmax turns a row of dP into dS_j = P_j · (dP_j − Σ_k P_k dP_k), with a sum over all keys. But

        Σ_k P_k dP_k = Σ_k P_k (do · v_k) = do · Σ_k P_k v_k = do · o

    so the sum is known before the first block of keys is visited.
    """
    raise NotImplementedError(
        "flash_attention 10: load a block of rows of o and do; store their delta"
    )


@triton.jit
def attention_dkdv_kernel(
    q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dk_ptr, dv_ptr,
    q_stride_b, q_stride_h, q_stride_n,
    k_stride_b, k_stride_h, k_stride_n,
    v_stride_b, v_stride_h, v_stride_n,
    do_stride_b, do_stride_h, do_stride_n,
    G, Nq, Nk, scale,
    d: tl.constexpr, BLOCK_D: tl.constexpr, GROUP: tl.constexpr, CAUSAL: tl.constexpr,
    TMA: tl.constexpr, Br: tl.constexpr, Bc: tl.constexpr,
):  # fmt: skip
    """A program takes a block of Bc keys and values of one head past the queries that see them.

    P comes back from the scores and lse without a sum or a maximum, P = exp(S − lse). Then

        dV = Pᵀ dO        dP = dO Vᵀ        dS = P ⊙ (dP − delta)        dK = dSᵀ Q · scale

    with sums over the queries, of all query heads that share the key head. The program computes Sᵀ,
    Pᵀ, … from the start: those are what the two products with a sum over queries take, as they are.

    Blocks of queries across the diagonal come first, with masks, then those that see all the keys.
    Rows past the end need no mask: their q and do are 0, and so is all that they would add.

    delta: (B, H, Nq) float32, of `attention_delta_kernel`; the other arguments as in the forward
    """
    raise NotImplementedError(
        "flash_attention 10: load a block of keys and values; for each query head of the group and "
        "each block of queries that see them, add to dk and dv; store both"
    )


@triton.jit
def attention_dq_kernel(
    q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dq_ptr,
    q_stride_b, q_stride_h, q_stride_n,
    k_stride_b, k_stride_h, k_stride_n,
    v_stride_b, v_stride_h, v_stride_n,
    do_stride_b, do_stride_h, do_stride_n,
    H, Nq, Nk, scale,
    d: tl.constexpr, BLOCK_D: tl.constexpr, GROUP: tl.constexpr, CAUSAL: tl.constexpr,
    TMA: tl.constexpr, Br: tl.constexpr, Bc: tl.constexpr,
):  # fmt: skip
    """A program takes a block of Br queries of one head past the keys and values they see.

    P, dP and dS as in `attention_dkdv_kernel`, computed again, and dQ = dS K · scale, a sum over
    the keys. The other kernel meets these dS, too, but there a row of dq gets its shares from many
    programs; they would have to add in turns, and in an order that differs from run to run. That dq
    is the same each time, to the bit, costs computing dS twice.
    """
    raise NotImplementedError(
        "flash_attention 10: load a block of queries, do, lse and delta; for each block of keys "
        "that they see, add to dq; store it"
    )


def attention_backward(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    o: torch.Tensor,
    lse: torch.Tensor,
    do: torch.Tensor,
    causal: bool = False,
    scale: float | None = None,
    Br: int | None = None,
    Bc: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Gradients of q, k and v; see `check_arguments` for shapes, strides and dtypes allowed.

    q, do, o, lse: (B, H, Nq, d), and (B, H, Nq) for lse; o and lse as `attention_forward` returned
    k, v:          (B, G, Nk, d)
    causal, scale: as in the forward
    Br, Bc:        queries and keys in a block; if None, whatever is fastest

    Returns (dq, dk, dv), contiguous, in q's dtype, with the shapes of q, k and v.

    Bytes: delta loads 2·B·H·Nq·d·s and stores 4·B·H·Nq;
    dk and dv load B·G·2·Nk·d·s + B·H·Q_rows·(2·d·s + 8) and store B·G·2·Nk·d·s;
    dq loads B·H·(Nq·(2·d·s + 8) + 2·K_rows·d·s) and stores B·H·Nq·d·s.
    """
    check_arguments(q, k, v, o, lse, do, scale=scale, Br=Br, Bc=Bc)
    raise NotImplementedError(
        "flash_attention 10: allocate dq, dk, dv and delta; launch a kernel for delta, one for dk "
        "and dv, and one for dq; return (dq, dk, dv)"
    )


# -------------------------------------------------------------------------------------------------
# Task 11: decoding
# -------------------------------------------------------------------------------------------------


@triton.jit
def attention_split_kernel(
    q_ptr, k_ptr, v_ptr, m_ptr, l_ptr, acc_ptr,
    q_stride_b, q_stride_h, q_stride_n,
    k_stride_b, k_stride_h, k_stride_n,
    v_stride_b, v_stride_h, v_stride_n,
    G, Nq, Nk, scale, n_split,
    d: tl.constexpr, BLOCK_D: tl.constexpr, GROUP: tl.constexpr,
    ROWS: tl.constexpr, Bc: tl.constexpr,
):  # fmt: skip
    """A program takes all queries of one key head past one of n_split parts of its keys.

    To generate a token there is one query a head, and all keys before it: a program for each head
    would leave most of a GPU idle, and read the same keys for each query head of a group. So the
    rows of a tile are the queries of all GROUP query heads of a key head, and the keys are split:
    part i of n_split are the keys from i · c on, c = ⌈Nk / n_split⌉ of them, fewer or none in the
    last parts. The result of a part is (m, l, acc) as in the forward.

    m, l: (n_split, B, H, Nq) float32, m in units of log₂ e; acc: (n_split, B, H, Nq, d) float32
    ROWS: rows of a tile; a program id for each tile if GROUP · Nq are more
    """
    raise NotImplementedError(
        "flash_attention 11: load the queries of a key head's group; update m, l and acc for each "
        "block of keys of one part; store them"
    )


@triton.jit
def attention_merge_kernel(
    m_ptr, l_ptr, acc_ptr, o_ptr, lse_ptr, n_split, d: tl.constexpr, BLOCK_D: tl.constexpr
):  # fmt: skip
    """Program r merges the n_split results of row r into o and lse.

    Two results merge as the forward's loop merges a new block: each is brought to the larger m. The
    result of no keys is neutral. m, l and acc are as `attention_split_kernel` stores them.
    """
    raise NotImplementedError(
        "flash_attention 11: load each part's m, l and acc of one row; store o and lse"
    )


def attention_decode(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    n_split: int,
    scale: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """`attention_forward` without a mask for few queries and many keys: the keys are split.

    q, k, v: as in `attention_forward`; every query sees every key
    n_split: parts that the keys of a head are split into, at least 1; may exceed Nk

    Returns (o, lse), contiguous: o (B, H, Nq, d) in q's dtype, lse (B, H, Nq) float32.

    Bytes: the parts load k and v once and q once each, B·G·2·Nk·d·s + n_split·B·H·Nq·d·s, and store
    n_split·B·H·Nq·(d + 2)·4; the merge loads those, and stores B·H·Nq·(d·s + 4). That is so as long
    as the Nq · H // G queries of a key head fit one tile, 128 rows; k and v are loaded once a tile.
    """
    check_arguments(q, k, v, scale=scale)
    if n_split < 1:
        raise ValueError(f"n_split must be at least 1, but is {n_split}")
    raise NotImplementedError(
        "flash_attention 11: allocate m, l, acc, o and lse; launch one program a part of each key "
        "head's keys, then one a row to merge; return (o, lse)"
    )


# -------------------------------------------------------------------------------------------------
# Task 12: autograd
# -------------------------------------------------------------------------------------------------


class FlashAttention(torch.autograd.Function):
    """Attention as one differentiable operation: `FlashAttention.apply(q, k, v, causal, scale)`.

    q:      (B, H, Nq, d), any strides
    k, v:   (B, G, Nk, d), any strides
    causal: bool; scale: a number, or None for 1/√d; they have no gradient

    o and dq have the shape and dtype of q, dk and dv those of k and v.
    """

    @staticmethod
    def forward(ctx, q, k, v, causal, scale):
        """Return o (B, H, Nq, d), and save for the backward pass what it will need."""
        raise NotImplementedError(
            "flash_attention 12: copy what the kernels cannot step through; run task 9; save q, k, "
            "v, o and lse"
        )

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, do):
        """do (B, H, Nq, d), of any strides → one gradient for each argument of forward."""
        raise NotImplementedError(
            "flash_attention 12: copy do if need be; run task 10; return one gradient for each "
            "argument of forward, None for causal and scale"
        )


def flash_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    causal: bool = False,
    scale: float | None = None,
) -> torch.Tensor:
    """softmax(q kᵀ · scale) v, differentiable in q (B, H, Nq, d) and in k and v (B, G, Nk, d)."""
    raise NotImplementedError("flash_attention 12: apply FlashAttention")
