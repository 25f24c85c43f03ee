"""Runs a launch with checks: the observers of one run, and the runs after it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from mini_triton import checks as names
from mini_triton.execute.machine import Machine
from mini_triton.execute.memory.observe import Access, Observer
from mini_triton.execute.prepare import prepare
from mini_triton.finding import Finding
from mini_triton.launch import Launch
from mini_triton.sanitize.masked import Undefined, can_be_undefined, masked
from mini_triton.sanitize.order import can_matter, depends_on_order
from mini_triton.sanitize.races import Races
from mini_triton.sanitize.read_only import ReadOnly
from mini_triton.sanitize.rerun import Guard, Rerun
from mini_triton.sanitize.shadow import Shadow, Touched, touched
from mini_triton.sanitize.unwritten import Unwritten


class _Watch:
    """An observer that finds out once, for all checks, which memory an access touches."""

    def __init__(self, watching: list[Any]) -> None:
        self._watching = watching
        self._shadow: Shadow | None = None

    def access(self, access: Access) -> None:
        """Tells the checks that want to know."""
        shadow = self._shadow
        if shadow is None:
            shadow = self._shadow = Shadow(access.frame.machine.buffers)
            for check in self._watching:
                check.begin(shadow)
        now: Touched | None = None
        for check in self._watching:
            if check.wants(access):
                now = now or touched(access, shadow)
                check.access(access, now)

    def finish(self) -> list[Finding]:
        """What the checks have found."""
        found = []
        for check in self._watching:
            if self._shadow is not None:
                check.finish(self._shadow)
            found += check.findings.values()
        return found


def run(
    launch: Launch,
    show: Callable[[str], None],
    checks: Collection[str],
    others: Sequence[Observer] = (),
) -> tuple[Machine, list[Finding]]:
    """Executes a launch.

    Args:
        launch: the launch.
        show: takes what its programs print.
        checks: which are on, see `checks`.
        others: observers of the first run beside those of the checks.

    Returns:
        The machine that has run it, and what was found.

    Raises:
        KernelError: the launch does; no memory was changed.
    """
    watching: list[Any] = []
    if names.READ_ONLY in checks and launch.read_only:
        watching.append(ReadOnly(launch.read_only))
    if names.RACES in checks:
        watching.append(Races())
    if names.UNWRITTEN in checks and launch.unwritten:
        watching.append(Unwritten(launch.unwritten))
    elif names.UNWRITTEN not in checks:
        launch.unwritten.clear()
    order = masks = False
    if names.ORDER in checks or names.MASKED in checks:
        program = prepare(launch.ttir, launch.kernel).program
        order = names.ORDER in checks and can_matter(program, names.RACES in checks)
        masks = names.MASKED in checks and can_be_undefined(program)
    again = order or masks
    watch, guard, undefined = _Watch(watching), Guard(), Undefined()
    observers = [*others, *([watch] if watching else []), *([guard] if again else [])]
    machine = Machine(
        launch, show=show, observers=observers, undefined=undefined if again else None
    )
    before = [buffer.flat.clone() for buffer in machine.written] if again else []
    machine.run()
    found = watch.finish()
    masks = masks and bool(undefined.ops)
    if order or masks:
        rerun = Rerun(launch, machine, before, guard)
        if masks:
            found += masked(rerun, undefined)
        if order:
            raced = frozenset(f.tensor for f in found if f.check == names.RACES)
            found += depends_on_order(rerun, raced)
    return machine, found
