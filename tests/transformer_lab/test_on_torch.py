"""Torch tensors in, torch tensors out: of the same dtype, on the same device.

BYTEWISE_TEST_DEVICE=cuda puts them on a GPU.
"""

import os

import numpy as np
import pytest
import torch
from transformer_lab import (
    TINY,
    KVCache,
    apply_rope,
    apply_rope_backward,
    attention_core,
    attention_core_backward,
    backward,
    check_params,
    forward,
    init_params,
    rms_norm,
    rms_norm_backward,
    rope_angles,
    silu,
    silu_backward,
)

DTYPES = {torch.float64: 1e-13, torch.float32: 1e-5, torch.float16: 2e-2, torch.bfloat16: 2e-1}
every_dtype = pytest.mark.parametrize(("dtype", "bound"), DTYPES.items(), ids=str)

TOKENS = np.random.default_rng(0).integers(0, TINY.vocab, size=(2, 7))
ANGLES = rope_angles(np.arange(3), 6, 1e4)


DEVICE = os.environ.get("BYTEWISE_TEST_DEVICE", "cpu")


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def converted(params, dtype=torch.float64, device=DEVICE):
    """Parameters, or lists of arrays, as torch tensors."""
    match params:
        case None:
            return None
        case dict():
            return {name: converted(value, dtype, device) for name, value in params.items()}
        case list() | tuple():
            return [converted(value, dtype, device) for value in params]
    return torch.tensor(params, dtype=dtype, device=device)


def flat(result):
    """All arrays of what a function returned, in order."""
    match result:
        case None:
            return []
        case dict():
            return flat([result[name] for name in sorted(result)])
        case list() | tuple():
            return [array for part in result for array in flat(part)]
    return [result]


def assert_close(tensor, expected, bound):
    """Within `bound` of the largest element, where that is above 1."""
    error = np.abs(tensor.detach().double().cpu().numpy() - expected)
    assert np.max(error) < bound * max(1, np.max(np.abs(expected)))


HEADS = [numbers(2, 3, 4, 6), numbers(2, 3, 2, 6, seed=1), numbers(2, 3, 2, 6, seed=2)]
DLOGITS = numbers(2, 7, TINY.vocab, seed=5)

CALLS = {
    "rms_norm": (rms_norm, [numbers(2, 3, 5), numbers(5)], [1e-5]),
    "silu": (silu, [numbers(2, 3, 5)], []),
    "apply_rope": (lambda x: apply_rope(x, *ANGLES), HEADS[:1], []),
    "attention_core": (attention_core, HEADS, [0]),
    "rms_norm_backward": (
        rms_norm_backward,
        [numbers(2, 3, 5, seed=4), numbers(2, 3, 5), numbers(5)],
        [1e-5],
    ),
    "silu_backward": (silu_backward, [numbers(2, 3, 5), numbers(2, 3, 5, seed=1)], []),
    "apply_rope_backward": (lambda dy: apply_rope_backward(dy, *ANGLES), HEADS[:1], []),
    "attention_core_backward": (attention_core_backward, [numbers(2, 3, 24, seed=3), *HEADS], [0]),
    "forward": (lambda params: forward(params, TINY, TOKENS), [init_params(TINY)], []),
    "backward": (
        lambda params, dlogits: backward(params, TINY, TOKENS, dlogits),
        [init_params(TINY), DLOGITS],
        [],
    ),
}
every_call = pytest.mark.parametrize("name", CALLS)


@every_dtype
@every_call
def test_it_is_what_numpy_gives_in_the_dtype_of_the_tensors(name, dtype, bound):
    function, arrays, rest = CALLS[name]
    ours = flat(function(*converted(arrays, dtype=dtype), *rest))
    expected = flat(function(*arrays, *rest))
    assert len(ours) == len(expected)
    for mine, reference in zip(ours, expected, strict=True):
        assert mine.dtype == dtype
        assert mine.shape == reference.shape
        assert_close(mine, reference, bound)


@every_call
def test_it_stays_on_the_device_of_the_tensors(name):
    """`meta` is a device like any other, but that it computes shapes alone."""
    function, arrays, rest = CALLS[name]
    results = flat(function(*converted(arrays, device="meta"), *rest))
    assert {result.device.type for result in results} == {"meta"}


