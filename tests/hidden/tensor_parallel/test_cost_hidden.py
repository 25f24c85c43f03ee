"""Task 8 at the edges: the fullest rank, other precisions and algorithms, latent attention."""

import dataclasses

from comm_sim import ICI_V5P, NVLINK4
from gradescope_utils.autograder_utils.decorators import number, visibility, weight
from hw_specs import H100
from llm_math import DEEPSEEK_V3, LLAMA3_8B, LLAMA3_70B

from assignments.tensor_parallel import oracle
from assignments.tensor_parallel.case import TensorParallelCase


class TestCostHidden(TensorParallelCase):
    def step(self, model, n: int, batch: int, ctx: int, link=NVLINK4, **others):
        """What tp_decode_step returns."""
        given = [model, H100, link]
        return self.student.call("tp_decode_step", *given, n, batch, ctx, **others).value

    @weight(1)
    @number("8.3")
    @visibility("hidden")
    def test_fullest_rank(self):
        """The step waits for the rank with the most KV heads, where heads do not divide well"""
        # H = 12, G = 4, n = 6: two query heads a rank, three to a KV head. Rank 1 has query heads 2
        # and 3, which use KV heads 0 and 1: 2 of 4, where max(1, n/G)/n would be 1/4.
        # H = 24, G = 8, n = 12: likewise 2 of 8, where max(1, n/G)/n would be 1/8.
        L, dh, batch, ctx = LLAMA3_8B.n_layers, LLAMA3_8B.d_head, 32, 4096
        for H, G, n, held in ((12, 4, 6, 2), (24, 8, 12, 2), (12, 3, 2, 2), (24, 6, 4, 2)):
            model = dataclasses.replace(LLAMA3_8B, n_heads=H, n_kv_heads=G)
            got = self.step(model, n, batch, ctx)
            weights = L * (4096 * dh * (2 * H + 2 * G) + 3 * 4096 * 14_336) + 128_256 * 4096
            kv = 2 * L * held * dh * 2
            name = f"tp_decode_step with H = {H}, G = {G}, n = {n}"
            expected = {
                "kv_per_chip_per_token": kv,
                "t_mem": (weights * 2 / n + batch * ctx * kv) / 3.35e12,
            }
            got = {key: got.get(key) for key in expected} if isinstance(got, dict) else got
            self.assert_numbers(name, got, expected)

    @weight(2)
    @number("8.4")
    @visibility("hidden")
    def test_models(self):
        """Llama-3-70B up to n = 64; fp8, other bytes, links and algorithms; DeepSeek-V3's latent"""
        for n, batch, ctx, algo in (
            (1, 8, 8192, "ring"),
            (16, 128, 8192, "rd"),
            (64, 3, 5, "innet"),
        ):
            own = {"peak": 1979e12, "mem_bw": 3.35e12, "alpha": 1e-6, "bw": 100e9}
            sizes = {"w_bytes": 1, "kv_bytes": 0.5, "act_bytes": 4, "algo": algo}
            got = self.step(LLAMA3_70B, n, batch, ctx, ICI_V5P, compute_prec="fp8", **sizes)
            expected = oracle.decode_step(LLAMA3_70B, n, batch, ctx, **own, **sizes)
            self.assert_numbers(f"tp_decode_step(70B, …, n={n}, algo={algo!r})", got, expected)
        # The latent is shared by all heads, so every rank holds it: 61·(512 + 64) numbers a token.
        n, batch, ctx = 16, 256, 8192
        kv = 61 * 576 * 2
        t_math = batch * DEEPSEEK_V3.flops_per_token(ctx) / n / 989e12
        t_mem = (DEEPSEEK_V3.matmul_params() * 2 / n + batch * ctx * kv) / 3.35e12
        msg = batch * 7168 * 2
        t_comm = 122 * 2 * (n - 1) * (1.9e-6 + msg / n / 450e9)
        expected = {
            "t_math": t_math,
            "t_mem": t_mem,
            "t_comm": t_comm,
            "t_step": max(t_math, t_mem) + t_comm,
            "kv_per_chip_per_token": kv,
            "n_allreduce": 122,
            "msg_bytes": msg,
        }
        got = self.step(DEEPSEEK_V3, n, batch, ctx)
        self.assert_numbers("tp_decode_step(DeepSeek-V3, …)", got, expected)

    @weight(2)
    @number("8.5")
    @visibility("hidden")
    def test_pope_and_refusals(self):
        """Gathered weights with N at its bounds, 1-byte elements; refusals that say what fits"""
        E, F, n, bw = 8192, 32_768, 16, 50e9
        for t, N in ((1, 1), (2048, 1), (4608, 1.5), (8192, 2), (1 << 20, 16)):
            # √(t·n/F) is 0.02, 1, 1.5, 2 and 22.6.
            call = self.student.call("pope_ffn_comm", "gathered", t, E, F, n, bw, bytes_per_elem=1)
            seconds = (2 * E * F * N / n + 2 * t * E / N) / bw
            self.assert_pair(f"(seconds, N) for {t} tokens", call.value, (seconds, N))
        for variant, seconds in (("1d", 2 * 48 * E / bw), ("2d", 8 * 48 * E / (4 * bw))):
            call = self.student.call("pope_ffn_comm", variant, 48, E, F, n, bw, 1.0)
            self.assert_number(f"seconds of {variant!r}", call.value, seconds)
        with self.refuses("pope_ffn_comm of '3d'", "1d", "2d", "gathered"):
            self.student.call("pope_ffn_comm", "3d", 48, E, F, n, bw)
        with self.refuses("tp_decode_step of 32 heads on 3 ranks", 32, 3):
            self.step(LLAMA3_8B, 3, 1, 1)
