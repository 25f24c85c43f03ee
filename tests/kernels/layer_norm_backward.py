"""Layer normalisation, backward: some programs share the rows and each sums its dw and db."""

import torch
import triton
import triton.language as tl


@triton.jit
def layer_norm_backward_kernel(
    x_ptr, w_ptr, mean_ptr, rstd_ptr, dy_ptr, dx_ptr, dw_ptr, db_ptr, n_rows, n_cols,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """x, dy, dx: (n_rows, n_cols) contiguous; mean, rstd: (n_rows,); dw, db: (programs, n_cols).

    With x̂ = (x − mean)·rstd and g = w·dy:  dx = (g − x̂·mean(x̂·g) − mean(g))·rstd.
    """
    program, programs = tl.program_id(0), tl.num_programs(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    dw = tl.zeros([BLOCK], tl.float32)
    db = tl.zeros([BLOCK], tl.float32)
    for row in range(program, n_rows, programs):
        x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
        rstd = tl.load(rstd_ptr + row)
        normal = (x - tl.load(mean_ptr + row)) * rstd
        g = w * dy
        shared = tl.sum(normal * g, axis=0) / n_cols
        dx = (g - normal * shared - tl.sum(g, axis=0) / n_cols) * rstd
        tl.store(dx_ptr + row * n_cols + cols, dx, mask=mask)
        dw += dy * normal
        db += dy
    tl.store(dw_ptr + program * n_cols + cols, dw, mask=mask)
    tl.store(db_ptr + program * n_cols + cols, db, mask=mask)


def statistics(x: torch.Tensor, eps: float = 1e-5) -> tuple[torch.Tensor, torch.Tensor]:
    """x: (M, N) → mean and 1/√(variance + eps) of each row, (M,): what the forward pass keeps."""
    return x.mean(1), torch.rsqrt(x.var(1, correction=0) + eps)


def layer_norm_backward(
    x: torch.Tensor,
    w: torch.Tensor,
    mean: torch.Tensor,
    rstd: torch.Tensor,
    dy: torch.Tensor,
    programs: int = 64,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """x, dy: (M, N) contiguous; w: (N,); mean, rstd: (M,) → dx (M, N), dw (N,), db (N,)."""
    m, n = x.shape
    programs = min(programs, m)
    dx = torch.empty_like(x)
    dw, db = torch.empty((2, programs, n), dtype=torch.float32, device=x.device)
    layer_norm_backward_kernel[(programs,)](
        x, w, mean, rstd, dy, dx, dw, db, m, n, BLOCK=triton.next_power_of_2(n)
    )
    return dx, dw.sum(0), db.sum(0)


def reference(
    x: torch.Tensor, w: torch.Tensor, mean: torch.Tensor, rstd: torch.Tensor, dy: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The same by torch's own backward operation."""
    column = (x.shape[0], 1)
    return torch.ops.aten.native_layer_norm_backward(
        dy, x, [x.shape[1]], mean.view(column), rstd.view(column), w, w, [True, True, True]
    )
