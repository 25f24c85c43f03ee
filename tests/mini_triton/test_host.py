"""What torch operations on the host are counted for: inputs once, outputs once, views free."""

import mini_triton
import pytest
import torch

from tests.mini_triton.comparing import normal


def counted(compute):
    """[(name, loaded, stored)] of the operations of a function."""
    with mini_triton.profile() as p:
        compute()
    assert p.launches == []
    for op in p.host:
        assert (op.loaded_bytes, op.stored_bytes) == (4 * op.loaded, 4 * op.stored)
    return [(op.name, op.loaded, op.stored) for op in p.host]


X, Y = normal(8, 16), normal(8, 16, seed=1)
W = normal(16, 4)


@pytest.mark.parametrize(
    ("compute", "expected"),
    [
        (lambda: X @ W, [("mm", 128 + 64, 32)]),
        (lambda: X + Y, [("add", 256, 128)]),
        (lambda: X * X, [("mul", 128, 128)]),  # one input, read once
        (lambda: X + 1, [("add", 128, 128)]),
        (lambda: torch.relu(X), [("relu", 128, 128)]),
        (lambda: X.sum(0), [("sum", 128, 16)]),
        (lambda: X.mean(), [("mean", 128, 1)]),
        (lambda: X.clone().add_(Y), [("clone", 128, 128), ("add_", 256, 128)]),
        (lambda: torch.add(X, Y, out=torch.empty(8, 16)), [("add", 256, 128)]),
        (lambda: torch.mm(X, W, out=torch.empty(8, 4)), [("mm", 192, 32)]),
        (lambda: torch.empty(8, 16).copy_(X), [("copy_", 128, 128)]),
        (lambda: torch.empty(8, 16).zero_(), [("zero_", 0, 128)]),
        (lambda: torch.empty(8, 16).fill_(2.0), [("fill_", 0, 128)]),
        (lambda: torch.zeros(8, 16), [("zeros", 0, 128)]),
        (lambda: torch.cat([X, Y]), [("cat", 256, 256)]),
        (lambda: X.T.contiguous(), [("clone", 128, 128)]),
    ],
    ids=lambda value: "-".join(name for name, *_ in value) if isinstance(value, list) else "of",
)
def test_operations(compute, expected):
    assert counted(compute) == expected


@pytest.mark.parametrize(
    "compute",
    [
        lambda: X.T,
        lambda: X.view(-1)[3:].unsqueeze(0).expand(5, -1),
        lambda: X.reshape(16, 8).transpose(0, 1)[:, ::2],
        lambda: X.split(4),
        lambda: X.detach().unbind(0),
        lambda: torch.empty(100, 100),
        lambda: torch.empty_like(X),
        lambda: X.new_empty(3),
        lambda: X.contiguous(),
        lambda: X[0, 0].item(),
    ],
)
def test_views_and_allocations_are_free(compute):
    assert counted(compute) == []


def test_two_results():
    with mini_triton.profile() as p:
        X.max(1)
    (op,) = p.host
    assert (op.loaded, op.stored) == (128, 16)
    assert (op.loaded_bytes, op.stored_bytes) == (512, 8 * 4 + 8 * 8)


def test_batched_products_are_counted_once():
    """The reshape around a product of three axes is free."""
    x = normal(2, 8, 16)
    assert counted(lambda: x @ W) == [("mm", 256 + 64, 64)]


def test_a_view_and_its_base_are_two_reads():
    assert counted(lambda: X[:4] + X[4:]) == [("add", 128, 64)]
    assert counted(lambda: X + X.view(8, 16)) == [("add", 128, 128)]


def test_element_sizes():
    with mini_triton.profile() as p:
        X.to(torch.bfloat16)
    (op,) = p.host
    assert (op.loaded_bytes, op.stored_bytes) == (512, 256)


def test_the_backward_pass_is_counted():
    """y = (x·w).sum(): forward mm and sum; backward one product for each gradient."""
    x, w = X.clone().requires_grad_(), W.clone().requires_grad_()
    found = counted(lambda: (x @ w).sum().backward())
    products = [op for op in found if op[0] == "mm"]
    assert products == [("mm", 192, 32), ("mm", 32 + 128, 64), ("mm", 32 + 64, 128)]
    assert ("sum", 32, 1) in found


def test_totals_and_switching_off():
    with mini_triton.profile() as p:
        X + Y
        X @ W
    assert (p.host_loaded_bytes, p.host_stored_bytes) == (4 * (256 + 192), 4 * (128 + 32))
    assert (p.loaded_bytes, p.stored_bytes) == (0, 0)
    with mini_triton.profile(host=False) as p:
        X + Y
    assert p.host == []
