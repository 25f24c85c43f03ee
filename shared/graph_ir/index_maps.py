"""Index maps: which element of memory a program reads for element e of a view.

A view of any number of axes is read here by one number, e = 0 … N − 1, in the order of its
elements. Where it lies is written as *digits*: e is taken apart from its end, by sizes, and each
digit moves the address by its stride:

    (16, 128), as it lies                 ((2048, 1),)              the identity
    its transpose, (128, 16)              ((128, 1), (16, 128))
    (128,) repeated for 16 rows           ((16, 0), (128, 1))       stride 0: the same again
    (16, 1) repeated along rows of 128    ((16, 1), (128, 0))

Digits that count on without a gap are merged, so that equal maps are written equally: splitting and
merging axes (H·dh into H and dh) is the identity. Two values have as many elements far more often
than they have the same map: a square matrix and its transpose, for one.

Some reshapes cut through digits: (4, 6) transposed, then as (8, 3). Such a map has two layers: the
digits of the second give an element of the transpose, those of the first its address.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from graph_ir.graph import Graph
from graph_ir.sizes import Shape, numel

Digits = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class IndexMap:
    """From the elements of a view to elements of memory.

    Attributes:
        size: elements of the view.
        layers: digits, (size, stride) each, outermost first. The last layer is applied to e, the
            one before it to its result, and so on; no layer is the identity.
    """

    size: int
    layers: tuple[Digits, ...]

    @property
    def is_identity(self) -> bool:
        """Whether element e is element e of memory."""
        return not self.layers

    @property
    def repeats(self) -> bool:
        """Whether some element of memory is shown more than once."""
        return any(stride == 0 for digits in self.layers for _, stride in digits)

    def of_rows(self, width: int) -> IndexMap | None:
        """If elements of a row of `width` are all the same one: the map of rows, else None."""
        if width == 1:
            return self
        if self.size % width:
            return None
        if not self.layers:
            return None
        parts = _regrouped(self.layers[-1], (self.size // width, width))
        if parts is None or any(stride for _, stride in parts[1]):
            return None
        rows = self.size // width
        last = _merged(parts[0])
        kept = () if last == _merged(((rows, 1),)) else (last,)
        return IndexMap(rows, self.layers[:-1] + kept)

    def address(self, element: int) -> int:
        """Where element e of the view lies in memory."""
        for digits in reversed(self.layers):
            rest, place = element, 0
            for size, stride in reversed(digits):
                place += rest % size * stride
                rest //= size
            element = place
        return element


@dataclass(frozen=True)
class _Partial:
    """A map whose last layer still has its digits by axis, so that views can go on top."""

    layers: tuple[Digits, ...]
    axes: tuple[Digits, ...]

    def finished(self) -> IndexMap:
        flat = tuple(digit for axis in self.axes for digit in axis)
        size = math.prod(size for size, _ in flat)
        layers = (*self.layers, _merged(flat))
        return IndexMap(size, tuple(digits for digits in layers if not _is_identity(digits)))

    def permuted(self, order: tuple[int, ...]) -> _Partial:
        return _Partial(self.layers, tuple(self.axes[axis] for axis in order))

    def expanded(self, old: Shape, new: Shape) -> _Partial:
        axes = [((size, 0),) for size in new[: len(new) - len(old)]]
        for digits, before, after in zip(self.axes, old, new[len(new) - len(old) :], strict=True):
            axes.append(digits if before == after else ((after, 0),))  # type: ignore[arg-type]
        return _Partial(self.layers, tuple(axes))  # type: ignore[arg-type]

    def reshaped(self, shape: tuple[int, ...]) -> _Partial:
        flat = _merged(tuple(digit for axis in self.axes for digit in axis))
        axes = _regrouped(flat, shape)
        if axes is not None:
            return _Partial(self.layers, axes)
        return _Partial((*self.layers, flat), _contiguous(shape))


class IndexMaps:
    """The index maps of a graph's values, each found once.

    Args:
        graph: one whose sizes all have values (`Graph.bind`).

    Raises:
        ValueError: a size is a name.
    """

    def __init__(self, graph: Graph) -> None:
        names = ", ".join(sorted(graph.names()))
        if names:
            raise ValueError(f"sizes {names} have no values yet; pass bind={{…}} with each of them")
        self.graph = graph
        self._known: dict[int, _Partial] = {}
        self._of_operands: dict[tuple[int, Shape], IndexMap] = {}

    def value(self, number: int) -> IndexMap:
        """From the elements of this value to those of its root."""
        return self._partial(number).finished()

    def operand(self, number: int, index: int) -> IndexMap:
        """From the elements of a node's result to those of the root of its operand `index`.

        A pointwise operation reads for each element of its result one of each operand, which is
        repeated as numpy's broadcasting does. For a reduction it is the elements of the operand
        that are counted, since that is what it goes through.
        """
        node = self.graph[number]
        operand = node.inputs[index]
        old = self.graph[operand].shape
        new = node.shape if node.kind == "pointwise" else old
        if (operand, new) not in self._of_operands:
            partial = self._partial(operand).expanded(old, new)
            self._of_operands[operand, new] = partial.finished()
        return self._of_operands[operand, new]

    def _partial(self, number: int) -> _Partial:
        pending = []
        while number not in self._known:
            node = self.graph[number]
            if node.kind == "view":
                pending.append(number)
                number = node.inputs[0]
            elif node.spec.mutates is not None:
                pending.append(number)
                number = node.inputs[node.spec.mutates]
            else:
                self._known[number] = _Partial((), _contiguous(_whole(node.shape)))
        for view in reversed(pending):
            self._known[view] = self._on_top(view, self._known[number])
            number = view
        return self._known[number]

    def _on_top(self, view: int, below: _Partial) -> _Partial:
        node = self.graph[view]
        if node.op == "permute":
            return below.permuted(node.attrs["axes"])
        if node.op == "expand":
            return below.expanded(self.graph[node.inputs[0]].shape, node.shape)
        if node.op == "reshape":
            return below.reshaped(_whole(node.shape))
        return below  # kv_write shows the memory that it has written


def _whole(shape: Shape) -> tuple[int, ...]:
    numel(shape)  # raises for names
    return tuple(size for size in shape if isinstance(size, int))


def _contiguous(shape: tuple[int, ...]) -> tuple[Digits, ...]:
    axes: list[Digits] = []
    stride = 1
    for size in reversed(shape):
        axes.append(((size, stride),))
        stride *= size
    return tuple(reversed(axes))


def _is_identity(digits: Digits) -> bool:
    return not digits or (len(digits) == 1 and digits[0][1] == 1)


def _merged(digits: Digits) -> Digits:
    """Without digits of size 1; neighbours are one where the outer counts on from the inner."""
    merged: list[tuple[int, int]] = []
    for size, stride in digits:
        if size == 1:
            continue
        if merged and merged[-1][1] == size * stride:
            merged[-1] = merged[-1][0] * size, stride
        else:
            merged.append((size, stride))
    return tuple(merged)


def _regrouped(digits: Digits, shape: tuple[int, ...]) -> tuple[Digits, ...] | None:
    """The digits by the axes of a shape of as many elements; None if one spans a border badly."""
    rest = list(digits)
    axes: list[Digits] = []
    for size in reversed(shape):
        axis: list[tuple[int, int]] = []
        while size > 1:
            inner, stride = rest.pop()
            if size % inner == 0:
                size //= inner
            elif inner % size == 0:
                rest.append((inner // size, stride * size))
                inner, size = size, 1
            else:
                return None
            axis.append((inner, stride))
        axes.append(tuple(reversed(axis)))
    return tuple(reversed(axes))
