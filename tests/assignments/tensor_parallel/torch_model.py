"""Tensor parallelism as torch does it: a model of torch's modules, sharded by DTensor.

The model is the one that `transformer_lab` is tested with; of ours it has nothing but the names of
parameters. What is sharded, and what travels, is torch's affair: `parallelize_module` is told which
matrices are cut by columns and which by rows, and no more.

All ranks live in this process. Torch calls them local tensors of a `LocalTensor`, which runs every
operation once for each rank, and every collective by its definition.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import torch
import torch.distributed as dist
from torch.distributed._local_tensor import LocalTensor, LocalTensorMode
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor, Replicate
from torch.distributed.tensor.debug import CommDebugMode
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from torch.testing._internal.distributed.fake_pg import FakeStore

from tests.transformer_lab.torch_model import torch_model

COLUMNS, ROWS = ("wq", "wk", "wv", "w_gate", "w_up"), ("wo", "w_down")


class ParallelModel:
    """The model on n ranks of one process.

    Where n does not divide the number of KV heads, DTensor cannot give each rank whole ones. The
    model then gets a KV head of its own for each query head, copies of those that they shared:
    the same function, of a larger matrix.

    Args:
        params, cfg: of the whole model, as `transformer_lab` has them.
        mesh: the ranks, of `ranks`.
    """

    def __init__(self, params, cfg, mesh: DeviceMesh) -> None:
        self.cfg = cfg
        self.tied = params["lm_head"] is None
        self.copies = 1 if cfg.n_kv_heads % mesh.size() == 0 else cfg.n_heads // cfg.n_kv_heads
        if self.copies > 1:
            params = params | {"layers": [self._with_copies(layer) for layer in params["layers"]]}
            cfg = replace(cfg, n_kv_heads=cfg.n_heads)
        self.model = torch_model(params, cfg)
        plan = {name: ColwiseParallel() for name in COLUMNS}
        plan |= {name: RowwiseParallel() for name in ROWS}
        for layer in self.model.layers:
            parallelize_module(layer, mesh, plan)
        head = {"lm_head": ColwiseParallel(output_layouts=Replicate())}
        parallelize_module(self.model, mesh, head)

    def _with_copies(self, layer):
        """The layer with each KV head's columns as often as there are query heads that use it."""
        cfg = self.cfg
        return layer | {
            name: layer[name]
            .reshape(cfg.d_model, cfg.n_kv_heads, 1, cfg.d_head)
            .repeat(self.copies, axis=2)
            .reshape(cfg.d_model, -1)
            for name in ("wk", "wv")
        }

    def forward(self, tokens: np.ndarray) -> tuple[list[np.ndarray], Counter[str]]:
        """The logits of each rank, and how often each collective was called."""
        with CommDebugMode() as debug, torch.no_grad():
            logits = self.model(torch.tensor(tokens))
        counts = debug.get_comm_counts().items()
        return of_ranks(logits), Counter({op.__name__: count for op, count in counts if count})

    def gradients(self, tokens: np.ndarray, dlogits: np.ndarray):
        """Of all parameters, on whichever ranks they are, put together to those of the whole model.

        Returns:
            A dictionary like `params`.

        Raises:
            AssertionError: ranks differ in the gradient of what each of them holds whole.
        """
        self.model(torch.tensor(tokens)).backward(torch.tensor(dlogits))
        flat = {name: whole(value.grad) for name, value in self.model.named_parameters()}
        layers = [
            {
                name.split(".")[2]: grad.T
                for name, grad in flat.items()
                if name.startswith(f"layers.{index}.")
            }
            for index in range(self.cfg.n_layers)
        ]
        for layer in layers:
            for name in ("wk", "wv"):  # the copies' gradients are added up
                shape = (self.cfg.d_model, self.cfg.n_kv_heads, self.copies, self.cfg.d_head)
                layer[name] = layer[name].reshape(shape).sum(axis=2).reshape(shape[0], -1)
        # DTensor unties what it shards: the head is then a parameter of its own.
        embed, head = flat["embed.weight"], flat["lm_head.weight"]
        return {
            "embed": embed + head if self.tied else embed,
            "final_norm": flat["final_norm.weight"],
            "lm_head": None if self.tied else head.T,
            "layers": layers,
        }


@contextmanager
def ranks(n: int) -> Iterator[DeviceMesh]:
    """n ranks in this process, for as long as the region lasts."""
    dist.init_process_group("fake", rank=0, world_size=n, store=FakeStore())
    try:
        with LocalTensorMode(n):
            yield init_device_mesh("cpu", (n,))
    finally:
        dist.destroy_process_group()


def of_ranks(value: torch.Tensor) -> list[np.ndarray]:
    """What each rank holds of a tensor."""
    assert isinstance(value, LocalTensor)
    tensors: dict[int, torch.Tensor] = value._local_tensors
    return [tensors[rank].detach().numpy() for rank in sorted(tensors)]


def whole(value: torch.Tensor) -> np.ndarray:
    """The whole of a tensor, sharded or not."""
    if isinstance(value, DTensor):
        (placement,) = value.placements
        parts = of_ranks(value.to_local())
        if placement.is_shard():
            return np.concatenate(parts, axis=placement.dim)
        assert placement.is_replicate()
        return same(parts)
    return same(of_ranks(value))


def same(parts: Sequence[np.ndarray]) -> np.ndarray:
    """What all ranks hold alike."""
    for rank, part in enumerate(parts):
        assert np.array_equal(part, parts[0]), f"rank {rank} differs from rank 0"
    return parts[0]
