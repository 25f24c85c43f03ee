"""graph_ir: programs as graphs, small enough to be rewritten by hand, with a price for each kernel.

    graph = trace(prefill_layer(LLAMA8B, 2048), {"x": (2048, 4096)}, LLAMA8B.shapes())
    print(graph)
    outputs = execute(graph, {"x": x})      # needs parameters as arrays
    graph_cost(kernels)                     # {"kernels": …, "bytes": …, "t": …, "t_total": …}

`ops` lists what a program can do, `graph` says what a pass may change, `index_maps` when two values
are the same elements in the same order. `memory` runs kernels and measures what they load and
store; `emit` writes them as Triton kernels.

What to try: print a layer before and after each pass; `memory.run` on kernels that you have put
together by hand; the bytes of a kernel when an operand is broadcast.
"""

from graph_ir.cost import H100, Machine, graph_cost, kernel_time
from graph_ir.execute import execute
from graph_ir.graph import Builder, Graph, GraphError, Node, rewrite
from graph_ir.index_maps import IndexMap, IndexMaps
from graph_ir.kernels import Kernel
from graph_ir.layers import LLAMA8B, LayerCfg, decode_layer, layer_params, prefill_layer
from graph_ir.trace import Tensor, trace

__all__ = [
    "H100",
    "LLAMA8B",
    "Builder",
    "Graph",
    "GraphError",
    "IndexMap",
    "IndexMaps",
    "Kernel",
    "LayerCfg",
    "Machine",
    "Node",
    "Tensor",
    "decode_layer",
    "execute",
    "graph_cost",
    "kernel_time",
    "layer_params",
    "prefill_layer",
    "rewrite",
    "trace",
]
