"""What the tests expect: attention from its definition, in float64, differentiated by PyTorch.

Nothing here knows of blocks, running maxima or recomputation, and no gradient is derived by hand,
so no slip in a derivation can be in both a kernel and its test. Inputs are taken as they are,
rounded to whatever dtype they have; only then are they widened.

Counts are found likewise: by looking at the mask, one pair of blocks after another.
"""

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch

Tensor = torch.Tensor

#: Rows of 16 that fit into no tile: padded to a power of two they are 131,072 elements.
LONG = 4_112


def visible(Nq: int, Nk: int, causal: bool = False, start: int | None = None) -> Tensor:
    """Which keys (columns) each query (row) sees: (Nq, Nk), boolean.

    Under a causal mask query i sees key j if j ≤ start + i. `start` None puts the last query at the
    last key: start = Nk − Nq.
    """
    if not causal:
        return torch.ones(Nq, Nk, dtype=torch.bool)
    start = Nk - Nq if start is None else start
    return torch.arange(Nk) <= start + torch.arange(Nq)[:, None]


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    causal: bool = False,
    start: int | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    """O = softmax(q·kᵀ·scale)·v and the natural log L of the softmax's denominator, float64.

    A query that sees no key has O = 0 and L = −inf.

    Args:
        q: (..., Nq, d), or (B, H, Nq, d) where k and v have fewer heads.
        k: (..., Nk, d), or (B, G, Nk, d): query head h uses head h // (H // G).
        v: as k.
        causal: see `visible`.
        start: see `visible`.
        scale: 1/√d if None.

    Returns:
        O (..., Nq, d), L (..., Nq).
    """
    q, k, v = q.double(), k.double(), v.double()
    if k.shape[:-2] != q.shape[:-2]:
        k, v = (t.repeat_interleave(q.shape[1] // t.shape[1], dim=1) for t in (k, v))
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    seen = visible(q.shape[-2], k.shape[-2], causal, start)
    S = (q @ k.transpose(-1, -2) * scale).masked_fill(~seen, -math.inf)  # (..., Nq, Nk)
    some = seen.any(-1)  # (Nq,)
    # Subtracting a constant of each row changes no softmax, so it needs no derivative.
    m = torch.where(some, S.detach().amax(-1) if S.shape[-1] else 0.0, 0.0)
    P = torch.exp(S - m[..., None])
    total = torch.where(some, P.sum(-1), 1.0)
    L = torch.where(some, m + torch.log(total), -math.inf)
    return P / total[..., None] @ v, L


def gradients(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    dO: Tensor,
    causal: bool = False,
    start: int | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """dQ, dK, dV, float64, for dO (..., Nq, d): by autograd, through `attention`.

    Where query heads share a key head, its gradient is the sum over them.
    """
    leaves = [t.detach().double().requires_grad_() for t in (q, k, v)]
    with torch.enable_grad():
        o, _ = attention(*leaves, causal, start, scale)
        dQ, dK, dV = torch.autograd.grad(o, leaves, dO.double())
    return dQ, dK, dV


def tiles(
    Nq: int, Nk: int, Br: int, Bc: int, causal: bool = False, start: int | None = None
) -> Iterator[tuple[int, int]]:
    """The rows and columns of every tile of at most Br × Bc in which a query sees a key."""
    seen = visible(Nq, Nk, causal, start)
    for i in range(0, Nq, Br):
        for j in range(0, Nk, Bc):
            tile = seen[i : i + Br, j : j + Bc]
            if tile.any():
                yield tuple(tile.shape)


def key_rows(Nq: int, Nk: int, Br: int, Bc: int, causal: bool = False) -> int:
    """Rows of K that are loaded if every block of Br queries loads the key blocks that it sees."""
    return sum(columns for _, columns in tiles(Nq, Nk, Br, Bc, causal))


def query_rows(Nq: int, Nk: int, Br: int, Bc: int, causal: bool = False) -> int:
    """Rows of Q that are loaded if every block of Bc keys loads the query blocks that see it."""
    return sum(rows for rows, _ in tiles(Nq, Nk, Br, Bc, causal))


def rescales(
    q: Tensor,
    k: Tensor,
    Bc: int,
    causal: bool = False,
    start: int | None = None,
    scale: float | None = None,
) -> int:
    """How often a row's maximum, once it has one, grows from one block of Bc keys to the next.

    Args:
        q: (..., Nq, d).
        k: (..., Nk, d).
        Bc: keys of a block.
        causal: see `visible`.
        start: see `visible`.
        scale: only its sign matters.
    """
    sign = 1.0 if scale is None else math.copysign(1.0, scale)
    S = q.double() @ k.double().transpose(-1, -2) * sign
    S.masked_fill_(~visible(*S.shape[-2:], causal, start), -math.inf)
    count, m = 0, torch.full(q.shape[:-1], -math.inf, dtype=torch.float64)
    for j in range(0, k.shape[-2], Bc):
        top = S[..., j : j + Bc].amax(-1)
        count += int(((top > m) & (m > -math.inf)).sum())
        m = torch.maximum(m, top)
    return count


def miscounts(
    what: str,
    counted: Mapping[str, object],
    expected: Mapping[str, int],
    units: Mapping[str, int] | None = None,
) -> str:
    """In words, which counts are not as expected, and by how much: empty, if none is known to be.

    Only numbers of a sensible size are judged here; anything else is the caller's to refuse.

    Args:
        what: whose counts, such as "flash_fwd".
        counted: name → count.
        expected: name → the right count.
        units: name → elements of what may have been counted too often, such as "N·d" → 384. The
            first of which a difference in `read` or `write` is a multiple is named.
    """
    lines = []
    for name, right in expected.items():
        got = counted.get(name)
        if (
            not isinstance(got, int | float | np.integer | np.floating)
            or not abs(got) < 10**18
            or got == right
        ):
            continue
        off = abs(got - right)
        line = f"{what}: {name} = {got:,}, expected {right:,}: {off:,} too "
        line += "many" if got > right else "few"
        for unit, size in (units or {}).items() if name in ("read", "write") else ():
            if off % size == 0:
                line += f", {int(off // size)}·{unit}"
                break
        lines.append(line)
    return "\n".join(lines)


def roundings(dtype: torch.dtype, count: int) -> float | None:
    """The relative error of `count` roundings to a 16-bit dtype; None, the default, for others.

    Tensor cores take 16-bit operands, so that a kernel rounds P and dS for their products, and o
    was rounded before it is part of D. Each of these adds an error of the size of that of rounding
    the result; what is left of it in the sum differs from element to element.
    """
    return count * torch.finfo(dtype).eps / 2 if dtype.itemsize == 2 else None


def state(s: Tensor, v: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor | None]:
    """A SoftmaxState of scores s: m = max s, l = Σ exp(s − m), o = Σ exp(s − m)·v.

    Of nothing but −inf, or of no scores at all: m = −inf, l = 0, o = 0. All float64.

    Args:
        s: (..., n).
        v: (..., n, d), where s is (..., Nq, n); o is None without it.
    """
    s = s.double()
    none = torch.full(s.shape[:-1], -math.inf, dtype=torch.float64)
    m = s.amax(-1) if s.shape[-1] else none
    P = torch.exp(s - torch.where(m == -math.inf, 0.0, m)[..., None])
    return m, P.sum(-1), None if v is None else P @ v.double()


def joined(parts: Sequence[tuple[Tensor, Tensor, Tensor]]) -> tuple[Tensor, Tensor, Tensor]:
    """m, l and o of several pieces of the keys taken together; each piece an (m, l, o)."""
    m, ell, o = (torch.stack([part[n].double() for part in parts]) for n in range(3))
    top = m.amax(0)
    weights = torch.exp(m - torch.where(top == -math.inf, 0.0, top))
    return top, (ell * weights).sum(0), (o * weights[..., None]).sum(0)
