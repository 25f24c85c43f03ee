"""What the tests of this assignment share: the solution."""

from types import ModuleType

import pytest

from grader import house
from tests.assignments.loading import load


@pytest.fixture(scope="session")
def solution() -> ModuleType:
    return load(house.solution("rmsnorm") / "rmsnorm.py")
