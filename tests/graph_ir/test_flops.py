"""Operations of matrix products, against what torch counts when it runs the same layer."""

from __future__ import annotations

import pytest
import torch
from graph_ir import LayerCfg, layer_params, prefill_layer, trace
from torch.utils.flop_counter import FlopCounterMode
from transformer_lab import Config, rope_angles
from transformer_lab.model import attention, mlp


@pytest.mark.parametrize(("H", "G", "T"), [(4, 4, 8), (6, 2, 5), (4, 1, 16)])
def test_products_are_those_that_torch_counts(H: int, G: int, T: int) -> None:
    cfg = LayerCfg(24, H, G, 8, 40)
    model = Config(1, cfg.d, H, G, cfg.dh, cfg.f, 2, 64, cfg.eps, cfg.theta)
    params = {name: torch.tensor(array) for name, array in layer_params(cfg).items()}
    x = torch.ones((1, T, cfg.d), dtype=torch.float64)
    cos, sin = rope_angles(range(T), cfg.dh, cfg.theta)  # type: ignore[arg-type]
    with FlopCounterMode(display=False) as counter:
        h = x + attention(params, model, 0, x, cos, sin, 0, None)
        mlp(params, model, h)
    g = trace(prefill_layer(cfg, T), {"x": (T, cfg.d)}, cfg.shapes())
    products = [
        node.spec.flops(tuple(g[i].shape for i in node.inputs), node.shape)[0] for node in g
    ]
    assert sum(products) == counter.get_total_flops()
