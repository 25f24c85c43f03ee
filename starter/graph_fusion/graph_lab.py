"""A small graph compiler whose predicted bytes can be checked.

A program is traced into a graph (`graph_ir`); the passes of this file rewrite it and put its nodes
together into kernels. A kernel costs what it loads and stores, and a launch; so a compiler's work
is to have few of them, and nothing between them that could have stayed on the chip.

    task  function            what it does
    1     decompose           composites become the operations that they are made of
    2     cse                 what is computed twice is computed once
    3     constant_fold       what depends on constants alone is computed now
    3     simplify            operations that change nothing vanish
    4     fold_norm_weight    a norm's weight moves into the matrices behind it
    5     match_attention     softmax(q kᵀ·scale + mask) v becomes one FlashAttention kernel
    6     fuse                the nodes of each kernel, what it loads, and what it stores

**A pass keeps the meaning.** Run before and after (`execute`), the outputs are equal: to the last
bit after tasks 1 to 3, up to float64's rounding after tasks 4 and 5, which add in another order.
IEEE numbers are no real numbers: x·0 is NaN for x = ∞, x + 0 is +0 for x = −0, and the result of
float32 · bf16 is float32, whatever the numbers are. Three more things are part of the meaning:

    random nodes     are draws: two that look alike differ, and each moves the generator on
    kv_write         changes memory: who reads it before, or after, must stay there. A value that is
                     no longer copied but shown would change with it
    outputs          are computed, stored and returned, whoever else uses them

**A pass is linear.** A model has ten thousand nodes: look at each one, and at its operands and
users, but do not search the graph for every node.

Notation, the same in code, comments and handout: %i is node number i; a *root* is the node whose
memory holds a value (`graph.root`), which for a view is somebody else.

References:
    J. Ansel et al., "PyTorch 2: Faster Machine Learning Through Dynamic Python Bytecode
        Transformation and Graph Compilation", ASPLOS 2024: sections 4.2 (decompositions), 4.4
        (fusion); table 4 is what each of them is worth.
    T. Dao et al., "FlashAttention", NeurIPS 2022, arXiv:2205.14135.
    IEEE 754-2019, sections 6.1 to 6.3: ∞, NaN, and the sign of zero.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from graph_ir import (
    H100,
    LLAMA8B,
    Builder,
    Graph,
    IndexMap,
    IndexMaps,
    Kernel,
    LayerCfg,
    Node,
    decode_layer,
    execute,
    graph_cost,
    kernel_time,
    layer_params,
    prefill_layer,
    rewrite,
    trace,
)
from graph_ir.dtypes import promote
from graph_ir.ops import Array, Context, causal_mask
from graph_ir.sizes import numel

__all__ = [
    "H100",
    "LLAMA8B",
    "LayerCfg",
    "constant_fold",
    "cse",
    "decode_layer",
    "decompose",
    "execute",
    "fold_norm_weight",
    "fuse",
    "graph_cost",
    "kernel_time",
    "layer_params",
    "match_attention",
    "prefill_layer",
    "simplify",
    "trace",
]

# -------------------------------------------------------------------------------------------------
# Task 1: composites become what they are made of
# -------------------------------------------------------------------------------------------------


def decompose(g: Graph) -> Graph:
    """The graph with rms_norm, softmax and silu written out.

        rms_norm(x, w)   7   m = Σ x·x / d, one number a row;  x · rsqrt(m + ε) · w
        softmax(x)       5   e = exp(x − max x);  e / Σ e
        silu(x)          4   x / (exp(−x) + 1)

    Sums and maxima are of the last axis, which stays as 1. In this order the results are equal to
    the composites' to the last bit. The maximum is not for nothing: exp(710) is ∞, and ∞/∞ NaN.
    """

    raise NotImplementedError(
        "graph_fusion 1: rewrite each composite, in the order of the formulas"
    )


# -------------------------------------------------------------------------------------------------
# Task 2: what is computed twice is computed once
# -------------------------------------------------------------------------------------------------


def cse(g: Graph) -> Graph:
    """The graph in which of several nodes that compute the same only the first is left.

    The same: operation, operands and attributes, and for add and mul operands in either order.
    (maximum(+0, −0) may be either zero: there the order counts.) Not the same, though they look it:
    two random nodes; two reads of memory between which a kv_write changes it (`graph.version`); the
    literals 0.0 and −0.0. And two values one of which is written to later must stay two.
    """

    raise NotImplementedError(
        "graph_fusion 2: a dictionary from what a node computes to its number"
    )


# -------------------------------------------------------------------------------------------------
# Task 3: what is known now, and what changes nothing
# -------------------------------------------------------------------------------------------------


def constant_fold(g: Graph) -> tuple[Graph, int]:
    """Nodes whose operands are constants become constants.

    Returns the graph and how many nodes were folded; views, which cost nothing, do not count. Where
    only shapes are known the new constant has no values either: what is folded does not depend on
    them. Not folded: random nodes; memory that a kv_write changes; what would be larger than the
    constants that it is made of (an outer sum), since it would cost more to load than to compute.
    """
    raise NotImplementedError(
        "graph_fusion 3: carry the values of constants, literals and their views along"
    )


def simplify(g: Graph) -> tuple[Graph, int]:
    """Operations that change nothing, whatever the numbers, vanish.

    Returns the graph and how many nodes were replaced. What is exact under IEEE, shape and dtype of
    the result being the same:

        x · 1, x / 1, x − 0, x + (−0), −(−x), max(x, x), min(x, x), where(c, x, x)    x
        x + (−y), (−y) + x                                                            x − y
        x − (−y)                                                                      x + y
        a cast to the dtype that it has, or to a wider one and back                   x
        a view of a view                                                              one view
        a view that shows what is there                                               x

    What is not: x + 0 (−0 becomes 0), x − (−0), x · 0 and x − x (NaN for ∞), x / x. A node that is
    replaced by its operand was a copy, and is none then: that must not happen where one of the two
    is memory that a kv_write changes. And −y, once written to, is not the negative of y any more.
    """
    raise NotImplementedError(
        "graph_fusion 3: look at a node and its operands' nodes in the new graph"
    )


def _evaluated(node: Node, arrays: list[Array | None]) -> Array | None:
    """What a node makes of these operands; None where one of them has no values."""
    known = [array for array in arrays if array is not None]
    if len(known) < len(arrays):
        return None
    with np.errstate(all="ignore"):  # ∞ and NaN are results, too
        return node.spec.evaluate(known, node.attrs, Context())


Replacement = int | tuple[str, list[int], dict[str, object]] | None


def _simpler(build: Builder, node: Node, inputs: list[int]) -> Replacement:
    """What a node could be replaced by, were it not for dtypes and for memory that is written.

    inputs: the new numbers of its operands, nodes of `build`.

    Returns a node's number, or (operation, operands, attributes) of a node to be added, or None.
    """
    raise NotImplementedError("graph_fusion 3: the rules of `simplify`, one after the other")


def _shows_all(node: Node, x: Node, attrs: Mapping[str, object]) -> bool:
    """Whether a view of x with these attributes is x as it is."""
    if node.op == "permute":
        return attrs["axes"] == tuple(range(len(x.shape)))
    return node.shape == x.shape


# -------------------------------------------------------------------------------------------------
# Task 4: a norm's weight moves into the matrices behind it
# -------------------------------------------------------------------------------------------------


def fold_norm_weight(g: Graph) -> tuple[Graph, int]:
    """(x̂ ⊙ w) W becomes x̂ (diag(w) W): the weight's multiplication is done now.

    Returns the graph and how many multiplications have vanished. x̂ ⊙ w is a mul by a constant of
    shape (d,), on rows of d; every user of it is a matmul that has it as its left operand, and a
    constant (d, n), to which nobody else refers, as its right one. (Another user would need x̂ ⊙ w
    after all, a tied W would have to be kept twice.) The new constant's row i is w[i] times that of
    W; where only shapes are known it has none. It must not be wider than W was: with w in float32
    and W in bf16 the matrix would cost twice what it did.
    """
    raise NotImplementedError("graph_fusion 4: find the muls; then the products' new constants")


def _is_norm_weight(g: Graph, node: Node, x: int, w: int) -> bool:
    """Whether node, x times w, is rows x times a weight w that can move into matrices."""
    raise NotImplementedError(
        "graph_fusion 4: the weight, the users, their matrices, and nothing is written"
    )


# -------------------------------------------------------------------------------------------------
# Task 5: attention becomes one kernel
# -------------------------------------------------------------------------------------------------


def match_attention(g: Graph) -> tuple[Graph, int]:
    """softmax(q kᵀ · scale + mask) v becomes flash_attention(q, k, v).

    Returns the graph and how many were found. It runs before `decompose`, while there is a softmax
    to be found. The pattern, from its end:

        matmul(softmax(scores), v)
        scores = [mask +] [scale ·] matmul(q, kᵀ)       brackets: may be missing; / scale too

    scale is a literal (1 if there is none). The mask must be the causal one, for all heads alike:
    a constant with values, of shape (T, S) or with 1s before, equal to `causal_mask(T, S)`. With
    any other mask there is no such kernel. No step may have another user, nor be an output: the
    kernel does not leave it anywhere. And the kernel stands where the last product stood: what q
    and k show must not change between the first product and there (`graph.version`).
    """
    raise NotImplementedError(
        "graph_fusion 5: walk up from each product whose left operand is a softmax"
    )


def _attention(g: Graph, last: Node) -> tuple[int, int, float, bool] | None:
    """The attention that ends with this product: (q, kᵀ, scale, causal); None if none does."""

    raise NotImplementedError(
        "graph_fusion 5: walk up; each step has one user, and nothing changes meanwhile"
    )


def _is_causal(g: Graph, mask: int, scores: Node) -> bool:
    """Whether a value is the causal mask of scores (…, T, S): a constant, or a view of one."""
    root = g[g.root(mask)]
    T_S = scores.shape[-2:]
    if root.op != "constant" or root.id in g.mutated or g[mask].shape[-2:] != T_S:
        return False
    values = g.constants[root.attrs["name"]]
    chain: list[Node] = []
    while mask != root.id:
        chain.append(g[mask])
        mask = g[mask].inputs[0]
    for view in reversed(chain):
        values = _evaluated(view, [values])
    if values is None or any(size != 1 for size in values.shape[:-2]):
        return False
    return np.array_equal(values.reshape(values.shape[-2:]), causal_mask(*values.shape[-2:]))


# -------------------------------------------------------------------------------------------------
# Task 6: kernels
# -------------------------------------------------------------------------------------------------


@dataclass
class Group:
    """Nodes that will be a kernel, while it is put together.

    kind:   as of a `Kernel`
    size:   elements that its programs go through: of a pointwise node's result, of a reduction's
            operand, of a product's result
    width:  of the rows that it has to hold whole; for a matmul that of its result's rows; None: it
            has no rows
    spaces: its nodes by number, and whether a node's result has an element for each of `size`
            ("full") or for each row ("row")
    """

    kind: str
    size: int
    width: int | None
    spaces: dict[int, str] = field(default_factory=dict)


def _new_group(node: Node, before: Node | None = None) -> Group:
    """A kernel that begins with this node; `before` is the operand of a reduction."""
    if node.kind == "reduction" and before is not None:
        return Group("rowwise", numel(before.shape), numel(before.shape[-1:]))
    kind = "rowwise" if node.kind == "reduction" else node.kind
    width = numel(node.shape[-1:]) if node.kind == "matmul" or node.op == "rot_pairs" else None
    return Group(kind, numel(node.shape), width, {node.id: "full"})


def _space(g: Graph, maps: IndexMaps, group: Group, node: Node) -> str | None:
    """Where a node's result would be if it joined this kernel: "full", "row", or None, it may not.

    A node may join if its size fits, and each operand that the kernel computes is read by the
    identity map: elements by elements, rows by rows; or rows, each for all elements of its row.
    """
    raise NotImplementedError("graph_fusion 6: kinds, sizes, widths; then the operands' maps")


def _join(g: Graph, maps: IndexMaps, group: Group, node: Node) -> bool:
    """Puts a node into a kernel, if it may be there."""
    space = _space(g, maps, group, node)
    if space is None:
        return False
    group.spaces[node.id] = space
    if node.kind == "reduction":
        group.kind = "rowwise"
    if (node.kind == "reduction" or node.op == "rot_pairs") and group.width is None:
        group.width = numel(g[node.inputs[0]].shape[-1:])
    return True


def _grouped(g: Graph) -> list[Group]:
    """The kernels of `fuse`, each with its nodes, in the order in which they run."""
    raise NotImplementedError(
        "graph_fusion 6: who waits; then node by node to the last kernel it depends on"
    )


def _waiting(g: Graph) -> list[bool]:
    """For each node whether it waits: it is pointwise, and all its results end in reductions."""
    raise NotImplementedError("graph_fusion 6: from the last node to the first")


def fuse(g: Graph, enable: bool = True, bind: Mapping[str, int] | None = None) -> list[Kernel]:
    """Puts the nodes of a graph together into kernels, in the order in which they run.

    Args:
        g: a graph.
        enable: False: each node is a kernel of its own.
        bind: values of symbolic sizes: {"S": 4096}.

    Every node that computes is in exactly one kernel; views and leaves are in none. Kernels are of
    the kinds

        matmul       one product, and pointwise nodes that are done to its result (its epilogue)
        pointwise    pointwise nodes
        rowwise      reductions of rows of one width, and pointwise nodes before and after them
        composite, opaque    one node

    **Who may be together.** A value that stays on the chip is there as the elements that a program
    computes: the same element for the same place. So nodes share a kernel only if each reads the
    others' results by the identity map (`IndexMaps`): not the transposed, not a broadcast one. In a
    rowwise kernel results of reductions, one number for each row, are used for all of that row, and
    pointwise nodes may work on such numbers. rot_pairs moves elements within a row: that row must
    be whole, so it is the width of the kernel, or divides a product's.

    **Where a node goes.** In the order of the program, to the last of the kernels that it depends
    on (operands, and who wrote to memory before it), if it may be there; else to a new one at the
    end. So no kernel ever depends on a later one, and no cycle can arise. A pointwise node all of
    whose results end in reductions waits for the first of these and goes with it: in the epilogue
    of the product before, the square of RMSNorm would be one more value to store. (It cannot wait
    any longer when memory that it reads is about to be changed.)

    **What a kernel moves.** It loads each root that it needs from outside once, at the root's own
    size, however often and however expanded it is used; literals cost nothing; of the memory that
    a kv_write writes to, nothing is loaded. It stores the values that another kernel or an output
    needs, and what kv_write writes.

    Raises:
        ValueError: a symbolic size has no value.
    """
    raise NotImplementedError(
        "graph_fusion 6: group the nodes; then find what each group loads and stores"
    )
