"""Triton's own unit tests, unaltered, on the simulator and on Triton's interpreter, side by side.

    python tests/fidelity/triton_suite.py TRITON/python/test/unit/language --sample 2
    python tests/fidelity/triton_suite.py TRITON/python/test/unit/language -k "dot and not scaled"

`TRITON` is a checkout of Triton at the version that is installed. Some of its tests need scipy:
`pip install --no-deps --target build/fidelity scipy==1.17.1`. The whole takes hours on two cores.
Results are kept in `dist/fidelity`: `--keep` prints the table again without running anything, and a
run of some files or tests only replaces their results.

On the simulator the tests see the compute capability 9.0; those that they skip for it run again
with 10.0, and then with 8.0.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

HOUSE = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(HOUSE))  # run as a script, `tests` is not found otherwise

from tests.fidelity.triton_table import (  # noqa: E402
    HEADINGS,
    Comparison,
    Row,
    cells,
    compare,
    markdown,
    read_explanations,
    read_results,
)

#: Packages that only suites of others need.
SITE = HOUSE / "build" / "fidelity"
EXPLAINED = Path(__file__).with_name("triton_explained.toml")
SIDES = ("simulator", "interpreter")
#: What the tests see on the simulator; those that are skipped for one are tried with the next.
CAPABILITIES = ("9.0", "10.0", "8.0")
#: Lines between which `--markdown` writes.
BEGIN, END = "<!-- begin: triton_suite.py -->", "<!-- end: triton_suite.py -->"


@dataclass(frozen=True)
class Run:
    """What to run of a folder of tests.

    Attributes:
        folder: with the tests.
        only: names of files in it, all if there are none.
        more: further options for pytest.
        jobs: processes.
        limit: seconds that a test may take.
    """

    folder: Path
    only: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    jobs: int = 1
    limit: int = 120

    def on(self, side: str, results: Path, resume: bool = False) -> None:
        """Runs it on a side; adds what comes out to the file `results`.

        resume: leave out what has a result there.
        """
        known = results.with_suffix(".known.jsonl")  # a copy, since the file grows meanwhile
        if resume and results.is_file():
            shutil.copy(results, known)
            first: tuple[str, ...] = ("--not-in", str(known))
        else:
            first = ()
        if side == "interpreter":
            self._pytest(side, results, "-m", "interpreter", *first)  # what it is said to run
            return
        self._pytest(side, results, "--capability", CAPABILITIES[0], *first)
        for capability in CAPABILITIES[1:]:
            outcomes = {result.outcome for result in read_results(results).values()}
            if "skipped" in outcomes:
                shutil.copy(results, known)
                again = ("--capability", capability, "--skipped-in", str(known))
                self._pytest(side, results, *again)

    def _pytest(self, side: str, results: Path, *more: str) -> None:
        env = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": f"{HOUSE}{os.pathsep}{SITE}"}
        env["TRITON_CACHE_DIR"] = str(results.parent / f"cache-{side}")
        env.pop("TRITON_INTERPRET", None)
        env |= (
            {"TRITON_INTERPRET": "1"}
            if side == "interpreter"
            else {"TRITON_DEFAULT_BACKEND": "mini_triton"}
        )
        command = [sys.executable, "-m", "pytest", "-q", "--tb", "short", "-c", os.devnull]
        command += ["--rootdir", str(_root(self.folder)), "-p", "no:cacheprovider"]
        command += ["--continue-on-collection-errors"]
        command += ["-p", "tests.fidelity.triton_plugin", "-p", "tests.fidelity.results_plugin"]
        command += ["--results", str(results), "--device", "cpu", "--timeout", str(self.limit)]
        command += [*self.more, *more]
        if self.jobs > 1:
            command += ["-n", str(self.jobs)]
        command += [str(self.folder / name) for name in self.only] or [str(self.folder)]
        log = results.with_suffix(".log")
        with log.open("w") as out:
            code = subprocess.run(command, cwd=HOUSE, env=env, stdout=out, stderr=out).returncode
        if code not in (0, 1, 5):  # all passed, some failed, none were selected
            raise click.ClickException(f"pytest ended with {code} on the {side}: see {log}")


def _root(folder: Path) -> Path:
    """The nearest folder above with a `conftest.py`: the suite's own fixtures."""
    for candidate in (folder, *folder.parents):
        if (candidate / "conftest.py").is_file():
            return candidate
    raise click.ClickException(
        f"no conftest.py in {folder} or above: give the folder python/test/unit/language of a "
        "checkout of Triton"
    )


