"""Looks for names that a starter lost with the blocks that were cut out of the solution.

Three ways for a starter to be broken where the solution is sound:

    a name that only a block defined is used by code that stays
    an import that only blocks needed is left over
    code stands behind a stub, where it is never reached
"""

from __future__ import annotations

import ast
import builtins
import itertools
import symtable
from collections.abc import Iterator, Mapping

from grader.authoring.markers import AuthoringError

#: Behind an import that the starter does not use, but what students write will.
KEEP = "# starter: keep"

_MODULE_NAMES = {"__name__", "__file__", "__doc__", "__spec__", "__package__", "__loader__"}


def check_names(
    solution: str, starter: str, line_of: Mapping[int, int], stubs: set[int], file: str
) -> None:
    """Compares a starter with the solution that it was cut from.

    Args:
        solution: its source.
        starter: its source.
        line_of: for each line of the starter, that of the solution, which errors name.
        stubs: the lines of the starter where a stub's `raise` begins.
        file: what errors call the solution.

    Raises:
        AuthoringError: see the module.
    """
    before, after = ast.parse(solution), ast.parse(starter)
    _check_reached(after, line_of, stubs, file)
    _check_defined(
        symtable.symtable(solution, file, "exec"),
        symtable.symtable(starter, file, "exec"),
        after,
        line_of,
        file,
    )
    _check_imports(before, after, starter.split("\n"), line_of, file)


def _check_reached(
    starter: ast.Module, line_of: Mapping[int, int], stubs: set[int], file: str
) -> None:
    for node in ast.walk(starter):
        for name in ("body", "orelse", "finalbody"):
            suite = getattr(node, name, None)
            if not isinstance(suite, list):
                continue
            for stub, behind in itertools.pairwise(suite):
                if isinstance(stub, ast.Raise) and stub.lineno in stubs:
                    what = f"is behind the stub of line {line_of[stub.lineno]} and never reached"
                    raise AuthoringError(
                        file,
                        line_of[behind.lineno],
                        f"{what}; move it into the block, or before it",
                    )


def _check_defined(
    solution: symtable.SymbolTable,
    starter: symtable.SymbolTable,
    tree: ast.Module,
    line_of: Mapping[int, int],
    file: str,
) -> None:
    """Every name that the starter looks up globally must be there, and be what it was before."""
    there, there_before = _module_names(starter), _module_names(solution)
    scopes = {_key(table, table.get_lineno()): table for table in _tables(solution)}
    for table in _tables(starter):
        began = table.get_lineno()
        before = scopes.get(_key(table, line_of.get(began, began)))
        at_top = table.get_type() == "module"
        for symbol in table.get_symbols():
            name = symbol.get_name()
            if not symbol.is_referenced() or not (at_top or symbol.is_global()):
                continue  # a parameter, or bound in the scope itself or in one around it
            was_local = (
                not at_top
                and before is not None
                and name in before.get_identifiers()
                and not before.lookup(name).is_global()
            )
            if was_local or (name in there_before and name not in there):
                raise AuthoringError(
                    file,
                    line_of[_use(tree, name, began)],
                    f"{name!r} is used here, but only a block defines it; move this into the "
                    "block, or the definition out of it",
                )


def _module_names(module: symtable.SymbolTable) -> set[str]:
    """What a global name can mean: builtins, what the module binds, what `global` binds."""
    names = set(dir(builtins)) | _MODULE_NAMES
    for table in _tables(module):
        for symbol in table.get_symbols():
            bound = symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()
            if bound and (table.get_type() == "module" or symbol.is_declared_global()):
                names.add(symbol.get_name())
    return names


def _tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for child in table.get_children():
        yield from _tables(child)


def _key(table: symtable.SymbolTable, line: int) -> tuple[str, str, int]:
    return (table.get_type(), table.get_name(), line)


def _use(tree: ast.Module, name: str, began: int) -> int:
    """The first line, from that where a scope begins, in which a name is read."""
    lines = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
    ]
    return min((line for line in lines if line >= began), default=began)


def _check_imports(
    solution: ast.Module,
    starter: ast.Module,
    lines: list[str],
    line_of: Mapping[int, int],
    file: str,
) -> None:
    used, used_before = _used(starter), _used(solution)
    for node in ast.walk(starter):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            continue
        if any(line.endswith(KEEP) for line in lines[node.lineno - 1 : node.end_lineno]):
            continue
        for alias in node.names:
            name = alias.asname or alias.name.partition(".")[0]
            if name in used_before and name not in used:
                raise AuthoringError(
                    file,
                    line_of[alias.lineno],
                    f"only blocks use the import {name!r}; import it within them, or put "
                    f"`{KEEP}` behind it if students will need it",
                )


def _used(tree: ast.Module) -> set[str]:
    """The names that are read anywhere, or exported by `__all__`."""
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
            used |= {
                part.value
                for part in ast.walk(node)
                if isinstance(part, ast.Constant) and isinstance(part.value, str)
            }
    return used
