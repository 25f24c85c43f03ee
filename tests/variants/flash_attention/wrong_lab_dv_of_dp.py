"""Standard attention's backward takes dS where it needs P, for dV.

breaks: 8
"""

import numpy as np


def standard_attention_bwd(
    Q: np.ndarray, K: np.ndarray, V: np.ndarray, P: np.ndarray, dO: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, IO]:
    Q, K, V, P, dO = check_head(Q=Q, K=K, V=V, P=P, dO=dO)
    (Nq, d), Nk = Q.shape, len(K)
    product = IO(flops=2 * Nq * Nk * d)
    io = IO(write=Q.size)  # zeros of dQ
    io += product + IO(read=P.size + dO.size, write=V.size)
    dP = dO @ V.T  # (Nq, Nk)
    io += product + IO(read=dO.size + V.size, write=dP.size)
    dS = P * (dP - (P * dP).sum(axis=1, keepdims=True))  # (Nq, Nk)
    io += IO(read=P.size + dP.size, write=dS.size)
    dV = dS.T @ dO  # wrong: O = P V
    dQ = dS @ K * scale_of(d)  # (Nq, d)
    io += product + IO(read=dS.size + K.size, write=dQ.size)
    dK = dS.T @ Q * scale_of(d)  # (Nk, d)
    io += product + IO(read=dS.size + Q.size, write=dK.size)
    return dQ, dK, dV, io
