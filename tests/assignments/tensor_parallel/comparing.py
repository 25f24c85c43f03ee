"""What ranks computed, compared with what one device did."""

import numpy as np

from tests.assignments.tensor_parallel.solution import shard_lab


def assert_close(what, ours, expected, bound):
    """Within `bound` of the largest element, where that is above 1: gradients are sums over all
    tokens."""
    assert ours.shape == expected.shape, what
    assert ours.dtype == expected.dtype == np.float64, what
    assert np.max(np.abs(ours - expected)) < bound * max(1, np.max(np.abs(expected))), what


def assert_gradients(cfg, ours, expected, bound):
    """The gradients of all ranks, `ours`, against those of the whole model, a dictionary like its
    parameters: they are cut as parameters are, replicated KV heads included, but for a tied head.
    """
    cut = shard_lab.shard_params_tp(expected, cfg, len(ours))
    for rank, (mine, reference) in enumerate(zip(ours, cut, strict=True)):
        for name in ("embed", "final_norm", "lm_head"):
            if expected[name] is None:
                assert mine[name] is None
            else:
                assert_close(f"{name} of rank {rank}", mine[name], reference[name], bound)
        for index in range(cfg.n_layers):
            grads, layer = mine["layers"][index], reference["layers"][index]
            assert grads.keys() == layer.keys()
            for name, grad in layer.items():
                assert_close(f"layers[{index}].{name} of rank {rank}", grads[name], grad, bound)
