"""FlashAttention-2 forward: one program a block of queries of one head, keys streamed past it."""

import torch
import triton
import triton.language as tl


@triton.jit
def flash_forward_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, N, scale,
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """q, k, v, o: (heads, N, D) contiguous; lse: (heads, N) float32."""
    block, head = tl.program_id(0), tl.program_id(1)
    base = head * N * D
    rows = block * BLOCK_M + tl.arange(0, BLOCK_M)
    lanes = tl.arange(0, D)
    q_at = base + rows[:, None] * D + lanes[None, :]
    q = tl.load(q_ptr + q_at, mask=rows[:, None] < N, other=0.0)
    m = tl.full([BLOCK_M], -float("inf"), tl.float32)
    l = tl.zeros([BLOCK_M], tl.float32)  # noqa: E741 - the paper's name
    acc = tl.zeros([BLOCK_M, D], tl.float32)
    last = tl.minimum((block + 1) * BLOCK_M, N) if CAUSAL else N
    for start in range(0, last, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        kv_at = base + cols[:, None] * D + lanes[None, :]
        k = tl.load(k_ptr + kv_at, mask=cols[:, None] < N, other=0.0)
        v = tl.load(v_ptr + kv_at, mask=cols[:, None] < N, other=0.0)
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        seen = cols[None, :] < N
        if CAUSAL:
            seen = seen & (cols[None, :] <= rows[:, None])
        s = tl.where(seen, s, -float("inf"))
        m_new = tl.maximum(m, tl.max(s, axis=1))
        p = tl.exp(s - m_new[:, None])
        shrink = tl.exp(m - m_new)
        l = l * shrink + tl.sum(p, axis=1)  # noqa: E741
        acc = acc * shrink[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")
        m = m_new
    tl.store(o_ptr + q_at, (acc / l[:, None]).to(o_ptr.dtype.element_ty), mask=rows[:, None] < N)
    tl.store(lse_ptr + head * N + rows, m + tl.log(l), mask=rows < N)


def flash_forward(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    causal: bool = False,
    block: tuple[int, int] = (64, 64),
) -> tuple[torch.Tensor, torch.Tensor]:
    """q, k, v: (heads, N, D) contiguous → o (heads, N, D), lse (heads, N)."""
    heads, n, d = q.shape
    o = torch.empty_like(q)
    lse = torch.empty((heads, n), dtype=torch.float32, device=q.device)
    flash_forward_kernel[(triton.cdiv(n, block[0]), heads)](
        q, k, v, o, lse, n, d**-0.5, D=d, BLOCK_M=block[0], BLOCK_N=block[1], CAUSAL=causal
    )
    return o, lse


def reference(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """The same in torch, with the whole score matrix."""
    s = (q @ k.transpose(1, 2)) * q.shape[-1] ** -0.5
    if causal:
        s = s.masked_fill(torch.ones_like(s[0], dtype=torch.bool).triu(1), -torch.inf)
    return torch.softmax(s, -1) @ v, torch.logsumexp(s, -1)


def backward_reference(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    o: torch.Tensor,
    lse: torch.Tensor,
    do: torch.Tensor,
    causal: bool = False,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Gradients of q, k, v (…, N, D) from o, lse (…, N) and do, with whole matrices of scores."""
    scale = q.shape[-1] ** -0.5
    s = (q @ k.transpose(-1, -2)) * scale
    if causal:
        s = s.masked_fill(torch.ones_like(s[0], dtype=torch.bool).triu(1), -torch.inf)
    p = torch.exp(s - lse[..., None])
    ds = p * (do @ v.transpose(-1, -2) - (do * o).sum(-1, keepdim=True)) * scale
    return ds @ k, ds.transpose(-1, -2) @ q, p.transpose(-1, -2) @ do
