"""Which parts of a solution does a test reach? If a variant changes none of them, it cannot matter.

Most variants change one kernel, which most tests never launch. To run these on the variant all the
same would prove nothing: they run the very program that they have passed before, the solution.
What a test reaches is guessed from its text and the solution's, and the guess is proved by running:

    the slice of a test   the solution without the definitions that, by name, it does not reach
    the proof             the test passes on its slice

Had the test used anything else of the solution, its name would have been missing. So a program
that has the definitions of the slice, whatever else it has, is to this test as the solution is. Of
a test that fails on its slice (it composes a name, say) nothing is known: every variant has to be
graded by it.

A slice is what Weiser (Program slicing, ICSE 1981) calls one, except that its pieces are top-level
definitions; to leave out tests that cannot reach a change is regression test selection (Rothermel
and Harrold, A safe, efficient regression test selection technique, TOSEM 1997).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from grader.authoring.splice import bound_names, parse

_WORD = re.compile(r"[^\W\d]\w*")
#: Methods that unittest calls by itself.
_FIXTURES = ("setUp", "tearDown", "setUpClass", "tearDownClass")
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Slice:
    """What one test reaches of a program, by name.

    Attributes:
        names: all that the test's strings and the code that it reaches mention, defined or not.
        files: name → text of each file, with no definitions but those.
    """

    names: frozenset[str]
    files: Mapping[str, str]


def slice_for(files: Mapping[str, str], words: Collection[str]) -> Slice:
    """The part of a program that can be reached from some names.

    Statements that define nothing, and imports, stay, and what is called while a file is imported.

    Args:
        files: name → text.
        words: the names, as of `words_of`.

    Raises:
        AuthoringError: a file is not Python.
    """
    trees = {file: parse(text, file) for file, text in files.items()}
    waiting: list[tuple[frozenset[str], ast.stmt]] = []
    names = set(words)
    for tree in trees.values():
        for stmt in tree.body:
            names |= _called_when_imported(stmt)
            if bound := bound_names(stmt):
                waiting.append((bound, stmt))
            else:
                names |= _mentioned(stmt)
    reached: set[ast.stmt] = set()
    while more := [stmt for bound, stmt in waiting if stmt not in reached and bound & names]:
        reached.update(more)
        for stmt in more:
            names |= _mentioned(stmt)
    left = {
        file: [stmt for stmt in tree.body if stmt in reached or not bound_names(stmt)]
        for file, tree in trees.items()
    }
    texts = {file: ast.unparse(ast.Module(body, [])) + "\n" for file, body in left.items()}
    return Slice(frozenset(names), texts)


def words_of(test_file: str, case: str, method: str, shown: str = "test") -> frozenset[str]:
    """The words in the strings of a test, and of what its file defines for it.

    A test names what it calls in a string: `self.student.call("flash_lab:flash_forward", …)`.

    Args:
        test_file: the file's text.
        case: the class.
        method: the test.
        shown: what errors call the file.

    Raises:
        AuthoringError: the file is not Python.
    """
    parts: dict[str, list[ast.AST]] = {}
    for stmt in parse(test_file, shown).body:
        for name, part in _parts(stmt, case):
            parts.setdefault(name, []).append(part)
    words: set[str] = set()
    names, seen = {case, method, *_FIXTURES}, set[str]()
    while new := (names & parts.keys()) - seen:
        seen |= new
        for part in [part for name in new for part in parts[name]]:
            names |= _mentioned(part)
            words |= _words_in_strings(part)
    return frozenset(words)


def _parts(stmt: ast.stmt, case: str) -> Iterator[tuple[str, ast.AST]]:
    """What a statement of a test's file defines, by name; the test's class, member by member."""
    if not isinstance(stmt, ast.ClassDef) or stmt.name != case:
        for name in bound_names(stmt) or ():
            yield name, stmt
        return
    for part in (*stmt.bases, *stmt.decorator_list):
        yield case, part
    for member in stmt.body:
        for name in bound_names(member) or (case,):
            yield name, member


def changed_names(old: Mapping[str, str], new: Mapping[str, str]) -> frozenset[str] | None:
    """The names whose definitions differ between two versions of a program.

    Args:
        old: name → text of each file.
        new: likewise.

    Returns:
        Names that are new or gone included; None if there is more to it: a statement that defines
        nothing, or one that calls something while it is imported, may change anything.

    Raises:
        AuthoringError: a file is not Python.
    """
    names: set[str] = set()
    for file in old.keys() | new.keys():
        if old.get(file) == new.get(file):
            continue
        before, after = (
            {ast.dump(stmt): stmt for stmt in parse(version.get(file, ""), file).body}
            for version in (old, new)
        )
        for text in before.keys() ^ after.keys():
            stmt = before.get(text) or after[text]
            bound = bound_names(stmt) or _imported(stmt)
            if not bound or any(isinstance(node, ast.Call) for node in _when_imported(stmt)):
                return None
            names |= bound
    return frozenset(names)


def _imported(stmt: ast.stmt) -> frozenset[str]:
    aliases = stmt.names if isinstance(stmt, ast.Import | ast.ImportFrom) else []
    return frozenset((alias.asname or alias.name).partition(".")[0] for alias in aliases)


def _called_when_imported(stmt: ast.stmt) -> set[str]:
    """The names in what a statement evaluates where it stands, if it calls something there."""
    nodes = list(_when_imported(stmt))
    if getattr(stmt, "decorator_list", []) or any(isinstance(node, ast.Call) for node in nodes):
        return set().union(*map(_name_of, nodes))
    return set()


def _when_imported(stmt: ast.AST) -> Iterator[ast.AST]:
    """The nodes that are evaluated where a statement stands, not when it is called."""
    yield stmt
    inside: list[ast.AST] = list(ast.iter_child_nodes(stmt))
    if isinstance(stmt, _Function | ast.Lambda):
        defaults = [default for default in stmt.args.kw_defaults if default is not None]
        inside = [*getattr(stmt, "decorator_list", []), *stmt.args.defaults, *defaults]
    for part in inside:
        yield from _when_imported(part)


def _mentioned(node: ast.AST) -> set[str]:
    """The identifiers in a piece of code, those after a dot and those in quotes included."""
    return set().union(*map(_name_of, ast.walk(node)))


def _name_of(node: ast.AST) -> set[str]:
    """The identifiers of one node."""
    if isinstance(node, ast.Name):
        return {node.id}
    if isinstance(node, ast.Attribute):
        return {node.attr}
    if isinstance(node, ast.ImportFrom):
        return {alias.name for alias in node.names}
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
        return {node.value}
    return set()


def _words_in_strings(node: ast.AST) -> set[str]:
    """The words in the strings of a piece of code, docstrings apart."""
    docstrings = {
        part.value
        for part in ast.walk(node)
        if isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant)
    }
    return {
        word
        for part in ast.walk(node)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
        if part not in docstrings
        for word in _WORD.findall(part.value)
    }