def show(comparison: Comparison, console: Console, by_test: bool) -> None:
    """Prints the table, what is not explained, and what only one side passes."""
    title = "Triton's own tests: passed / failed / skipped"
    table = Table(title=title, title_justify="left")
    table.add_column("test" if by_test else "file", overflow="fold")
    for heading in HEADINGS:
        table.add_column(heading, justify="right")
    rows = comparison.rows if by_test else comparison.by_file()
    for name, row in rows.items():
        table.add_row(name.removesuffix(".py"), *cells(row))
    table.add_section()
    table.add_row("all", *cells(comparison.total()))
    console.print(table)
    for reason, count in comparison.reasons.most_common():
        console.print(f"{count:6,} failures explained: {reason}", highlight=False)
    for title, results in (
        ("Failures that nothing explains", comparison.unexplained),
        ("Passed by the interpreter only", comparison.only_interpreter),
        ("Passed by the simulator, tried by the interpreter", comparison.only_ours),
    ):
        console.print(f"\n{title}: {len(results):,}", style="bold")
        for result in results if by_test else results[:40]:
            line = " ".join(result.message.split())[:160]
            console.print(f"  {result.test}: {line}", highlight=False, markup=False)
    for entry in comparison.idle:
        console.print(f"explains nothing: {entry.tests} ({entry.reason})", style="yellow")


def write_between(path: Path, text: str) -> None:
    """Puts `text` between this script's two lines in a file of the documentation."""
    before, begin, rest = path.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise click.ClickException(f"{path} has no lines {BEGIN} and {END}")
    path.write_text(f"{before}{BEGIN}\n{text}{END}{after}")


@click.command(help=__doc__)
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--select", "only", multiple=True, help="A file of the folder; may be repeated.")
@click.option("-k", "expression", help="Only tests that match, as pytest's -k.")
@click.option("--sample", default=0, help="At most so many parametrizations of each test.")
@click.option("--seed", default=0, help="Which ones --sample takes.")
@click.option("--side", type=click.Choice(SIDES), help="Run one side only.")
@click.option("--jobs", default=2, show_default=True, help="Processes.")
@click.option("--limit", default=120, show_default=True, help="Seconds that a test may take.")
@click.option("--resume", is_flag=True, help="Run only tests that have no result yet.")
@click.option("--keep", is_flag=True, help="Run nothing: show the results that are there.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=HOUSE / "dist" / "fidelity",
    help="Where results are kept.  [default: dist/fidelity]",
)
@click.option("--by-test", is_flag=True, help="A row for each test, and all names.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write all as JSON.")
@click.option("--markdown", "docs", type=click.Path(path_type=Path), help="Write the table there.")
def main(
    folder: Path,
    only: tuple[str, ...],
    expression: str | None,
    sample: int,
    seed: int,
    side: str | None,
    jobs: int,
    limit: int,
    resume: bool,
    keep: bool,
    out: Path,
    by_test: bool,
    json_path: Path | None,
    docs: Path | None,
) -> None:
    """Runs, compares, shows."""
    out.mkdir(parents=True, exist_ok=True)
    paths = {name: out.absolute() / f"{name}.jsonl" for name in SIDES}
    more = ["--sample", str(sample), "--sample-seed", str(seed)]
    more += ["-k", expression] if expression else []
    if not keep:
        for name in (side,) if side else SIDES:
            if not (only or expression or resume):
                paths[name].unlink(missing_ok=True)
            click.echo(f"running on the {name} …", err=True)
            run = Run(folder.absolute(), only, tuple(more), jobs, limit)
            run.on(name, paths[name], resume)
    results = {name: read_results(path) if path.is_file() else {} for name, path in paths.items()}
    comparison = compare(results["simulator"], results["interpreter"], read_explanations(EXPLAINED))
    show(comparison, Console(), by_test)
    if json_path is not None:
        json_path.write_text(json.dumps(comparison.to_dict(), indent=1))
    if docs is not None:
        write_between(docs, markdown(comparison))
    total: Row = comparison.total()
    sys.exit(bool(total.unexplained))


if __name__ == "__main__":
    main()
