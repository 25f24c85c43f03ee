"""Liger-Kernel on the simulator: each kernel's forward and backward against a torch reference.

    python -m tests.fidelity.liger install          # pip, into build/fidelity; once
    python -m tests.fidelity.liger run              # the table
    python -m tests.fidelity.liger run -k rope      # some kernels
    python -m tests.fidelity.liger run --markdown   # and the section of docs/fidelity.md
    python -m tests.fidelity.liger their-tests DIR  # Liger's own tests, from its repository

References are ours, in float64, on inputs rounded to the dtype under test. An error is the largest
difference in a tensor over the largest value that the reference has in it. Not part of `make test`.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path

import click
from rich.console import Console
from rich.progress import track

ROOT = Path(__file__).parents[2]
SITE = ROOT / "build" / "fidelity"
VERSION = "0.8.5"
TRANSFORMERS = "transformers==4.57.6"


@click.group()
def main() -> None:
    """Runs Liger-Kernel's kernels on the simulator."""


@main.command()
@click.option("--with-transformers", is_flag=True, help="which Liger's own tests import")
def install(with_transformers: bool) -> None:
    """Installs Liger-Kernel into build/fidelity, apart from the project's packages."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--upgrade",
        "--target",
        str(SITE),
    ]
    subprocess.run([*command, "--no-deps", f"liger-kernel=={VERSION}"], check=True)
    if with_transformers:
        subprocess.run([*command, TRANSFORMERS], check=True)


def _find_liger(site: Path) -> None:
    if not (site / "liger_kernel").is_dir():
        raise click.ClickException(
            f"no liger_kernel in {site}: run `python -m tests.fidelity.liger install` first"
        )
    sys.path.insert(0, str(site))
    # It says of every backend in another kernel language that it is not installed.
    logging.getLogger("liger_kernel").setLevel(logging.ERROR)


def _console() -> Console:
    """Wide enough for the table where the output is no terminal."""
    return Console() if sys.stdout.isatty() else Console(width=140)


@main.command()
@click.option("-k", "pattern", default="", help="only kernels whose name contains this")
@click.option("--site", type=click.Path(path_type=Path), default=SITE, help="where Liger is")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="write every case here")
@click.option("--markdown", is_flag=True, help="write its section of docs/fidelity.md")
@click.option(
    "--theirs", type=click.Path(exists=True, path_type=Path), help="of their-tests, for it"
)
@click.option("--theirs-are", default="all", help="which of their tests were run, in words")
@click.option("--verbose", is_flag=True, help="a line for each case")
def run(
    pattern: str,
    site: Path,
    json_path: Path | None,
    markdown: bool,
    theirs: Path | None,
    theirs_are: str,
    verbose: bool,
) -> None:
    """Compares the kernels with their references; exit status 1 if one fails."""
    _find_liger(site)
    from tests.fidelity.liger_cases.all_cases import all_cases
    from tests.fidelity.liger_cases.compare import compare
    from tests.fidelity.liger_cases.report import case_line, kernel_table, write_section
    from tests.fidelity.liger_cases.their_tests import in_words

    console = _console()
    cases = [case for case in all_cases() if pattern in case.kernel]
    results = []
    for case in track(cases, "kernels", console=console, transient=True):
        for dtype in case.dtypes:
            results.append(compare(case, dtype))
            if verbose or results[-1].failure:
                console.print(case_line(results[-1]), highlight=False, markup=False)
    console.print(kernel_table(results))
    if json_path is not None:
        json_path.write_text(json.dumps([r.to_dict() for r in results], indent=1) + "\n")
    if markdown:
        words = in_words(theirs, theirs_are) if theirs else []
        write_section(ROOT / "docs" / "fidelity.md", results, VERSION, words)
    sys.exit(any(result.failure for result in results))


@main.command("their-tests")
@click.argument("folder", type=click.Path(exists=True, path_type=Path))
@click.option("--site", type=click.Path(path_type=Path), default=SITE, help="where Liger is")
@click.option("-k", "pattern", default="", help="handed to pytest")
@click.option("--sample", default=0, help="so many parametrizations of each test; 0: all")
@click.option("--seconds", default=120, help="limit for one test")
@click.option("--results", type=click.Path(path_type=Path), default=SITE / "their_tests.jsonl")
def their_tests(
    folder: Path, site: Path, pattern: str, sample: int, seconds: int, results: Path
) -> None:
    """Runs Liger's own tests in FOLDER (its repository's test/transformers) on CPU tensors.

    They import `transformers`: `install --with-transformers`.
    """
    _find_liger(site)
    from tests.fidelity.liger_cases.their_tests import failures, run_tests, their_table

    run_tests(folder, site, pattern, sample, seconds, results)
    console = _console()
    for failure in failures(results):
        console.print(failure[:400], highlight=False, markup=False)
    console.print(their_table(results))


if __name__ == "__main__":
    main()
