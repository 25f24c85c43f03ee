"""A generated program: its source, its data, what it should give; run and compared on both sides.

How many programs each test draws is fixed, and so are the programs, unless BYTEWISE_HUNT is set to
a number of examples: then they are random, and each test draws that many.

    BYTEWISE_HUNT=5000 pytest --timeout 0 tests/mini_triton/differential

With BYTEWISE_TEST_DEVICE=cuda a GPU takes the simulator's place: that is how the references are
tested. Products and sums are not contracted there, and what depends on an order is left out.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mini_triton
import numpy as np
import torch
from hypothesis import HealthCheck, Phase, assume, note, settings

from tests.mini_triton.comparing import DEVICE
from tests.mini_triton.differential.dtypes import Array, Kind, from_torch, to_torch
from tests.mini_triton.differential.interpreter import Interpreter, loaded

HUNT = int(os.environ.get("BYTEWISE_HUNT", "0"))


def examples(count: int) -> Callable[[Any], Any]:
    """So many programs, always the same ones; in a hunt as many as it says, at random."""
    return settings(
        max_examples=HUNT or count,
        derandomize=not HUNT,
        deadline=None,
        database=None,
        phases=[Phase.generate] if DEVICE != "cpu" else [Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )


@dataclass
class Output:
    """A tensor that the program writes.

    right: what it holds afterwards. start: what it holds before. tolerance: relative, 0 for equal
    bits (but of −0 and of NaNs).
    """

    kind: Kind
    right: Array
    start: Array
    tolerance: float = 0.0


@dataclass
class Program:
    """Source with a function `kernel(*inputs, *outputs)`.

    loaded, stored: elements that the launch should count, or None. interpretable: Triton's own
    interpreter is right about it. any_order: no result depends on which program or lane is first.
    """

    source: str
    grid: tuple[int, ...]
    inputs: list[tuple[Kind, Array]]
    outputs: list[Output]
    interpretable: bool = True
    any_order: bool = True
    loaded: int | None = None
    stored: int | None = None
    scalars: list[int] = field(default_factory=list)

    def arguments(self) -> list[Any]:
        """Fresh tensors."""
        tensors = [to_torch(values.copy(), kind) for kind, values in self.inputs]
        tensors += [to_torch(output.start.copy(), output.kind) for output in self.outputs]
        return [*tensors, *self.scalars]


class Runner:
    """Runs programs on the simulator, and on the interpreter where it is right."""

    def __init__(self, folder: Path, interpreter: Interpreter) -> None:
        self._folder = folder
        self._interpreter = interpreter

    def check(self, program: Program) -> None:
        """Fails with the program's source if a side does not give what is right."""
        if DEVICE != "cpu":
            assume(program.any_order)
        path = self._written(program)
        self._compare(DEVICE, program, self._launched(program, path))
        if program.interpretable:
            args = self._interpreter.run(path, program.grid, program.arguments())
            self._compare("interpreter", program, args)

    def check_alike(self, program: Program) -> None:
        """Takes what the interpreter gives for right."""
        path = self._written(program)
        right = self._interpreter.run(path, program.grid, program.arguments())
        for tensor, output in zip(self._outputs(program, right), program.outputs, strict=True):
            output.right = from_torch(tensor, output.kind)
        self._compare(DEVICE, program, self._launched(program, path))

    def _written(self, program: Program) -> Path:
        note(program.source)
        digest = hashlib.sha256(program.source.encode()).hexdigest()[:16]
        path = self._folder / f"program_{digest}.py"
        path.write_text(program.source)
        return path

    def _launched(self, program: Program, path: Path) -> list[Any]:
        """On the simulator, where the counts are compared as well, or on a GPU."""
        args = program.arguments()
        if DEVICE != "cpu":
            moved = [a.to(DEVICE) if isinstance(a, torch.Tensor) else a for a in args]
            loaded(path).kernel[program.grid](*moved, enable_fp_fusion=False)
            return [a.cpu() if isinstance(a, torch.Tensor) else a for a in moved]
        with mini_triton.profile(host=False) as p:
            loaded(path).kernel[program.grid](*args)
        for name in ("loaded", "stored"):
            expected, counted = getattr(program, name), getattr(p.total, name)
            assert expected is None or counted == expected, f"{name} {counted}, not {expected}"
        return args

    @staticmethod
    def _outputs(program: Program, args: list[Any]) -> list[Any]:
        return args[len(program.inputs) : len(program.inputs) + len(program.outputs)]

    @staticmethod
    def _compare(side: str, program: Program, args: list[Any]) -> None:
        outputs = zip(Runner._outputs(program, args), program.outputs, strict=True)
        for number, (tensor, output) in enumerate(outputs):
            actual = from_torch(tensor, output.kind)
            if output.tolerance:
                np.testing.assert_allclose(
                    actual, output.right, rtol=output.tolerance, atol=output.tolerance,
                    err_msg=f"{side}, out{number}",
                )  # fmt: skip
            else:
                np.testing.assert_array_equal(
                    actual, output.right, err_msg=f"{side}, out{number}", strict=True
                )
