"""Values of masked-off lanes that reach a store.

A load without `other` leaves the lanes that its mask keeps off undefined: on a GPU they hold what
the register held before. The simulator gives them 0, with which many a wrong kernel is right. So a
launch in which there are such lanes runs again with other numbers in them, and no result may
change. Which load it was is found by giving the numbers to one load at a time.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from mini_triton.checks import MASKED
from mini_triton.errors import KernelError
from mini_triton.execute.memory.active import zero
from mini_triton.finding import Finding, Place, Verb, times
from mini_triton.ir.program import Op, Program
from mini_triton.sanitize.clocks import ATOMICS
from mini_triton.sanitize.races import named
from mini_triton.sanitize.rerun import Endless, Rerun, Writers
from mini_triton.sanitize.shadow import index_of

#: What undefined lanes hold instead of 0. NaN goes through sums and products; a maximum ignores it,
#: but neither a large number nor a maximum of negative ones a small one. Odd, small enough for loop
#: bounds, and within 16 bits.
_FLOATS = (float("nan"), 28_673.0, -28_673.0)
_INTEGERS = (4_099, -4_099, 8_191)
#: Of so many loads the one that matters is looked for.
_MOST_LOADS = 32


def can_be_undefined(program: Program) -> bool:
    """Whether a kernel has operations that may leave lanes undefined."""
    return any(
        (op.name in ("tt.load", "tt.atomic_load") and len(op.operands) == 2)
        or (op.name == "tt.atomic_rmw" and op.used and len(op.operands) > 2)
        for op in program.walk()
    )


class Undefined:
    """Fills undefined lanes, and keeps which operations have any: `Machine`'s `undefined`.

    Args:
        fill: the number of the filling, None for 0.
        only: the operation whose lanes are filled; None for all.
    """

    def __init__(self, fill: int | None = None, only: Op | None = None) -> None:
        self.ops: dict[int, Op] = {}
        self._fill, self._only = fill, only

    def __call__(self, op: Op) -> torch.Tensor:
        """What the lanes of an operation hold."""
        self.ops.setdefault(id(op), op)
        if self._fill is None or (self._only is not None and self._only is not op):
            return zero(op)
        return _filled(op, self._fill)


def _filled(op: Op, fill: int) -> torch.Tensor:
    dtype = zero(op).dtype
    shape = zero(op).shape
    if dtype is torch.bool:
        return torch.ones(shape, dtype=dtype)
    if dtype.is_floating_point:
        wide = torch.tensor(_FLOATS[fill])
        if dtype.itemsize == 1:
            wide = wide.clamp(-56, 56)
        return wide.to(dtype).expand(shape).clone()
    info = torch.iinfo(dtype)
    return torch.full(shape, max(info.min + 2, min(_INTEGERS[fill], info.max - 2)), dtype=dtype)


def masked(rerun: Rerun, undefined: Undefined) -> Iterator[Finding]:
    """Findings of a launch; at most one a tensor, or one for a run that fails.

    Args:
        rerun: the launch.
        undefined: which operations had undefined lanes in the first run.
    """
    if not undefined.ops:
        return
    for fill in range(len(_FLOATS)):
        found = list(_with(rerun, undefined, fill))
        if found:
            yield from found
            return


def _with(rerun: Rerun, undefined: Undefined, fill: int) -> Iterator[Finding]:
    writers = Writers()
    try:
        with rerun.run((), undefined=Undefined(fill)):
            changed = [difference.buffer.position for difference in rerun.differences()]
    except KernelError as error:
        yield _failed(rerun, _culprit(rerun, undefined, fill, None), error)
        return
    for position in changed:
        op = _culprit(rerun, undefined, fill, position)
        with rerun.run((writers,), undefined=Undefined(fill, op)):
            for difference in rerun.differences():
                if difference.buffer.position != position:
                    continue
                store, program = writers.of(difference)
                index = index_of(difference.buffer, difference.offset)
                what = named(difference.buffer, index)
                yield _reached(rerun, op, store, program, what, index, difference.count)


def _culprit(rerun: Rerun, undefined: Undefined, fill: int, position: int | None) -> Op | None:
    """The operation whose lanes alone change a tensor (or make the run fail); None: several."""
    for op in list(undefined.ops.values())[:_MOST_LOADS]:
        try:
            with rerun.run((), undefined=Undefined(fill, op)):
                if any(d.buffer.position == position for d in rerun.differences()):
                    return op
        except KernelError:
            return op
    return None


_WHY = "a lane that is masked off holds whatever its register held before, not 0"


def _reached(
    rerun: Rerun,
    op: Op | None,
    store: Op | None,
    program: int,
    what: str,
    index: tuple[int, ...],
    count: int,
) -> Finding:
    who = rerun.machine.program_id(program)
    places = _places(op)
    if store is not None:
        verb: Verb = "atomic" if store.name in ATOMICS else "store"
        places += (Place.of(store.where, verb, f"program {who} stores {what}"),)
    return Finding(
        MASKED,
        f"{what} depends on lanes of a load that are masked off{times(count)}",
        rerun.machine.kernel,
        places,
        what.partition("[")[0],
        index,
        (who,),
        _WHY,
        _HINT,
    )


_HINT = (
    "give the load an `other` that leaves the result alone (0.0 in a sum, -inf in a maximum), "
    "or a block pointer a `padding_option`, discard these lanes with tl.where, or mask them off "
    "in the store, too"
)


def _failed(rerun: Rerun, op: Op | None, error: KernelError) -> Finding:
    what = "decides how often a loop runs" if isinstance(error, Endless) else f"leads to: {error}"
    return Finding(
        MASKED,
        f"what lanes hold that a load masks off {what}",
        rerun.machine.kernel,
        _places(op),
        why=_WHY,
        hint=_HINT,
    )


def _places(op: Op | None) -> tuple[Place, ...]:
    if op is None:
        return ()
    verb: Verb = "atomic" if op.name in ATOMICS else "load"
    return (Place.of(op.where, verb, "lanes that its mask keeps off are undefined"),)
