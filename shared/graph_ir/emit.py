"""Kernels of a graph as Triton kernels: the source of each, and a launch.

    program = emit(kernel)                 # a pointwise or rowwise kernel
    print(program.source)
    stored = program.launch({number: tensor of that input, …})

The source is what one would write by hand. A tile is either elements of everything (pointwise), or
some whole rows (rowwise; with rot_pairs also pointwise), or, where a row is wider than a tile, one
row piece by piece, in as many passes as its reductions depend on each other.

**What is loaded** is counted when it is written down, in `loads`:

    an operand that shows each element once     each of its elements, once
    one number a row                            once a row
    one that repeats elements (broadcast), or   all of it, once, to the side of each program, and
    that is shown in two orders                 picked out from there (`tl.gather`)

With operands of the third kind the kernel runs as one program that goes through all tiles, so that
they are loaded once; `programs=` says otherwise, and each program loads them. So what is loaded is
what the graph says the kernel reads, with two exceptions: a row that is wider than a tile is loaded
in each pass, and what does not fit the side (`SIDE` elements) is loaded wherever it is used. A
cache would catch those; `loads` has them.

Values are computed in float64 where the graph says so, else in float32, whatever they are stored
in; so a chain in bf16 rounds when it is stored, and not in between (as Inductor's kernels do).
"""

from __future__ import annotations

import atexit
import importlib.util
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graph_ir.dtypes import ITEMSIZE
from graph_ir.index_maps import IndexMaps
from graph_ir.kernels import Kernel
from graph_ir.layout import KernelError
from graph_ir.triton_source import Writer

#: Elements of a tile: a row of Llama-3.1-8B's residual stream.
TILE = 4096
#: Elements that a program may keep at its side: 64 KB in float32, of the 228 KB that a
#: multiprocessor of an H100 has.
SIDE = 1 << 14


@dataclass(frozen=True)
class Program:
    """A kernel as Triton source.

    Attributes:
        kernel: what it computes.
        source: of a Python module with one `@triton.jit` function, called `name`.
        name: of the function.
        programs: how many are launched.
        loads: elements that it loads of each input, by the input's number.
    """

    kernel: Kernel
    source: str
    name: str
    programs: int
    loads: Mapping[int, int]

    @property
    def loaded_bytes(self) -> int:
        """Bytes that a launch loads."""
        graph = self.kernel.graph
        return sum(n * ITEMSIZE[graph[number].dtype] for number, n in self.loads.items())

    def launch(self, tensors: Mapping[int, Any]) -> dict[int, Any]:
        """Runs it.

        Args:
            tensors: a contiguous torch tensor for each of `kernel.inputs`, by number, of the
                graph's shape and dtype.

        Returns:
            A new tensor for each of `kernel.outputs`, by number.

        Raises:
            ValueError: a tensor has another shape or dtype, or is not contiguous.
        """
        import torch

        graph = self.kernel.graph
        given = []
        for number in self.kernel.inputs:
            tensor, node = tensors[number], graph[number]
            fits = tuple(tensor.shape) == node.shape and tensor.dtype == torch_dtype(node.dtype)
            if not fits or not tensor.is_contiguous():
                raise ValueError(
                    f"%{number} is {node.shape} {node.dtype}, contiguous; the tensor given for it "
                    f"is {tuple(tensor.shape)} {tensor.dtype}"
                )
            given.append(tensor)
        device = given[0].device if given else None
        stored = {
            number: torch.empty(
                [int(size) for size in graph[number].shape],
                dtype=torch_dtype(graph[number].dtype),
                device=device,
            )
            for number in self.kernel.outputs
        }
        function = load(self.source, self.name)
        function[(self.programs,)](*given, *stored.values())
        return stored


def torch_dtype(dtype: str) -> Any:
    """torch's dtype of this name."""
    import torch

    names = {"bf16": "bfloat16", "f16": "float16", "f32": "float32", "f64": "float64"}
    return getattr(torch, names.get(dtype, dtype))


def emit(
    kernel: Kernel,
    tile: int = TILE,
    programs: int | None = None,
    side: int = SIDE,
    maps: IndexMaps | None = None,
) -> Program:
    """The Triton kernel of a pointwise or rowwise kernel.

    Args:
        kernel: what to write.
        tile: elements of a tile, a power of two. Rows that are wider are taken piece by piece.
        programs: how many to launch. None: one for each tile, or one alone if operands are kept at
            its side.
        side: elements that a program may keep at its side.
        maps: of the kernel's graph, if they are there already.

    Raises:
        KernelError: it is of another kind, or its nodes cannot be in one kernel.
        ValueError: `tile` is no power of two.
    """
    if kernel.kind not in ("pointwise", "rowwise"):
        raise KernelError(f"{kernel.label}: a {kernel.kind} kernel is not written in Triton here")
    if tile < 1 or tile & (tile - 1):
        raise ValueError(f"tile is {tile}; a power of two is needed")
    writer = Writer(kernel, tile, programs, side, maps or IndexMaps(kernel.graph))
    return Program(kernel, writer.source(), writer.function, writer.programs, writer.loads)


_modules: dict[str, Any] = {}
_folder: tempfile.TemporaryDirectory[str] | None = None


def load(source: str, name: str) -> Any:
    """A function of a module with this source. Triton reads sources from files, so it gets one."""
    global _folder
    if source not in _modules:
        if _folder is None:
            _folder = tempfile.TemporaryDirectory(prefix="graph_ir_")
            atexit.register(_folder.cleanup)
        path = Path(_folder.name) / f"emitted_{len(_modules)}.py"
        path.write_text(source, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        _modules[source] = module
    return getattr(_modules[source], name)
