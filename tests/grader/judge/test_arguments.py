"""What travels to a worker, and nowhere else."""

import numpy as np
import pytest
from comm_sim import NVLINK4
from graph_ir import Graph, trace
from hw_specs import H100, TPU_V5P
from llm_math import MLA, ModelConfig, MoE
from transformer_lab import TINY

from grader.judge import wire
from grader.judge.arguments import ArgumentEncoder, Arguments
from grader.testing import COMM
from grader.testing.ranks import Reference

DEEP = ModelConfig(
    "m", 3, 64, 4, 1, 16, 128, 100, moe=MoE(8, 2, 32, n_shared=1), mla=MLA(32, 16, 16, 8, 16)
)


def sent(value, read=Arguments):
    encoder = ArgumentEncoder()
    header = {"value": encoder.value(value)}
    encoder.seal()
    message = wire.unpack(wire.pack(header, encoder.storages)[8:])
    return read(message.header, message.storages).value(header["value"])


@pytest.mark.parametrize("value", [TINY, NVLINK4, DEEP, H100, TPU_V5P])
def test_dataclasses_of_shared_packages_arrive_as_they_are(value):
    (arrived,) = sent([value])
    assert type(arrived) is type(value)
    assert arrived == value


def test_a_chips_figures_stay_read_only():
    arrived = sent(H100)
    assert dict(arrived.flops) == dict(H100.flops)
    with pytest.raises(TypeError):
        arrived.flops["bf16"] = 1.0


def test_placeholders_arrive():
    comm, kept, array = sent([COMM, Reference(3, (0, "k")), np.arange(3)])
    assert comm is COMM
    assert (kept.key, kept.path) == (3, (0, "k"))
    assert array.tolist() == [0, 1, 2]


def test_a_graph_arrives_as_it_is():
    g = trace(lambda p, x: x.reshape("S", 2, 2) * p["w"], {"x": ("S", 4)}, {"w": np.eye(2)})
    arrived = sent(g)
    assert type(arrived) is Graph
    assert str(arrived.check()) == str(g)
    assert np.array_equal(arrived.constants["w"], np.eye(2))


@pytest.mark.parametrize("value", [TINY, COMM, Reference(1)])
def test_the_judge_reads_none_of_them(value):
    with pytest.raises(wire.ProtocolError, match="cannot be read"):
        sent(value, wire.Message)


@pytest.mark.parametrize(
    "name",
    [
        ["os", "system"],
        ["grader.testing.record", "Record"],
        ["transformer_lab", "KVCache"],
        ["transformer_lab", "forward"],
    ],
)
def test_no_other_class_is_built(name):
    with pytest.raises(wire.ProtocolError, match=r"no (shared package|dataclass)"):
        Arguments({}, []).value(["shared", [*name, {}]])
