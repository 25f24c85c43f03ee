"""Cross-entropy of rows of logits, with its gradient: one program a row, the row read in blocks."""

import torch
import triton
import triton.language as tl


@triton.jit
def cross_entropy_kernel(
    x_ptr, target_ptr, loss_ptr, dx_ptr, stride, n_cols, counted, ignored,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """x, dx: (M, n_cols) with one row stride; target: (M,) int64; loss: (M,).

    A first pass finds the row's maximum and the sum of its exponentials, both at once; a second one
    stores the gradient, (softmax(x) − [column = target]) / counted.
    """
    row = tl.program_id(0).to(tl.int64)
    x_row = x_ptr + row * stride
    dx_row = dx_ptr + row * stride
    target = tl.load(target_ptr + row)
    if target == ignored:
        for start in range(0, n_cols, BLOCK):
            cols = start + tl.arange(0, BLOCK)
            tl.store(dx_row + cols, 0.0, mask=cols < n_cols)
        tl.store(loss_ptr + row, 0.0)
        return
    highest, total = float("-inf"), 0.0
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_row + cols, mask=cols < n_cols, other=float("-inf")).to(tl.float32)
        higher = tl.maximum(highest, tl.max(x, axis=0))
        total = total * tl.exp(highest - higher) + tl.sum(tl.exp(x - higher), axis=0)
        highest = higher
    of_target = tl.load(x_row + target).to(tl.float32)
    tl.store(loss_ptr + row, highest + tl.log(total) - of_target)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_row + cols, mask=cols < n_cols, other=float("-inf")).to(tl.float32)
        p = tl.exp(x - highest) / total
        tl.store(dx_row + cols, tl.where(cols == target, p - 1, p) / counted, mask=cols < n_cols)


def cross_entropy(
    x: torch.Tensor, target: torch.Tensor, ignored: int = -100, block: int = 2048
) -> tuple[torch.Tensor, torch.Tensor]:
    """x: (M, N) contiguous, target: (M,) → mean loss over the rows not ignored, dx (M, N)."""
    loss = torch.empty(x.shape[0], dtype=torch.float32, device=x.device)
    dx = torch.empty_like(x)
    counted = int((target != ignored).sum())
    cross_entropy_kernel[(x.shape[0],)](
        x, target, loss, dx, x.stride(0), x.shape[1], counted, ignored, BLOCK=block
    )
    return loss.sum() / counted, dx


def reference(
    x: torch.Tensor, target: torch.Tensor, ignored: int = -100
) -> tuple[torch.Tensor, torch.Tensor]:
    """The same in torch."""
    leaf = x.detach().requires_grad_()
    loss = torch.nn.functional.cross_entropy(leaf, target, ignore_index=ignored)
    return loss.detach(), torch.autograd.grad(loss, leaf)[0]
