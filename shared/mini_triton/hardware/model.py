"""A launch on a modelled GPU: compiles it, watches it, and works out the record."""

from __future__ import annotations

from mini_triton.execute.memory.observe import Observer
from mini_triton.execute.prepare import prepare
from mini_triton.hardware.arithmetic import Arithmetic
from mini_triton.hardware.caches import MOST_MERGED, Dram, distinct_by_site, dram, l1_misses
from mini_triton.hardware.compiled import compiled
from mini_triton.hardware.compiled_ops import Instruction, instructions
from mini_triton.hardware.gpu import Gpu
from mini_triton.hardware.occupancy import l1_bytes, occupancy
from mini_triton.hardware.record import AccessRecord, HardwareRecord, Resources, TensorRecord
from mini_triton.hardware.roofline import times
from mini_triton.hardware.trace import Site, Trace
from mini_triton.launch import Launch


class Model:
    """Of one launch on one GPU: pass `observers` to its machine, run it, and take the `record`.

    Compiles the kernel, if it came with its source.

    Raises what `prepare` raises.
    """

    def __init__(self, launch: Launch, gpu: Gpu) -> None:
        self._gpu, self._launch = gpu, launch
        self._compiled = compiled(launch, gpu)
        self._num_warps = (
            self._compiled.num_warps if self._compiled else launch.options.get("num_warps", 4)
        )
        self._arithmetic = Arithmetic()
        found: dict[int, list[Instruction]] = {}
        if self._compiled is not None and self._compiled.ttgir:
            found = instructions(
                prepare(launch.ttir, launch.kernel).program,
                launch.ttir,
                self._compiled.ttgir,
                self._compiled.ptx,
                self._num_warps,
            )
        programs = launch.grid[0] * launch.grid[1] * launch.grid[2]
        self._trace = Trace(programs, found, self._num_warps)

    @property
    def observers(self) -> list[Observer]:
        """For the machine that runs the launch."""
        return [self._trace, self._arithmetic]

    def record(self) -> HardwareRecord:
        """After the run."""
        gpu, trace = self._gpu, self._trace
        resources = self._resources()
        wave = gpu.sms * max(1, resources.programs)
        l1 = l1_bytes(gpu, max(1, resources.programs), resources.shared)
        notes = []
        if resources.error:
            notes.append(
                "it does not fit; caches are modelled as if one program at a time did on each SM"
            )
        traffic = Dram(0, 0, 0)
        missed: dict[int, tuple[int, int]] = {}
        once: dict[int, int] = {}
        if trace.too_much:
            notes.append("too many irregular accesses to model caches: DRAM and L1 hits unknown")
        else:
            traffic = dram(trace.events, trace.sectors, wave, gpu.l2_bytes)
            missed = l1_misses(trace.events, wave, gpu.sms, l1)
            once = distinct_by_site(trace.events, trace.sectors)
        record = HardwareRecord(
            gpu=gpu.name,
            resources=resources,
            wave=wave,
            l1_bytes=l1,
            l2_bytes=gpu.l2_bytes,
            dram_read_bytes=traffic.read,
            dram_written_bytes=traffic.written,
            dram_left_bytes=traffic.left,
            products=dict(self._arithmetic.products),
            others=dict(self._arithmetic.others),
            notes=notes,
        )
        for site in trace.sites.values():
            record.accesses += _accesses(site, missed.get(id(site)), once.get(id(site), 0))
        for position, touched in sorted(trace.touched.items()):
            record.tensors[self._launch.arg_names[position]] = TensorRecord(
                touched.loaded_bytes, touched.stored_bytes, touched.picture()
            )
        record.times = times(
            gpu, record.dram_bytes, record.least_l2_sectors, record.products, record.others
        )
        return record

    def _resources(self) -> Resources:
        found = self._compiled
        if found is None or not found.registers:
            error = found.error if found else ""
            stages = found.num_stages if found else self._launch.options.get("num_stages", 3)
            by_threads = occupancy(self._gpu, self._num_warps, 1, 0)
            return Resources(
                compiled=found is not None,
                error=error,
                num_warps=self._num_warps,
                num_stages=stages,
                registers=0,
                spills=0,
                shared=0,
                programs=0 if error else by_threads.programs,
                limited_by="compiler" if error else by_threads.limited_by,
                occupancy=0.0 if error else by_threads.warps,
            )
        held = occupancy(self._gpu, found.num_warps, found.registers, found.shared)
        return Resources(
            compiled=True,
            error=found.error,
            num_warps=found.num_warps,
            num_stages=found.num_stages,
            registers=found.registers,
            spills=found.spills,
            shared=found.shared,
            programs=held.programs,
            limited_by=held.limited_by,
            occupancy=held.warps,
        )


def _accesses(site: Site, missed: tuple[int, int] | None, once: int) -> list[AccessRecord]:
    """A record for each instruction that carries the access out."""
    where = site.op.where.in_kernel
    records = []
    for instruction, moved in zip(site.instructions, site.moved, strict=True):
        l2_sectors = moved.sectors
        if instruction.through_l1:
            # Requests of one access that meet in a sector are served by L1, and so is what it still
            # holds; the share that it lacks is that of the SMs that were modelled.
            missing, looked_up = missed or (1, 1)
            l2_sectors = min(moved.sectors, round(site.touched * missing / max(1, looked_up)))
        least = l2_sectors
        if site.kind == "load":
            least = min(l2_sectors, max(once, -(-l2_sectors // MOST_MERGED)))
        records.append(
            AccessRecord(
                file=where.file,
                line=where.line,
                tensor=site.buffer.name,
                kind=site.kind,
                instruction=instruction.kind,
                width=instruction.width,
                exact=instruction.exact,
                requests=moved.requests,
                sectors=moved.sectors,
                ideal=moved.ideal,
                l2_sectors=l2_sectors,
                least_l2_sectors=least,
            )
        )
    return records
