"""The definitions in a file's text."""

import ast


def definitions(text: str) -> dict[str, str]:
    """Name → source of each function and class at top level, decorators included."""
    lines = text.split("\n")
    return {
        node.name: "\n".join(lines[_first_line(node) - 1 : node.end_lineno])
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }


def _first_line(node: ast.FunctionDef | ast.ClassDef) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
