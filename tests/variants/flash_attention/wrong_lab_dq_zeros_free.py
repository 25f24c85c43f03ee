"""The counted backward forgets that dQ, which is added to, has to be zeroed.

breaks: 8
"""

import numpy as np


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
    Q, K, V, O, dO, L = check_head(Q=Q, K=K, V=V, O=O, dO=dO, L=L)  # noqa: E741
    check_blocks(Br, Bc)
    (Nq, d), Nk = Q.shape, len(K)
    first = Nk - Nq  # the position of query 0
    D = (dO * O).sum(axis=1)  # (Nq,)
    io = IO(read=dO.size + O.size, write=D.size)
    dQ, dK, dV = np.zeros((Nq, d)), np.zeros((Nk, d)), np.zeros((Nk, d))
    # wrong: nothing is charged for these zeros
    # A row without a visible key has L = −inf, and its scores are −inf as well: exp(−inf − 0) = 0.
    base = np.where(np.isneginf(L), 0, L)

    for j0 in range(0, Nk, Bc):
        j1 = min(j0 + Bc, Nk)
        bc = j1 - j0
        io += IO(read=2 * bc * d)  # K_j, V_j
        for i0 in range(0, Nq, Br):
            i1 = min(i0 + Br, Nq)
            br = i1 - i0
            if causal and j0 > first + i1 - 1:
                continue
            io += IO(read=3 * br * d + 2 * br)  # Q_i, dO_i, dQ_i, L_i, D_i
            S = Q[i0:i1] @ K[j0:j1].T * scale_of(d)  # (br, bc)
            if causal:
                S[in_the_future(first + i0, first + i1, j0, j1)] = -np.inf
            P = np.exp(S - base[i0:i1, None])  # (br, bc)
            dV[j0:j1] += P.T @ dO[i0:i1]
            dS = P * (dO[i0:i1] @ V[j0:j1].T - D[i0:i1, None])  # (br, bc)
            dQ[i0:i1] += dS @ K[j0:j1] * scale_of(d)
            dK[j0:j1] += dS.T @ Q[i0:i1] * scale_of(d)
            io += IO(write=br * d, flops=10 * br * bc * d)  # dQ_i
        io += IO(write=2 * bc * d)  # dK_j, dV_j
    return dQ, dK, dV, io
