"""In order "fa1" the old O is rescaled by exp(m − m'), but not denormalised by the old ℓ.

breaks: 7
"""

import numpy as np


def flash_fwd(
    Q: np.ndarray,
    K: np.ndarray,
    V: np.ndarray,
    Br: int,
    Bc: int,
    causal: bool = False,
    order: str = "fa2",
) -> tuple[np.ndarray, np.ndarray, IO]:
    Q, K, V = check_head(Q=Q, K=K, V=V)
    check_blocks(Br, Bc)
    if order not in ORDERS:
        raise ValueError(f"order must be 'fa1' or 'fa2', but is {order!r}")
    (Nq, d), Nk = Q.shape, len(K)
    first = Nk - Nq  # the position of query 0
    O = np.zeros((Nq, d))  # noqa: E741 - the papers' name
    m, ell = np.full(Nq, -np.inf), np.zeros(Nq)
    io = IO()

    def tile(i0: int, i1: int, j0: int, j1: int) -> tuple[np.ndarray, np.ndarray]:
        S = Q[i0:i1] @ K[j0:j1].T * scale_of(d)  # (br, bc)
        if causal:
            S[in_the_future(first + i0, first + i1, j0, j1)] = -np.inf
        m_new = np.maximum(m[i0:i1], S.max(axis=1))  # (br,)
        # A row that has seen no key so far has m' = −inf. With base 0 its P̃ and its factor come
        # out as exp(−inf) = 0, and it stays as it was.
        base = np.where(np.isneginf(m_new), 0, m_new)
        P, factor = np.exp(S - base[:, None]), np.exp(m[i0:i1] - base)
        ell[i0:i1] = ell[i0:i1] * factor + P.sum(axis=1)
        m[i0:i1] = m_new
        return P, factor

    if order == "fa1":
        for j0 in range(0, Nk, Bc):
            j1 = min(j0 + Bc, Nk)
            io += IO(read=2 * (j1 - j0) * d)  # K_j, V_j
            for i0 in range(0, Nq, Br):
                i1 = min(i0 + Br, Nq)
                if causal and j0 > first + i1 - 1:
                    continue
                br = i1 - i0
                io += IO(read=2 * br * d + 2 * br)  # Q_i, O_i, ℓ_i, m_i
                P, factor = tile(i0, i1, j0, j1)
                new = np.where(ell[i0:i1] == 0, 1, ell[i0:i1])  # no key so far: O stays 0
                O[i0:i1] = (O[i0:i1] * factor[:, None] + P @ V[j0:j1]) / new[:, None]
                io += IO(write=br * d + 2 * br, flops=4 * br * (j1 - j0) * d)  # O_i, ℓ_i, m_i
    else:
        for i0 in range(0, Nq, Br):
            i1 = min(i0 + Br, Nq)
            br, acc = i1 - i0, np.zeros((i1 - i0, d))
            io += IO(read=br * d)  # Q_i
            for j0 in range(0, Nk, Bc):
                j1 = min(j0 + Bc, Nk)
                if causal and j0 > first + i1 - 1:
                    continue
                P, factor = tile(i0, i1, j0, j1)
                acc = acc * factor[:, None] + P @ V[j0:j1]
                io += IO(read=2 * (j1 - j0) * d, flops=4 * br * (j1 - j0) * d)  # K_j, V_j
            O[i0:i1] = acc / np.where(ell[i0:i1] == 0, 1, ell[i0:i1])[:, None]
            io += IO(write=br * d + br)  # O_i, L_i

    with np.errstate(divide="ignore"):  # log 0 = −inf is meant: the row has seen no key
        return O, m + np.log(ell), io
