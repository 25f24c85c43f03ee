from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from grader.manifest import Assignment
from grader.submission import Limits, Problem, Submission, read


class Reader:
    """Reads submissions below `folder`, each into a fresh folder, and watches what is written."""

    def __init__(self, tmp_path: Path) -> None:
        self.folder = tmp_path / "handed-in"
        self.folder.mkdir()
        self._into = tmp_path / "into"
        self._root = tmp_path
        self._count = 0

    def __call__(
        self,
        path: Path | None = None,
        files: tuple[str, ...] = ("softmax.py",),
        **limits: int,
    ) -> Submission:
        self._count += 1
        into = self._into / str(self._count)
        before = self._everything()
        found = read(path or self.folder, self.assignment(*files), into, Limits(**limits))
        written = self._everything() - before - {self._into, into}
        assert written == {into / name for name in found.files}
        assert all(isinstance(one, Problem) for one in found.problems)
        return found

    @staticmethod
    def assignment(*files: str) -> Assignment:
        test = {"number": "1.1", "test": "public/test_a.py::TestA::test_a", "points": 1}
        return Assignment.model_validate(
            {
                "name": "softmax",
                "title": "Softmax",
                "files": list(files),
                "tasks": [{"id": "1", "title": "Forward", "tests": [test]}],
            }
        )

    def _everything(self) -> set[Path]:
        return set(self._root.rglob("*"))

    def put(self, name: str, content: str | bytes = "x = 1\n") -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    return Reader(tmp_path)


@pytest.fixture
def only() -> Callable[[Submission], Problem]:
    """The one problem of a submission that has no files."""

    def problem(submission: Submission) -> Problem:
        assert submission.files == []
        [one] = submission.problems
        return one

    return problem


@pytest.fixture
def text_of() -> Callable[..., str]:
    """A file that was read, as it was written."""

    def text(submission: Submission, name: str = "softmax.py") -> Any:
        return (submission.folder / name).read_bytes().decode()

    return text
