"""Tiles that several programs of a chunk have in common, held once.

All programs of a row of output tiles load the same tile of the left matrix, those of a column the
same one of the right matrix. Such a load is held as its distinct tiles and, for each program, which
of them it has: it is read, cast and rounded once, and a product can take it as it is. Whatever does
not know this kind of value sees each program's own lanes (`values.dense`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import torch

Tensor = torch.Tensor


@dataclass(frozen=True, eq=False)
class Sharing:
    """Which of `count` distinct tiles each program has: `index`, int64 (P,)."""

    count: int
    index: Tensor

    @cached_property
    def repeat(self) -> int | None:
        """r if the first r programs have tile 0, the next r tile 1, and so on; else None."""
        programs = self.index.shape[0]
        if programs % self.count:
            return None
        expected = torch.arange(self.count).repeat_interleave(programs // self.count)
        return programs // self.count if torch.equal(expected, self.index) else None


@lru_cache(maxsize=256)
def _sharing(count: int, index: bytes) -> Sharing:
    """One object for all tiles that programs share alike: they meet again in every iteration."""
    return Sharing(count, torch.from_numpy(np.frombuffer(index, dtype=np.int64).copy()))


def sharing(count: int, index: np.ndarray) -> Sharing:
    """The `Sharing` of an index, int64 (P,)."""
    return _sharing(count, index.tobytes())


@lru_cache(maxsize=256)
def crossed(rows: Sharing, columns: Sharing) -> Sharing | None:
    """How programs share the products of every row tile with every column tile.

    Tile `column · rows.count + row` is that of a program with these two; None unless each product
    belongs to one program.
    """
    index = (columns.index * rows.count + rows.index).numpy()
    count = rows.count * columns.count
    if index.shape[0] != count or len(np.unique(index)) != count:
        return None
    return sharing(count, index)


@dataclass(frozen=True)
class Shared:
    """Distinct tiles (count, *tile) and who has which.

    owned: made by a product that adds to them in place; nobody else may hold them.
    """

    tiles: Tensor
    sharing: Sharing
    owned: bool = False

    @property
    def programs(self) -> int:
        """How many programs share them."""
        return self.sharing.index.shape[0]

    @cached_property
    def dense(self) -> Tensor:
        """Each program's own lanes, (P, *tile)."""
        if self.sharing.repeat == 1:
            return self.tiles
        return self.tiles.index_select(0, self.sharing.index)

    def of(self, tiles: Tensor) -> Shared:
        """Other tiles, shared alike."""
        return Shared(tiles, self.sharing)

    def transpose(self, order: tuple[int, ...]) -> Shared:
        """Axis i of the result's tiles is axis order[i]."""
        return self.of(self.tiles.permute(0, *(axis + 1 for axis in order)))

    def narrow(self, index: Tensor) -> Shared:
        """The tiles of the programs at the positions `index`."""
        return Shared(self.tiles, sharing(self.sharing.count, self.sharing.index[index].numpy()))
