"""What the assignments' `demo.py` have in common: the command line, the student's files, plots.

    main = command(__file__, __doc__, module_of("shard_lab"), PARTS, PLOTS)

A demo is a row of parts, each a function that prints something of the student's program, and of
plots, each a function that draws something of it. A part whose task is not started says so, and
the others run all the same.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import click


class Missing(click.ClickException):
    """A file that the demo, or a part of it, needs is not there."""


def load(path: Path) -> ModuleType:
    """Imports a file as the module that it is called after.

    Raises `Missing` if there is no such file.
    """
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise Missing(f"there is no {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def module_of(name: str) -> Callable[[Path], ModuleType]:
    """What opens a submission that is one file, `<name>.py`: given it or its folder, imports it."""

    def opened(submission: Path) -> ModuleType:
        file = submission / f"{name}.py" if submission.is_dir() else submission
        module = load(file)
        click.echo(f"Running {file}")
        return module

    return opened


def default_submission(demo: Path) -> Path:
    """The reference solution where there is one, else the folder that a student fills.

    Args:
        demo: the script, `assignments/<name>/demo.py`.
    """
    house, name = demo.resolve().parents[2], demo.resolve().parent.name
    solution = house / "solutions" / name
    return solution if solution.is_dir() else house / "starter" / name


def pyplot() -> Any:
    """matplotlib's pyplot, drawing to files.

    Raises `click.ClickException`, which says how to get it, if it is not installed.
    """
    try:
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
    except ImportError:
        raise click.ClickException(
            "plots need matplotlib: pip install matplotlib, or leave out --png"
        ) from None
    return plt


def run(part: Callable[..., None], *arguments: object) -> bool:
    """Runs a part or plot; whether it came to its end, or said what it lacks."""
    try:
        part(*arguments)
    except NotImplementedError as stub:
        click.echo(f"not started: {stub}")
        return False
    except Missing as missing:
        click.echo(f"left out: {missing.message}")
        return False
    return True


def command(
    demo: str,
    doc: str | None,
    opened: Callable[[Path], object],
    parts: Sequence[Callable[[Any], None]],
    plots: Mapping[str, Callable[[Any, Path], None]],
) -> click.Command:
    """A command line that runs the parts and, with `--png FOLDER`, saves the plots.

    Args:
        demo: the script's `__file__`.
        doc: its docstring, whose first line is the command's help.
        opened: makes of the submission's path what parts and plots get.
        parts: print.
        plots: draw, by the name of the file.
    """
    script = Path(demo)

    @click.command(help=(doc or "").partition("\n")[0])
    @click.option(
        "--submission",
        type=click.Path(path_type=Path),
        default=None,
        help="Your file, or its folder.  [default: the solution, or else the starter]",
    )
    @click.option(
        "--png",
        type=click.Path(file_okay=False, path_type=Path),
        help=f"A folder to save {len(plots)} plots in.",
    )
    def main(submission: Path | None, png: Path | None) -> None:
        student = opened(submission or default_submission(script))
        for part in parts:
            run(part, student)
        if png is not None:
            click.echo()
            png.mkdir(parents=True, exist_ok=True)
            for name, plot in plots.items():
                if run(plot, student, png / name):
                    click.echo(f"Saved {png / name}")

    return main
