"""A model's parameters: a dictionary of arrays, matrices stored (in, out).

embed                       (vocab, d)
layers: a list, for each layer
    attn_norm, mlp_norm     (d,)
    wq                      (d, H·d_head)       columns of head h: h·d_head … (h+1)·d_head − 1
    wk, wv                  (d, G·d_head)       likewise
    wo                      (H·d_head, d)
    w_gate, w_up            (d, f)
    w_down                  (f, d)
final_norm                  (d,)
lm_head                     (d, vocab), or None: tied, the head is then embed.T

Numpy arrays are float64, so that a wrong cut shows as a difference that no rounding explains. Torch
tensors may be of any floating dtype, one for all, and on any device, one for all: what is tried on
GPUs is tried in the precision, and at the speed, that is used there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from array_api_compat import is_torch_array

from transformer_lab.arrays import alike, kind
from transformer_lab.config import Config

Params = dict[str, Any]


def init_params(cfg: Config, seed: int = 0, *, tied: bool = False) -> Params:
    """Random parameters, numpy arrays of float64.

    A matrix's elements have variance 1/(rows), so that a product is as large as its input. Norms'
    weights are about 1 but not equal: a norm that is left out, or taken for another, shows.

    Args:
        cfg: sizes.
        seed: the same seed gives the same numbers, whether tied or not.
        tied: `lm_head` is None, and the embedding serves as the head.
    """
    rng = np.random.default_rng(seed)

    def draw(name: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
        numbers = rng.standard_normal(shape)
        if len(shape) == 1:
            return 1 + 0.1 * numbers
        # A row of the embedding is looked up, not summed over; as a head it is.
        return numbers / np.sqrt(cfg.d_model if name == "embed" else shape[0])

    shapes = _model_shapes(cfg)
    params: Params = {name: draw(name, shape) for name, shape in shapes.items()}
    params["layers"] = [
        {name: draw(name, shape) for name, shape in _layer_shapes(cfg).items()}
        for _ in range(cfg.n_layers)
    ]
    if tied:
        params["lm_head"] = None
    return params


def check_params(params: Mapping[str, Any], cfg: Config) -> None:
    """Looks whether these are parameters of such a model.

    Raises:
        ValueError: one is missing, is too many, or has another shape, dtype or device; it is named.
    """
    shapes = _model_shapes(cfg)
    layers = params.get("layers", [])
    if "lm_head" not in params:
        raise ValueError("lm_head is missing; where it is tied, it is None")
    if params["lm_head"] is None:
        del shapes["lm_head"]
    embed = params.get("embed")
    _check(params, shapes, "", embed, others=("layers", "lm_head"))
    if len(layers) != cfg.n_layers:
        raise ValueError(f"there are {len(layers)} layers; n_layers is {cfg.n_layers}")
    for index, layer in enumerate(layers):
        _check(layer, _layer_shapes(cfg), f"layers[{index}].", embed)


def _check(
    given: Mapping[str, Any],
    shapes: Mapping[str, tuple[int, ...]],
    prefix: str,
    embed: Any,
    others: tuple[str, ...] = (),
) -> None:
    for name in _strangers(given, (*shapes, *others)):
        raise ValueError(f"{prefix}{name} is no parameter of this model")
    for name, shape in shapes.items():
        if name not in given:
            raise ValueError(f"{prefix}{name} is missing")
        value = given[name]
        if not (isinstance(value, np.ndarray) or is_torch_array(value)):
            raise ValueError(
                f"{prefix}{name} is a {type(value).__name__}; give a numpy array or a torch tensor"
            )
        if value.shape != shape:
            raise ValueError(
                f"{prefix}{name} has shape {tuple(value.shape)}; this model needs {shape}"
            )
        if isinstance(value, np.ndarray):
            if value.dtype != np.float64:
                raise ValueError(f"{prefix}{name} is of {value.dtype}; it needs float64")
        elif not value.dtype.is_floating_point:
            raise ValueError(f"{prefix}{name} is of {value.dtype}; it needs a floating dtype")
        if not alike(value, embed):
            raise ValueError(
                f"{prefix}{name} is {kind(value)}, embed {kind(embed)}; "
                "all parameters need one library, one dtype and one device"
            )


def _strangers(given: Mapping[str, Any], known: tuple[str, ...]) -> Iterator[str]:
    return (name for name in given if name not in known)


def _model_shapes(cfg: Config) -> dict[str, tuple[int, ...]]:
    return {
        "embed": (cfg.vocab, cfg.d_model),
        "final_norm": (cfg.d_model,),
        "lm_head": (cfg.d_model, cfg.vocab),
    }


def _layer_shapes(cfg: Config) -> dict[str, tuple[int, ...]]:
    d, f = cfg.d_model, cfg.d_ff
    q, kv = cfg.n_heads * cfg.d_head, cfg.n_kv_heads * cfg.d_head
    return {
        "attn_norm": (d,),
        "wq": (d, q),
        "wk": (d, kv),
        "wv": (d, kv),
        "wo": (q, d),
        "mlp_norm": (d,),
        "w_gate": (d, f),
        "w_up": (d, f),
        "w_down": (f, d),
    }
