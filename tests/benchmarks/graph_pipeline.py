"""How the passes of graph_fusion grow with the graph: seconds for up to 10,000 nodes.

    python tests/benchmarks/graph_pipeline.py [graph_lab.py]

Programs of several forms, since each is long in another way: a model of many layers; a chain of
pointwise operations, all one kernel; pointwise operations that all wait for one reduction; a value
with thousands of users; a cache that is written and read by turns. A pass that is linear takes
twice as long for twice the nodes: the last column is the time at the largest size over that at the
one before.
"""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from console import print_header, print_table
from graph_ir import Graph, LayerCfg, Tensor, layer_params, prefill_layer, trace
from graph_ir.memory import check_kernels
from graph_ir.trace import exp, kv_write

SOLUTION = Path(__file__).resolve().parents[2] / "solutions/graph_fusion/graph_lab.py"
SIZES = (2_500, 5_000, 10_000)


def model(n: int) -> Graph:
    """Layers on top of each other; a layer has about 70 nodes once it is decomposed."""
    cfg = LayerCfg(16, 4, 2, 4, 24)
    layer = prefill_layer(cfg, 3)

    def program(p: dict[str, Tensor], x: Tensor) -> Tensor:
        for _ in range(n // 70):
            x = layer(p, x)
        return x

    return trace(program, {"x": (3, cfg.d)}, layer_params(cfg))


def chain(n: int) -> Graph:
    """One operation after the other."""

    def program(p: dict[str, Tensor], x: Tensor) -> Tensor:
        for k in range(n):
            x = exp(x) if k % 2 else -x
        return x

    return trace(program, {"x": (4, 8)})


def waiting(n: int) -> Graph:
    """Operations that nobody needs but a sum, which comes last."""

    def program(p: dict[str, Tensor], x: Tensor) -> Tensor:
        total = x
        for k in range(n // 2):
            total = total + x * float(k)
        return total.sum()

    return trace(program, {"x": (4, 8)})


def shared(n: int) -> Graph:
    """One value that all others use; all are outputs."""

    def program(p: dict[str, Tensor], x: Tensor) -> tuple[Tensor, ...]:
        first = exp(x)
        return tuple(first * float(k) for k in range(2, n // 2))

    return trace(program, {"x": (4, 8)})


def written(n: int) -> Graph:
    """A cache that is written and read by turns."""

    def program(p: dict[str, Tensor], cache: Tensor, x: Tensor) -> Tensor:
        total = x
        for k in range(n // 4):
            cache = kv_write(cache, x, k % 8)
            total = total + cache.permute(1, 0).sum().reshape(1, 4)
        return total

    return trace(program, {"cache": (8, 4), "x": (1, 4)})


PROGRAMS: dict[str, Callable[[int], Graph]] = {
    function.__name__: function for function in (model, chain, waiting, shared, written)
}


def pipeline(lab: ModuleType, graph: Graph) -> dict[str, float]:
    """Seconds of the processor for each step."""
    seconds: dict[str, float] = {}

    def timed(name: str, step: Callable[[], object]) -> object:
        start = time.process_time()
        result = step()
        seconds[name] = time.process_time() - start
        return result

    g = graph
    for name in ("match_attention", "decompose", "cse", "constant_fold", "simplify"):
        result = timed(name, lambda name=name, g=g: getattr(lab, name)(g))
        g = result[0] if isinstance(result, tuple) else result
    g, _ = timed("fold_norm_weight", lambda: lab.fold_norm_weight(g))  # type: ignore[misc]
    kernels = timed("fuse", lambda: lab.fuse(g))
    timed("check", lambda: check_kernels(g, kernels))  # type: ignore[arg-type]
    timed("cost", lambda: lab.graph_cost(kernels))
    return seconds


def main() -> None:
    """Prints a table for each program."""
    file = Path(sys.argv[1]) if len(sys.argv) > 1 else SOLUTION
    spec = importlib.util.spec_from_file_location("graph_lab", file)
    assert spec is not None and spec.loader is not None
    lab = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = lab
    spec.loader.exec_module(lab)
    for name, program in PROGRAMS.items():
        columns = [pipeline(lab, program(n)) for n in SIZES]
        rows = [[step, *(f"{column[step]:.2f}" for column in columns)] for step in columns[0]]
        rows.append(["all", *(f"{sum(column.values()):.2f}" for column in columns)])
        for row in rows:
            before, last = float(row[-2]), float(row[-1])
            row.append(f"{last / before:.1f}×" if before >= 0.05 else None)
        print_header(f"{name}: seconds by nodes")
        print_table(["step", *(f"{n:,}" for n in SIZES), "growth"], rows)


if __name__ == "__main__":
    main()
