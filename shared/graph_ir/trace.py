"""From a Python function to its graph: run it once on tensors that write down what is done to them.

    def double_norm(p, x):
        return rms_norm(x * 2, p["weight"], eps=1e-5)

    graph = trace(double_norm, {"x": (16, 128)}, {"weight": np.ones(128)})

The function gets the parameters as a dictionary, then the inputs by name. `x` is a `Tensor`: it has
a shape and a dtype but no numbers, so the function cannot branch on them. Numbers that are written
down (`x * 2`) become literals, arrays become constants.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from graph_ir.graph import Builder, Graph, GraphError, Node
from graph_ir.sizes import Shape, Size

Operand = "Tensor | float | np.ndarray[Any, Any]"


class Tensor:
    """A value of a program that is being traced: operators and functions on it add nodes.

    Attributes:
        shape: sizes, numbers or names.
        dtype: "bf16", "f32", …
    """

    __array_ufunc__ = None  # so that array * tensor asks the tensor

    def __init__(self, build: Builder, number: int) -> None:
        self._build = build
        self._number = number

    @property
    def _node(self) -> Node:
        return self._build.nodes[self._number]

    @property
    def shape(self) -> Shape:
        """Sizes, numbers or names."""
        return self._node.shape

    @property
    def dtype(self) -> str:
        """The dtype's name."""
        return self._node.dtype

    def __repr__(self) -> str:
        return f"Tensor({self._node})"

    def __bool__(self) -> bool:
        raise TypeError("a traced tensor has no numbers, so a program cannot branch on it")

    def constant(self, array: Any, name: str = "constant", dtype: str | None = None) -> Tensor:
        """An array as a constant of this tensor's program, by default of this tensor's dtype."""
        values = np.asarray(array)
        number = self._build.constant(name, values, values.shape, dtype or self.dtype)
        return Tensor(self._build, number)

    def __neg__(self) -> Tensor:
        return apply("neg", self)

    def __add__(self, other: Any) -> Tensor:
        return apply("add", self, other)

    def __radd__(self, other: Any) -> Tensor:
        return apply("add", other, self)

    def __sub__(self, other: Any) -> Tensor:
        return apply("sub", self, other)

    def __rsub__(self, other: Any) -> Tensor:
        return apply("sub", other, self)

    def __mul__(self, other: Any) -> Tensor:
        return apply("mul", self, other)

    def __rmul__(self, other: Any) -> Tensor:
        return apply("mul", other, self)

    def __truediv__(self, other: Any) -> Tensor:
        return apply("div", self, other)

    def __rtruediv__(self, other: Any) -> Tensor:
        return apply("div", other, self)

    def __matmul__(self, other: Any) -> Tensor:
        return apply("matmul", self, other)

    def __lt__(self, other: Any) -> Tensor:
        return apply("less", self, other)

    def reshape(self, *shape: Size) -> Tensor:
        """The same elements in the same order, with other axes."""
        return apply("reshape", self, shape=tuple(shape))

    def permute(self, *axes: int) -> Tensor:
        """Axes in another order."""
        return apply("permute", self, axes=tuple(axes))

    def expand(self, *shape: Size) -> Tensor:
        """Axes of size 1, and new ones in front, repeated."""
        return apply("expand", self, shape=tuple(shape))

    def sum(self) -> Tensor:
        """Of the last axis, which stays as 1."""
        return apply("sum", self)

    def max(self) -> Tensor:
        """Of the last axis, which stays as 1."""
        return apply("max", self)


def apply(name: str, /, *operands: Any, **attrs: Any) -> Tensor:
    """Adds the operation to the program of its operands.

    Args:
        name: of the operation, as `graph_ir.ops` lists them.
        operands: tensors, of which at least one; numbers and arrays too for pointwise operations.
        attrs: its attributes.

    Raises:
        GraphError: the operands do not fit, are of two programs, or none is a tensor.
    """
    tensors = [operand for operand in operands if isinstance(operand, Tensor)]
    if not tensors:
        raise GraphError(f"{name}: no operand is a tensor of a traced program")
    build = tensors[0]._build
    numbers = []
    for operand in operands:
        if isinstance(operand, Tensor):
            if operand._build is not build:
                raise GraphError(f"{name}: {operand} belongs to another program")
            numbers.append(operand._number)
        elif isinstance(operand, np.ndarray) and operand.ndim:
            numbers.append(tensors[0].constant(operand)._number)
        else:
            numbers.append(build.scalar(float(operand)))
    return Tensor(build, build.add(name, numbers, **attrs))


