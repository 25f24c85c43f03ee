"""Runs a launch: binds arguments, walks the grid in chunks, counts, undoes a launch that fails."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch

from mini_triton.errors import BadLaunch, KernelError, Location
from mini_triton.execute.affine import INDEX_DTYPES, Affine, constant
from mini_triton.execute.control import run_function
from mini_triton.execute.frame import Frame
from mini_triton.execute.observe import Observer
from mini_triton.execute.prepare import TERMINATORS, Prepared, prepare
from mini_triton.execute.values import Buffer, Pointer, Value, dense
from mini_triton.ir.program import Block, Op
from mini_triton.ir.types import SIGNLESS, Type
from mini_triton.launch import Launch

#: Elements of the largest tile over the programs of a chunk. A float32 tile then takes 2 MiB: about
#: what a core's L2 cache holds, and enough that an operation costs more than starting it. (The
#: benchmarks' cases with 2¹⁶ to 2²⁰: 2¹⁹ is the fastest or within a tenth of it for all eight.)
CHUNK_ELEMENTS = 1 << 19
#: The hardware's limits of a grid.
MAX_GRID = (2**31 - 1, 65_535, 65_535)


class Machine:
    """One launch; `counts[location, argument, "loaded" | "stored", element size]` are elements.

    `show` takes the lines that its programs print; `observers` are told every access.
    """

    def __init__(
        self,
        launch: Launch,
        chunk_elements: int = CHUNK_ELEMENTS,
        show: Callable[[str], None] = print,
        observers: Sequence[Observer] = (),
    ) -> None:
        self.observers = observers
        self.kernel = launch.kernel
        self.show = show
        self.grid = _checked_grid(launch)
        self._prepared: Prepared = prepare(launch.ttir, launch.kernel)
        self.program = self._prepared.program
        self.buffers: list[Buffer] = []
        self._arguments = self._bind(launch)
        self.counts: dict[tuple[Location, int, str, int], int] = defaultdict(int)
        per_chunk = max(1, chunk_elements // self.program.largest_tile)
        self._per_chunk = 1 if self._prepared.one_at_a_time else per_chunk

    # ---------------------------------------------------------------- arguments
    def _bind(self, launch: Launch) -> list[Value]:
        kinds = self.program.kernel.arg_types
        for name, arg in zip(launch.arg_names, launch.args, strict=True):
            if type(arg).__name__ == "TensorDescriptor":
                raise BadLaunch(
                    f"kernel {self.kernel}: argument {name} is a TensorDescriptor; pass the tensor "
                    "and make the descriptor in the kernel with tl.make_tensor_descriptor"
                )
        if len(kinds) != len(launch.args):
            raise BadLaunch(
                f"kernel {self.kernel} takes {len(kinds)} arguments that are not constants, "
                f"{len(launch.args)} were given"
            )
        values: list[Value] = []
        for position, (name, kind, arg) in enumerate(
            zip(launch.arg_names, kinds, launch.args, strict=True)
        ):
            values.append(_argument(self.kernel, name, position, kind, arg))
            if isinstance(values[-1], Pointer) and values[-1].buffer is not None:
                self.buffers.append(values[-1].buffer)
        stored = self._prepared.stored_to
        written = [b for b in self.buffers if stored is None or b.position in stored]
        for buffer in self.buffers:
            buffer.stored_to = any(buffer.overlaps(other) for other in written)
        self._written = written
        return values

    # ---------------------------------------------------------------- the grid
    def run(self) -> None:
        """Executes all programs. On a `KernelError` every tensor is as it was before the launch."""
        total = math.prod(self.grid)
        before = [buffer.flat.clone() for buffer in self._written]
        try:
            with torch.no_grad(), _one_thread():
                for start in range(0, total, self._per_chunk):
                    self._run_chunk(torch.arange(start, min(start + self._per_chunk, total)))
        except BaseException:
            for buffer, content in zip(self._written, before, strict=True):
                buffer.flat.copy_(content)
            raise

    def _run_chunk(self, programs: torch.Tensor) -> None:
        frame = Frame(self, programs)
        for slot, value in zip(self.program.kernel.args, self._arguments, strict=True):
            frame[slot] = value
        run_function(frame, self.program.kernel.body)

    def run_block(self, frame: Frame, block: Block) -> tuple[Op, list[Value]]:
        """Runs a block's operations; returns its terminator and the terminator's operands."""
        for op in block.ops:
            if op.name in TERMINATORS:
                return op, frame.operands(op)
            if op.framed is not None:
                result = op.framed(frame, op)
            else:
                values = frame.operands(op)
                result = op.lazy(op, *values) if op.lazy is not None else None
                if result is None:
                    result = op.pure(op, *map(dense, values))
            if len(op.results) == 1 and not isinstance(result, tuple):
                frame[op.results[0]] = result
            elif op.results and result is not None:
                for slot, value in zip(op.results, result, strict=True):
                    frame[slot] = value
            if op.dead:
                frame.drop(op.dead)
        raise KernelError(f"kernel {self.kernel}: block {block.label} has no terminator")

    def program_id(self, program: int) -> tuple[int, int, int]:
        """(x, y, z) of a linear program id; x runs fastest."""
        x, rest = program % self.grid[0], program // self.grid[0]
        return x, rest % self.grid[1], rest // self.grid[1]

    def program_axis(self, programs: torch.Tensor, axis: int) -> Affine:
        """One coordinate of the programs, int32."""
        if self.grid[axis] == 1:
            return constant(0, torch.int32)
        below = math.prod(self.grid[:axis])
        ids = programs if below == 1 else torch.div(programs, below, rounding_mode="floor")
        if math.prod(self.grid[axis + 1 :]) > 1:
            ids = ids % self.grid[axis]
        low, high = torch.stack(torch.aminmax(ids)).tolist()
        if low == high:
            return constant(low, torch.int32)
        return Affine(torch.int32, ids, low, high)

    def count(self, op: Op, buffer: Buffer, kind: str, elements: int, element_size: int) -> None:
        """Adds to the traffic of a source line and a tensor."""
        self.counts[op.where, buffer.position, kind, element_size] += elements


@contextmanager
def _one_thread() -> Iterator[None]:
    """Runs torch's operations on one thread, so that sums add up in one order on every machine.

    It also keeps a busy machine from stalling every operation: threads of one operation wait for
    the last of them, which costs milliseconds when its core is taken.
    """
    threads = torch.get_num_threads()
    if threads > 1:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        if threads > 1:
            torch.set_num_threads(threads)


def _checked_grid(launch: Launch) -> tuple[int, int, int]:
    for axis, size, limit in zip("xyz", launch.grid, MAX_GRID, strict=True):
        if size < 0 or size > limit:
            raise BadLaunch(
                f"kernel {launch.kernel}: grid {launch.grid} has {size} programs along {axis}; "
                f"a grid has 0 to {limit} there"
            )
    return launch.grid


def _argument(kernel: str, name: str, position: int, kind: Type, arg: object) -> Value:
    if kind.is_pointer:
        return _pointer(kernel, name, position, kind, arg)
    if kind.element not in ("i1", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64"):
        raise BadLaunch(
            f"kernel {kernel}: argument {name} of type {kind} is not supported by the simulator; "
            "make the descriptor in the kernel with tl.make_tensor_descriptor"
        )
    if not isinstance(arg, (int, float)):
        raise BadLaunch(f"kernel {kernel}: argument {name} is {type(arg).__name__}, not a number")
    try:
        number = float(arg) if kind.is_float else int(arg)
    except (ValueError, OverflowError) as error:  # which no launch of Triton's own leads to
        raise BadLaunch(f"kernel {kernel}: argument {name} is no {kind}: {error}") from None
    if isinstance(number, float):
        return torch.tensor([number], dtype=torch.float64).to(kind.dtype)
    bits = number & ((1 << kind.bits) - 1)
    signed = bits - (1 << kind.bits) if kind.bits > 1 and bits >> (kind.bits - 1) else bits
    if kind.dtype in INDEX_DTYPES:
        return constant(signed, kind.dtype)
    return torch.tensor([signed]).to(kind.dtype)


def _pointer(kernel: str, name: str, position: int, kind: Type, arg: object) -> Pointer:
    assert kind.pointee is not None
    dtype = kind.pointee.dtype if not kind.pointee.is_pointer else torch.int64
    if isinstance(arg, int):
        return Pointer(None, constant(arg, torch.int64), None, dtype)
    if not isinstance(arg, torch.Tensor):
        raise BadLaunch(f"kernel {kernel}: argument {name} is {type(arg).__name__}, not a tensor")
    if arg.device.type != "cpu" or arg.layout != torch.strided:
        raise BadLaunch(
            f"kernel {kernel}: tensor {name} is {arg.layout} on {arg.device}; the simulator runs "
            "on dense CPU tensors: create it with device='cpu'"
        )
    own = arg.detach()
    span = 1 + sum((n - 1) * s for n, s in zip(own.shape, own.stride(), strict=True))
    flat = own.as_strided((0 if own.numel() == 0 else span,), (1,))
    flat = flat.view(SIGNLESS.get(flat.dtype, flat.dtype))
    buffer = Buffer(name, flat, tuple(own.shape), tuple(own.stride()), position=position)
    return Pointer(buffer, constant(0, torch.int64), None, dtype)
