"""Which layout Triton would choose for an access, from its offsets: where nothing was compiled.

Triton lets the axis along which addresses are contiguous run fastest over registers and lanes, and
gives a thread as many neighbouring elements as fit in 16 bytes, are surely aligned and leave work
for all threads. Here contiguity and alignment are those that the offsets have, not those that the
compiler could prove. Source: lib/Dialect/TritonGPU/Transforms/Coalesce.cpp, and BlockedEncodingAttr
in include/triton/Dialect/TritonGPU/IR/TritonGPUAttrDefs.td.
"""

from __future__ import annotations

import math

import numpy as np

from mini_triton.hardware.compiled_ops import Instruction
from mini_triton.hardware.gpu import WARP
from mini_triton.hardware.layouts import Layout, blocked, scalar

#: Bytes of the widest access of a thread.
_WIDEST = 16


def modelled(
    kind: str, addresses: np.ndarray, shape: tuple[int, ...], item: int, num_warps: int
) -> Instruction:
    """The instruction for a tile of one program.

    Args:
        kind: one of `compiled_ops.KINDS`.
        addresses: of the elements, bytes, in row-major order of the tile.
        shape: of the tile.
        item: bytes of an element.
        num_warps: of the program.
    """
    if not shape:
        return Instruction(kind, scalar(num_warps), item, exact=False)
    tile = addresses.reshape(shape)
    order = sorted(range(len(shape)), key=lambda axis: (_step(tile, axis, item), -axis))
    fastest = order[0]
    run = _run(tile, fastest, item)
    share = max(1, math.prod(shape) // (num_warps * WARP))
    per_thread = _power_of_two(min(run, _WIDEST // item or 1, share))
    return Instruction(
        kind,
        _chosen(shape, fastest, tuple(order), per_thread, num_warps),
        per_thread * item,
        exact=False,
    )


def _step(tile: np.ndarray, axis: int, item: int) -> float:
    """Distance of neighbours along an axis; those that do not differ, or jump, come last."""
    if tile.shape[axis] == 1:
        return math.inf
    first = np.moveaxis(tile, axis, 0).reshape(tile.shape[axis], -1)[:, 0]
    step = abs(int(first[1] - first[0]))
    return step if step >= item else math.inf


def _run(tile: np.ndarray, axis: int, item: int) -> int:
    """Elements that are contiguous along the axis and aligned to that many, in all of the tile."""
    lines = np.moveaxis(tile, axis, -1).reshape(-1, tile.shape[axis])
    run = 1
    while run < lines.shape[1]:
        twice = 2 * run
        blocks = lines[:, : lines.shape[1] // twice * twice].reshape(len(lines), -1, twice)
        steps = blocks - blocks[..., :1]
        if (steps != np.arange(twice) * item).any() or (blocks[..., 0] % (twice * item)).any():
            break
        run = twice
    return run


def _chosen(
    shape: tuple[int, ...], fastest: int, order: tuple[int, ...], per_thread: int, num_warps: int
) -> Layout:
    """Threads fill the fastest axis first, warps what is left."""
    rank = len(shape)
    sizes = [1] * rank
    sizes[fastest] = per_thread
    threads, warps = [1] * rank, [1] * rank
    lanes_left, warps_left = WARP, num_warps
    for axis in order[:-1]:
        threads[axis] = min(lanes_left, max(1, shape[axis] // sizes[axis]))
        lanes_left //= threads[axis]
        warps[axis] = min(warps_left, max(1, shape[axis] // (sizes[axis] * threads[axis])))
        warps_left //= warps[axis]
    threads[order[-1]], warps[order[-1]] = lanes_left, warps_left
    return blocked(shape, tuple(sizes), tuple(threads), tuple(warps), order)


def _power_of_two(n: int) -> int:
    return 1 << (max(n, 1).bit_length() - 1)
