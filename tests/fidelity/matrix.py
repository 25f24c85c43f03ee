"""The simulator's tests on other versions of Triton: a table of what passes on each.

    python tests/fidelity/matrix.py                     # 3.6.0, 3.7.1 and 3.9.0
    python tests/fidelity/matrix.py 3.9.0 -- tests/mini_triton/ir

The environment of the project stays as it is. Another version of Triton is unpacked into a folder
of its own (`--keep`), which is put before the environment's packages: torch, which is large, serves
all of them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

import click
from console import print_table

ROOT = Path(__file__).resolve().parents[2]
VERSIONS = ("3.6.0", "3.7.1", "3.9.0")
TESTS = ("tests/mini_triton", "tests/kernels")


def overlay(version: str, keep: Path) -> Path | None:
    """The folder with that version, unpacked if it is not there; None for the environment's own."""
    if metadata.version("triton") == version:
        return None
    folder = keep / f"triton-{version}"
    if not folder.is_dir():
        part = folder.with_suffix(".part")
        install = ("-m", "pip", "install", "-q", "--no-deps", "--upgrade", "--target", str(part))
        subprocess.run([sys.executable, *install, f"triton=={version}"], check=True)
        part.rename(folder)
    return folder


def run(version: str, keep: Path, tests: Sequence[str], jobs: int) -> tuple[Counter[str], Path]:
    """(how many tests passed, failed and were skipped; the file with all that pytest printed)."""
    folder = overlay(version, keep)
    report, log = keep / f"{version}.xml", keep / f"{version}.log"
    report.unlink(missing_ok=True)
    before = [str(folder)] if folder else []
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([*before, os.environ.get("PYTHONPATH", "")]).strip(
            os.pathsep
        ),
        "TRITON_CACHE_DIR": str(keep / f"cache-{version}"),
        "TRITON_DEFAULT_FP_FUSION": "1",  # Triton 3.9 warns unless one says so
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, "-m", "pytest", "-q", "-n", str(jobs), f"--junitxml={report}"]
    with log.open("w") as output:
        subprocess.run(
            [*command, *tests], cwd=ROOT, env=environment, stdout=output, stderr=output, check=False
        )
    if not report.is_file():
        raise click.ClickException(f"pytest did not run on Triton {version}: see {log}")
    return outcomes(report), log


def outcomes(report: Path) -> Counter[str]:
    """Tests by outcome, from pytest's report in JUnit's format."""
    found: Counter[str] = Counter()
    for case in ElementTree.parse(report).iter("testcase"):
        (outcome,) = {child.tag for child in case} & {"failure", "error", "skipped"} or {"passed"}
        found[outcome] += 1
    return found


@click.command(help=(__doc__ or "").partition("\n")[0])
@click.option(
    "--keep",
    type=click.Path(file_okay=False, path_type=Path),
    default=ROOT / "dist" / "matrix",
    help="Where versions, caches and reports are kept.",
)
@click.option("--jobs", default=2, help="Processes that run tests.")
@click.argument("versions", nargs=-1)
def main(keep: Path, jobs: int, versions: tuple[str, ...]) -> None:
    """Runs the tests on each version, prints a table, and fails if any test did."""
    names = [name for name in versions if name[:1].isdigit()] or list(VERSIONS)
    tests = [name for name in versions if not name[:1].isdigit()] or list(TESTS)
    keep.mkdir(parents=True, exist_ok=True)
    rows, failed = [], 0
    for version in names:
        found, log = run(version, keep.resolve(), tests, jobs)
        bad = found["failure"] + found["error"]
        failed += bad
        rows.append([version, found["passed"], bad, found["skipped"], str(log)])
        click.echo(f"Triton {version}: {found['passed']} passed, {bad} failed")
    print_table(["Triton", "passed", "failed", "skipped", "what pytest said"], rows)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
