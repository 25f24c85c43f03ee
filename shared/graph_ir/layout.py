"""What can run as one kernel, and where its values are while it runs.

A program of a kernel holds a tile: of all elements, or of rows. A value is there as the elements
that the program itself has computed, so another node of the kernel can have element e of it for its
own element e, and nothing else: not another order, not a repetition. In a kernel of rows there are
values of a second kind, one number for each row, which all elements of the row may use.
"""

from __future__ import annotations

from dataclasses import dataclass

from graph_ir.graph import Graph, Node
from graph_ir.index_maps import IndexMaps
from graph_ir.kernels import Kernel
from graph_ir.sizes import numel


class KernelError(ValueError):
    """A kernel cannot be; the message says which node of it stands in the way, and why."""


@dataclass(frozen=True)
class Layout:
    """Where a kernel's values are.

    Attributes:
        size: elements that the programs go through, all together.
        width: of the rows that have to be held whole; None: there are no rows.
        spaces: by node, "full", an element of the result for each of `size`, or "row", one for each
            row.
    """

    size: int
    width: int | None
    spaces: dict[int, str]

    @property
    def rows(self) -> int:
        """How many rows; as many as elements if there are none to be held."""
        return self.size if self.width is None else self.size // self.width


def layout(kernel: Kernel, maps: IndexMaps | None = None) -> Layout:
    """Where the values of a kernel are while it runs.

    Args:
        kernel: of any kind.
        maps: of its graph, if they are there already.

    Raises:
        KernelError: its nodes cannot be in one kernel of its kind.
    """
    graph, kind = kernel.graph, kernel.kind
    maps = maps or IndexMaps(graph)
    if not kernel.nodes:
        raise KernelError("a kernel has no nodes")
    if kind in ("composite", "opaque"):
        (node, *others) = kernel.nodes
        if others or node.kind != kind:
            raise KernelError(f"{kernel.label}: a kernel of kind {kind} is one {kind} node, alone")
        return Layout(numel(node.shape), None, {node.id: "full"})
    size, width, holds = _extent(kernel)
    found = Layout(size, width, {})
    inside = {node.id for node in kernel.nodes}
    for node in kernel.nodes:
        found.spaces[node.id] = _space(graph, found, node, kind, holds)
        for k, i in enumerate(node.inputs):
            if graph.root(i) in inside:
                _check_operand(graph, maps, found, node, k)
    return found


def _extent(kernel: Kernel) -> tuple[int, int | None, int | None]:
    """Elements, width of rows, and the width that rot_pairs may have at most."""
    graph, kind = kernel.graph, kernel.kind
    products = [node for node in kernel.nodes if node.kind == "matmul"]
    reductions = [node for node in kernel.nodes if node.kind == "reduction"]
    rotations = [node for node in kernel.nodes if node.op == "rot_pairs"]
    if kind == "matmul":
        if len(products) != 1 or reductions:
            raise KernelError(
                f"{kernel.label}: a matmul kernel has one product, but this {len(products)}, and "
                f"no reductions, but this {len(reductions)}"
            )
        (product,) = products
        return numel(product.shape), None, numel(product.shape[-1:])
    if products or (kind == "pointwise" and reductions):
        odd = (products or reductions)[0]
        raise KernelError(f"{kernel.label}: {odd.op} %{odd.id} is in a {kind} kernel")
    if kind == "rowwise":
        if not reductions:
            raise KernelError(f"{kernel.label}: a rowwise kernel has reductions, this has none")
        shape = graph[reductions[0].inputs[0]].shape
        return numel(shape), numel(shape[-1:]), None
    if rotations:
        return numel(rotations[0].shape), numel(rotations[0].shape[-1:]), None
    return numel(kernel.nodes[0].shape), None, None


def _space(graph: Graph, found: Layout, node: Node, kind: str, holds: int | None) -> str:
    where = f"{node.op} %{node.id}"
    if node.kind not in ("pointwise", "reduction", "matmul"):
        raise KernelError(f"{where} is {node.kind}: it does not go into a {kind} kernel")
    shape = graph[node.inputs[0]].shape if node.kind == "reduction" else node.shape
    if node.kind == "reduction":
        if (numel(shape), numel(shape[-1:])) != (found.size, found.width):
            raise KernelError(
                f"{where} reduces rows of {shape}; its kernel holds {found.rows} rows of "
                f"{found.width}"
            )
        return "row"
    if node.op == "rot_pairs":
        width = numel(shape[-1:])
        whole = width == found.width if holds is None else holds % width == 0
        if numel(shape) != found.size or not whole:
            raise KernelError(f"{where} needs rows of {width} whole, and its kernel has others")
    if numel(shape) == found.size:
        return "full"
    if found.width is not None and kind == "rowwise" and numel(shape) == found.rows:
        return "row"
    raise KernelError(
        f"{where} has {numel(shape)} elements; its kernel goes through {found.size}"
        + (f", in {found.rows} rows" if found.width is not None else "")
    )


def _check_operand(graph: Graph, maps: IndexMaps, found: Layout, node: Node, k: int) -> None:
    root = graph.root(node.inputs[k])
    where = f"{node.op} %{node.id}: operand {k}, which %{root} of its own kernel computes,"
    if root not in found.spaces:
        raise KernelError(f"{where} comes only later in the kernel")
    if node.kind == "matmul":
        raise KernelError(f"{where} must be complete before a product begins")
    mine = "full" if node.kind == "reduction" else found.spaces[node.id]
    theirs = found.spaces[root]
    index = maps.operand(node.id, k)
    if (mine, theirs) == ("full", "row"):
        assert found.width is not None
        of_rows = index.of_rows(found.width)
        if of_rows is None or not of_rows.is_identity:
            raise KernelError(f"{where} is one number a row, and it is used across rows")
    elif mine != theirs:
        raise KernelError(f"{where} is a row for each of its elements")
    elif not index.is_identity:
        raise KernelError(
            f"{where} is used in another order, or repeated; a program has only the elements that "
            "it has computed"
        )
