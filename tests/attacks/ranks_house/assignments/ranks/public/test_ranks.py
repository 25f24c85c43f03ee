"""Sums over ranks."""

import torch
from comm_sim import NVLINK4, switch
from gradescope_utils.autograder_utils.decorators import number, weight
from hw_specs import H100
from llm_math import MLA, ModelConfig
from transformer_lab import TINY

from grader.testing import COMM, AssignmentTestCase, Budget

MODEL = ModelConfig("m", 2, 64, 4, 1, 16, 128, 100, mla=MLA(32, 16, 16, 8, 16))


class TestRanks(AssignmentTestCase):
    def shards(self, n):
        return [self.randn(12, dtype=torch.float64).numpy() for _ in range(n)]

    def check(self, call, shards):
        for rank, value in enumerate(self.each(call, "total")):
            self.assert_close(f"total of rank {rank}", value, sum(shards))

    @weight(3)
    @number("1.1")
    def test_total(self):
        """The sum, by one all-reduce"""
        shards = self.shards(4)
        with self.student.ranks(4) as ranks:
            call = ranks.call("total", [(COMM, [shard]) for shard in shards])
        self.check(call, shards)
        sent = Budget("2*(n-1)*m//n*s", n=4, m=12, s=8)
        self.assert_comm(call, counts={"all_reduce": 1}, sent=sent)

    @weight(2)
    @number("1.2")
    def test_values(self):
        """The sum, whatever was sent for it"""
        shards = self.shards(4)
        with self.student.ranks(4) as ranks:
            self.check(ranks.call("total", [(COMM, [shard]) for shard in shards]), shards)

    @weight(2)
    @number("1.3")
    def test_kept(self):
        """A state that stays on the ranks between calls"""
        shards = self.shards(2)
        with self.student.ranks(2, switch(2, NVLINK4), byte_scale=0.5) as ranks:
            states = ranks.keep("states", [([shard],) for shard in shards])
            for _ in range(3):
                call = ranks.call("grow", [(COMM,)] * 2, states=states)
            one = ranks.call("State.get", [(states[0],)] * 2)
        self.assertEqual(states.comm.messages, [])
        self.assertEqual([value.shape for value in call.values], [(12,), (12,)])
        self.assertEqual(call.comm.sent(0), 48)
        for value, shard in zip(one.values, shards, strict=True):
            self.assert_close("state", value, torch.from_numpy(shard + 3))

    @weight(1)
    @number("1.4")
    def test_many(self):
        """Eight ranks, several sessions"""
        shards = self.shards(8)
        for _ in range(3):
            with self.student.ranks(8) as ranks:
                self.check(ranks.call("total", [(COMM, [shard]) for shard in shards]), shards)

    @weight(1)
    @number("1.5")
    def test_dataclasses(self):
        """Sizes arrive as what they are, on a rank and without ranks"""
        given = (TINY, H100, NVLINK4, MODEL)
        expected = [2, H100.flops["bf16"], NVLINK4.bw, 16]
        self.assertEqual(self.student.call("sizes", *given).value, expected)
        with self.student.ranks(2) as ranks:
            call = ranks.call("sizes", [given] * 2)
        self.assertEqual(call.values, [expected] * 2)