def exp(x: Tensor) -> Tensor:
    """e to the power of each element."""
    return apply("exp", x)


def rsqrt(x: Tensor) -> Tensor:
    """1/√x of each element."""
    return apply("rsqrt", x)


def where(condition: Tensor, a: Any, b: Any) -> Tensor:
    """An element of a where the condition holds, else of b."""
    return apply("where", condition, a, b)


def maximum(a: Any, b: Any) -> Tensor:
    """The larger element; NaN where either is."""
    return apply("maximum", a, b)


def minimum(a: Any, b: Any) -> Tensor:
    """The smaller element; NaN where either is."""
    return apply("minimum", a, b)


def cast(x: Tensor, dtype: str) -> Tensor:
    """Rounded to another dtype."""
    return apply("cast", x, dtype=dtype)


def rot_pairs(x: Tensor) -> Tensor:
    """(x₁, x₂), the halves of the last axis, become (−x₂, x₁)."""
    return apply("rot_pairs", x)


def rms_norm(x: Tensor, weight: Tensor, eps: float = 1e-5) -> Tensor:
    """x · (mean(x²) + ε)^(−1/2) · weight over the last axis."""
    return apply("rms_norm", x, weight, eps=eps)


def softmax(x: Tensor) -> Tensor:
    """exp(x) / Σ exp(x) over the last axis."""
    return apply("softmax", x)


def silu(x: Tensor) -> Tensor:
    """x · σ(x)."""
    return apply("silu", x)


def kv_write(cache: Tensor, new: Tensor, pos: Size) -> Tensor:
    """Writes new (…, T, dh) to positions pos, …, pos + T − 1 of cache (…, S, dh), in place."""
    return apply("kv_write", cache, new, pos=pos)


def bernoulli(like: Tensor, p: float) -> Tensor:
    """1 with probability p, else 0: of the shape and dtype of `like`, drawn anew at each call."""
    build = like._build
    return Tensor(build, build.add("bernoulli", p=p, shape=like.shape, dtype=like.dtype))


def flash_attention(q: Tensor, k: Tensor, v: Tensor, scale: float, causal: bool = False) -> Tensor:
    """softmax(q kᵀ·scale + mask) v in one kernel; of k and v with fewer heads, expand them."""
    return apply("flash_attention", q, k, v, scale=scale, causal=causal)


def trace(
    fn: Callable[..., Any],
    inputs: Mapping[str, Sequence[Size] | tuple[Sequence[Size], str]],
    params: Mapping[str, Any] | None = None,
    dtype: str = "bf16",
) -> Graph:
    """Runs `fn(params, **inputs)` on tensors without numbers, and returns what it did as a graph.

    Args:
        fn: returns a tensor or a tuple of them.
        inputs: shape by name, or (shape, dtype). Sizes may be names, such as "S".
        params: arrays by name, or their shapes: enough to count bytes, not to run. They become
            constants.
        dtype: of inputs, parameters and arrays for which nothing else is said.

    Raises:
        GraphError: operands of an operation do not fit, or the function returns something else.
    """
    build = Builder()
    tensors = {}
    for name, given in inputs.items():
        shape, of = (given[0], given[1]) if _with_dtype(given) else (given, dtype)
        tensors[name] = Tensor(build, build.input(name, tuple(shape), str(of)))  # type: ignore[arg-type]
    weights = {}
    for name, value in (params or {}).items():
        array = None if isinstance(value, tuple) else np.asarray(value)
        shape = value if array is None else array.shape
        weights[name] = Tensor(build, build.constant(name, array, shape, dtype))
    returned = fn(weights, **tensors)
    results = returned if isinstance(returned, tuple) else (returned,)
    for result in results:
        if not isinstance(result, Tensor) or result._build is not build:
            raise GraphError(f"the program returns {result!r}, which is no tensor of it")
    return build.finish([result._number for result in results])


def _with_dtype(given: Sequence[Any]) -> bool:
    return len(given) == 2 and not isinstance(given[0], int | str)
