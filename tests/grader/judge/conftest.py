"""A small house with one assignment, `toy`, and a judge for it."""

import textwrap
from pathlib import Path

import pytest

from grader import manifest
from grader.house import House
from grader.judge.supervisor import Judge

MANIFEST = """
name = "toy"
title = "Doubling"
files = ["toy.py"]
time_limit = 20
memory_limit_mb = 900
seed = 5

[[tasks]]
id = "1"
title = "Double"
tests = [
    { number = "1.1", points = 3, test = "public/test_toy.py::TestToy::test_double" },
    { number = "1.2", points = 2, test = "hidden/test_toy_hidden.py::TestHidden::test_secret" },
]

[[tasks]]
id = "2"
title = "The rest"
tests = [
    { number = "2.1", points = 1, test = "public/test_toy.py::TestToy::test_strides" },
    { number = "2.2", points = 1, test = "public/test_toy.py::TestToy::test_gradient" },
    { number = "2.3", points = 2, test = "public/test_toy.py::TestToy::test_partial" },
    { number = "2.4", points = 1, test = "public/test_toy.py::TestToy::test_record" },
]
"""

PUBLIC = '''
import torch
from gradescope_utils.autograder_utils.decorators import (
    leaderboard, number, partial_credit, weight,
)
from grader.testing import AssignmentTestCase, Budget, Record


class TestToy(AssignmentTestCase):
    @weight(3)
    @number("1.1")
    def test_double(self):
        """y = 2x, loaded and stored once"""
        x = self.randn(4, 8)
        call = self.student.call("double", x)
        self.assert_close("y", call.value, 2 * x.double(), dtype=torch.float32)
        budget = Budget("M*N*s", M=4, N=8, s=4)
        self.assert_traffic(call, loaded=budget, stored=budget)
        self.assert_by_kernels(call, y=call.value)

    @weight(1)
    @number("2.1")
    def test_strides(self):
        """An expanded and a sliced input arrive as such"""
        x = self.randn(6, 10)[::2, 3:7]
        e = self.randn(3, 1).expand(3, 4)
        call = self.student.call("strides", x, e, scale=2.0)
        sizes, total = self.unpack_pair(call)
        self.assertEqual(sizes, ((20, 1), (1, 0)))
        self.assert_close("total", total, (x.double() + e.double()) * 2)

    def unpack_pair(self, call):
        self.assertEqual(len(call.value), 2)
        return call.value

    @weight(1)
    @number("2.2")
    def test_gradient(self):
        """The gradient of x · g"""
        x, g = self.randn(3, 4), self.randn(4)
        dy = torch.ones(()).expand(3, 4)
        y, dx, dg = self.unpack(self.student.gradients("product", x, g, dy=dy), "y", "dx", "dg")
        self.assert_close("y", y, x.double() * g.double())
        self.assert_close("dx", dx, g.double().expand(3, 4))
        self.assert_close("dg", dg, x.double().sum(0))

    @partial_credit(4)
    @number("2.3")
    @leaderboard("speed", "asc")
    def test_partial(self, set_score=None, set_leaderboard_value=None):
        """As many points as the student says, in fours"""
        value = self.student.call("score").value
        set_leaderboard_value(7)
        set_score(value)
        self.assertNotEqual(value, 3, "one of the fours is missing")

    @weight(1)
    @number("2.4")
    def test_record(self):
        """A dataclass there and back, a dict filled in"""
        m = self.randn(3)
        call = self.student.call("halve", Record("State", m=m), stats={"calls": 1})
        self.assertEqual(call.value.kind, "State")
        self.assert_close("m", call.value.m, m.double() / 2)
        self.assertEqual(call.filled, {"stats": {"calls": 2}})
'''

HIDDEN = '''
from gradescope_utils.autograder_utils.decorators import number, weight
from grader.testing import AssignmentTestCase

SECRET = "the-oracle-4711"


class TestHidden(AssignmentTestCase):
    @weight(2)
    @number("1.2")
    def test_secret(self):
        """Larger inputs"""
        x = self.randn(16, 33, scale=100.0)
        secret = x.double() * 2
        call = self.student.call("double", x)
        self.assert_close("hidden y", call.value, secret)
'''

SOLUTION = """
import dataclasses

import torch
import triton
import triton.language as tl


@triton.jit
def double_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(y_ptr + at, 2 * x, mask=at < n)


def double(x):
    y = torch.empty_like(x)
    double_kernel[(triton.cdiv(x.numel(), 16),)](x, y, x.numel(), BLOCK=16)
    return y


def strides(x, e, scale):
    return (x.stride(), e.stride()), (x + e) * scale


def product(x, g):
    return x * g


def score():
    return 4


@dataclasses.dataclass
class State:
    m: torch.Tensor


def halve(state, stats):
    stats["calls"] += 1
    return State(state.m / 2)
"""


@pytest.fixture(scope="session")
def toy_house(tmp_path_factory) -> House:
    root = tmp_path_factory.mktemp("house")
    for file, text in {
        "assignments/toy/assignment.toml": MANIFEST,
        "assignments/toy/public/test_toy.py": PUBLIC,
        "tests/hidden/toy/test_toy_hidden.py": HIDDEN,
        "solutions/toy/toy.py": SOLUTION,
    }.items():
        path = root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return House(root)


@pytest.fixture(scope="session")
def toy(toy_house):
    return manifest.load("toy", toy_house)


@pytest.fixture(scope="session")
def judge():
    with Judge() as running:
        yield running


@pytest.fixture
def grade(judge, toy, toy_house, tmp_path):
    """Grades a source text, appended to the solution; `alone` takes it for the whole file."""

    def run(source="", *, alone=False, only=None, listener=lambda result, report: None, **limits):
        folder = tmp_path / "work"
        folder.mkdir(exist_ok=True)
        text = textwrap.dedent(source)
        (folder / "toy.py").write_text(text if alone else SOLUTION + text)
        assignment = toy.model_copy(update=limits)
        return judge.grade_path(assignment, folder, only=only, house=toy_house, listener=listener)

    return run


@pytest.fixture
def first(grade):
    """Grades a source text and returns the result of test 1.1."""

    def run(source="", **how):
        return grade(source, only=("1",), **how).tests[0]

    return run


def pytest_collection_modifyitems(items):
    """One judge serves all of these tests: keep them on one worker of pytest-xdist."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("judge"))
