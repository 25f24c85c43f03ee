"""transformer_lab: a Llama-style transformer, to be cut into pieces.

    params = init_params(TINY, seed=0)
    logits = forward(params, TINY, tokens)          # tokens (B, T) → (B, T, vocab), float64

    cache = KVCache(TINY, batch=2)
    forward(params, TINY, tokens[:, :8], cache)     # prefill
    forward(params, TINY, tokens[:, 8:9], cache)    # and one token more, at the price of one

    grads = backward(params, TINY, tokens, dlogits) # a dictionary like params

What to try: the logits with a cache and without; `init_params(TINY, tied=True)`; how few of the
query heads share a KV head (`n_kv_heads`) until the cache is as large as for all of them.

It is small enough to be read: `model` is the forward, `ops` its parts, `params` the shapes,
`model_backward` and `backward` the gradients. With numpy all is float64, so that a wrong cut shows
as a difference that no rounding explains; torch tensors, on GPUs too, are taken as they are
(`arrays`).
"""

from transformer_lab.backward import (
    apply_rope_backward,
    attention_core_backward,
    rms_norm_backward,
    silu_backward,
)
from transformer_lab.cache import KVCache
from transformer_lab.config import TINY, Config
from transformer_lab.model import forward
from transformer_lab.model_backward import backward
from transformer_lab.ops import apply_rope, attention_core, rms_norm, rope_angles, silu
from transformer_lab.params import check_params, init_params

__all__ = [
    "TINY",
    "Config",
    "KVCache",
    "apply_rope",
    "apply_rope_backward",
    "attention_core",
    "attention_core_backward",
    "backward",
    "check_params",
    "forward",
    "init_params",
    "rms_norm",
    "rms_norm_backward",
    "rope_angles",
    "silu",
    "silu_backward",
]
