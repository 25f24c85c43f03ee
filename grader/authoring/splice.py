"""Splices a variant's definitions into a solution, leaving every other line as it is."""

from __future__ import annotations

import ast
import copy
import functools
import re
from collections.abc import Iterator

from grader.authoring.markers import AuthoringError

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign
_Import = ast.Import | ast.ImportFrom


def overlay(
    solution_source: str,
    variant_source: str,
    solution_file: str = "solution",
    variant_file: str = "variant",
) -> str:
    """The solution with the variant's definitions in place of its own of the same name.

    Functions (with their decorators), classes and assignments at top level are replaced. Those that
    are new are inserted before the first that is replaced, new imports behind the solution's.

    Args:
        solution_source: its text.
        variant_source: its text.
        solution_file: what errors call it.
        variant_file: what errors call it.

    Raises:
        AuthoringError: the variant has something else at top level, replaces nothing, or only by
            the same; defines a name twice, or imports another thing under a name of the solution's.
    """
    solution = parse(solution_source, solution_file)
    variant = parse(variant_source, variant_file)
    variant_lines = variant_source.split("\n")
    lines = solution_source.split("\n")

    theirs = dict(_definitions(solution, solution_file, strict=False))
    inserted: list[str] = []  # definitions
    replaced: list[tuple[_Definition, list[str]]] = []
    same = True
    for names, ours in _definitions(variant, variant_file, strict=True):
        text = variant_lines[_start(ours) - 1 : ours.end_lineno]
        old = theirs.get(names)
        if old is not None:
            replaced.append((old, text))
            same = same and _code(old) == _code(ours)
            continue
        for name in names:
            if any(name in others for others in theirs):
                what = f"{name!r} is assigned together with other names in {solution_file}"
                raise AuthoringError(variant_file, ours.lineno, f"{what}; assign the same together")
        inserted += [*text, "", ""]
    if not replaced or same:
        what = "replaces nothing" if not replaced else "replaces definitions just by the same ones"
        has = ", ".join(sorted(name for names in theirs for name in names))
        raise AuthoringError(variant_file, 1, f"{what} of {solution_file}, which has {has}")

    last_import = max(
        (stmt.end_lineno or 0 for stmt in solution.body if isinstance(stmt, _Import)),
        default=_docstring_end(solution),
    )
    imports = _new_imports(solution, variant, solution_file, variant_file)
    first = min(_start(old) for old, _ in replaced)
    if first <= last_import:
        what = f"{solution_file} has an import behind line {first}, which this replaces"
        raise AuthoringError(variant_file, 1, f"{what}; put the solution's imports first")
    edits = [(_start(old), _end(old, lines), text) for old, text in replaced]
    edits.append((first, first - 1, inserted))
    edits.append((last_import + 1, last_import, imports))
    # From the end on, so that what is edited does not move what is still to be; at the same line,
    # what is replaced before what is inserted there.
    for start, end, text in sorted(edits, key=lambda edit: edit[:2], reverse=True):
        lines[start - 1 : end] = text
    return "\n".join(lines)


@functools.lru_cache(maxsize=16)  # a solution's files, which all variants are compared with
def parse(source: str, file: str) -> ast.Module:
    """A file's syntax tree, not to be changed; raises an `AuthoringError` if it is not Python."""
    try:
        return ast.parse(source, file)
    except SyntaxError as error:
        raise AuthoringError(file, error.lineno or 1, f"is not Python: {error.msg}") from None


def _definitions(
    tree: ast.Module, file: str, *, strict: bool
) -> Iterator[tuple[frozenset[str], _Definition]]:
    """The top-level definitions, by the names that they bind. `strict` refuses all else."""
    seen: set[str] = set()
    for index, stmt in enumerate(tree.body):
        names = bound_names(stmt)
        if isinstance(stmt, _Definition) and names:
            if strict and (twice := seen & names):
                what = f"{min(twice)!r} is defined twice"
                raise AuthoringError(file, stmt.lineno, f"{what}; define it once")
            seen |= names
            yield names, stmt
        elif strict and not isinstance(stmt, _Import) and not (index == 0 and _is_string(stmt)):
            raise AuthoringError(
                file,
                stmt.lineno,
                "is neither an import nor the definition of a function, a class or a name; a "
                "variant has nothing else at its top level",
            )


def defined_names(source: str, file: str) -> set[str]:
    """The names that a file defines at top level, imports apart. Raises as `parse`."""
    definitions = _definitions(parse(source, file), file, strict=False)
    return {name for names, _ in definitions for name in names}


def bound_names(stmt: ast.stmt) -> frozenset[str] | None:
    """The names that a definition binds; None if it is none, or binds something else (`a[0] = 1`).

    An import is none.
    """
    if isinstance(stmt, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return frozenset({stmt.name})
    if not isinstance(stmt, ast.Assign | ast.AnnAssign):
        return None
    targets = stmt.targets if isinstance(stmt, ast.Assign) else [stmt.target]
    names = set()
    for target in targets:
        parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
        for part in parts:
            if not isinstance(part, ast.Name):
                return None
            names.add(part.id)
    return frozenset(names)


def _is_string(stmt: ast.stmt) -> bool:
    return (
        isinstance(stmt, ast.Expr)
        and isinstance(stmt.value, ast.Constant)
        and isinstance(stmt.value.value, str)
    )


def _docstring_end(tree: ast.Module) -> int:
    return tree.body[0].end_lineno or 0 if tree.body and _is_string(tree.body[0]) else 0


def _start(stmt: _Definition) -> int:
    decorators = getattr(stmt, "decorator_list", [])
    return min([stmt.lineno, *(decorator.lineno for decorator in decorators)])


def _end(stmt: _Definition, lines: list[str]) -> int:
    """The last line of a definition, with the comments that end its body, as END SOLUTION does."""
    end = stmt.end_lineno or stmt.lineno
    while end < len(lines) and re.match(r"\s+#", lines[end]):
        end += 1
    return end


def _code(stmt: ast.stmt) -> str:
    """What a definition does, for comparison: its syntax tree without docstrings."""
    stmt = copy.deepcopy(stmt)
    for node in ast.walk(stmt):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and _is_string(
            node.body[0]
        ):
            node.body = node.body[1:] or [ast.Pass()]
    return ast.dump(stmt)


def _new_imports(
    solution: ast.Module, variant: ast.Module, solution_file: str, variant_file: str
) -> list[str]:
    """The variant's imports that the solution does not have, one a line."""
    have = {name: line for name, line, _ in _imported(solution)}
    new = []
    for name, line, number in _imported(variant):
        if have.get(name, line) != line:
            what = f"imports {name!r} by `{line}`, but {solution_file} by `{have[name]}`"
            raise AuthoringError(variant_file, number, f"{what}; use another name")
        if line.startswith("from __future__") and name not in have:
            what = f"`{line}` holds for a whole file, but {solution_file} does not have it"
            raise AuthoringError(variant_file, number, f"{what}; do without")
        if name not in have and line not in new:
            new.append(line)
    return new


def _imported(tree: ast.Module) -> Iterator[tuple[str, str, int]]:
    """Of each name imported at top level: the name, the import as a line, the line's number."""
    for stmt in tree.body:
        if isinstance(stmt, _Import):
            for alias in stmt.names:
                name = alias.asname or alias.name
                if isinstance(stmt, ast.Import):
                    one: ast.stmt = ast.Import([alias])
                else:
                    one = ast.ImportFrom(stmt.module, [alias], stmt.level)
                yield name, ast.unparse(one), stmt.lineno
