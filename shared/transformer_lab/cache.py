"""Keys and values of positions that were computed before."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformer_lab.config import Config, check_count

Array = NDArray[Any]


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

    Attributes:
        length: positions that all layers hold.
        max_len: positions for which there is room.

    Raises:
        ValueError: a size is below 1.
    """

    def __init__(self, cfg: Config, batch: int, max_len: int | None = None) -> None:
        self.max_len = cfg.max_seq if max_len is None else max_len
        check_count(batch, "batch")
        check_count(self.max_len, "max_len")
        self.length = 0
        shape = (cfg.n_layers, batch, self.max_len, cfg.n_kv_heads, cfg.d_head)
        self._k: Array = np.zeros(shape)
        self._v: Array = np.zeros(shape)
        self._written = [0] * cfg.n_layers

    @property
    def nbytes(self) -> int:
        """Bytes of K and V, those of free positions included."""
        return self._k.nbytes + self._v.nbytes

    def write(self, layer: int, k: Array, v: Array) -> None:
        """Stores T new positions behind the first `length`; `length` stays as it is.

        Args:
            layer: its number, from 0.
            k, v: (B, T, G, d_head) each.

        Raises:
            ValueError: no such layer, shapes do not fit, or there is no room.
        """
        self._check_layer(layer)
        _, B, _, G, dh = self._k.shape
        T = k.shape[1] if k.ndim == 4 else 0
        if k.shape != (B, T, G, dh):
            raise ValueError(f"k has shape {k.shape}; this cache needs ({B}, T, {G}, {dh})")
        if v.shape != k.shape:
            raise ValueError(f"v has shape {v.shape}, k {k.shape}; they must be equal")
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
            K, V: (B, n, G, d_head) each, views into the cache that cannot be written to.

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
        K.flags.writeable = V.flags.writeable = False
        return K, V

    def _check_layer(self, layer: int) -> None:
        if not 0 <= layer < len(self._written):
            raise ValueError(f"there is no layer {layer}; there are {len(self._written)}, from 0")
