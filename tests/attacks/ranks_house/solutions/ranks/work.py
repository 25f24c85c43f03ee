"""Sums over ranks."""

from typing import Any

import numpy as np
from comm_sim import LinkSpec
from hw_specs import Chip
from llm_math import ModelConfig
from spmd import Communicator
from transformer_lab import Config

Array = np.ndarray


def total(comm: Communicator, shards: list[Array]) -> list[Array]:
    """The sum of all ranks' shards."""
    return comm.all_reduce(shards)


class State:
    """A number array that grows."""

    def __init__(self, value: Array) -> None:
        self.value = value.copy()

    def get(self) -> Array:
        """What it is."""
        return self.value


def states(shards: list[Array]) -> list[State]:
    """A state for each shard."""
    return [State(shard) for shard in shards]


def grow(comm: Communicator, states: list[State]) -> Array:
    """Adds one to each; what all ranks' add up to."""
    for state in states:
        state.value += 1
    return comm.all_reduce([state.value for state in states], label="grow")[0]


def sizes(cfg: Config, chip: Chip, link: LinkSpec, model: ModelConfig) -> list[Any]:
    """One field of each."""
    for given, kind in ((cfg, Config), (chip, Chip), (link, LinkSpec), (model, ModelConfig)):
        if type(given) is not kind:
            raise TypeError(f"{given} is no {kind.__name__}")
    return [cfg.n_layers, chip.flops["bf16"], link.bw, model.mla.kv_rank if model.mla else None]
