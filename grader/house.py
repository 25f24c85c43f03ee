"""Where everything is: the folders of an assignment, in whichever tree this package lies.

The package travels in three trees, and finds its way from its own location in each:

    the repository          everything
    a student's handout     assignments/ and starter/, but no solutions and nothing hidden
    the Gradescope zip      assignments/ and tests/hidden/, as it is unpacked on the grading machine

`grader/` lies at the root of all three, beside `assignments/`. A folder that a tree does not carry
still has its path here: whether it is there is for the caller to ask.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

#: The file that makes a folder below `assignments/` an assignment.
MANIFEST = "assignment.toml"


class HouseError(Exception):
    """No tree around the package, or no assignment of that name; the message says what to do."""


@dataclass(frozen=True)
class House:
    """One tree.

    Attributes:
        root: the folder that holds `assignments/` and `grader/`.
    """

    root: Path

    def names(self) -> list[str]:
        """The assignments that the tree has, sorted."""
        return sorted(found.parent.name for found in self.root.glob(f"assignments/*/{MANIFEST}"))

    def assignment(self, name: str) -> Path:
        """`assignments/<name>`: handout, manifest, public tests.

        Raises:
            HouseError: the tree has no such assignment; the message lists those that it has.
        """
        self._known(name)
        return self.root / "assignments" / name

    def manifest(self, name: str) -> Path:
        """`assignments/<name>/assignment.toml`. Raises as `assignment`."""
        return self.assignment(name) / MANIFEST

    def public(self, name: str) -> Path:
        """`assignments/<name>/public`: the tests that students have. Raises as `assignment`."""
        return self.assignment(name) / "public"

    def solution(self, name: str) -> Path:
        """`solutions/<name>`: the hand-written source; repository only. Raises as `assignment`."""
        self._known(name)
        return self.root / "solutions" / name

    def starter(self, name: str) -> Path:
        """`starter/<name>`: what a student begins with. Raises as `assignment`."""
        self._known(name)
        return self.root / "starter" / name

    def hidden(self, name: str) -> Path:
        """`tests/hidden/<name>`: not in a student's handout. Raises as `assignment`."""
        self._known(name)
        return self.root / "tests" / "hidden" / name

    def variants(self, name: str) -> Path:
        """`tests/variants/<name>`: right and wrong ones. Raises as `assignment`."""
        self._known(name)
        return self.root / "tests" / "variants" / name

    def golden(self, name: str) -> Path:
        """`tests/golden/<name>.json`, the golden table of counts. Raises as `assignment`."""
        self._known(name)
        return self.root / "tests" / "golden" / f"{name}.json"

    def relative(self, path: Path) -> str:
        """A path as messages show it: relative to the root, if it lies below."""
        return (
            path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else str(path)
        )

    def _known(self, name: str) -> None:
        names = self.names()
        if name not in names:
            there = f"those there are: {', '.join(names)}" if names else "there are none"
            raise HouseError(
                f"no assignment {name!r} in {self.root / 'assignments'}; {there} "
                f"(an assignment is a folder with an {MANIFEST})"
            )


def find(start: Path | None = None) -> House:
    """The tree around a file: the nearest folder upwards with `assignments/` and this package.

    Args:
        start: where to begin; the default is this very file.

    Raises:
        HouseError: there is none, as when the package was copied into `site-packages`.
    """
    start = (start or Path(__file__)).resolve()
    for folder in (start, *start.parents):
        # The package, not just a folder of that name: tests/ has an assignments/ and a grader/ too.
        if (folder / "assignments").is_dir() and (folder / "grader" / "house.py").is_file():
            return House(folder)
    raise HouseError(
        f"no folder above {start} holds assignments/ and grader/; install the project in editable "
        "mode (pip install -e .) so that the package stays in its tree"
    )


@functools.cache
def here() -> House:
    """The tree that this package lies in, found once. Raises as `find`."""
    return find()


def names() -> list[str]:
    """The assignments of this tree, sorted."""
    return here().names()


def assignment(name: str) -> Path:
    """`House.assignment` of this tree."""
    return here().assignment(name)


def solution(name: str) -> Path:
    """`House.solution` of this tree."""
    return here().solution(name)


def starter(name: str) -> Path:
    """`House.starter` of this tree."""
    return here().starter(name)


def hidden(name: str) -> Path:
    """`House.hidden` of this tree."""
    return here().hidden(name)


def variants(name: str) -> Path:
    """`House.variants` of this tree."""
    return here().variants(name)
