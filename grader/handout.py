"""Builds what a student gets: `make handout A=rmsnorm`.

One folder `bytewise-<name>/` with the same Makefile and layout as the repository's, so that every
command of the assignment's README works in it:

    README.md                what this is, and where to begin
    assignments/<name>/      README, public tests, demo
    starter/<name>/          the files to be filled in
    shared/ grader/          the simulators and the grader, without what only instructors need
    Makefile pyproject.toml LICENSE .gitignore

Nothing of the solutions, the hidden tests, the variants or the golden counts is in it. The
manifest lists the public tests only: how many points the hidden ones carry stands in the README,
but their names would already tell what they try.
"""

from __future__ import annotations

import json
from pathlib import Path

from grader import house as houses
from grader.house import MANIFEST, House
from grader.manifest import Assignment, Task, Test
from grader.packing import PackingError, Parcel, without_packages

#: Parts of the grader that stay in the repository.
_LEFT_OUT = ("grader.authoring", "grader.gradescope")

_README = """\
# {title}

You need Linux and Python 3.11 or newer; no GPU. The assignment itself, what to write, how it is
graded and how to find mistakes, is in [assignments/{name}/README.md](assignments/{name}/README.md).
You write in {files}.

    make test A={name}      # run the public tests on your work; what is not started is skipped
    make report A={name}    # grade it, and write dist/report.html: every test, and what it measured
    make submit A={name}    # write dist/submit/{name}.zip, which is what you hand in

Each takes another file, a zip or a notebook with `SUBMISSION=PATH`; what becomes of a notebook's
cells is written in the assignment's README.

The first `make` installs what is needed into `.venv` here, some gigabytes if PyTorch comes with
CUDA. A build for CPUs is much smaller:

    make setup TORCH_INDEX_URL=…     # PyTorch's index of CPU builds: its install page names it

`make` uses that environment by itself. For commands that begin with `python` or `pytest`, enter it,
once in each shell:

    source .venv/bin/activate

Grading runs more tests than you have here; the assignment's README says what they ask for.
"""


def handout(assignment: Assignment, *, house: House | None = None, to: Path | None = None) -> Path:
    """Writes the zip.

    Args:
        assignment: the assignment.
        house: the tree to build from; None takes the one this package lies in.
        to: where to write it; None is `dist/handout/<name>.zip` in the tree.

    Returns:
        The zip.

    Raises:
        PackingError: something that belongs into it is not there.
        HouseError: no such assignment in the tree.
    """
    house = house or houses.here()
    name = assignment.name
    for file in assignment.files:
        if not (house.starter(name) / file).is_file():
            path = house.relative(house.starter(name) / file)
            raise PackingError(f"there is no {path}; make solutions writes it")
    parcel = Parcel(folder=f"bytewise-{name}")
    files = " and ".join(f"`starter/{name}/{file}`" for file in assignment.files)
    parcel.add("README.md", _README.format(title=assignment.title, name=name, files=files))
    for file in ("Makefile", "LICENSE", ".gitignore"):
        parcel.add_file(file, house.root / file)
    pyproject = (house.root / "pyproject.toml").read_text(encoding="utf-8")
    parcel.add("pyproject.toml", without_packages(pyproject, _LEFT_OUT))
    parcel.add_tree("shared", house.root / "shared")
    parcel.add_tree("grader", house.root / "grader", ["authoring", "gradescope", "handout.py"])
    parcel.add_tree(f"assignments/{name}", house.assignment(name), [MANIFEST])
    parcel.add(f"assignments/{name}/{MANIFEST}", public_manifest(assignment))
    parcel.add_tree(f"starter/{name}", house.starter(name))
    return parcel.write(to or house.root / "dist" / "handout" / f"{name}.zip")


def public_manifest(assignment: Assignment) -> str:
    """`assignment.toml` without the hidden tests, as text.

    A task that only hidden tests judge is left out as a whole.

    Raises:
        PackingError: there are no public tests at all.
    """
    tasks = [(task, [test for test in task.tests if not test.hidden]) for task in assignment.tasks]
    if not any(tests for _, tests in tasks):
        raise PackingError(f"{assignment.name} has no public tests to hand out")
    public = sum(test.points for _, tests in tasks for test in tests)
    lines = [
        "# The public tests. Hidden ones carry the other "
        f"{assignment.total_points - public:g} of {assignment.total_points:g} points.",
        f"name = {_toml(assignment.name)}",
        f"title = {_toml(assignment.title)}",
        f"files = [{', '.join(map(_toml, assignment.files))}]",
        f"time_limit = {_toml(assignment.time_limit)}",
        f"memory_limit_mb = {_toml(assignment.memory_limit_mb)}",
        f"seed = {_toml(assignment.seed)}",
    ]
    for task, tests in tasks:
        if tests:
            lines += _task(task, tests)
    return "\n".join(lines) + "\n"


def _task(task: Task, tests: list[Test]) -> list[str]:
    return [
        "",
        "[[tasks]]",
        f"id = {_toml(task.id)}",
        f"title = {_toml(task.title)}",
        "tests = [",
        *(f"    {{ {_fields(test)} }}," for test in tests),
        "]",
    ]


def _fields(test: Test) -> str:
    fields: dict[str, str | float] = {
        "number": test.number,
        "points": test.points,
        "test": test.reference,
        "visibility": test.visibility,
    }
    if test.time_limit is not None:
        fields["time_limit"] = test.time_limit
    if test.memory_limit_mb is not None:
        fields["memory_limit_mb"] = test.memory_limit_mb
    return ", ".join(f"{key} = {_toml(value)}" for key, value in fields.items())


def _toml(value: str | float) -> str:
    """A string or number in TOML; what JSON writes for them is TOML, too."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, ensure_ascii=False)
