"""The command line: `python -m grader COMMAND`.

One function a command; each imports what it needs when it runs, so that `--help` is quick.

Exit status: 0 the command did its work (whatever the score), 2 it was not asked for properly, 3 the
grader itself failed.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console

    from grader.judge.supervisor import Listener
    from grader.manifest import Assignment
    from grader.verdict import GradeReport, TestResult

GRADER_FAILED = 3
#: What only the repository has; handouts and the Gradescope zip do without.
_REPOSITORY_ONLY = ("grader.authoring", "grader.gradescope", "grader.handout")


class _Commands(click.Group):
    """Commands, some of which this tree may not be able to run."""

    def invoke(self, context: click.Context) -> Any:
        """Runs one; says so if it is not for this tree."""
        try:
            return super().invoke(context)
        except ModuleNotFoundError as error:
            if error.name not in _REPOSITORY_ONLY:
                raise
            message = f"{error.name} is not in this tree: only the instructors' repository has it"
            raise click.ClickException(message) from None


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Grades submissions on what they compute and on the bytes they move."""


@main.command()
@click.argument("assignment")
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write results.json.")
@click.option("--html", "html_path", type=click.Path(path_type=Path), help="Write an HTML report.")
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), help="Seed of the random inputs.")
@click.option(
    "--only", metavar="TASK", multiple=True, help="Run the tests of this task; repeatable."
)
@click.option("--in-process", is_flag=True, help="No isolation: for debugging, not for grades.")
def grade(
    assignment: str,
    path: Path,
    json_path: Path | None,
    html_path: Path | None,
    seed: int | None,
    only: tuple[str, ...],
    in_process: bool,
) -> None:
    """Grade PATH (a folder, zip, Python file or notebook) as a submission of ASSIGNMENT."""
    import grader.judge  # noqa: F401  (first: it sees to it that torch starts no threads)
    from grader.report import gradescope, html, terminal
    from grader.verdict import empty_report

    loaded = _assignment(assignment)
    if unknown := [task for task in only if task not in loaded.task_ids]:
        raise click.BadParameter(
            f"no task {unknown[0]!r}; there are {', '.join(loaded.task_ids)}", param_hint="--only"
        )
    console = _console()
    if json_path is not None:
        # Whatever happens from here on, there is a valid file that says how far it came.
        first = empty_report(loaded, loaded.seed if seed is None else seed, "the test has not run")
        gradescope.write(first, json_path)
    with _Progress(console, loaded, json_path) as progress:
        run = _in_process if in_process else _judged
        report = run(loaded, path, seed, only, progress.listener)
    if json_path is not None:
        gradescope.write(report, json_path)
    if html_path is not None:
        html.write(report, html_path)
    terminal.show(report, console)
    if report.grader_errors:
        numbers = ", ".join(test.number for test in report.grader_errors)
        click.echo(f"the grader failed on {numbers}", err=True)
        sys.exit(GRADER_FAILED)


def _judged(
    assignment: Assignment, path: Path, seed: int | None, only: tuple[str, ...], listener: Listener
) -> GradeReport:
    from grader.judge.supervisor import Judge

    with Judge() as judge:
        return judge.grade_path(assignment, path, seed=seed, only=only or None, listener=listener)


def _in_process(
    assignment: Assignment, path: Path, seed: int | None, only: tuple[str, ...], listener: Listener
) -> GradeReport:
    import tempfile

    from grader.judge.inprocess import grade_in_process
    from grader.submission import read

    with tempfile.TemporaryDirectory(prefix="bytewise-") as into:
        submission = read(path, assignment, Path(into) / "submission")
        return grade_in_process(
            assignment, submission, seed=seed, only=only or None, listener=listener
        )


def _assignment(name: str) -> Assignment:
    """The manifest of an assignment; a name that is none is a mistake of the caller's."""
    from grader import manifest
    from grader.house import HouseError

    try:
        return manifest.load(name)
    except HouseError as error:
        raise click.BadParameter(str(error), param_hint="ASSIGNMENT") from None
    except manifest.ManifestError as error:
        click.echo(str(error), err=True)
        sys.exit(GRADER_FAILED)


def _console() -> Console:
    """Standard output; wide enough for the tables when it is no terminal."""
    from rich.console import Console

    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=140)


