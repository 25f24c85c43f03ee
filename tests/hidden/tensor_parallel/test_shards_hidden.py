"""Task 3 at the edges: KV heads that several ranks hold, published models, refusals."""

import llm_math
from gradescope_utils.autograder_utils.decorators import number, visibility, weight

from assignments.tensor_parallel import oracle
from assignments.tensor_parallel.case import TensorParallelCase


class TestShardsHidden(TensorParallelCase):
    @weight(3)
    @number("3.6")
    @visibility("hidden")
    def test_replicated(self):
        """Every array of every rank where KV heads are replicated: n > G, misaligned, G = 1"""
        for H, G, dh, n, tied in (
            (8, 4, 6, 8, False),
            (12, 3, 4, 4, True),
            (24, 6, 2, 4, False),
            (6, 1, 14, 3, True),
        ):
            cfg = oracle.config(H, G, dh)
            params = self.model(cfg, tied)
            call = self.student.call("shard_params_tp", params, cfg, n)
            expected = oracle.shards(params, cfg, n)
            self.assert_params(f"shards for H={H}, G={G}, n={n}", call.value, expected)

    @weight(2)
    @number("3.7")
    @visibility("hidden")
    def test_models_and_refusals(self):
        """KV heads in Llama-3-70B and Qwen2.5-7B; H, f and v that n ranks cannot share equally"""
        for model, n in ((llm_math.LLAMA3_70B, 16), (llm_math.QWEN2_5_7B, 7)):
            for r in range(n):
                groups = self.student.call("kv_group_of_device", model, n, r).value
                what = f"KV heads of rank {r} of {n}, {model.name}"
                self.assert_whole_numbers(what, groups, oracle.kv_heads(model, n, r))
        cfg = oracle.config(8, 4)
        with self.refuses("kv_group_of_device of 8 heads for 3 ranks", 8, 3):
            self.student.call("kv_group_of_device", cfg, 3, 0)
        for name, size in (("n_heads", 12), ("d_ff", 140), ("vocab", 124)):
            changes = {"H": 8, "G": 4} | ({"H": size} if name == "n_heads" else {name: size})
            cfg = oracle.config(**changes)
            with self.refuses(f"shard_params_tp with {name} = {size} for 8 ranks", size, 8):
                self.student.call("shard_params_tp", self.model(cfg), cfg, 8)
