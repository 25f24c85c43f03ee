"""How much memory the values of one program take at most: what chunks are sized by.

Counted are the tiles that are alive at once, each with all its lanes, though most integers and
pointers are formulas and take none: so the bound also holds where they are not.
"""

from __future__ import annotations

from mini_triton.ir.program import Block, Op, Program, Region

#: Bytes an element of the largest tile at hand that an operation may take while it runs: a gather
#: has offsets and masked offsets in int64 beside what it loads; no operation has more.
_SCRATCH = 32
#: Operations after which programs that go different ways hold copies of what they share.
_PARTING = {"cf.cond_br", "scf.if", "scf.while"}


def peak_bytes(program: Program) -> int:
    """Bytes that one program's values take at most."""
    copies = 2 if any(op.name in _PARTING for op in program.walk()) else 1
    return copies * _Peak(program).of_region(program.kernel.body, depth=0)


class _Peak:
    #: Calls nested deeper than this are recursive, which Triton does not have.
    _DEEPEST = 32

    def __init__(self, program: Program) -> None:
        self._program = program
        self._bytes = {
            slot: kind.numel * kind.itemsize for slot, kind in program.slot_types.items()
        }

    def of_region(self, region: Region, depth: int) -> int:
        """Of several blocks all values may live on."""
        return sum(self._of_block(block, depth) for block in region.blocks)

    def _of_block(self, block: Block, depth: int) -> int:
        live = peak = sum(self._bytes.get(slot, 0) for slot in block.args)
        for op in block.ops:
            made = sum(self._bytes.get(slot, 0) for slot in op.results)
            peak = max(peak, live + made + self._inside(op, depth))
            live += made - sum(self._bytes.get(slot, 0) for slot in op.dead)
        return peak

    def _inside(self, op: Op, depth: int) -> int:
        if op.regions:
            return max(self.of_region(region, depth) for region in op.regions)
        if op.name == "tt.call" and depth < self._DEEPEST:
            called = self._program.functions[op.attrs["callee"]]
            return self.of_region(called.body, depth + 1)
        largest = max((kind.numel for kind in (*op.types, *op.operand_types)), default=1)
        return largest * _SCRATCH
