"""An IO budget: a closed formula in the problem's sizes, written beside the test that uses it.

A budget is never a bare number. `Budget("2*M*N*s", M=64, N=100, s=4)` is evaluated exactly (Python
integers, no floating point) and prints itself as a derivation that a student can follow:

    2·M·N·s = 2·64·100·4 = 51,200 B
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

#: How tightly each operator binds: a child that binds less tightly is printed in parentheses.
_PRECEDENCE = {ast.Add: 1, ast.Sub: 1, ast.Mult: 2, ast.FloorDiv: 2, ast.Div: 2, ast.Pow: 4}
_SYMBOLS = {
    ast.Add: " + ",
    ast.Sub: " − ",
    ast.Mult: "·",
    ast.FloorDiv: "//",
    ast.Div: "/",
    ast.Pow: "^",
}
_NEGATION = 3
_ATOM = 5
#: Exponents above this are surely a slip, and would make the evaluation hang.
_LARGEST_EXPONENT = 64


def _ceiling_division(a: int, b: int) -> int:
    return -(-a // b)


_FUNCTIONS: Mapping[str, Callable[..., int]] = {
    "min": min,
    "max": max,
    "cdiv": _ceiling_division,
}


class Budget:
    """An upper bound in bytes: an arithmetic formula over named sizes, evaluated exactly.

    Args:
        formula: `+ - * // / **`, parentheses, integers, the names in `sizes`, and the functions
            `min`, `max`, `cdiv`. A `/` has to divide evenly.
        **sizes: every name of the formula, as a non-negative integer (elements, or bytes an
            element).

    Attributes:
        formula: the formula as written.
        sizes: the sizes it was given.
        bytes: its value, an exact int.

    Raises:
        ValueError: for a formula that cannot be parsed, a name without a size, a size that the
            formula does not use, a division with a remainder, or a negative result.
    """

    def __init__(self, formula: str, /, **sizes: int) -> None:
        try:
            tree = ast.parse(formula, mode="eval").body
        except SyntaxError as error:
            raise ValueError(f"budget {formula!r} is not an arithmetic formula") from error
        for name, size in sizes.items():
            if type(size) is not int or size < 0:
                raise ValueError(
                    f"budget {formula!r}: size {name} = {size!r} is not a natural number"
                )
        self.formula = formula
        self.sizes = dict(sizes)
        self._tree = tree
        used = {
            node.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Name) and node.id not in _FUNCTIONS
        }
        if unused := sorted(set(sizes) - used):
            raise ValueError(f"budget {formula!r} does not use {', '.join(unused)}")
        self.bytes = self._evaluate(tree)
        if self.bytes < 0:
            raise ValueError(f"budget {formula!r} is negative: {self.bytes}")

    @property
    def symbols(self) -> str:
        """The formula in the notation of the papers: `2·M·N·s`."""
        return self._print(self._tree, numbers=False)[0]

    @property
    def numbers(self) -> str:
        """The formula with its sizes put in: `2·64·100·4`."""
        return self._print(self._tree, numbers=True)[0]

    def __str__(self) -> str:
        parts = [self.symbols, self.numbers]
        if parts[0] == parts[1]:
            del parts[1]
        value = f"{self.bytes:,}"
        if parts[-1] == str(self.bytes):
            del parts[-1]
        return " = ".join([*parts, f"{value} B"])

    def __repr__(self) -> str:
        sizes = "".join(f", {name}={size}" for name, size in self.sizes.items())
        return f"Budget({self.formula!r}{sizes})"

    def _evaluate(self, node: ast.expr) -> int:
        match node:
            case ast.Constant(value=int() as value) if type(value) is int:
                return value
            case ast.Name(id=name):
                if name not in self.sizes:
                    raise ValueError(f"budget {self.formula!r}: no size was given for {name}")
                return self.sizes[name]
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self._evaluate(operand)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _SYMBOLS:
                return self._combine(op, self._evaluate(left), self._evaluate(right))
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
                return _FUNCTIONS[name](*map(self._evaluate, args))
        raise ValueError(
            f"budget {self.formula!r}: {ast.unparse(node)!r} is not allowed; "
            f"use + - * // / **, integers, sizes and {', '.join(_FUNCTIONS)}"
        )

    def _combine(self, op: ast.operator, left: int, right: int) -> int:
        match op:
            case ast.Add():
                return left + right
            case ast.Sub():
                return left - right
            case ast.Mult():
                return left * right
            case ast.Pow():
                if not 0 <= right <= _LARGEST_EXPONENT:
                    raise ValueError(f"budget {self.formula!r}: exponent {right}")
                return int(left**right)
        if right == 0:
            raise ValueError(f"budget {self.formula!r} divides by zero")
        quotient, remainder = divmod(left, right)
        if isinstance(op, ast.Div) and remainder:
            raise ValueError(
                f"budget {self.formula!r}: {left} / {right} leaves a remainder; "
                "use // or cdiv to say how it rounds"
            )
        return quotient

    def _print(self, node: ast.expr, *, numbers: bool) -> tuple[str, int]:
        """The text of a node and how tightly its outermost operator binds."""
        match node:
            case ast.Name(id=name):
                return (str(self.sizes[name]) if numbers else name), _ATOM
            case ast.UnaryOp(operand=operand):
                return "−" + self._child(operand, _NEGATION, numbers=numbers), _NEGATION
            case ast.BinOp(left=left, op=op, right=right):
                level = _PRECEDENCE[type(op)]
                # a − (b − c) and a / (b · c) need their parentheses; a + (b + c) does not.
                strict = level + (0 if isinstance(op, ast.Add | ast.Mult) else 1)
                return (
                    self._child(left, level, numbers=numbers)
                    + _SYMBOLS[type(op)]
                    + self._child(right, strict, numbers=numbers)
                ), level
            case ast.Call(func=ast.Name(id=name), args=args):
                inside = ", ".join(self._print(arg, numbers=numbers)[0] for arg in args)
                return f"{name}({inside})", _ATOM
        return ast.unparse(node), _ATOM

    def _child(self, node: ast.expr, level: int, *, numbers: bool) -> str:
        text, binds = self._print(node, numbers=numbers)
        return text if binds >= level else f"({text})"
