"""Memory of tiles stays with the process from one operation to the next.

A launch allocates and frees a tile of megabytes in nearly every operation. glibc gives blocks of
that size back to the system at once, which then has to fill each of their pages with zeros before
the next operation may write to it: of a kernel that streams, that was two thirds of the time.
"""

from __future__ import annotations

from functools import cache

import torch

#: Just below the largest block that glibc adapts to (`DEFAULT_MMAP_THRESHOLD_MAX`).
_BLOCK = (32 << 20) - (64 << 10)


@cache
def keep_pages() -> None:
    """Shows the allocator, once, that blocks of up to 32 MiB come and go.

    From then on glibc takes such blocks from its heap and lets up to 64 MiB stay free at its end
    (mallopt(3), "dynamic mmap threshold"). It does so in every program that once frees a tensor of
    that size; one that has set thresholds of its own keeps them. No page of the block is touched.
    """
    torch.empty(_BLOCK, dtype=torch.uint8)