@every_dtype
def test_a_cache_holds_what_it_is_made_like(dtype, bound):
    params = converted(init_params(TINY, seed=1), dtype=dtype)
    cache = KVCache(TINY, batch=2, like=params["embed"])
    assert cache.nbytes == 2 * TINY.n_layers * 2 * TINY.max_seq * 4 * TINY.d_head * dtype.itemsize
    tokens = torch.tensor(TOKENS)
    logits = [forward(params, TINY, tokens[:, a:b], cache) for a, b in ((0, 4), (4, 5), (5, 7))]
    assert cache.length == 7
    K, V = cache.read(1, 7)
    assert K.dtype == V.dtype == dtype
    expected = forward(init_params(TINY, seed=1), TINY, TOKENS)
    assert_close(torch.cat(logits, dim=1), expected, bound)


# The backward's first product on a GPU, in a thread of torch's own.
@pytest.mark.filterwarnings("ignore:Attempting to run cuBLAS, but there was no current")
def test_autograd_runs_through_the_forward_as_backward_does():
    params = init_params(TINY, seed=2)
    leaves = converted(params)
    for leaf in flat(leaves):
        leaf.requires_grad_()
    forward(leaves, TINY, TOKENS).backward(converted(DLOGITS))
    ours = flat(backward(params, TINY, TOKENS, DLOGITS))
    for leaf, mine in zip(flat(leaves), ours, strict=True):
        assert_close(leaf.grad, mine, 1e-10)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (
            lambda p: p.update(final_norm=np.ones(64)),
            "final_norm is numpy float64, embed torch.float32 on cpu; all parameters need one",
        ),
        (
            lambda p: p["layers"][1].update(wq=p["layers"][1]["wq"].double()),
            r"layers\[1\]\.wq is torch.float64 on cpu, embed torch.float32 on cpu",
        ),
        (
            lambda p: p["layers"][0].update(wo=p["layers"][0]["wo"].to("meta")),
            r"layers\[0\]\.wo is torch.float32 on meta, embed torch.float32 on cpu",
        ),
        (lambda p: p.update(embed=p["embed"].int()), "embed is of torch.int32; .* floating dtype"),
        (
            lambda p: p.update(embed=p["embed"].T),
            r"embed has shape \(64, 104\); this model needs \(104, 64\)",
        ),
    ],
)
def test_parameters_of_more_than_one_kind_are_refused(spoil, message):
    params = converted(init_params(TINY), torch.float32, "cpu")
    check_params(params, TINY)
    spoil(params)
    with pytest.raises(ValueError, match=message):
        check_params(params, TINY)


@pytest.mark.parametrize(
    ("cache", "message"),
    [
        (KVCache(TINY, 2), "k is torch.float32 on cpu, this cache numpy float64; KVCache.*like="),
        (
            KVCache(TINY, 2, like=torch.zeros(1, dtype=torch.float64)),
            "k is torch.float32 on cpu, this cache torch.float64 on cpu",
        ),
    ],
    ids=["numpy", "float64"],
)
def test_a_cache_of_another_kind_is_refused(cache, message):
    params = converted(init_params(TINY), torch.float32, "cpu")
    with pytest.raises(ValueError, match=message):
        forward(params, TINY, TOKENS, cache)


def test_arrays_of_two_libraries_are_not_mixed():
    with pytest.raises(TypeError, match="Multiple namespaces"):
        rms_norm(torch.ones(2, 3), np.ones(3), 1e-5)


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (torch.tensor([[0.5]]), "tokens is of float32; give whole numbers"),
        (torch.tensor([[0, 104]]), r"tokens\[0, 1\] is 104"),
    ],
)
def test_tokens_that_cannot_be_looked_up_are_named(tokens, message):
    with pytest.raises(ValueError, match=message):
        forward(converted(init_params(TINY)), TINY, tokens)


def test_tokens_of_any_integer_dtype_are_looked_up():
    """torch takes indices of uint8 for a mask."""
    params = converted(init_params(TINY))
    expected = forward(params, TINY, TOKENS)
    for tokens in (TOKENS.astype(np.uint8), torch.tensor(TOKENS, dtype=torch.int32)):
        assert torch.equal(forward(params, TINY, tokens), expected)
