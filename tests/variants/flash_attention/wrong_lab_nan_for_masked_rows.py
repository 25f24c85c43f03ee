"""Standard attention divides 0 by 0 in a row that sees no key.

breaks: 7
file: flash_lab.py
"""

import numpy as np


def standard_attention(
    Q: np.ndarray, K: np.ndarray, V: np.ndarray, causal: bool = False
) -> tuple[np.ndarray, np.ndarray, IO]:
    Q, K, V = check_head(Q=Q, K=K, V=V)
    (Nq, d), Nk = Q.shape, len(K)
    S = Q @ K.T * scale_of(d)  # (Nq, Nk)
    if causal:
        S[in_the_future(Nk - Nq, Nk, 0, Nk)] = -np.inf
    io = IO(read=Q.size + K.size, write=S.size, flops=2 * Nq * Nk * d)

    m = S.max(axis=1, initial=-np.inf)  # (Nq,)
    P = np.exp(S - np.where(np.isneginf(m), 0, m)[:, None])  # (Nq, Nk): exp(−inf − 0) = 0
    ell = P.sum(axis=1)  # (Nq,)
    with np.errstate(invalid="ignore"):
        P /= ell[:, None]  # wrong: 0 / 0
    io += IO(read=S.size, write=P.size)

    O = P @ V  # noqa: E741 - the papers' name
    io += IO(read=P.size + V.size, write=O.size, flops=2 * Nq * Nk * d)
    return O, P, io
