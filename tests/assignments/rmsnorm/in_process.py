"""Runs the assignment's public and hidden tests on a folder, in this process, test by test."""

from __future__ import annotations

import importlib.util
import tomllib
import unittest
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from grader.testing.local import LocalStudent

HOUSE = Path(__file__).resolve().parents[3]
MANIFEST = tomllib.loads((HOUSE / "assignments/rmsnorm/assignment.toml").read_text())


@dataclass(frozen=True)
class Outcome:
    """What became of one test, and the text that a student would see."""

    task: str
    number: str
    verdict: str  # passed, failed, not started
    text: str = ""


@cache
def load(path: Path) -> ModuleType:
    """A test file as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def case_of(test: str) -> Any:
    """`hidden/test_x.py::Class::method` → that test, ready to run."""
    path, class_name, method = test.split("::")
    where, _, file = path.partition("/")
    folder = {"public": "assignments/rmsnorm/public", "hidden": "tests/hidden/rmsnorm"}[where]
    return getattr(load(HOUSE / folder / file), class_name)(method)


def run_tests(folder: Path, seed: int, tasks: Collection[str] | None = None) -> list[Outcome]:
    """Every test of the manifest, or of some tasks, on folder/rmsnorm.py."""
    student = LocalStudent(folder, MANIFEST["files"])
    outcomes = []
    for task in MANIFEST["tasks"]:
        if tasks is not None and task["id"] not in tasks:
            continue
        for entry in task["tests"]:
            case = case_of(entry["test"])
            case.student, case.run_seed = student, seed
            result = unittest.TestResult()
            case.run(result)
            wrong = [text for _, text in result.failures + result.errors]
            skipped = [text for _, text in result.skipped]
            verdict = "failed" if wrong else "not started" if skipped else "passed"
            text = "".join(wrong + skipped)
            outcomes.append(Outcome(task["id"], entry["number"], verdict, text))
    return outcomes
