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

import math  # starter: keep
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from graph_ir import (  # starter: keep
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
from graph_ir.dtypes import promote  # starter: keep
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

    # BEGIN SOLUTION graph_fusion 1: rewrite each composite, in the order of the formulas
    def written_out(build: Builder, node: Node, inputs: list[int]) -> int:
        x = inputs[0] if inputs else -1
        if node.op == "rms_norm":
            total = build.add("sum", [build.add("mul", [x, x])])
            mean = build.add("div", [total, build.scalar(numel(node.shape[-1:]))])
            shifted = build.add("add", [mean, build.scalar(node.attrs["eps"])])
            scaled = build.add("mul", [x, build.add("rsqrt", [shifted])])
            return build.add("mul", [scaled, inputs[1]])
        if node.op == "softmax":
            weights = build.add("exp", [build.add("sub", [x, build.add("max", [x])])])
            return build.add("div", [weights, build.add("sum", [weights])])
        if node.op == "silu":
            powers = build.add("exp", [build.add("neg", [x])])
            return build.add("div", [x, build.add("add", [powers, build.scalar(1)])])
        return build.copy(node, inputs)

    return rewrite(g, written_out)
    # END SOLUTION


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

    # BEGIN SOLUTION graph_fusion 2: a dictionary from what a node computes to its number
    seen: dict[object, int] = {}

    def first_of_its_kind(build: Builder, node: Node, inputs: list[int]) -> int:
        if not node.spec.pure or node.id in g.mutated or node.op == "input":
            return build.copy(node, inputs)
        # A view shows memory as it is when somebody reads it: only those who read have a version.
        versions = [g.version(i, node.id) if node.computes else 0 for i in node.inputs]
        operands = list(zip(inputs, versions, strict=True))
        if node.op in ("add", "mul"):
            operands.sort()
        # repr tells 0.0 from −0.0, and 1 from 1.0 and True; == does not.
        key = (node.op, tuple(operands), repr(node.attrs))
        if key not in seen:
            seen[key] = build.copy(node, inputs)
        return seen[key]

    return rewrite(g, first_of_its_kind)
    # END SOLUTION


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
    # BEGIN SOLUTION graph_fusion 3: carry the values of constants, literals and their views along
    count = 0
    known: dict[int, Array | None] = {}  # new number → values; no entry: not constant

    def folded(build: Builder, node: Node, inputs: list[int]) -> int:
        nonlocal count
        if node.op == "scalar":
            number = build.copy(node, inputs)
            known[number] = np.asarray(node.attrs["value"])
            return number
        if node.op == "constant":
            number = build.copy(node, inputs)
            if node.id not in g.mutated:
                known[number] = build.constants[node.attrs["name"]]
            return number
        if node.kind == "leaf" or not all(i in known for i in inputs) or not inputs:
            return build.copy(node, inputs)
        arrays = [known[i] for i in inputs]
        named = any(isinstance(size, str) for size in node.shape)
        if node.kind == "view":
            number = build.copy(node, inputs)
            if not named:
                known[number] = _evaluated(node, arrays)
            return number
        larger = named or g.nbytes(node.id) > sum(
            g.nbytes(root) for root in {g.root(i) for i in node.inputs}
        )
        if larger or not node.spec.pure or node.id in g.mutated:
            return build.copy(node, inputs)
        count += 1
        values = _evaluated(node, arrays)
        number = build.constant(f"folded_{node.op}", values, node.shape, node.dtype)
        known[number] = build.constants[build.nodes[number].attrs["name"]]
        return number

    return rewrite(g, folded), count
    # END SOLUTION


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
    # BEGIN SOLUTION graph_fusion 3: look at a node and its operands' nodes in the new graph
    count = 0
    written: dict[int, bool] = {}  # new number → whether its memory is changed anywhere

    def simplified(build: Builder, node: Node, inputs: list[int]) -> int:
        nonlocal count
        mine = g.root(node.id) in g.mutated
        found = _simpler(build, node, inputs)
        # −x is the negative of x until somebody writes to it: then it is not looked through.
        through = [i for i in inputs if build.nodes[i].op in ("neg", "cast")]
        if node.kind != "view" and any(written[i] for i in through):
            found = None
        # An operand's operand is read later than it was: memory that changes must not be between.
        if isinstance(found, int):
            other = build.nodes[found]
            same = (other.shape, other.dtype) == (node.shape, node.dtype)
            if same and (node.kind == "view" or not (mine or written[found])):
                count += 1
                return found
        elif found is not None and not any(written[i] for i in found[1]):
            name, operands, attrs = found
            count += 1
            number = build.add(name, operands, **attrs)
            written[number] = mine
            return number
        number = build.copy(node, inputs)
        written[number] = mine
        return number

    return rewrite(g, simplified), count
    # END SOLUTION


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
    # BEGIN SOLUTION graph_fusion 3: the rules of `simplify`, one after the other
    below = [build.nodes[i] for i in inputs]
    if node.kind == "view":
        x, changes = below[0], dict(node.attrs)
        if x.op == node.op:
            if node.op == "permute":
                changes["axes"] = tuple(x.attrs["axes"][axis] for axis in node.attrs["axes"])
            first = build.nodes[x.inputs[0]]
            return first.id if _shows_all(node, first, changes) else (node.op, [first.id], changes)
        return x.id if _shows_all(node, x, changes) else None
    if node.op == "neg" and below[0].op == "neg":
        return below[0].inputs[0]
    if node.op == "cast":
        x = below[0]
        if x.dtype == node.dtype:
            return x.id
        if x.op == "cast":
            first = build.nodes[x.inputs[0]]
            wider = "bool" not in (first.dtype, x.dtype) and promote((first.dtype, x.dtype))
            return first.id if (first.dtype, x.dtype) == (node.dtype, wider) else None
        return None
    if node.op in ("maximum", "minimum") and inputs[0] == inputs[1]:
        return inputs[0]
    if node.op == "where" and inputs[1] == inputs[2]:
        return inputs[1]
    if node.op not in ("add", "sub", "mul", "div"):
        return None
    # What might stay is either operand, but of sub and div only the first.
    sides = [(0, 1), (1, 0)] if node.op in ("add", "mul") else [(0, 1)]
    for stays, goes in sides:
        x, y = below[stays], below[goes]
        if y.op == "scalar":
            value = y.attrs["value"]
            sign = math.copysign(1, value)
            neutral = {"mul": value == 1, "div": value == 1, "add": value == 0 and sign < 0}
            if neutral.get(node.op, value == 0 and sign > 0):
                return x.id
        if y.op == "neg" and node.op in ("add", "sub") and x.op != "neg":
            return ("sub" if node.op == "add" else "add"), [x.id, y.inputs[0]], {}
    return None
    # END SOLUTION


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
    # BEGIN SOLUTION graph_fusion 4: find the muls; then the products' new constants
    left: dict[int, tuple[int, int]] = {}  # the mul → (x̂, w)
    for node in g.nodes:
        if node.op == "mul":
            for x, w in (node.inputs, node.inputs[::-1]):
                if _is_norm_weight(g, node, x, w):
                    left[node.id] = x, w
                    break
    folded: dict[tuple[int, int], int] = {}

    def moved(build: Builder, node: Node, inputs: list[int]) -> int:
        if node.op != "matmul" or node.inputs[0] not in left:
            number = build.copy(node, inputs)
            new[node.id] = number
            return number
        x, w = left[node.inputs[0]]
        matrix = g[node.inputs[1]]
        if (w, matrix.id) not in folded:
            names = g[w].attrs["name"], matrix.attrs["name"]
            weight, values = (g.constants[name] for name in names)
            product = None if weight is None or values is None else weight[:, None] * values
            folded[w, matrix.id] = build.constant(
                f"{names[0]}·{names[1]}", product, matrix.shape, matrix.dtype
            )
        number = build.add("matmul", [new[x], folded[w, matrix.id]])
        new[node.id] = number
        return number

    new: dict[int, int] = {}
    return rewrite(g, moved), len(left)
    # END SOLUTION


def _is_norm_weight(g: Graph, node: Node, x: int, w: int) -> bool:
    """Whether node, x times w, is rows x times a weight w that can move into matrices."""
    # BEGIN SOLUTION graph_fusion 4: the weight, the users, their matrices, and nothing is written
    weight, rows = g[w], g[x]
    fits = weight.op == "constant" and weight.shape == rows.shape[-1:] == node.shape[-1:]
    if not fits or rows.shape != node.shape or node.id in g.needed:
        return False
    users = set(g.users[node.id])
    if any(g[user].op != "matmul" or g[user].inputs[0] != node.id for user in users):
        return False
    for number in {g[user].inputs[1] for user in users}:
        matrix = g[number]
        if (
            matrix.op != "constant"
            or len(matrix.shape) != 2
            or matrix.dtype != promote((weight.dtype, matrix.dtype))
            or matrix.id in g.needed
            or not users.issuperset(g.users[matrix.id])
            or matrix.id in g.mutated
        ):
            return False
    changing = {g.root(x), w, node.id} & g.mutated
    return bool(users) and not changing
    # END SOLUTION


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
    # BEGIN SOLUTION graph_fusion 5: walk up from each product whose left operand is a softmax
    count = 0
    new: dict[int, int] = {}

    def matched(build: Builder, node: Node, inputs: list[int]) -> int:
        nonlocal count
        found = _attention(g, node) if node.op == "matmul" else None
        if found is None:
            new[node.id] = build.copy(node, inputs)
            return new[node.id]
        count += 1
        q, transposed, scale, causal = found
        rank = len(g[transposed].shape)
        swap = (*range(rank - 2), rank - 1, rank - 2)
        view = g[transposed]
        if view.op == "permute" and view.attrs["axes"] == swap:
            k = new[view.inputs[0]]
        else:
            k = build.add("permute", [new[transposed]], axes=swap)
        operands = [new[q], k, inputs[1]]
        new[node.id] = build.add("flash_attention", operands, scale=scale, causal=causal)
        return new[node.id]

    return rewrite(g, matched), count
    # END SOLUTION


def _attention(g: Graph, last: Node) -> tuple[int, int, float, bool] | None:
    """The attention that ends with this product: (q, kᵀ, scale, causal); None if none does."""

    # BEGIN SOLUTION graph_fusion 5: walk up; each step has one user, and nothing changes meanwhile
    def only(number: int, name: str) -> Node | None:
        """The node, if it is such an operation, has one user, and is not an output."""
        node = g[number]
        alone = len(g.users[number]) == 1 and number not in g.needed and number not in g.mutated
        return node if alone and node.op == name else None

    softmax = only(last.inputs[0], "softmax")
    if softmax is None:
        return None
    number, scale, causal = softmax.inputs[0], 1.0, False
    masked = only(number, "add")
    if masked is not None:
        for scores, mask in (masked.inputs, masked.inputs[::-1]):
            if _is_causal(g, mask, g[scores]):
                number, causal = scores, True
                break
        else:
            return None
    for name in ("mul", "div"):
        scaled = only(number, name)
        if scaled is not None:
            x, factor = scaled.inputs
            if name == "mul" and g[x].op == "scalar":
                x, factor = factor, x
            if g[factor].op != "scalar":
                return None
            value = g[factor].attrs["value"]
            if name == "div" and value == 0:
                return None
            number, scale = x, value if name == "mul" else 1 / value
            break
    product = only(number, "matmul")
    if product is None:
        return None
    q, transposed = product.inputs
    heads = [g[q].shape[:-2], g[transposed].shape[:-2], g[last.inputs[1]].shape[:-2]]
    moved = any(g.version(i, product.id) != g.version(i, last.id) for i in (q, transposed))
    dtype = promote((g[q].dtype, g[transposed].dtype, g[last.inputs[1]].dtype))
    if moved or heads[0] != heads[1] or heads[1] != heads[2] or dtype != last.dtype:
        return None
    return q, transposed, scale, causal
    # END SOLUTION


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
    # BEGIN SOLUTION graph_fusion 6: kinds, sizes, widths; then the operands' maps
    reduces = node.kind == "reduction"
    if node.kind not in ("pointwise", "reduction") or group.kind in ("composite", "opaque"):
        return None
    shape = g[node.inputs[0]].shape if reduces else node.shape
    size, rows = numel(shape), None
    if group.kind == "rowwise" and group.width is not None:
        rows = group.size // group.width
    if reduces or node.op == "rot_pairs":
        width = numel(shape[-1:])
        if size != group.size or (reduces and group.kind == "matmul"):
            return None
        if group.kind == "matmul":
            assert group.width is not None
            if group.width % width:
                return None
        elif group.width not in (None, width):
            return None
    if size != group.size and size != rows:
        return None
    space = "full" if size == group.size else "row"
    for k, i in enumerate(node.inputs):
        there = group.spaces.get(g.root(i))
        if there is None:
            continue
        index: IndexMap | None = maps.operand(node.id, k)
        if there == "row" and space == "full":
            assert index is not None and group.width is not None
            index = index.of_rows(group.width)
        elif there != space:
            return None
        if index is None or not index.is_identity:
            return None
    return "row" if reduces else space
    # END SOLUTION


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
    # BEGIN SOLUTION graph_fusion 6: who waits; then node by node to the last kernel it depends on
    maps = IndexMaps(g)
    groups: list[Group] = []
    home: dict[int, int] = {}  # node → place of its kernel
    waiting: set[int] = set()
    waits = _waiting(g)

    def last(numbers: list[int]) -> int | None:
        """The last kernel that these nodes depend on, beside each other."""
        places = [home[d] for i in numbers for d in g.dependencies[i] if d in home]
        return max(places, default=None)

    def place(node: Node) -> None:
        """Puts one node, all of whose dependencies are placed, where it belongs."""
        waiting.discard(node.id)
        target = last([node.id])
        if target is None or not _join(g, maps, groups[target], node):
            target = len(groups)
            if node.kind == "reduction":
                groups.append(_new_group(node, g[node.inputs[0]]))
                groups[-1].spaces[node.id] = "row"
            else:
                groups.append(_new_group(node))
        home[node.id] = target

    def held_back(node: Node) -> list[int]:
        """The nodes that wait and that this one depends on, directly or not, ascending."""
        found: set[int] = set()
        ahead = [node.id]
        while ahead:
            new = [i for i in g.dependencies[ahead.pop()] if i in waiting and i not in found]
            found.update(new)
            ahead += new
        return sorted(found)

    def place_with(node: Node, members: list[int]) -> None:
        """Puts a reduction, and nodes that have waited for it, into one kernel."""
        trial = _new_group(node, g[node.inputs[0]])
        misfits = {i for i in members if not _join(g, maps, trial, g[i])}
        if not _join(g, maps, trial, node):
            misfits.add(g.root(node.inputs[0]))
        for i in reversed(members):  # who does not come along needs its operands before
            if i in misfits:
                misfits.update(d for d in g.dependencies[i] if d in waiting)
        for i in members:
            if i in misfits:
                place(g[i])
        members = [i for i in members if i not in misfits]
        target = last([*members, node.id])
        if target is not None:
            group = groups[target]
            before = group.kind, group.width
            joined = []
            for i in [*members, node.id]:
                if not _join(g, maps, group, g[i]):
                    break
                joined.append(i)
            else:
                home.update(dict.fromkeys(joined, target))
                waiting.difference_update(joined)
                return
            for i in joined:
                del group.spaces[i]
            group.kind, group.width = before
        groups.append(_new_group(node, g[node.inputs[0]]))
        for i in [*members, node.id]:
            assert _join(g, maps, groups[-1], g[i])
            home[i] = len(groups) - 1
            waiting.discard(i)

    for node in g.nodes:
        if not node.computes:
            continue
        if waits[node.id]:
            waiting.add(node.id)
            continue
        members = held_back(node)
        if node.kind == "reduction":
            place_with(node, members)
            continue
        for i in members:
            place(g[i])
        place(node)
    return groups
    # END SOLUTION


def _waiting(g: Graph) -> list[bool]:
    """For each node whether it waits: it is pointwise, and all its results end in reductions."""
    # BEGIN SOLUTION graph_fusion 6: from the last node to the first
    waits = [False] * len(g)
    for node in reversed(g.nodes):
        readers = g.readers[node.id]
        waits[node.id] = (
            node.kind == "pointwise"
            and node.id not in g.needed
            and bool(readers)
            and all(g[reader].kind == "reduction" or waits[reader] for reader in readers)
        )
    return waits
    # END SOLUTION


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
    # BEGIN SOLUTION graph_fusion 6: group the nodes; then find what each group loads and stores
    g = g.bind(bind)
    groups = _grouped(g) if enable else [_new_group(node) for node in g.nodes if node.computes]
    home = {number: place for place, group in enumerate(groups) for number in group.spaces}
    kernels = []
    for place, group in enumerate(groups):
        inside = sorted(group.spaces)  # the order of the program
        nodes = tuple(g[number] for number in inside)
        loaded = dict.fromkeys(
            g.root(i)
            for node in nodes
            for k, i in enumerate(node.inputs)
            if k != node.spec.mutates and home.get(g.root(i)) != place and g[i].op != "scalar"
        )
        stored = tuple(
            number
            for number in inside
            if number in g.needed
            or g[number].spec.mutates is not None
            or any(home[reader] != place for reader in g.readers[number])
        )
        kernels.append(Kernel(g, group.kind, nodes, tuple(loaded), stored))
    return kernels
    # END SOLUTION
