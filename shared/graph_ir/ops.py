"""The operations: for each its class, its shape and dtype, what it computes, and its FLOPs.

    class       what it is to a compiler                    operations
    leaf        no operation: where values come from        input, constant, scalar
    view        another index into the same memory; free    reshape, permute, expand
    pointwise   one element from one of each operand        add, mul, exp, …, where, cast, rot_pairs
    reduction   one number from each row                    sum, max
    matmul      a product of matrices                       matmul
    composite   several of the above, in one kernel that    rms_norm, softmax, silu
                somebody wrote by hand: what eager PyTorch
                calls; `decompose` opens it
    opaque      a kernel of its own, whatever surrounds it  kv_write, bernoulli, flash_attention

Two properties forbid what is fine for all others. **random** (bernoulli): two nodes that look alike
are two draws, and one that nobody uses still moves the generator on. **mutates** (kv_write): it
changes memory that exists; whoever reads that memory before it, or after it, must stay there.
(torch.fx calls nodes of both kinds impure.)

FLOPs are a pair: those of matrix products, 2·M·N·K, and all others, one for an element of the
result (pointwise) or of the operand (reductions). A composite has those of what it is made of.
Of flash_attention only the two products count, over all of T × S, masked or not: this is what
torch's FlopCounterMode reports.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graph_ir.dtypes import DTYPES, promote
from graph_ir.sizes import Shape, Size, broadcast, checked_shape, numel, product

Array = np.ndarray[Any, Any]
Attrs = Mapping[str, Any]
Shapes = tuple[Shape, ...]


@dataclass
class Context:
    """What an evaluation needs beside its operands: values of names, and random numbers.

    Attributes:
        bind: values of symbolic sizes and positions.
        draw: the numbers of the random node that is evaluated.
    """

    bind: Mapping[str, int] = field(default_factory=dict)
    draw: np.random.Generator | None = None


@dataclass(frozen=True)
class Op:
    """An operation.

    Attributes:
        name: as printed.
        kind: its class: "leaf", "view", "pointwise", "reduction", "matmul", "composite", "opaque".
        arity: operands.
        attrs: names of its attributes, all required.
        shape: of the result, from the operands' shapes and the attributes; raises ValueError.
        dtype: of the result, from the operands' dtypes and the attributes; raises ValueError.
        evaluate: the result, from arrays of float64 (or bool), attributes and a `Context`.
        flops: (of matrix products, others), from the operands' shapes and the result's.
        random: two calls give two results.
        mutates: the operand whose memory it writes; its result is that memory. None: it is pure.
    """

    name: str
    kind: str
    arity: int
    attrs: tuple[str, ...]
    shape: Callable[[Shapes, Attrs], Shape]
    dtype: Callable[[tuple[str, ...], Attrs], str]
    evaluate: Callable[[list[Array], Attrs, Context], Array]
    flops: Callable[[Shapes, Shape], tuple[int, int]]
    random: bool = False
    mutates: int | None = None

    @property
    def pure(self) -> bool:
        """Whether equal operands and attributes give equal results, and nothing else happens."""
        return not self.random and self.mutates is None


OPS: dict[str, Op] = {}


def op(name: str) -> Op:
    """The operation of this name.

    Raises:
        ValueError: there is none.
    """
    if name not in OPS:
        raise ValueError(f"there is no operation {name!r}; there are {', '.join(OPS)}")
    return OPS[name]


def _none(shapes: Shapes, shape: Shape) -> tuple[int, int]:
    return 0, 0


def _per_result(shapes: Shapes, shape: Shape) -> tuple[int, int]:
    return 0, numel(shape)


def _per_operand(shapes: Shapes, shape: Shape) -> tuple[int, int]:
    return 0, numel(shapes[0])


def _promoted(dtypes: tuple[str, ...], attrs: Attrs) -> str:
    if "bool" in dtypes:
        raise ValueError("arithmetic on bool; choose numbers with `where`, or cast it")
    return promote(dtypes)


def _first(dtypes: tuple[str, ...], attrs: Attrs) -> str:
    return dtypes[0]


def _given(dtypes: tuple[str, ...], attrs: Attrs) -> str:
    if attrs["dtype"] not in DTYPES:
        raise ValueError(f"there is no dtype {attrs['dtype']!r}; there are {', '.join(DTYPES)}")
    return str(attrs["dtype"])


def _total(x: Array) -> Array:
    """Sums of rows. Of a copy that lies in order: else numpy adds in the order of the memory, and
    equal numbers that lie otherwise would have other last bits."""
    return np.asarray(np.sum(np.ascontiguousarray(x), axis=-1, keepdims=True))


def _same(shapes: Shapes, attrs: Attrs) -> Shape:
    return shapes[0]


# -------------------------------------------------------------------------------------------------
# Leaves: the executor has their values
# -------------------------------------------------------------------------------------------------


def _leaf(args: list[Array], attrs: Attrs, context: Context) -> Array:
    raise AssertionError("leaves are looked up")


for _name in ("input", "constant"):
    OPS[_name] = Op(
        _name,
        "leaf",
        0,
        ("name", "shape", "dtype"),
        lambda shapes, attrs: checked_shape(attrs["shape"], str(attrs["name"])),
        _given,
        _leaf,
        _none,
    )
OPS["scalar"] = Op(
    "scalar", "leaf", 0, ("value",), lambda s, a: (), lambda d, a: "weak", _leaf, _none
)

# -------------------------------------------------------------------------------------------------
# Views: each shows all of the memory below it, so that a kernel that reads one reads all of that
# -------------------------------------------------------------------------------------------------


def _reshaped(shapes: Shapes, attrs: Attrs) -> Shape:
    shape = checked_shape(attrs["shape"], "reshape")
    if product(shape) != product(shapes[0]):
        raise ValueError(f"reshape: {shapes[0]} and {shape} have different numbers of elements")
    return shape


def _permuted(shapes: Shapes, attrs: Attrs) -> Shape:
    axes = attrs["axes"]
    if sorted(axes) != list(range(len(shapes[0]))):
        raise ValueError(f"permute: axes {axes} are no order of the axes of {shapes[0]}")
    return tuple(shapes[0][axis] for axis in axes)


def _expanded(shapes: Shapes, attrs: Attrs) -> Shape:
    shape = checked_shape(attrs["shape"], "expand")
    if broadcast((shapes[0], shape), "expand") != shape:
        raise ValueError(f"expand: {shapes[0]} does not grow to {shape}; only sizes of 1 grow")
    return shape


def _numbers(shape: tuple[Size, ...], context: Context) -> tuple[int, ...]:
    return tuple(context.bind[size] if isinstance(size, str) else size for size in shape)


OPS["reshape"] = Op(
    "reshape",
    "view",
    1,
    ("shape",),
    _reshaped,
    _first,
    lambda args, attrs, context: args[0].reshape(_numbers(attrs["shape"], context)),
    _none,
)
OPS["permute"] = Op(
    "permute",
    "view",
    1,
    ("axes",),
    _permuted,
    _first,
    lambda args, attrs, context: args[0].transpose(attrs["axes"]),
    _none,
)
OPS["expand"] = Op(
    "expand",
    "view",
    1,
    ("shape",),
    _expanded,
    _first,
    lambda args, attrs, context: np.broadcast_to(args[0], _numbers(attrs["shape"], context)),
    _none,
)

# -------------------------------------------------------------------------------------------------
# Pointwise
# -------------------------------------------------------------------------------------------------


def _rotated(args: list[Array], attrs: Attrs, context: Context) -> Array:
    """(x₁, x₂) of each row's halves becomes (−x₂, x₁): what RoPE multiplies by sin."""
    first, second = np.split(args[0], 2, axis=-1)
    return np.concatenate([-second, first], axis=-1)