class _Progress:
    """Shows the tests as they end, on a terminal, and keeps results.json up to date."""

    def __init__(self, console: Console, assignment: Assignment, json_path: Path | None) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        # No refreshing thread: processes are forked while this is shown.
        self._bar = Progress(
            TextColumn("grading"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.description}"),
            console=console,
            transient=True,
            auto_refresh=False,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("", total=len(list(assignment.tests())))
        self._json_path = json_path

    def __enter__(self) -> _Progress:
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.stop()

    def listener(self, result: TestResult, report: GradeReport) -> None:
        """Called after each test."""
        from grader.report import gradescope

        description = f"{result.number} {result.verdict.value}"
        self._bar.update(self._task, advance=1, description=description, refresh=True)
        if self._json_path is not None:
            gradescope.write(report, self._json_path)


@main.command()
@click.argument("assignment")
def demo(assignment: str) -> None:
    """Grade the reference solution and the untouched starter of ASSIGNMENT."""
    import grader.judge  # noqa: F401  (first: it sees to it that torch starts no threads)
    from grader import house
    from grader.report import terminal

    loaded = _assignment(assignment)
    console = _console()
    failed = False
    for title, path in (
        ("The reference solution", house.solution(assignment)),
        ("The untouched starter", house.starter(assignment)),
    ):
        if not path.is_dir():  # a student's handout has no solution
            continue
        console.rule(f"{title}: {house.here().relative(path)}")
        with _Progress(console, loaded, None) as progress:
            report = _judged(loaded, path, None, (), progress.listener)
        terminal.show(report, console)
        failed |= bool(report.grader_errors)
    if failed:
        sys.exit(GRADER_FAILED)


@main.command()
@click.argument("assignments", nargs=-1, metavar="[ASSIGNMENT]...")
def solutions(assignments: tuple[str, ...]) -> None:
    """Regenerate what is derived from solutions: starter/ and the golden tables."""
    from grader import house
    from grader.authoring import AuthoringError
    from grader.authoring.check import regenerate

    try:
        regenerate([_assignment(name).name for name in assignments or house.names()], _console())
    except AuthoringError as error:
        raise click.ClickException(str(error)) from None


@main.command()
@click.argument("assignments", nargs=-1, metavar="[ASSIGNMENT]...")
def check(assignments: tuple[str, ...]) -> None:
    """Prove that nothing has drifted and that solution, starter and variants are judged rightly."""
    from grader import house
    from grader.authoring import AuthoringError
    from grader.authoring.check import check as run_checks

    try:
        fine = run_checks(
            [_assignment(name).name for name in assignments or house.names()], _console()
        )
    except AuthoringError as error:
        raise click.ClickException(str(error)) from None
    if not fine:
        sys.exit(1)


@main.command()
@click.argument("assignment")
@click.option("--from", "source", type=click.Path(exists=True, path_type=Path), help="Your work.")
def submit(assignment: str, source: Path | None) -> None:
    """Zip the files that ASSIGNMENT declares, to be handed in (default: those in starter/)."""
    from grader import house
    from grader.submit import SubmitError
    from grader.submit import submit as pack

    try:
        packed = pack(_assignment(assignment), source)
    except SubmitError as error:
        raise click.ClickException(str(error)) from None
    for note in packed.notes:
        click.echo(f"note: {note}")
    for absent in packed.absent:
        click.echo(f"warning: {absent}", err=True)
    if packed.not_started:
        click.echo(f"warning: not started: task {', '.join(packed.not_started)}", err=True)
    click.echo(f"hand in {house.here().relative(packed.path)} ({', '.join(packed.files)})")


@main.command()
@click.argument("assignment")
def handout(assignment: str) -> None:
    """Build the zip that students of ASSIGNMENT get."""
    from grader import house
    from grader.handout import handout as build
    from grader.packing import PackingError

    try:
        path = build(_assignment(assignment))
    except PackingError as error:
        raise click.ClickException(str(error)) from None
    click.echo(f"hand out {house.here().relative(path)}")


@main.command()
@click.argument("assignment")
def gradescope(assignment: str) -> None:
    """Build the zip that grades ASSIGNMENT on Gradescope."""
    from grader import house
    from grader.gradescope.build import build
    from grader.packing import PackingError

    try:
        path = build(_assignment(assignment))
    except PackingError as error:
        raise click.ClickException(str(error)) from None
    click.echo(f"upload {house.here().relative(path)}")


@main.command("gradescope-check")
@click.argument("assignment")
@click.option(
    "--prefix",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Take the packages of this virtual environment instead of running setup.sh.",
)
@click.option(
    "--python",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The Python for setup.sh to build on, instead of one that it finds.",
)
def gradescope_check(assignment: str, prefix: Path | None, python: Path | None) -> None:
    """Run that zip as Gradescope would, on four submissions, and compare the results.

    Exit status 1: something is not as it must be.
    """
    from grader.gradescope.borrowed import BorrowError
    from grader.gradescope.check import check
    from grader.gradescope.rehearsal import RehearsalError
    from grader.packing import PackingError

    try:
        steps = check(_assignment(assignment), prefix=prefix, python=python, console=_console())
    except (PackingError, BorrowError, RehearsalError) as error:
        raise click.ClickException(str(error)) from None
    if any(step.wrong for step in steps):
        sys.exit(1)
