"""Task 6: random programs, layers with numbers, sizes that coincide."""

from gradescope_utils.autograder_utils.decorators import (
    number,
    partial_credit,
    visibility,
    weight,
)
from graph_ir import LayerCfg
from graph_ir.kernels import total_bytes

from assignments.graph_fusion import oracle
from assignments.graph_fusion.case import GraphFusionCase

#: Sizes that differ, and sizes that coincide: T = d = H·dh, dh = H, f = 2·d.
CONFIGS = ((LayerCfg(24, 6, 2, 4, 40), 5), (LayerCfg(16, 4, 4, 4, 32), 16))


class TestFuseHidden(GraphFusionCase):
    @weight(3)
    @number("6.9")
    @visibility("hidden")
    def test_random(self):
        """30 random programs: kernels that run, are the program, and move no more than unfused"""
        for sample in self.samples(30, steps=24, least=10, dtypes=("f64", "bf16")):
            kernels = self.kernels("fuse", sample.graph, inputs=sample.inputs)
            if not kernels:
                continue
            worst = oracle.unfused(sample.graph)
            if len(kernels) > worst.kernels or total_bytes(kernels) > worst.bytes:
                self.fail(
                    f"{len(kernels)} kernels, {total_bytes(kernels):,} B; {worst.kernels} and "
                    f"{worst.bytes:,} B if each node is one\n{sample.graph}"
                )

    @weight(1)
    @number("6.10")
    @visibility("hidden")
    def test_unfused_random(self):
        """enable=False on 20 random programs: a kernel a node, loads and stores to the byte"""
        for sample in self.samples(20, steps=24, least=10, dtypes=("f64", "bf16")):
            kernels = self.kernels("fuse", sample.graph, enable=False, inputs=sample.inputs)
            worst = oracle.unfused(sample.graph)
            self.assertEqual(len(kernels), worst.kernels, "kernels")
            self.assertEqual(total_bytes(kernels), worst.bytes, "bytes")

    @partial_credit(2)
    @number("6.11")
    @visibility("hidden")
    def test_prefill(self, set_score):
        """Small layers at prefill, executed kernel by kernel: kernels and bytes"""
        self._layers(
            set_score,
            [
                (oracle.prefill(cfg, T, form, arrays=True), {}, oracle.prefill_fused(cfg, T, flash))
                for cfg, T in CONFIGS
                for form, flash in ((oracle.OPTIMIZED, False), (oracle.FLASH, True))
            ],
        )

    @partial_credit(2)
    @number("6.12")
    @visibility("hidden")
    def test_decode(self, set_score):
        """Small layers at decode, executed kernel by kernel: kernels and bytes"""
        self._layers(
            set_score,
            [
                (
                    oracle.decode(cfg, form, arrays=True),
                    {"S": S, "P": S - 1},
                    oracle.decode_fused(cfg, S, flash),
                )
                for cfg, S in CONFIGS
                for form, flash in ((oracle.OPTIMIZED, False), (oracle.FLASH, True))
            ],
        )

    def _layers(self, set_score, layers):
        """Scores several layers, each alike."""
        graded = []
        for g, bind, reference in layers:
            kernels = self.kernels("fuse", g, bind=bind, inputs=self.inputs(g.bind(bind)))
            graded.append((f"a layer of {len(g)} nodes", kernels, reference))
        self.score(set_score, *graded)
