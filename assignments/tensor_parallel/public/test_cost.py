"""Task 8: seconds of a step, by formula."""

from comm_sim import NVLINK4
from gradescope_utils.autograder_utils.decorators import number, visibility, weight
from hw_specs import H100
from llm_math import LLAMA3_8B

from assignments.tensor_parallel import oracle
from assignments.tensor_parallel.case import TensorParallelCase

#: Of an H100 in bf16, and of NVLink 4, by their data sheets.
ON_H100 = {"peak": 989e12, "mem_bw": 3.35e12, "alpha": 1.9e-6, "bw": 450e9}


class TestCost(TensorParallelCase):
    """`tp_decode_step` and `pope_ffn_comm`."""

    @weight(3)
    @number("8.1")
    @visibility("visible")
    def test_llama_8b(self):
        """tp_decode_step of Llama-3-8B on 1 to 32 H100: seconds, bytes, all-reduces"""
        given = [LLAMA3_8B, H100, NVLINK4]
        for n, batch, ctx in ((1, 1, 1), (2, 64, 8192), (8, 512, 2048), (16, 16, 4096), (32, 4, 9)):
            call = self.student.call("tp_decode_step", *given, n, batch, ctx)
            expected = oracle.decode_step(LLAMA3_8B, n, batch, ctx, **ON_H100)
            name = f"tp_decode_step(8B, …, n={n}, batch={batch}, ctx={ctx})"
            self.assert_numbers(name, call.value, expected)

    @weight(2)
    @number("8.2")
    @visibility("visible")
    def test_pope(self):
        """pope_ffn_comm: the three layouts, and the best N for gathered weights"""
        E, F, n, bw = 16_384, 65_536, 64, 270e9
        t = 9 * 1024
        # √(t·n/F) = √(9·1024·64 / 65,536) = √9
        N = 3
        expected = {
            "1d": 2 * t * E * 2 / bw,
            "2d": 8 * t * E * 2 / (8 * bw),
            "gathered": (2 * E * F * N / n + 2 * t * E / N) * 2 / bw,
        }
        for variant, seconds in expected.items():
            call = self.student.call("pope_ffn_comm", variant, t, E, F, n, bw)
            if variant == "gathered":
                self.assert_pair("(seconds, N) of 'gathered'", call.value, (seconds, N))
            else:
                self.assert_number(f"seconds of {variant!r}", call.value, seconds)
