"""The gradient of a replicated KV head stays what a rank's own query heads make of it.

breaks: 7
"""

from collections.abc import Sequence

from spmd import Communicator
from transformer_lab import Config


def sum_over_replicas(comm: Communicator, cfg: Config, grads: Sequence[Params]) -> list[Params]:
    return list(grads)  # wrong: the sum over the head's holders
