"""Headings, tables and remarks on standard output: styled in a terminal, plain elsewhere."""

from __future__ import annotations

import numbers
import re
from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

#: Columns of a line that goes to no terminal: no table is so wide that it had to be broken.
_UNBROKEN = 10_000
#: A cell that begins like a number ("3.2×", "8.75 GB", "≈ 12 %", "−4") is aligned to the right.
_QUANTITY = re.compile(r"[~≈<>≤≥]?\s*[-+−]?[.\d]")
_EMPTY = ("", "–", "—", "-")
_EMPHASIS = re.compile(r"\*\*(.+?)\*\*")


def print_header(s: str) -> None:
    """Prints a heading, with an empty line before it and a line of its width below."""
    console = _console()
    console.print()
    console.print(Text(s, style="bold cyan"))
    width = Text(s).cell_len
    rule = "─" * min(width, console.width) if console.is_terminal else "=" * width
    console.print(Text(rule, style="cyan"))


def print_table(headers: Sequence[object], rows: Iterable[Sequence[object]]) -> None:
    """Prints a table.

    Args:
        headers: a title for each column; in a terminal its lines stand one below the other.
        rows: each with a cell for each column. A string is printed as it is; whole numbers get
            separators of thousands, other numbers four significant digits, and None is "–".
            Columns are aligned by what they take up on the screen, where a Chinese character is as
            wide as two Latin ones. Those that hold only quantities are aligned to the right.

    Raises:
        ValueError: a row has more or fewer cells than there are headers.
    """
    console = _console()
    titles = [_text(header) for header in headers]
    cells = [[_text(cell) for cell in row] for row in rows]
    for number, row in enumerate(cells, 1):
        if len(row) != len(titles):
            raise ValueError(
                f"row {number} has {len(row)} cells, but there are {len(titles)} headers"
            )
    plain = not console.is_terminal
    if plain:  # what would end a cell, or a row, of Markdown
        titles, *cells = (
            [cell.replace("|", "\\|").replace("\n", " ") for cell in row]
            for row in (titles, *cells)
        )
    table = Table(
        box=box.MARKDOWN if plain else box.ROUNDED,
        header_style="" if plain else "bold",
    )
    for index, title in enumerate(titles):
        right = _all_quantities(row[index] for row in cells)
        table.add_column(
            Text(title), justify="right" if right else "left", overflow="fold", no_wrap=plain
        )
    for row in cells:
        table.add_row(*map(Text, row))
    if not plain:
        console.print(table)
        return
    with console.capture() as capture:
        console.print(table)
    for line in capture.get().splitlines():
        if line.strip():  # Markdown's box comes with an empty line above and below
            console.print(Text(line), soft_wrap=True)


def print_observations(observations: Iterable[str]) -> None:
    """Prints an empty line, and remarks as a list; **words** between pairs of stars are bold."""
    console = _console()
    console.print()
    for observation in observations:
        if not console.is_terminal:
            console.print(Text(f"- {observation}"), soft_wrap=True)
            continue
        text, end = Text(), 0
        for match in _EMPHASIS.finditer(observation):
            text.append(observation[end : match.start()]).append(match[1], style="bold")
            end = match.end()
        text.append(observation[end:])
        item = Table.grid(padding=(0, 1))
        item.add_row(Text("•", style="cyan"), text)
        console.print(Padding(item, (0, 0, 0, 1)))


def _console() -> Console:
    """On what is standard output now: tests and notebooks replace it."""
    console = Console(highlight=False, force_jupyter=False)
    if console.is_terminal:
        return console
    return Console(highlight=False, force_jupyter=False, width=_UNBROKEN)


def _text(cell: object) -> str:
    if cell is None:
        return "–"
    if isinstance(cell, numbers.Integral) and not isinstance(cell, bool):
        return f"{int(cell):,}"
    if isinstance(cell, numbers.Real) and not isinstance(cell, bool):
        return f"{float(cell):.4g}"
    return str(cell)


def _all_quantities(cells: Iterable[str]) -> bool:
    said = [cell for cell in cells if cell.strip() not in _EMPTY]
    return bool(said) and all(_QUANTITY.match(cell) for cell in said)
