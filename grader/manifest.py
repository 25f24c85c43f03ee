"""Reads `assignment.toml`: what an assignment is, and what each of its tests is worth.

Points live here and nowhere else. A test that vanishes, is skipped or dies keeps its points in the
denominator, since the denominator never comes from a test run.

    name = "rmsnorm"                 # the folder's name
    title = "Fused RMSNorm in Triton"
    files = ["rmsnorm.py"]           # what a student hands in, the main file first
    time_limit = 60                  # seconds a test; default 60
    memory_limit_mb = 640            # a test; default 640
    seed = 349                       # of the random inputs; default 0

    [[tasks]]
    id = "1"
    title = "The forward kernel"
    file = "rmsnorm.py"              # where it is written; default: the main file

    [[tasks.tests]]
    number = "1.1"                   # task id, dot, position
    test = "public/test_forward.py::TestForward::test_float32"
    points = 3
    visibility = "visible"           # default: visible below public/, hidden below hidden/
    time_limit = 20                  # default: the assignment's; memory_limit_mb likewise
"""

from __future__ import annotations

import keyword
import math
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from grader import house as houses
from grader.house import House

Visibility = Literal["visible", "hidden", "after_due_date", "after_published"]

_FILE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\.py")
_REFERENCE = re.compile(
    r"(?P<tree>public|hidden)/(?P<file>test_[A-Za-z0-9_]+\.py)"
    r"::(?P<case>[A-Za-z_][A-Za-z0-9_]*)::(?P<method>test[A-Za-z0-9_]*)"
)
#: The packages below shared/: no student file may hide one.
SHARED = (
    *("comm_sim", "console", "graph_ir", "hw_specs", "llm_math", "mini_triton", "spmd"),
    "transformer_lab",
)
#: Modules that student files, tests and the grader import; a student file must not stand for one.
_TAKEN = sys.stdlib_module_names | {"torch", "triton", "numpy", "grader", "pytest", *SHARED}


class ManifestError(Exception):
    """A manifest is not as it must be; the message names file and field, and says what to do."""


def _file_name(name: str) -> str:
    if not _FILE_NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not a plain file name such as 'rmsnorm.py'; give no folders")
    module = name.removesuffix(".py")
    if keyword.iskeyword(module) or module in _TAKEN:
        raise ValueError(f"{name!r} would hide the module {module!r} when imported; rename it")
    return name


def _reference(reference: str) -> str:
    if not _REFERENCE.fullmatch(reference):
        raise ValueError(
            f"{reference!r} is not a test; write 'public/test_x.py::TestX::test_y' or "
            "'hidden/test_x.py::TestX::test_y'"
        )
    return reference


def _unique(values: list[str], what: str) -> None:
    twice = [value for value, count in Counter(values).items() if count > 1]
    if twice:
        raise ValueError(f"{what} {twice[0]!r} is there {values.count(twice[0])} times; keep one")


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class Test(_Model):
    """One test, and what it is worth.

    Attributes:
        number: task id, dot, position: "1.2".
        reference: `public/…` or `hidden/…`, `::Class::method`; the key is `test`.
        points: positive and finite.
        visibility: what Gradescope shows of it to the student, and when.
        time_limit: seconds, where it is not the assignment's.
        memory_limit_mb: megabytes (10⁶ bytes), where it is not the assignment's.
    """

    __test__ = False  # pytest, which collects classes named Test…, must pass this one over

    number: Annotated[str, Field(pattern=r"^\d+(\.\d+)+$")]
    reference: Annotated[str, AfterValidator(_reference), Field(alias="test")]
    points: Annotated[float, Field(gt=0)]
    visibility: Visibility
    time_limit: Annotated[float | None, Field(gt=0)] = None
    memory_limit_mb: Annotated[int | None, Field(gt=0)] = None

    @model_validator(mode="before")
    @classmethod
    def _default_visibility(cls, data: Any) -> Any:
        if isinstance(data, dict) and "visibility" not in data:
            hidden = str(data.get("test", "")).startswith("hidden/")
            return {**data, "visibility": "hidden" if hidden else "visible"}
        return data

    def _part(self, name: str) -> str:
        match = _REFERENCE.fullmatch(self.reference)
        assert match is not None  # validated
        return match[name]

    @property
    def hidden(self) -> bool:
        """Whether its file stays with the graders. (What students see of it is `visibility`.)"""
        return self._part("tree") == "hidden"

    @property
    def file(self) -> str:
        """The test file's name: `test_forward.py`."""
        return self._part("file")

    @property
    def case(self) -> str:
        """The class's name: `TestForward`."""
        return self._part("case")

    @property
    def method(self) -> str:
        """The method's name: `test_float32`."""
        return self._part("method")


def _sum(tests: Iterable[Test]) -> float:
    """Points as people add them: 0.1 + 0.1 + 0.1 is 0.3, which binary fractions miss."""
    return round(math.fsum(test.points for test in tests), 6)


class Task(_Model):
    """One thing to be written, and the tests that judge it.

    Attributes:
        id: "1"; stubs and markers name it.
        title: a few words.
        file: the declared file that it is written in; None for the main one.
        tests: at least one.
    """

    id: Annotated[str, Field(pattern=r"^\d+(\.\d+)*$")]
    title: Annotated[str, Field(min_length=1)]
    file: str | None = None
    tests: Annotated[list[Test], Field(min_length=1)]

    @model_validator(mode="after")
    def _own_tests(self) -> Self:
        for test in self.tests:
            if test.number.rpartition(".")[0] != self.id:
                raise ValueError(
                    f"test {test.number!r} is listed under task {self.id!r}; number it "
                    f"'{self.id}.1', '{self.id}.2', … or move it to its own task"
                )
        return self

    @property
    def points(self) -> float:
        """What the task is worth."""
        return _sum(self.tests)


