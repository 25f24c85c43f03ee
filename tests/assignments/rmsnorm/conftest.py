"""What the tests of this assignment share: where things are, and a run of its tests on a folder."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from tests.assignments.rmsnorm.in_process import HOUSE, MANIFEST, Outcome, load, run_tests


@pytest.fixture(scope="session")
def house() -> Path:
    return HOUSE


@pytest.fixture(scope="session")
def run() -> Callable[..., list[Outcome]]:
    """`run(folder)`; with another seed than the manifest's, `run(folder, 7)`; of some tasks,
    `run(folder, tasks=["1"])`."""
    return lambda folder, seed=MANIFEST["seed"], tasks=None: run_tests(folder, seed, tasks)


@pytest.fixture(scope="session")
def solution() -> ModuleType:
    return load(HOUSE / "solutions/rmsnorm/rmsnorm.py")
