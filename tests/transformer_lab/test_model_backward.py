"""Gradients of the whole model, against torch's autograd through the model of torch's modules."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformer_lab import TINY, Config, backward, forward, init_params

from tests.transformer_lab.torch_model import torch_model

#: Relative to the largest element of a parameter's gradient, where that is above 1.
BOUND = 1e-10


def torch_grads(params, cfg, tokens, dlogits):
    """The gradients of the torch model, named and laid out as the parameters of ours."""
    model = torch_model(params, cfg)
    model(torch.tensor(tokens)).backward(torch.tensor(dlogits))
    given = {name: value.grad.numpy() for name, value in model.named_parameters()}
    return {
        "embed": given["embed.weight"],
        "final_norm": given["final_norm.weight"],
        "lm_head": None if params["lm_head"] is None else given["lm_head.weight"].T,
        "layers": [
            {name: given[f"layers.{index}.{name}.weight"].T for name in layer}
            for index, layer in enumerate(params["layers"])
        ],
    }


def case(cfg, seed, tied, batch=2, length=9):
    rng = np.random.default_rng(seed)
    tokens = rng.integers(0, cfg.vocab, size=(batch, length))
    return (
        init_params(cfg, seed, tied=tied),
        cfg,
        tokens,
        rng.standard_normal((batch, length, cfg.vocab)),
    )


def named(grads, prefix=""):
    for name, value in grads.items():
        if name == "layers":
            for index, layer in enumerate(value):
                yield from named(layer, f"layers[{index}].")
        else:
            yield prefix + name, value


def assert_equal(ours, expected):
    ours, expected = dict(named(ours)), dict(named(expected))
    assert ours.keys() == expected.keys()
    for name, reference in expected.items():
        mine = ours[name]
        if reference is None:
            assert mine is None, name
            continue
        assert mine.shape == reference.shape and mine.dtype == np.float64, name
        scale = max(1, np.max(np.abs(reference)))
        assert np.max(np.abs(mine - reference)) < BOUND * scale, name


@pytest.mark.parametrize("tied", [False, True])
def test_tiny(tied):
    arguments = case(TINY, 1, tied)
    expected = torch_grads(*arguments)
    # None is so small that its absence would not show.
    assert all(value is None or np.std(value) > 1e-2 for _, value in named(expected))
    assert_equal(backward(*arguments), expected)


@given(
    groups=st.sampled_from([1, 2, 3]),
    repeats=st.sampled_from([1, 2, 5]),
    half=st.integers(1, 4),
    d_model=st.integers(2, 40),
    d_ff=st.integers(1, 40),
    n_layers=st.integers(1, 3),
    length=st.integers(1, 12),
    eps=st.sampled_from([1e-5, 1e-2]),
    seed=st.integers(0, 2**31),
)
@settings(max_examples=30, deadline=None)
def test_any_shape(groups, repeats, half, d_model, d_ff, n_layers, length, eps, seed):
    cfg = Config(
        n_layers=n_layers,
        d_model=d_model,
        n_heads=groups * repeats,
        n_kv_heads=groups,
        d_head=2 * half,
        d_ff=d_ff,
        vocab=17,
        max_seq=12,
        norm_eps=eps,
    )
    arguments = case(cfg, seed, seed % 2 == 0, length=length)
    assert_equal(backward(*arguments), torch_grads(*arguments))


def test_it_is_the_slope_of_the_forward():
    """Along the gradient itself, a short step changes the loss by its square."""
    params, cfg, tokens, dlogits = case(TINY, 3, False)
    grads = backward(params, cfg, tokens, dlogits)

    def loss_after(step):
        moved = {name: params[name] + step * grads[name] for name in params if name != "layers"}
        moved["layers"] = [
            {name: layer[name] + step * of[name] for name in layer}
            for layer, of in zip(params["layers"], grads["layers"], strict=True)
        ]
        return np.sum(dlogits * forward(moved, cfg, tokens))

    square = sum(np.sum(value * value) for _, value in named(grads))
    step = 1e-7
    slope = (loss_after(step) - loss_after(-step)) / (2 * step)
    assert slope == pytest.approx(square, rel=1e-6)


def test_a_token_that_does_not_occur_has_no_gradient():
    params, cfg, tokens, dlogits = case(TINY, 4, False)
    dembed = backward(params, cfg, tokens, dlogits)["embed"]
    occurs = np.isin(np.arange(cfg.vocab), tokens)
    assert (dembed[~occurs] == 0).all()
    assert (dembed[occurs] != 0).all()


def test_no_token_has_no_gradient():
    params, cfg, tokens, dlogits = case(TINY, 6, True)
    grads = backward(params, cfg, tokens[:, :0], dlogits[:, :0])
    assert all(value is None or (value == 0).all() for _, value in named(grads))


@pytest.mark.parametrize(
    ("dlogits", "message"),
    [
        (np.zeros((2, 9)), r"dlogits has shape \(2, 9\); that of the logits is \(2, 9, 104\)"),
        (
            np.zeros((2, 9, 104), np.float32),
            "dlogits is numpy float32, the parameters are numpy float64",
        ),
        (
            torch.zeros(2, 9, 104, dtype=torch.float64),
            "dlogits is torch.float64 on cpu, the parameters are numpy float64",
        ),
    ],
)
def test_what_does_not_fit_is_refused(dlogits, message):
    params, cfg, tokens, _ = case(TINY, 5, False)
    with pytest.raises(ValueError, match=message):
        backward(params, cfg, tokens, dlogits)