def _even(shapes: Shapes, attrs: Attrs) -> Shape:
    width = shapes[0][-1] if shapes[0] else 1
    if isinstance(width, str) or width % 2:
        raise ValueError(f"rot_pairs: the last axis of {shapes[0]} has no two halves")
    return shapes[0]


def _pointwise(name: str, arity: int, compute: Callable[..., Array]) -> None:
    OPS[name] = Op(
        name,
        "pointwise",
        arity,
        (),
        lambda shapes, attrs: broadcast(shapes, name),
        _promoted,
        lambda args, attrs, context: np.asarray(compute(*args)),
        _per_result,
    )


def _reciprocal_root(x: Array) -> Array:
    return np.asarray(1 / np.sqrt(x))


_UNARY: dict[str, Callable[..., Array]] = {
    "neg": np.negative,
    "exp": np.exp,
    "log": np.log,
    "abs": np.abs,
    "sqrt": np.sqrt,
    "rsqrt": _reciprocal_root,
}
_BINARY: dict[str, Callable[..., Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "maximum": np.maximum,  # NaN where either is NaN
    "minimum": np.minimum,
}
for _name, _compute in _UNARY.items():
    _pointwise(_name, 1, _compute)
for _name, _compute in _BINARY.items():
    _pointwise(_name, 2, _compute)

OPS["less"] = Op(
    "less",
    "pointwise",
    2,
    (),
    lambda shapes, attrs: broadcast(shapes, "less"),
    lambda dtypes, attrs: "bool",
    lambda args, attrs, context: np.less(args[0], args[1]),
    _per_result,
)


def _chosen(dtypes: tuple[str, ...], attrs: Attrs) -> str:
    if dtypes[0] != "bool":
        raise ValueError(f"where: the condition is {dtypes[0]}, not bool")
    if set(dtypes[1:]) == {"weak"}:
        raise ValueError("where: both values are literal numbers, so there is no dtype")
    return _promoted(dtypes[1:], attrs)


OPS["where"] = Op(
    "where",
    "pointwise",
    3,
    (),
    lambda shapes, attrs: broadcast(shapes, "where"),
    _chosen,
    lambda args, attrs, context: np.where(*args),
    _per_result,
)
OPS["cast"] = Op(
    "cast",
    "pointwise",
    1,
    ("dtype",),
    _same,
    _given,
    lambda args, attrs, context: args[0].astype(bool if attrs["dtype"] == "bool" else np.float64),
    _none,
)
OPS["rot_pairs"] = Op("rot_pairs", "pointwise", 1, (), _even, _promoted, _rotated, _per_result)

# -------------------------------------------------------------------------------------------------
# Reductions: of the last axis, which stays as 1. (To reduce another axis, permute; that is free.)
# -------------------------------------------------------------------------------------------------


def _reduced(shapes: Shapes, attrs: Attrs) -> Shape:
    if not shapes[0]:
        raise ValueError("a reduction needs an axis; a value of shape () has none")
    return (*shapes[0][:-1], 1)


OPS["sum"] = Op(
    "sum",
    "reduction",
    1,
    (),
    _reduced,
    _promoted,
    lambda args, attrs, context: _total(args[0]),
    _per_operand,
)
OPS["max"] = Op(
    "max",
    "reduction",
    1,
    (),
    _reduced,
    _promoted,
    lambda args, attrs, context: np.max(args[0], axis=-1, keepdims=True),
    _per_operand,
)

# -------------------------------------------------------------------------------------------------
# Matrix products
# -------------------------------------------------------------------------------------------------


def _product_shape(shapes: Shapes, attrs: Attrs) -> Shape:
    a, b = shapes
    if len(a) < 2 or len(b) < 2:
        raise ValueError(f"matmul: {a} and {b}: both need two axes or more")
    if a[-1] != b[-2]:
        raise ValueError(f"matmul: the last axis of {a} and the last but one of {b} differ")
    return (*broadcast((a[:-2], b[:-2]), "matmul"), a[-2], b[-1])


def _product_flops(shapes: Shapes, shape: Shape) -> tuple[int, int]:
    return 2 * numel(shape) * numel(shapes[0][-1:]), 0


OPS["matmul"] = Op(
    "matmul",
    "matmul",
    2,
    (),
    _product_shape,
    _promoted,
    lambda args, attrs, context: np.ascontiguousarray(args[0]) @ np.ascontiguousarray(args[1]),
    _product_flops,
)

# -------------------------------------------------------------------------------------------------
# Composites. The formulas are those that `decompose` writes out, operation by operation, so that
# before and after are equal to the last bit.
# -------------------------------------------------------------------------------------------------


def _norm_shape(shapes: Shapes, attrs: Attrs) -> Shape:
    x, weight = shapes
    if not x or weight != x[-1:]:
        raise ValueError(f"rms_norm: the weight has shape {weight}; rows of {x} need {x[-1:]}")
    if isinstance(x[-1], str):
        raise ValueError(f"rms_norm: the width {x[-1]!r} of rows must be a number")
    return x


def _norm(args: list[Array], attrs: Attrs, context: Context) -> Array:
    """x · (mean(x²) + ε)^(−1/2) · weight: seven operations."""
    x, weight = args
    mean = _total(x * x) / x.shape[-1]
    return x * (1 / np.sqrt(mean + attrs["eps"])) * weight


def _norm_flops(shapes: Shapes, shape: Shape) -> tuple[int, int]:
    return 0, 4 * numel(shape) + 3 * numel(shape[:-1])


def _softmax(args: list[Array], attrs: Attrs, context: Context) -> Array:
    """exp(x − max) / Σ exp(x − max): five operations. Without the maximum exp overflows at 710."""
    weights = np.exp(args[0] - np.max(args[0], axis=-1, keepdims=True))
    return weights / _total(weights)


def _rows(shapes: Shapes, attrs: Attrs) -> Shape:
    if not shapes[0]:
        raise ValueError("softmax needs an axis; a value of shape () has none")
    return shapes[0]


OPS["rms_norm"] = Op(
    "rms_norm", "composite", 2, ("eps",), _norm_shape, _promoted, _norm, _norm_flops
)
OPS["softmax"] = Op(
    "softmax",
    "composite",
    1,
    (),
    _rows,
    _promoted,
    _softmax,
    lambda shapes, shape: (0, 5 * numel(shape)),
)
OPS["silu"] = Op(
    "silu",
    "composite",
    1,
    (),
    _same,
    _promoted,
    # x / (1 + exp(−x)): four operations. exp overflows to ∞ for x < −709, and x / ∞ is −0: right.
    lambda args, attrs, context: args[0] / (np.exp(-args[0]) + 1),
    lambda shapes, shape: (0, 4 * numel(shape)),
)

# -------------------------------------------------------------------------------------------------
# Opaque
# -------------------------------------------------------------------------------------------------


def _written(shapes: Shapes, attrs: Attrs) -> Shape:
    cache, new = shapes
    fits = len(cache) == len(new) >= 2 and cache[:-2] == new[:-2] and cache[-1] == new[-1]
    if not fits:
        raise ValueError(
            f"kv_write: new rows {new} do not fit the cache {cache}; only the axis before the "
            "last may differ"
        )
    return cache


def _write(args: list[Array], attrs: Attrs, context: Context) -> Array:
    """new goes to cache[…, pos : pos + T, :], in place; the result is the cache."""
    cache, new = args
    pos = attrs["pos"]
    if isinstance(pos, str):
        if pos not in context.bind:
            raise ValueError(f"kv_write: position {pos!r} has no value; pass bind={{{pos!r}: …}}")
        pos = context.bind[pos]
    end = pos + new.shape[-2]
    if not 0 <= pos <= end <= cache.shape[-2]:
        raise ValueError(
            f"kv_write: positions {pos} to {end - 1} do not lie in a cache of {cache.shape[-2]}"
        )
    cache[..., pos:end, :] = new
    return cache


def _drawn(args: list[Array], attrs: Attrs, context: Context) -> Array:
    """1 with probability p, else 0: the mask of a dropout."""
    assert context.draw is not None
    shape = _numbers(attrs["shape"], context)
    return (context.draw.random(shape) < attrs["p"]).astype(np.float64)


def _attention_shape(shapes: Shapes, attrs: Attrs) -> Shape:
    q, k, v = shapes
    fits = len(q) == len(k) == len(v) >= 2 and k[-1] == q[-1] and v[-2] == k[-2]
    if not fits or not q[:-2] == k[:-2] == v[:-2]:
        raise ValueError(f"flash_attention: q {q}, k {k} and v {v} do not fit together")
    return (*q[:-1], v[-1])


def _attention(args: list[Array], attrs: Attrs, context: Context) -> Array:
    """softmax(q kᵀ·scale + mask) v; a causal mask aligns the last query with the last key.

    Heads are those of q; k and v with fewer heads come expanded, which reads no byte more.
    """
    q, k, v = args
    scores = q @ k.swapaxes(-1, -2) * attrs["scale"]
    if attrs["causal"]:
        scores = scores + causal_mask(q.shape[-2], k.shape[-2])
    return _softmax([scores], {}, context) @ v


def causal_mask(T: int, S: int) -> Array:
    """(T, S): 0 where query i sees key j, j ≤ i + S − T, and −∞ elsewhere."""
    visible = np.arange(S) <= np.arange(T)[:, None] + S - T
    return np.where(visible, 0.0, -math.inf)


def _attention_flops(shapes: Shapes, shape: Shape) -> tuple[int, int]:
    q, k, _ = shapes
    return 2 * numel(q) * numel(k[-2:-1]) + 2 * numel(shape) * numel(k[-2:-1]), 0


OPS["kv_write"] = Op("kv_write", "opaque", 2, ("pos",), _written, _first, _write, _none, mutates=0)
OPS["bernoulli"] = Op(
    "bernoulli",
    "opaque",
    0,
    ("p", "shape", "dtype"),
    lambda shapes, attrs: checked_shape(attrs["shape"], "bernoulli"),
    _given,
    _drawn,
    _per_result,
    random=True,
)
OPS["flash_attention"] = Op(
    "flash_attention",
    "opaque",
    3,
    ("scale", "causal"),
    _attention_shape,
    _promoted,
    _attention,
    _attention_flops,
)
