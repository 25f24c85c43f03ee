"""The counted forward sums its traffic up from the tiles' sizes, apart from the computation."""

import numpy as np


def flash_fwd(Q, K, V, Br, Bc, causal=False, order="fa2"):
    Q, K, V = check_head(Q=Q, K=K, V=V)
    check_blocks(Br, Bc)
    if order not in ORDERS:
        raise ValueError(f"order must be 'fa1' or 'fa2', but is {order!r}")
    (Nq, d), Nk = Q.shape, len(K)
    tiles = [
        (i, min(i + Br, Nq), j, min(j + Bc, Nk))
        for i in range(0, Nq, Br)
        for j in range(0, Nk, Bc)
        if not causal or j < Nk - Nq + min(i + Br, Nq)
    ]
    acc, ell = np.zeros((Nq, d)), np.zeros(Nq)
    m = np.full(Nq, np.finfo(float).min)  # so that no difference of two is −inf − (−inf)
    for i0, i1, j0, j1 in tiles:
        S = Q[i0:i1] @ K[j0:j1].T * scale_of(d)
        if causal:
            S[in_the_future(Nk - Nq + i0, Nk - Nq + i1, j0, j1)] = -np.inf
        new = np.maximum(m[i0:i1], S.max(axis=1))
        P, factor = np.exp(S - new[:, None]), np.exp(m[i0:i1] - new)
        m[i0:i1], ell[i0:i1] = new, ell[i0:i1] * factor + P.sum(axis=1)
        acc[i0:i1] = acc[i0:i1] * factor[:, None] + P @ V[j0:j1]
    queries = sum(i1 - i0 for i0, i1, _, _ in tiles)
    keys = sum(j1 - j0 for _, _, j0, j1 in tiles)
    flops = 4 * d * sum((i1 - i0) * (j1 - j0) for i0, i1, j0, j1 in tiles)
    if order == "fa1":
        io = IO(read=2 * Nk * d + queries * (2 * d + 2), write=queries * (d + 2), flops=flops)
    else:
        io = IO(read=Nq * d + 2 * keys * d, write=Nq * d + Nq, flops=flops)
    with np.errstate(divide="ignore"):
        return acc / np.where(ell == 0, 1, ell)[:, None], m + np.log(ell), io
