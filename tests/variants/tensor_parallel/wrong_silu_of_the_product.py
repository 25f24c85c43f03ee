"""Applies silu to the product of gate and up.

breaks: 4, 5, 6, 7
"""

import numpy as np
from transformer_lab import silu


def mlp_of_rank(p: Params, index: int, h: np.ndarray) -> np.ndarray:
    layer = p["layers"][index]
    # wrong: to gate alone
    return silu((h @ layer["w_gate"]) * (h @ layer["w_up"])) @ layer["w_down"]
