"""Keys and values of positions that were computed before."""

from __future__ import annotations

import numpy as np
from array_api_compat import device

from transformer_lab.arrays import Array, alike, kind, namespace
from transformer_lab.config import Config, check_count


class KVCache:
    """K (rotated) and V of all layers, for up to `max_len` positions.

    A step of the forward writes its K and V in every layer behind the `length` positions that are
    there, and adds to `length` when all layers are through:

        cache.write(layer, k, v)                        # T new positions; length stays
        K, V = cache.read(layer, cache.length + T)      # these and all before
        …
        cache.length += T

    Set `length` back to take tokens back.

    Args:
        cfg: sizes; n_layers, n_kv_heads and d_head count.
        batch: sequences.
        max_len: positions; None is the config's max_seq.
        like: an array; K and V will be of its library and dtype, and on its device. None is numpy's
            float64.

    Attributes:
        length: positions that all layers hold.
        max_len: positions for which there is room.

    Raises:
        ValueError: a size is below 1.
    """

    def __init__(
        self, cfg: Config, batch: int, max_len: int | None = None, like: Array | None = None
    ) -> None:
        self.max_len = cfg.max_seq if max_len is None else max_len
        check_count(batch, "batch")
        check_count(self.max_len, "max_len")
        self.length = 0
        shape = (cfg.n_layers, batch, self.max_len, cfg.n_kv_heads, cfg.d_head)
        like = np.zeros(()) if like is None else like
        xp = namespace(like)
        self._k: Array = xp.zeros(shape, dtype=like.dtype, device=device(like))
        self._v: Array = xp.zeros(shape, dtype=like.dtype, device=device(like))
        self._written = [0] * cfg.n_layers

    @property
    def nbytes(self) -> int:
        """Bytes of K and V, those of free positions included."""
        return int(self._k.nbytes) + int(self._v.nbytes)

    def write(self, layer: int, k: Array, v: Array) -> None:
        """Stores T new positions behind the first `length`; `length` stays as it is.

        Args:
            layer: its number, from 0.
            k, v: (B, T, G, d_head) each.

        Raises:
            ValueError: no such layer, shapes do not fit, there is no room, or the cache holds
                arrays of another library, dtype or device.
        """
        self._check_layer(layer)
        _, B, _, G, dh = self._k.shape
        T = k.shape[1] if k.ndim == 4 else 0
        if k.shape != (B, T, G, dh):
            raise ValueError(f"k has shape {tuple(k.shape)}; this cache needs ({B}, T, {G}, {dh})")
        if v.shape != k.shape:
            raise ValueError(
                f"v has shape {tuple(v.shape)}, k {tuple(k.shape)}; they must be equal"
            )
        for name, heads in (("k", k), ("v", v)):
            if not alike(heads, self._k):
                raise ValueError(
                    f"{name} is {kind(heads)}, this cache {kind(self._k)}; "
                    "KVCache(…, like=array) makes one that holds what `array` is"
                )
        end = self.length + T
        if end > self.max_len:
            raise ValueError(
                f"the cache has room for {self.max_len} positions; {self.length} are taken, and "
                f"{T} more do not fit"
            )
        self._k[layer, :, self.length : end] = k
        self._v[layer, :, self.length : end] = v
        self._written[layer] = end

    def read(self, layer: int, n: int) -> tuple[Array, Array]:
        """K and V of the first n positions.

        Args:
            layer: its number, from 0.
            n: positions, those written since the last change of `length` included.

        Returns:
            K, V: (B, n, G, d_head) each, views into the cache. They are not for writing; numpy
                arrays refuse it.

        Raises:
            ValueError: no such layer, or it holds fewer positions.
        """
        self._check_layer(layer)
        if n < 0:
            raise ValueError(f"n is {n}; it is 0 or more")
        if n > self._written[layer]:
            raise ValueError(
                f"layer {layer} holds {self._written[layer]} positions; "
                f"{n} {'is' if n == 1 else 'are'} asked for"
            )
        K, V = self._k[layer, :, :n], self._v[layer, :, :n]
        if isinstance(K, np.ndarray):
            K.flags.writeable = V.flags.writeable = False
        return K, V

    def _check_layer(self, layer: int) -> None:
        if not 0 <= layer < len(self._written):
            raise ValueError(f"there is no layer {layer}; there are {len(self._written)}, from 0")
