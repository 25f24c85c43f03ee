"""Task 3: which rank holds what of the parameters."""

from gradescope_utils.autograder_utils.decorators import number, visibility, weight
from transformer_lab import Config

from assignments.tensor_parallel import oracle
from assignments.tensor_parallel.case import TensorParallelCase


class TestShards(TensorParallelCase):
    """`kv_group_of_device` and `shard_params_tp`."""

    def check_groups(self, cfg: Config, *expected: list[int]) -> None:
        """kv_group_of_device for each rank: its KV heads."""
        n = len(expected)
        for r, heads in enumerate(expected):
            got = self.student.call("kv_group_of_device", cfg, n, r).value
            self.assert_whole_numbers(f"KV heads of rank {r} of {n}", got, heads)

    def check(self, cfg: Config, n: int, *names: str, tied: bool = False) -> None:
        """shard_params_tp: these entries of each rank's dictionary, or of its layers."""
        params = self.model(cfg, tied)
        call = self.student.call("shard_params_tp", params, cfg, n)
        expected = oracle.shards(params, cfg, n)
        self.assert_params("shard_params_tp(…)", call.value, expected, only=("layers", *names))

    @weight(2)
    @number("3.1")
    @visibility("visible")
    def test_kv_heads(self):
        """KV heads of a rank where n divides G = 4, and where G divides n"""
        cfg = oracle.config(H=8, G=4)
        self.check_groups(cfg, [0, 1, 2, 3])
        self.check_groups(cfg, [0, 1], [2, 3])
        self.check_groups(cfg, [0], [1], [2], [3])
        self.check_groups(cfg, [0], [0], [1], [1], [2], [2], [3], [3])

    @weight(2)
    @number("3.2")
    @visibility("visible")
    def test_kv_heads_misaligned(self):
        """KV heads where neither divides the other: H = 12 and G = 3 on 2 ranks and on 4"""
        cfg = oracle.config(H=12, G=3)
        # Query heads 0 to 3 use KV head 0, 4 to 7 use 1, 8 to 11 use 2.
        self.check_groups(cfg, [0, 1], [1, 2])
        self.check_groups(cfg, [0], [0, 1], [1, 2], [2])

    @weight(2)
    @number("3.3")
    @visibility("visible")
    def test_attention(self):
        """wq, wk, wv by the columns of the rank's heads, wo by rows, 2 and 8 ranks; KV heads"""
        for n in (2, 8):
            self.check(oracle.config(H=8, G=4, dh=6), n, "kv_groups", "wq", "wk", "wv", "wo")

    @weight(2)
    @number("3.4")
    @visibility("visible")
    def test_mlp_and_head(self):
        """w_gate, w_up and lm_head by columns, w_down by rows, 4 ranks; embed and norms whole"""
        cfg = oracle.config(H=8, G=4, dh=6)
        whole = ("embed", "attn_norm", "mlp_norm", "final_norm")
        self.check(cfg, 4, "w_gate", "w_up", "w_down", "lm_head", "tied", *whole)

    @weight(1)
    @number("3.5")
    @visibility("visible")
    def test_tied(self):
        """A tied head: lm_head has the rank's columns of the transposed embedding"""
        self.check(oracle.config(H=8, G=4, dh=6), 2, "tied", "lm_head", "embed", tied=True)
