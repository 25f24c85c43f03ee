"""Results that depend on the order in which programs run.

Programs that share no element, except through atomic operations whose old value nobody takes and
which can be swapped (add, max, …), cannot tell in which order they run; races are for `races` to
find. Where a kernel takes old values, or exchanges some, the launch runs again with its programs
shuffled. Sums in floating-point may then round otherwise, so elements of kernels with atomics are
compared within the rounding of all that was written to them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import torch

from mini_triton.checks import ORDER
from mini_triton.errors import KernelError
from mini_triton.execute.memory.active import expand_all
from mini_triton.execute.memory.observe import Access
from mini_triton.execute.tiles.values import Buffer
from mini_triton.finding import Finding, Place, Verb, times
from mini_triton.ir.program import Program
from mini_triton.sanitize.clocks import ATOMICS
from mini_triton.sanitize.races import named
from mini_triton.sanitize.rerun import Difference, Endless, Rerun, Writers
from mini_triton.sanitize.shadow import Shadow, index_of, touched

#: Of the shuffled order: so that a finding is found again.
SEED = 349


def can_matter(program: Program, races: bool) -> bool:
    """Whether the order of programs can make a difference.

    Args:
        program: the kernel's.
        races: whether races are looked for anyway.
    """
    atomics = [op for op in program.walk() if op.name in ATOMICS]
    swapped = any(op.name == "tt.atomic_cas" or op.keywords[0] == "exch" for op in atomics)
    return not races or swapped or any(op.used for op in atomics)


def shuffled(programs: int) -> torch.Tensor:
    """All programs in an order that is not theirs, int64."""
    make = torch.Generator().manual_seed(SEED)
    order = torch.randperm(programs, generator=make)
    return order.flip(0) if bool((order[1:] > order[:-1]).all()) else order


class _Terms:
    """The sum of what was written to each element, in absolute value; an observer."""

    def __init__(self) -> None:
        self._shadow: Shadow | None = None

    def access(self, access: Access) -> None:
        """Adds what an access writes."""
        if access.kind == "load" or access.values is None:
            return
        self._shadow = self._shadow or Shadow(access.frame.machine.buffers)
        now = touched(access, self._shadow)
        full = expand_all(access.frame, access.values, access.shape)
        lanes = full.reshape(-1) if access.mask is None else full[access.mask]
        terms = np.repeat(lanes.double().abs().nan_to_num(0.0, 0.0).numpy(), now.units)
        np.add.at(now.region.table("terms", 0, np.float64), now.at, terms)
        np.add.at(now.region.table("count", 0), now.at, 1)

    def bound(self, buffer: Buffer, programs: int) -> torch.Tensor:
        """How far rounding may take each element of a buffer."""
        assert self._shadow is not None
        region = self._shadow.region(buffer)
        size = buffer.flat.element_size() // region.unit
        first = (buffer.address - region.start) // region.unit
        units = slice(first, first + buffer.flat.numel() * size, size)
        terms = torch.from_numpy(region.table("terms", 0, np.float64)[units].copy())
        count = torch.from_numpy(region.table("count", 0)[units].copy())
        unit = torch.finfo(buffer.flat.dtype).eps
        return unit * count.clamp(min=programs) * terms


def depends_on_order(rerun: Rerun, but: frozenset[str]) -> Iterator[Finding]:
    """Findings of a launch, at most one a tensor.

    Args:
        rerun: the launch.
        but: names of tensors that are not looked at, as races on them are known.
    """
    programs = math.prod(rerun.machine.grid)
    if programs < 2:
        return
    order = shuffled(programs)
    terms, writers = _Terms(), Writers()

    def same(buffer: Buffer, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        if not buffer.flat.dtype.is_floating_point:
            return torch.zeros(len(first), dtype=torch.bool)
        apart = (first.double() - second.double()).abs()
        return (apart <= terms.bound(buffer, programs)) | (first.isnan() & second.isnan())

    atomic = any(op.name in ATOMICS for op in rerun.machine.program.walk())
    try:
        with rerun.run((terms, writers), order=order):
            for difference in rerun.differences(same if atomic else None):
                if difference.buffer.name not in but:
                    yield _depends(rerun, difference, writers)
    except Endless:
        return  # programs wait for one that comes before them: the order is theirs to rely on
    except KernelError as error:
        yield Finding(
            ORDER,
            f"with its programs in another order the kernel fails: {error}",
            rerun.machine.kernel,
            why=_WHY,
            hint=_HINT,
        )


_WHY = "a GPU runs programs in any order, so the result may be another one at every run"
_HINT = (
    "let what a program stores, and where, depend on its program id only, not on the old values of "
    "atomics"
)


def _digits(value: object, dtype: torch.dtype) -> str:
    """The fewest digits that tell a value from others of its type."""
    narrow = dtype.is_floating_point and dtype.itemsize <= 4
    return str(np.float32(value)) if narrow else repr(value)  # type: ignore[arg-type]


def _depends(rerun: Rerun, difference: Difference, writers: Writers) -> Finding:
    op, program = writers.of(difference)
    index = index_of(difference.buffer, difference.offset)
    what, who = named(difference.buffer, index), rerun.machine.program_id(program)
    dtype = difference.buffer.flat.dtype
    first, second = _digits(difference.first, dtype), _digits(difference.second, dtype)
    places: tuple[Place, ...] = ()
    if op is not None:
        verb: Verb = "atomic" if op.name in ATOMICS else "store"
        places = (Place.of(op.where, verb, f"program {who} is the last to write {what}"),)
    return Finding(
        ORDER,
        f"{what} is {first}, but {second} if the programs run in another "
        f"order (shuffled, seed {SEED}){times(difference.count)}",
        rerun.machine.kernel,
        places,
        difference.buffer.name,
        index,
        (who,),
        _WHY,
        _HINT,
    )
