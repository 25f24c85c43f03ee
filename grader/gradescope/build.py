"""Builds the zip that is uploaded to Gradescope: `make gradescope A=rmsnorm`.

In the zip, and so in `/autograder/source`:

    setup.sh             run once, as root, when the container's image is built
    run_autograder       run for each submission
    settings.sh          what the two need to know of the assignment and of this build
    before.json          results.json as it stands before anything has been graded
    shared/ grader/ pyproject.toml assignments/<name>/ tests/hidden/<name>/

Solutions, starters, variants and the project's own tests stay here.
"""

from __future__ import annotations

import json
import os
import shlex
import tomllib
from importlib import resources
from pathlib import Path

from grader import house as houses
from grader.house import House
from grader.manifest import Assignment
from grader.packing import PackingError, Parcel, without_packages
from grader.report import gradescope
from grader.verdict import empty_report

#: Parts of the grader that only the repository needs.
_LEFT_OUT = ("grader.authoring", "grader.gradescope")
#: Gradescope ends a container after 10 minutes, and then everything counts zero. The grader is
#: ended before, so that the tests which have run keep their points.
SECONDS = 570
_NOT_BEGUN = "grading did not begin"


def build(assignment: Assignment, *, house: House | None = None, to: Path | None = None) -> Path:
    """Writes the zip.

    If `TORCH_INDEX_URL` is set, the zip remembers it: `setup.sh` takes torch from that index.

    Args:
        assignment: the assignment.
        house: the tree to build from; None takes the one this package lies in.
        to: where to write it; None is `dist/gradescope/<name>.zip` in the tree.

    Returns:
        The zip.

    Raises:
        PackingError: something that belongs into it is not there.
        HouseError: no such assignment in the tree.
    """
    house = house or houses.here()
    name = assignment.name
    parcel = Parcel()
    for script in ("setup.sh", "run_autograder"):
        parcel.add(script, template(script), executable=True)
    parcel.add("README.md", template("README.md"))
    pyproject = (house.root / "pyproject.toml").read_text(encoding="utf-8")
    parcel.add("settings.sh", _settings(assignment, pyproject))
    parcel.add("before.json", _before(assignment))
    parcel.add("pyproject.toml", without_packages(pyproject, _LEFT_OUT))
    parcel.add_file("LICENSE", house.root / "LICENSE")
    parcel.add_tree("shared", house.root / "shared")
    parcel.add_tree("grader", house.root / "grader", ["authoring", "gradescope", "handout.py"])
    parcel.add_tree(f"assignments/{name}", house.assignment(name))
    if any(test.hidden for test in assignment.tests()):
        parcel.add_tree(f"tests/hidden/{name}", house.hidden(name))
    return parcel.write(to or house.root / "dist" / "gradescope" / f"{name}.zip")


def template(name: str) -> str:
    """The text of a file below `templates/`."""
    return resources.files("grader.gradescope").joinpath("templates", name).read_text("utf-8")


def _settings(assignment: Assignment, pyproject: str) -> str:
    """Shell variables: the same for the same tree and the same `TORCH_INDEX_URL`."""
    dependencies = tomllib.loads(pyproject)["project"]["dependencies"]
    torch = [requirement for requirement in dependencies if requirement.startswith("torch==")]
    if len(torch) != 1:
        raise PackingError("pyproject.toml must depend on one exact torch, as in 'torch==2.13.0'")
    settings = {
        "ASSIGNMENT": assignment.name,
        "TORCH": torch[0],
        "BUILT_WITH_TORCH_INDEX_URL": os.environ.get("TORCH_INDEX_URL", ""),
        "SECONDS_AT_MOST": str(SECONDS),
    }
    lines = [f"{key}={shlex.quote(value)}\n" for key, value in settings.items()]
    return "# Read by setup.sh and run_autograder; written when the zip was built.\n" + "".join(
        lines
    )


def _before(assignment: Assignment) -> str:
    report = empty_report(assignment, assignment.seed, _NOT_BEGUN)
    content = gradescope.results(report)
    gradescope.validate(content)
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
