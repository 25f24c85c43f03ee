"""Task 6 on layers: points in proportion to the kernels and bytes that fusing saves.

A grouping that moves fewer bytes than the handout's keeps all points, and stands higher on the
leaderboard.
"""

from gradescope_utils.autograder_utils.decorators import (
    leaderboard,
    number,
    partial_credit,
    visibility,
)
from graph_ir import LLAMA8B, graph_cost
from graph_ir.trace import exp

from assignments.graph_fusion import oracle
from assignments.graph_fusion.case import GraphFusionCase
from assignments.graph_fusion.oracle import Cost

T, S = 2048, 4096


class TestFuseLayers(GraphFusionCase):
    """`fuse`, scored."""

    @partial_credit(3)
    @number("6.5")
    @visibility("visible")
    @leaderboard("prefill, MB", "asc")
    def test_prefill(self, set_score, set_leaderboard_value):
        """Llama-3.1-8B, prefill of 2048 tokens: 43 kernels become 12, 5.74 GB become 2.06"""
        kernels = self.kernels("fuse", oracle.prefill(LLAMA8B, T, oracle.OPTIMIZED))
        set_leaderboard_value(graph_cost(kernels)["bytes"] / 1e6)
        self.score(set_score, ("prefill", kernels, oracle.prefill_fused(LLAMA8B, T, False)))

    @partial_credit(2)
    @number("6.6")
    @visibility("visible")
    @leaderboard("decode, µs with launches", "asc")
    def test_decode(self, set_score, set_leaderboard_value):
        """Llama-3.1-8B, decode at S = 4096: 44 kernels become 14, 456.9 MB become 454.3"""
        kernels = self.kernels("fuse", oracle.decode(LLAMA8B, oracle.OPTIMIZED), bind={"S": S})
        set_leaderboard_value(graph_cost(kernels)["t_total"] * 1e6)
        self.score(set_score, ("decode", kernels, oracle.decode_fused(LLAMA8B, S, False)))

    @partial_credit(2)
    @number("6.7")
    @visibility("visible")
    @leaderboard("kernels of prefill and decode", "asc")
    def test_flash_attention(self, set_score, set_leaderboard_value):
        """Both with FlashAttention: 10 kernels and 975 MB, 12 kernels and 453.3 MB"""
        prefill = self.kernels("fuse", oracle.prefill(LLAMA8B, T, oracle.FLASH))
        decode = self.kernels("fuse", oracle.decode(LLAMA8B, oracle.FLASH), bind={"S": S})
        set_leaderboard_value(len(prefill) + len(decode))
        self.score(
            set_score,
            ("prefill with FlashAttention", prefill, oracle.prefill_fused(LLAMA8B, T, True)),
            ("decode with FlashAttention", decode, oracle.decode_fused(LLAMA8B, S, True)),
        )

    @partial_credit(1)
    @number("6.8")
    @visibility("visible")
    @leaderboard("shared producer, bytes", "asc")
    def test_shared_producer(self, set_score, set_leaderboard_value):
        """exp(x), which two kernels need: stored and loaded, or computed again if that is less"""

        def program(p, x, y):
            powers = exp(x)
            return (powers * y) @ p["m"] + powers

        g = self.program(program, {"m": self.numbers(64, 64)}, x=(32, 64), y=(32, 64))
        kernels = self.kernels("fuse", g)
        n, m = 32 * 64 * 8, 64 * 64 * 8
        set_leaderboard_value(graph_cost(kernels)["bytes"])
        # x and y come in; the powers and their product with y go out, and come in; the sum goes out
        reference = Cost(2, 2 * n + 2 * n + 2 * n + m + n)
        self.score(set_score, ("shared producer", kernels, reference))
