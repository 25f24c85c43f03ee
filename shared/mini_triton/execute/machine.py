"""Runs a launch: binds arguments, walks the grid in chunks, counts, undoes a launch that fails."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from functools import cached_property

import torch

from mini_triton import settings
from mini_triton.errors import BadLaunch, KernelError, OverBudget
from mini_triton.execute.arguments import bind
from mini_triton.execute.control import run_function
from mini_triton.execute.failure import failure, too_many_steps
from mini_triton.execute.frame import Frame
from mini_triton.execute.liveness import check_tiles
from mini_triton.execute.memory.active import zero
from mini_triton.execute.memory.observe import Observer, OperationObserver
from mini_triton.execute.memory.stores import Stores
from mini_triton.execute.pages import keep_pages
from mini_triton.execute.prepare import TERMINATORS, Prepared, prepare
from mini_triton.execute.progress import Progress
from mini_triton.execute.reuse import written_over
from mini_triton.execute.threads import cores, in_order
from mini_triton.execute.tiles.affine import Affine, constant
from mini_triton.execute.tiles.values import Buffer, Value, dense
from mini_triton.ir.program import Block, Op
from mini_triton.launch import Launch
from mini_triton.location import UNKNOWN, Location

#: Elements of the largest tile over the programs of a chunk. A float32 tile then takes 2 MiB: about
#: what a core's L2 cache holds, and enough that an operation costs more than starting it. (The
#: benchmarks' cases with 2¹⁶ to 2²⁰: 2¹⁹ is the fastest or within a tenth of it for all eight.)
CHUNK_ELEMENTS = 1 << 19
#: Elements of the largest tile over all programs that a thread of its own pays for: those of a
#: chunk. Programs that do not loop mostly wait for memory, which more threads do not hasten, and
#: need more. (tests/benchmarks/threads.py, two threads: flash attention gains 1.4 to 1.6 times,
#: causal 1.2 to 1.3, matmul 1.3 and 1.4 from 2²² elements on; addition loses up to 2²³, softmax and
#: layer norm gain nothing before.)
_WORTH_A_THREAD = 1 << 19
_WORTH_A_THREAD_STRAIGHT = 1 << 23
#: The hardware's limits of a grid.
MAX_GRID = (2**31 - 1, 65_535, 65_535)


class Machine:
    """One launch; `counts[location, argument, "loaded" | "stored", element size]` are elements.

    Args:
        launch: the launch.
        chunk_elements: of the largest tile over the programs that run together.
        show: takes the lines that its programs print.
        observers: are told every access.
        order: linear ids of all programs, int64, in the order in which they run; None: as they are
            numbered.
        undefined: what lanes hold that a load without `other`, or an atomic update, leaves
            undefined: asked for each operation of which lanes are off, broadcastable to its tile
            with a leading axis; None: 0.

    Attributes:
        buffers: the arguments that are tensors.
        written: those of them that the kernel may store to.
    """

    def __init__(
        self,
        launch: Launch,
        chunk_elements: int = CHUNK_ELEMENTS,
        show: Callable[[str], None] = print,
        observers: Sequence[Observer] = (),
        order: torch.Tensor | None = None,
        undefined: Callable[[Op], torch.Tensor] | None = None,
    ) -> None:
        self.observers = observers
        self._operations = [o.operation for o in observers if isinstance(o, OperationObserver)]
        self.undefined = undefined or zero
        self._order = order
        self.kernel = launch.kernel
        self.show = show
        self.grid = _checked_grid(launch)
        self._prepared: Prepared = prepare(launch.ttir, launch.kernel)
        self.program = self._prepared.program
        self._arguments, self.buffers, self.written = bind(
            launch, self.program.kernel.arg_types, self._prepared.stored_to
        )
        self.counts: dict[tuple[Location, int, str, int], int] = defaultdict(int)
        self.steps = 0
        self._progress = Progress()
        self._settings = settings.current()
        check_tiles(self.program, self.kernel, self._prepared.tile_bytes, self._settings.memory)
        self._chunk_elements = chunk_elements
        self.stores = self._new_stores()

    def _new_stores(self, ahead: bool = False, share: int = 1) -> Stores:
        """The stores of one of `share` that may wait at the same time.

        Of the memory, half is for values, a quarter for what waits and one for copies.
        """
        quarter = self._settings.memory // 4
        return Stores(self.written, quarter // share if self._can_keep else 0, quarter, ahead)

    @cached_property
    def _can_keep(self) -> bool:
        """Whether stores can wait: no program reads what one may store, nobody looks on."""
        loaded = self._prepared.loaded
        reads = any(b.stored_to and (loaded is None or b.position in loaded) for b in self.buffers)
        return not reads and not self.observers

    # ---------------------------------------------------------------- the grid
    def run(self) -> None:
        """Executes all programs. On a `KernelError` every tensor is as it was before the launch.

        So it is if the user interrupts, who is told which line was running: a loop may have no end.
        """
        workers = self._workers()
        keep_pages()
        try:
            with torch.no_grad(), _one_thread():
                if workers == 1 or not self._run_on_threads(workers):
                    self._run_in_turn()
        except KeyboardInterrupt as interrupt:
            at = self._progress.op.where if self._progress.op else self.kernel
            interrupt.add_note(
                f"{at}: here kernel {self.kernel}, grid {self.grid}, was interrupted"
            )
            raise

    def _run_in_turn(self) -> None:
        try:
            for chunk in self._chunks(workers=1):
                self._run_chunk(chunk)
        except BaseException:
            self.stores.undo()
            raise
        self.stores.finish()

    def _run_on_threads(self, workers: int) -> bool:
        """Runs chunks side by side; False, and nothing is changed, if that does not work out.

        What fails (a kernel, a thread that the system does not grant) or takes too much memory is
        left to one thread: which error it then is does not depend on how many there are.
        """
        stores, counts = self._new_stores(share=2), defaultdict(int, self.counts)

        def run(chunk: torch.Tensor) -> Machine:
            part = copy(self)
            part.counts, part.steps = defaultdict(int), 0
            part.stores = self._new_stores(ahead=True, share=4 * workers)
            part._run_chunk(chunk)
            return part

        spent = 0

        def take(part: Machine) -> None:
            nonlocal spent
            spent += part.steps
            if self._settings.steps is not None and spent > self._settings.steps:
                raise OverBudget  # one thread, which goes on from here, names the operation
            stores.follow(part.stores)
            for key, elements in part.counts.items():
                counts[key] += elements

        try:
            in_order(self._chunks(workers), run, take, self._progress.abandon, workers)
        except Exception:
            stores.undo()
            self._progress = Progress()
            return False
        except BaseException:
            stores.undo()
            raise
        stores.finish()
        self.counts, self.steps = counts, spent
        return True

    def _workers(self) -> int:
        """How many threads can share the launch and have enough to do."""
        total = math.prod(self.grid)
        worth = _WORTH_A_THREAD if self._prepared.loops else _WORTH_A_THREAD_STRAIGHT
        if (
            self._prepared.one_at_a_time
            or self._prepared.prints
            or self._order is not None
            or total * self.program.largest_tile < worth * 2
            or not self._can_keep
        ):
            return 1
        most = total * self.program.largest_tile // worth
        return min(self._settings.threads or cores(), total, most)

    def _chunks(self, workers: int) -> Iterator[torch.Tensor]:
        """Linear ids of the programs that run together, in the order in which they run."""
        total = math.prod(self.grid)
        by_cache = self._chunk_elements // self.program.largest_tile
        by_memory = self._settings.memory // 2 // workers // self._prepared.peak_bytes
        count = max(1, min(by_cache, by_memory, -(-total // workers)))
        if self._prepared.one_at_a_time:
            count = 1
        for start in range(0, total, count):
            end = min(start + count, total)
            yield torch.arange(start, end) if self._order is None else self._order[start:end]

    def _run_chunk(self, programs: torch.Tensor) -> None:
        frame = Frame(self, programs)
        for slot, value in zip(self.program.kernel.args, self._arguments, strict=True):
            frame[slot] = value
        run_function(frame, self.program.kernel.body)

    def run_block(self, frame: Frame, block: Block) -> tuple[Op, list[Value]]:
        """Runs a block's operations; returns its terminator and the terminator's operands."""
        op = block.ops[0]
        self._spend(len(block.ops), op)
        values = frame.values
        try:
            for op in block.ops:
                if op.framed is None and op.name in TERMINATORS:
                    ends = frame.operands(op)
                    for slot in op.dead:
                        values.pop(slot, None)
                    return op, ends
                for tell in self._operations:
                    tell(frame, op)
                if op.framed is not None:
                    result = op.framed(frame, op)
                else:
                    try:
                        operands = [values[slot] for slot in op.operands]
                    except KeyError:  # a parent frame has some
                        operands = frame.operands(op)
                    result = op.lazy(op, *operands) if op.lazy is not None else None
                    if result is None and op.over is not None:
                        result = written_over(op, values, operands)
                    if result is None:
                        result = op.pure(op, *map(dense, operands))
                if len(op.results) == 1 and not isinstance(result, tuple):
                    values[op.results[0]] = result
                elif op.results and result is not None:
                    values.update(zip(op.results, result, strict=True))
                for slot in op.dead:
                    values.pop(slot, None)
        except KernelError as error:
            error.locate(op.where, self.kernel)
            raise
        except Exception as error:
            raise failure(self.kernel, op, error) from error
        raise KernelError(f"kernel {self.kernel}: block {block.label} has no terminator")

    @property
    def tells_operations(self) -> bool:
        """Whether an observer wants to hear of every operation."""
        return bool(self._operations)

    def _spend(self, operations: int, op: Op) -> None:
        """Counts operations that are run, each once for all programs that run it together."""
        self._progress.reach(op)
        self.steps += operations
        if self._settings.steps is not None and self.steps > self._settings.steps:
            raise too_many_steps(op, self.kernel, self.grid, self._settings.steps)

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
        numbers = ids.numpy()
        low, high = int(numbers.min()), int(numbers.max())
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
            raise BadLaunch.at(
                UNKNOWN,
                launch.kernel,
                f"grid {launch.grid} has {size} programs along {axis}",
                hint=f"launch 0 to {limit:,} programs along {axis}",
            )
    return launch.grid