class Assignment(_Model):
    """A whole assignment.

    Attributes:
        name: the name of its folder.
        title: for people.
        files: what a student hands in, the main file first.
        time_limit: seconds a test.
        memory_limit_mb: megabytes (10⁶ bytes) a test.
        seed: of the random inputs, unless a run is given another.
        tasks: in the order of the handout.
    """

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    title: Annotated[str, Field(min_length=1)]
    files: Annotated[list[Annotated[str, AfterValidator(_file_name)]], Field(min_length=1)]
    time_limit: Annotated[float, Field(gt=0)] = 60
    memory_limit_mb: Annotated[int, Field(gt=0)] = 640
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    tasks: Annotated[list[Task], Field(min_length=1)]

    @model_validator(mode="after")
    def _nothing_twice(self) -> Self:
        _unique([name.casefold() for name in self.files], "file")
        _unique([task.id for task in self.tasks], "task")
        _unique([test.number for test in self.tests()], "number")
        _unique([test.reference for test in self.tests()], "test")
        for task in self.tasks:
            if task.file is not None and task.file not in self.files:
                raise ValueError(
                    f"task {task.id!r} is written in {task.file!r}, which is not among `files`; "
                    "add it there, or correct `file`"
                )
        return self

    def tests(self) -> Iterator[Test]:
        """All tests, task by task."""
        for task in self.tasks:
            yield from task.tests

    def test(self, number: str) -> Test:
        """The test of a number.

        Raises:
            KeyError: there is none.
        """
        for test in self.tests():
            if test.number == number:
                return test
        raise KeyError(number)

    def task_of(self, test: Test) -> Task:
        """The task that a test belongs to."""
        task_id = test.number.rpartition(".")[0]
        return next(task for task in self.tasks if task.id == task_id)

    def file_of(self, task: Task) -> str:
        """The declared file that a task is written in."""
        return task.file or self.files[0]

    @property
    def task_ids(self) -> tuple[str, ...]:
        """The ids of the tasks, in order."""
        return tuple(task.id for task in self.tasks)

    @property
    def total_points(self) -> float:
        """The denominator."""
        return _sum(self.tests())

    def time_limit_of(self, test: Test) -> float:
        """Seconds that a test may take."""
        return self.time_limit if test.time_limit is None else test.time_limit

    def memory_limit_mb_of(self, test: Test) -> int:
        """Megabytes (10⁶ bytes) that a test may hold."""
        return self.memory_limit_mb if test.memory_limit_mb is None else test.memory_limit_mb

    def test_path(self, test: Test, house: House | None = None) -> Path:
        """Where a test's file is, in this tree unless another is given."""
        house = house or houses.here()
        folder = house.hidden(self.name) if test.hidden else house.public(self.name)
        return folder / test.file


def load(name: str, house: House | None = None) -> Assignment:
    """Reads and checks the manifest of an assignment.

    Args:
        name: the assignment's.
        house: the tree; the default is the one this package lies in.

    Raises:
        HouseError: no such assignment.
        ManifestError: the file is not TOML, or a field is missing, unknown, or not as it must be,
            or a test file that this tree should have is not there.
    """
    house = house or houses.here()
    path = house.manifest(name)
    shown = house.relative(path)
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ManifestError(f"{shown} cannot be read as TOML: {error}") from None
    try:
        assignment = Assignment.model_validate(data)
    except ValidationError as error:
        lines = "\n".join(f"  {_explain(one, data)}" for one in error.errors())
        raise ManifestError(f"{shown} is not as it must be:\n{lines}") from None
    if assignment.name != name:
        raise ManifestError(
            f"{shown}: name: is {assignment.name!r}, but the folder is {name!r}; make them equal"
        )
    _test_files_exist(assignment, house, shown)
    return assignment


def _test_files_exist(assignment: Assignment, house: House, shown: str) -> None:
    """A handout has no hidden tests at all; a tree that has some must have all."""
    for test in assignment.tests():
        path = assignment.test_path(test, house)
        if not path.is_file() and (path.parent.is_dir() or not test.hidden):
            raise ManifestError(
                f"{shown}: test {test.number}: there is no {house.relative(path)}; "
                "correct `test`, or write the file"
            )


def _explain(error: Any, data: dict[str, Any]) -> str:
    """One of pydantic's errors as `tasks[0].tests[1] (number 1.2).points: what, and what to do`."""
    where = ""
    at: Any = data
    for step in error["loc"]:
        at = at[step] if isinstance(at, dict | list) and _has(at, step) else None
        if isinstance(step, int):
            where += f"[{step}]"
            if isinstance(at, dict) and ("number" in at or "id" in at):
                key = "number" if "number" in at else "id"
                where += f" ({key} {at[key]})"
        else:
            where += f".{step}" if where else str(step)
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] == "extra_forbidden":
        message = "no such key; correct its spelling or remove it"
    elif error["type"] == "missing":
        message = "is missing; add it"
    elif error["type"] != "value_error":
        message = f"{message[0].lower()}{message[1:]}, but is {error['input']!r:.60}; correct it"
    return f"{where}: {message}" if where else message


def _has(at: dict[str, Any] | list[Any], step: Any) -> bool:
    return step in at if isinstance(at, dict) else isinstance(step, int) and step < len(at)
