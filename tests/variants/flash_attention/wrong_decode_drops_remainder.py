"""The splits of the decoding have Nk // n_split keys each; those left over are lost.

breaks: 5
"""

import torch


def flash_decode(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    n_split: int,
    scale: float | None = None,
) -> tuple[torch.Tensor, list[SoftmaxState]]:
    check_arguments(q, k, v)
    if n_split < 1:
        raise ValueError(f"n_split must be at least 1, but is {n_split}")
    scale = scale_of(q, scale)
    Nk = k.shape[-2]
    parts = []
    for piece in range(n_split):
        j0, j1 = Nk // n_split * piece, Nk // n_split * (piece + 1)  # wrong: keys are left over
        s = q @ k[..., j0:j1, :].mT * scale  # (..., Nq, j1 − j0)
        parts.append(state_of_scores(s, v[..., j0:j1, :]))
    total = parts[0]
    for part in parts[1:]:
        total = merge_states(total, part)
    assert total.o is not None  # every part has one, so their merger does
    return total.o / torch.where(total.l == 0, 1, total.l)[..., None], parts
