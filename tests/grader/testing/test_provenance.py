"""Work on the host is told from work in kernels, with the cheats that byte budgets let through."""

import textwrap

import pytest
import torch

from grader.testing import AssignmentTestCase
from grader.testing.local import LocalStudent
from grader.testing.provenance import contents

KERNELS = """
import torch, triton
import triton.language as tl

@triton.jit
def scale(x_ptr, y_ptr, n, factor: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y_ptr + at, factor * tl.load(x_ptr + at, mask=at < n), mask=at < n)

@triton.jit
def nothing(x_ptr):
    tl.store(x_ptr, 0.0)

@triton.jit
def add(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.atomic_add(y_ptr + at, tl.load(x_ptr + at, mask=at < n), mask=at < n)

def launch(x, y, factor):
    scale[(1,)](x, y, x.numel(), factor=factor, BLOCK=64)
    return y

"""

HONEST = {
    "one kernel": "return launch(x, torch.empty_like(x), 2.0)",
    "two kernels": "return launch(launch(x, torch.empty_like(x), 4.0), torch.empty_like(x), 0.5)",
    "a contiguous copy": "return launch(x.clone().contiguous(), torch.empty_like(x), 2.0)",
    "a view of the result": "return launch(x, torch.empty(30), 2.0).view(5, 6)",
    "atomics into zeros": "y = torch.zeros(5, 6); add[(1,)](x, y, 30, BLOCK=64);"
    " add[(1,)](x, y, 30, BLOCK=64); return y",
}
CHEATS = {
    "no kernel": ("return x * 2", "launched no Triton kernel"),
    "a decoy": ("nothing[(1,)](torch.empty(1)); return x * 2", "y is not what a kernel stored"),
    "a copy kernel": ("return launch(x * 2, torch.empty_like(x), 1.0)", "kernel scale loads x_ptr"),
    "a last step on the host": ("return launch(x, torch.empty_like(x), 4.0) / 2", "y is not what"),
    "a cast on the host": (
        "return launch(x.double(), torch.empty_like(x), 2.0)",
        "computed by torch on the host",
    ),
    "a decoy on the right answer": (
        "y = x * 2; nothing[(1,)](y[:1, :1] * 1); return y",
        "y is not what a kernel stored",
    ),
    "one element of the right answer": (
        "y = x * 2; nothing[(1,)](torch.empty(1)); launch(x[:1, :1], y[:1, :1], 2.0); return y",
        "y is not what a kernel stored",
    ),
}


class Case(AssignmentTestCase):
    def test_it(self):
        """Not run"""


def check(tmp_path, body):
    source = KERNELS + "def double(x):\n" + textwrap.indent(body.replace("; ", "\n"), "    ")
    (tmp_path / "work.py").write_text(source)
    case = Case("test_it")
    x = case.randn(5, 6)
    call = LocalStudent(tmp_path, ["work.py"]).call("double", x)
    assert torch.equal(call.value, x * 2)  # all of them give the right answer
    case.assert_by_kernels(call, y=call.value)


@pytest.mark.parametrize("how", HONEST)
def test_honest_work_passes(tmp_path, how):
    check(tmp_path, HONEST[how])


@pytest.mark.parametrize("how", CHEATS)
def test_work_on_the_host_is_found(tmp_path, how):
    body, words = CHEATS[how]
    with pytest.raises(AssertionError, match=words):
        check(tmp_path, body)


def test_contents_are_those_of_the_logical_order():
    x = torch.arange(6.0).reshape(2, 3)
    assert contents(x) == contents(x.clone()) == contents(x.view(6)) == contents(x.t().t())
    others = [x.t(), x.double(), x + 1, x[:, :2], x.view(torch.int32)]
    assert contents(x).digest not in {contents(other).digest for other in others}


@pytest.mark.parametrize(
    ("tensor", "constant"),
    [
        (torch.zeros(3), True),
        (torch.full((2, 2), torch.nan), True),
        (torch.tensor(2.5), True),
        (torch.empty(0), True),
        (torch.tensor([0.0, 1.0]), False),
        (torch.tensor([256, 1], dtype=torch.int16), False),
    ],
)
def test_a_fill_is_told_from_data(tensor, constant):
    assert contents(tensor).constant is constant
