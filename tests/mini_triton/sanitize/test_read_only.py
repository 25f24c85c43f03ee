"""Writes to tensors that were declared read-only: each wrong kernel has a right twin."""

from __future__ import annotations

import mini_triton
import pytest
import torch
import triton
import triton.language as tl


@triton.jit
def _negated(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, -tl.load(x + at, mask=at < n), mask=at < n)


def test_a_write_raises_at_the_end_of_the_profile() -> None:
    x = torch.ones(6)
    region = mini_triton.profile(read_only=[x])
    p = region.__enter__()
    _negated[(2,)](x, torch.empty(6), 6, BLOCK=4)
    assert not p.findings
    _negated[(2,)](x, x, 6, BLOCK=4)
    with pytest.raises(mini_triton.SanitizerError, match=r"y\[0\], which was declared read-only"):
        region.__exit__(None, None, None)
    (found,) = p.findings
    assert (found.check, found.tensor, found.programs) == ("read_only", "y", ((0, 0, 0),))


def test_a_write_outside_of_profiles_raises_at_its_launch() -> None:
    x = torch.ones(6)
    with mini_triton.read_only(x):
        _negated[(2,)](x, torch.empty(6), 6, BLOCK=4)
        with pytest.raises(mini_triton.SanitizerError) as raised:
            _negated[(2,)](torch.ones(6), x, 6, BLOCK=4)
    assert raised.value.findings[0].tensor == "y"
    _negated[(2,)](torch.ones(6), x, 6, BLOCK=4)


def test_only_the_declared_elements_count() -> None:
    whole = torch.zeros(4, 6)
    left, right = whole[:, :3], whole[:, 3:]
    with mini_triton.read_only(left):
        for row in right:
            _negated[(1,)](torch.ones(3), row, 3, BLOCK=4)
        with pytest.raises(mini_triton.SanitizerError):
            _negated[(2,)](torch.ones(6), whole[0], 6, BLOCK=4)


def test_declarations_end_with_their_region_even_by_an_error() -> None:
    x = torch.ones(6)
    with pytest.raises(ZeroDivisionError), mini_triton.read_only(x):
        _ = 1 / 0
    _negated[(2,)](x, x, 6, BLOCK=4)
