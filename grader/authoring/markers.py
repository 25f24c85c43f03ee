"""Finds the blocks of a solution that students are to write.

    # BEGIN SOLUTION rmsnorm 1: allocate y and r; launch one program a row;
    # return (y, r)
    …
    # END SOLUTION

A block names its assignment and its task, and has a hint, which is what the stub will say. The
comment lines that follow BEGIN directly, at its indentation, go on with the hint; an empty line or
code ends it.

A block is a run of whole statements of one suite within a function: its stub raises when it is
called, and a module or a class that raised would not even import. All that is not exactly so is an
error, with its line: what the parser overlooked, students would read.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Collection, Iterator
from dataclasses import dataclass

_BEGIN = re.compile(
    r"# BEGIN SOLUTION (?P<assignment>[a-z][a-z0-9_]*) (?P<task>\d+(?:\.\d+)*): (?P<hint>\S.*)"
)
_END = "# END SOLUTION"
_ANY = re.compile(r"(?P<which>BEGIN|END)[\s_-]*SOLUTION", re.IGNORECASE)

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


class AuthoringError(Exception):
    """A solution or a variant is not as it must be; says in which file and line, and what to do."""

    def __init__(self, file: str, line: int, message: str) -> None:
        super().__init__(f"{file}, line {line}: {message}")
        self.file = file
        self.line = line


@dataclass(frozen=True)
class Block:
    """What students are to write in one place. Lines count from 1.

    Attributes:
        assignment: as the marker says.
        task: "2" or "2.1".
        hint: one line, made of all the lines that it was written in.
        begin: the line of BEGIN.
        end: the line of END.
        first: the first line with code.
        last: the last line with code.
        indent: columns.
    """

    assignment: str
    task: str
    hint: str
    begin: int
    end: int
    first: int
    last: int
    indent: int


def find_blocks(
    source: str,
    file: str,
    task_ids: Collection[str] | None = None,
    assignment: str | None = None,
) -> list[Block]:
    """The blocks of a solution, in order.

    Args:
        source: the solution's text.
        file: what errors call it.
        task_ids: those that there are, if that is to be checked.
        assignment: the name that each marker has to give, if that is to be checked.

    Raises:
        AuthoringError: a marker is unclosed, nested, stray, malformed, in a string, behind code or
            in prose; or names another assignment or an unknown task; or its block is empty, splits
            a statement, or is not within a function.
    """
    try:
        tree = ast.parse(source, file)
        tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    except (SyntaxError, tokenize.TokenError) as error:
        line = error.lineno if isinstance(error, SyntaxError) and error.lineno else 1
        raise AuthoringError(file, line, f"is not Python: {error}") from None
    blocks = list(_pair(source.split("\n"), list(_markers(tokens, file)), tokens, file))
    for block in blocks:
        if assignment is not None and block.assignment != assignment:
            what = f"the marker is for {block.assignment!r}, but this is {assignment!r}"
            raise AuthoringError(file, block.begin, f"{what}; correct the marker")
        if task_ids is not None and block.task not in task_ids:
            there = ", ".join(task_ids)
            what = f"there is no task {block.task!r} in the manifest, which has {there}"
            raise AuthoringError(file, block.begin, f"{what}; correct the marker")
        _check_suite(tree, block, file)
    return blocks


def _markers(tokens: list[tokenize.TokenInfo], file: str) -> Iterator[tokenize.TokenInfo]:
    """The comments that are markers; refuses whatever else speaks of one."""
    for token in tokens:
        if token.type not in _LAYOUT and token.type not in (tokenize.NAME, tokenize.OP):
            if found := _ANY.search(token.string):
                line = token.start[0] + token.string.count("\n", 0, found.start())
                what = f"{found.group()!r} is in a string, where it is no marker"
                raise AuthoringError(file, line, f"{what}; word it otherwise")
        elif token.type == tokenize.COMMENT and _ANY.search(token.string):
            line, column = token.start
            if token.line[:column].strip():
                what = "a marker needs a line of its own"
                raise AuthoringError(file, line, f"{what}, and this one is behind code")
            if token.string != _END and not _BEGIN.fullmatch(token.string):
                raise AuthoringError(
                    file,
                    line,
                    f"{token.string!r} is not a marker; write `# BEGIN SOLUTION <assignment> "
                    "<task>: <hint>` or `# END SOLUTION`, and speak of markers nowhere else",
                )
            yield token


def _pair(
    lines: list[str],
    markers: list[tokenize.TokenInfo],
    tokens: list[tokenize.TokenInfo],
    file: str,
) -> Iterator[Block]:
    """Pairs each BEGIN with its END, and takes the hint and the extent of the code from between."""
    begin: tokenize.TokenInfo | None = None
    for marker in markers:
        line, column = marker.start
        if marker.string != _END:
            if begin is not None:
                what = f"BEGIN within the block that begins in line {begin.start[0]}"
                raise AuthoringError(file, line, f"{what}; end that one first")
            begin = marker
            continue
        if begin is None:
            raise AuthoringError(file, line, "END without a BEGIN; remove it, or begin the block")
        start, indent = begin.start
        if column != indent:
            what = f"END is in column {column + 1}, but its BEGIN (line {start}) in {indent + 1}"
            raise AuthoringError(file, line, f"{what}; indent both as the code between them")
        code = [
            token
            for token in tokens
            if token.type not in _LAYOUT and start < token.start[0] and token.end[0] < line
        ]
        if not code:
            raise AuthoringError(file, start, "the block is empty; put the solution's code in it")
        match = _BEGIN.fullmatch(begin.string)
        assert match is not None  # else it were no marker
        hint = [match["hint"].strip(), *_more_hint(lines, start, indent)]
        yield Block(
            assignment=match["assignment"],
            task=match["task"],
            hint=" ".join(hint),
            begin=start,
            end=line,
            first=code[0].start[0],
            last=code[-1].end[0],
            indent=indent,
        )
        begin = None
    if begin is not None:
        what = "the block is never ended"
        raise AuthoringError(file, begin.start[0], f"{what}; put `{_END}` after its last line")


def _more_hint(lines: list[str], begin: int, indent: int) -> Iterator[str]:
    prefix = " " * indent + "#"
    for line in lines[begin:]:
        if not line.startswith(prefix) or line.strip() == _END or not line.strip("# \t"):
            return
        yield line.strip().lstrip("#").strip()


def _check_suite(tree: ast.Module, block: Block, file: str) -> None:
    """The block must be whole statements of one suite, indented as the markers are."""
    suite: list[ast.stmt] = tree.body
    owner: ast.AST = tree
    while True:
        touched = [
            stmt for stmt in suite if _start(stmt) <= block.last and _end(stmt) >= block.first
        ]
        if touched and all(
            block.first <= _start(stmt) and _end(stmt) <= block.last for stmt in touched
        ):
            break
        suites = [
            (stmt, inner)
            for stmt in touched
            for inner in _suites(stmt)
            if _start(inner[0]) <= block.last and _end(inner[-1]) >= block.first
        ]
        if len(touched) != 1 or len(suites) != 1:
            raise _splits(touched[0], block, file)
        owner = suites[0][0] if isinstance(suites[0][0], _Function | ast.ClassDef) else owner
        suite = suites[0][1]
    if _start(touched[0]) != block.first or _end(touched[-1]) != block.last:
        raise _splits(owner if isinstance(owner, ast.stmt) else touched[0], block, file)
    if touched[0].col_offset != block.indent:
        what = f"the markers are in column {block.indent + 1}, the code between them in"
        raise AuthoringError(
            file, block.begin, f"{what} {touched[0].col_offset + 1}; indent them alike"
        )
    if not isinstance(owner, _Function):
        where = "a class's body" if isinstance(owner, ast.ClassDef) else "the module's top level"
        raise AuthoringError(
            file,
            block.begin,
            f"the block is at {where}, where its stub would keep the file from being imported; "
            "keep the definition, and mark the body of a function",
        )


def _splits(stmt: ast.stmt, block: Block, file: str) -> AuthoringError:
    what = f"the block splits the statement in lines {_start(stmt)} to {_end(stmt)}"
    return AuthoringError(file, block.begin, f"{what}; move the markers to whole statements")


def _start(stmt: ast.stmt) -> int:
    decorators = getattr(stmt, "decorator_list", [])
    return min([stmt.lineno, *(decorator.lineno for decorator in decorators)])


def _end(stmt: ast.stmt) -> int:
    return stmt.end_lineno or stmt.lineno


def _suites(stmt: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The suites directly in a compound statement: bodies, else, finally, handlers, cases."""
    for name in ("body", "orelse", "finalbody"):
        if suite := getattr(stmt, name, []):
            yield suite
    for part in (*getattr(stmt, "handlers", []), *getattr(stmt, "cases", [])):
        yield part.body
