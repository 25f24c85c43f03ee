"""Work on the host is told from work in kernels, with the cheats that byte budgets let through."""

import textwrap

import pytest
import torch

from grader.testing import AssignmentTestCase
from grader.testing.local import LocalStudent
from grader.testing.trace import MOST_BYTES, copies, reach

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

@triton.jit
def fill(y_ptr, n, value, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.full((BLOCK,), value, tl.float32), mask=at < n)

@triton.jit
def gap(x_ptr, y_ptr, n, step, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + 1 + at, mask=at < n), mask=at < n)

@triton.jit
def sum_rows(x_ptr, y_ptr, M, N, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for row in range(M):
        total += tl.load(x_ptr + row * N + at, mask=at < N)
    tl.store(y_ptr + at, total, mask=at < N)

@triton.jit
def decode(bits_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    word = tl.zeros((BLOCK,), tl.int32)
    for i in range(32):
        word |= tl.load(bits_ptr + at * 32 + i, mask=at < n, other=0).to(tl.int32) << i
    tl.store(y_ptr + at, word.to(tl.float32, bitcast=True), mask=at < n)

def launch(x, y, factor):
    scale[(1,)](x, y, x.numel(), factor=factor, BLOCK=64)
    return y

"""

HONEST = {
    "one kernel": "return launch(x, torch.empty_like(x), 2.0)",
    "two kernels": "return launch(launch(x, torch.empty_like(x), 4.0), torch.empty_like(x), 0.5)",
    "a contiguous copy": "return launch(x.clone().contiguous(), torch.empty_like(x), 2.0)",
    "a view of the result": "return launch(x, torch.empty(30), 2.0).view(5, 6)",
    "a transposed copy": "return launch(x.t().contiguous(), torch.empty(6, 5), 2.0).t()",
    "row by row": "return torch.stack([launch(r, torch.empty(6), 2.0) for r in x])",
    "slices of one output": "y = torch.empty(5, 6); launch(x[:2], y[:2], 2.0)"
    "; launch(x[2:], y[2:], 2.0); return y",
    "padded to a power of two": "z = torch.nn.functional.pad(x, (0, 2))"
    "; return launch(z, torch.empty(5, 8), 2.0)[:, :6]",
    "atomics into zeros": "y = torch.zeros(5, 6); add[(1,)](x, y, 30, BLOCK=64);"
    " add[(1,)](x, y, 30, BLOCK=64); return y",
    "in place": "y = x.clone(); launch(y, y, 4.0); launch(y, y, 0.5); return y",
}
CHEATS = {
    "no kernel": ("return x * 2", "launched no Triton kernel"),
    "a decoy": ("nothing[(1,)](torch.empty(1)); return x * 2", "y was stored by no kernel"),
    "a copy kernel": (
        "return launch(x * 2, torch.empty_like(x), 1.0)",
        r"x_ptr of scale holds numbers that are neither .*: 30 of 30, the first is .* at element 0",
    ),
    "a last step on the host": (
        "return launch(x, torch.empty_like(x), 4.0) / 2",
        "y was stored by no kernel",
    ),
    "a cast before": ("return launch(x.double(), torch.empty_like(x), 2.0)", "x_ptr of scale"),
    "a cast behind": (
        "return launch(x, torch.empty(5, 6, dtype=torch.float64), 2.0).float()",
        "y was stored by no kernel",
    ),
    "a decoy on the right answer": (
        "y = x * 2; nothing[(1,)](torch.zeros(1)); y[0, 0] *= 1; return y",
        "y was stored by no kernel",
    ),
    "one element of the right answer": (
        "y = x * 2; y[0, 0] = 0; launch(x[:1, :1], y[:1, :1], 2.0); return y",
        "29 of the 30 numbers in y were stored by no kernel",
    ),
    "one element stored often": (
        "y = x * 2; y[0, 0] = 0; [launch(x[:1, :1], y, 2.0) for _ in range(40)]; return y",
        "29 of the 30 numbers in y were stored by no kernel",
    ),
    "as integers": (
        "y = torch.empty_like(x)"
        "; launch((x * 2).view(torch.int32), y.view(torch.int32), 1); return y",
        "x_ptr of scale holds numbers",
    ),
    "between the rows": (
        "z = torch.zeros(2, 31); z[0, 1:] = (x * 2).view(30); y = torch.empty_like(x)"
        "; gap[(1,)](z[:, :1], y, 30, 31, BLOCK=64); return y",
        "x_ptr of gap holds numbers",
    ),
    "a row for all": (
        "return launch(x[0], torch.empty(6), 2.0).expand(5, 6)",
        "24 B, less than the 120 B of y",
    ),
}
#: What no strange tensor gives away, but a replay does.
SMUGGLED = {
    "scalars": "y = torch.empty(30)"
    "; [fill[(1,)](y[i:], 1, v * 2, BLOCK=64) for i, v in enumerate(x.view(30).tolist())]"
    "; return y.view(5, 6)",
    "bits": "w = (x * 2).view(torch.int32).view(30, 1); b = (w >> torch.arange(32)).bitwise_and(1)"
    "; y = torch.empty_like(x); decode[(1,)](b.to(torch.int8), y, 30, BLOCK=64); return y",
}


class Case(AssignmentTestCase):
    def test_it(self):
        """Not run"""


def called(tmp_path, body, x):
    source = KERNELS + "def double(x):\n" + textwrap.indent(body.replace("; ", "\n"), "    ")
    (tmp_path / "work.py").write_text(source)
    return LocalStudent(tmp_path, ["work.py"]).call("double", x)


def check(tmp_path, body, x=None):
    case = Case("test_it")
    if x is None:
        x = case.randn(5, 6)
    call = called(tmp_path, body, x)
    if "expand" not in body:
        assert torch.equal(call.value, x * 2)  # all others give the right answer
    case.assert_by_kernels(call, y=call.value)
    other = case.like(x)
    case.assert_follows(
        call, lambda again: case.assert_close("y", again.value, other.double() * 2), other
    )
    assert case.evidence == []


@pytest.mark.parametrize("how", HONEST)
def test_honest_work_passes(tmp_path, how):
    check(tmp_path, HONEST[how])


@pytest.mark.parametrize("how", CHEATS)
def test_work_on_the_host_is_found(tmp_path, how):
    body, words = CHEATS[how]
    with pytest.raises(AssertionError, match=words):
        check(tmp_path, body)


@pytest.mark.parametrize("how", SMUGGLED)
def test_what_was_smuggled_into_kernels_does_not_follow_other_inputs(tmp_path, how):
    with pytest.raises(AssertionError, match="do not compute its result from its inputs"):
        check(tmp_path, SMUGGLED[how])


@pytest.mark.parametrize(
    "x", [torch.randn(9, 20)[::2, 3:9], torch.randn(6, 5).t(), torch.randn(6).expand(5, 6)]
)
def test_strided_inputs_are_known_with_all_that_they_reach(tmp_path, x):
    copy = "return launch(x.contiguous(), torch.empty(5, 6), 2.0)"
    check(tmp_path, copy, x)


SUM = "p = launch(x, torch.empty_like(x), 2.0); "


@pytest.mark.parametrize(
    "body",
    [
        SUM + "return p.sum(0)",
        SUM + "return p.sum(0).bfloat16()",
        SUM + "s = torch.empty(6); sum_rows[(1,)](p, s, 5, 6, BLOCK=8); return s",
    ],
)
def test_a_sum_over_stored_rows_is_allowed_where_a_test_says_so(tmp_path, body):
    case = Case("test_it")
    x = case.randn(5, 6)
    call = called(tmp_path, body, x)
    case.assert_by_kernels(call, sums={"s": call.value})
    other = case.like(x)
    expected = 2 * other.double().sum(0)
    case.assert_follows(call, lambda c: case.assert_close("s", c.value, expected), other)


@pytest.mark.parametrize("body", ["return (3 * x).sum(0)", "return p.sum(0) + 0.001 * x[0]"])
def test_a_sum_of_anything_else_is_not(tmp_path, body):
    case = Case("test_it")
    call = called(tmp_path, SUM + body, case.randn(5, 6))
    with pytest.raises(AssertionError, match="s is neither stored by a kernel nor the sum"):
        case.assert_by_kernels(call, sums={"s": call.value})


def test_a_call_that_is_too_large_to_be_traced_says_so(tmp_path):
    case = Case("test_it")
    large = torch.zeros(MOST_BYTES // 8 + 1)
    call = called(
        tmp_path, "nothing[(1,)](x.clone()); return torch.zeros(3)", large.expand(large.shape)
    )
    with pytest.raises(AssertionError, match="too much to be traced"):
        case.assert_by_kernels(call, y=torch.zeros(3))


def test_copies_share_memory_as_their_originals_do():
    base = torch.arange(20.0)
    rows, column, alone = base.view(4, 5)[:, :2], base.view(4, 5)[1:, 1], torch.ones(3).half()
    first, second, third = copies([rows, column, alone])
    assert (first.stride(), second.stride()) == (rows.stride(), column.stride())
    assert torch.equal(reach(first), reach(rows))
    first[1, 1] = -1
    assert second[0] == -1
    assert base[6] == 6
    assert torch.equal(third, alone)
