"""Fused RMSNorm in Triton: the forward, the backward, autograd, and a persistent backward.

RMSNorm divides every row of x by its root mean square and scales every column by a gain g:

    r = (mean(x²) + ε)^(−1/2)        one number a row
    y = x · r · g

That is a handful of operations on each number, far fewer than a GPU could do in the time the
number takes to arrive from memory. What RMSNorm costs is therefore the bytes it moves, and each
function below has a budget of them:

    task  function                      bytes loaded                  bytes stored
    1     rmsnorm_forward               2·M·N·s                       M·N·s + 4·M
    2     rmsnorm_backward              3·M·N·s + 4·M                 M·N·s + 4·M·N
    3     RMSNorm, rmsnorm              as tasks 1 and 2
    4     rmsnorm_backward_persistent   2·M·N·s + P·N·s + 4·M         M·N·s + 4·P·N

Notation, the same in code, comments and handout:

    M, N, P        rows, columns, programs
    s              bytes of an element of x, g, y, dy, dx: 4 in float32, 2 in bfloat16 and float16
    x, y, dx, dy   (M, N)
    g, dg          (N,)
    r              (M,), always float32
    da             the derivative of the loss by a, for any a
    x̂ = x · r      the normalised row

References:
    B. Zhang, R. Sennrich, "Root Mean Square Layer Normalization", NeurIPS 2019,
        arXiv:1910.07467, equation 4. (ε is not in the paper; every implementation adds it.)
    Triton tutorials, "Layer Normalization": the gain's gradient by way of a buffer of partial
        sums that a second step adds up.
    P.-L. Hsu et al., "Liger Kernel: Efficient Triton Kernels for LLM Training", 2024,
        arXiv:2410.10989: a fixed number of programs that keep the gain's gradient in registers.
"""

import torch
import triton
import triton.language as tl

# -------------------------------------------------------------------------------------------------
# Given: what every launcher below relies on
# -------------------------------------------------------------------------------------------------

DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def check_arguments(
    x: torch.Tensor,
    g: torch.Tensor,
    r: torch.Tensor | None = None,
    dy: torch.Tensor | None = None,
) -> None:
    """Raise ValueError, saying which tensor and how, unless the kernels may trust their pointers.

    x:  (M, N), N ≥ 1, elements of a row side by side in memory; any row stride, 0 included
    g:  (N,), contiguous
    r:  (M,), contiguous, float32
    dy: like x, with a row stride of its own
    x, g and dy are float32, bfloat16 or float16, not necessarily all the same.
    """
    if x.dim() != 2 or x.shape[1] == 0:
        raise ValueError(f"x must be (M, N) with N at least 1, but has shape {tuple(x.shape)}")
    M, N = x.shape
    expected = {"x": (x, (M, N)), "g": (g, (N,)), "r": (r, (M,)), "dy": (dy, (M, N))}
    for name, (tensor, shape) in expected.items():
        if tensor is None:
            continue
        if tensor.shape != shape:
            raise ValueError(
                f"{name} has shape {tuple(tensor.shape)}; with x {(M, N)} it must be {shape}"
            )
        if N > 1 and tensor.dim() == 2 and tensor.stride(1) != 1:
            raise ValueError(
                f"{name} {shape} has strides {tensor.stride()}: the kernels step through a row one "
                f"element at a time, so the last stride must be 1; pass {name}.contiguous()"
            )
        if tensor.dim() == 1 and not tensor.is_contiguous():
            raise ValueError(
                f"{name} {shape} has stride {tensor.stride(0)}; pass {name}.contiguous()"
            )
        allowed = (torch.float32,) if name == "r" else DTYPES
        if tensor.dtype not in allowed:
            names = ", ".join(str(dtype).removeprefix("torch.") for dtype in allowed)
            raise ValueError(f"{name} {shape} is {tensor.dtype}; it must be one of: {names}")
        if tensor.device != x.device:
            raise ValueError(f"{name} {shape} is on {tensor.device}, but x is on {x.device}")


def warps_for(block: int, rows: int) -> int:
    """Warps for a program that holds `rows` rows of `block` elements at a time; a power of two.

    Rows lie in registers, spread over the program's threads, 32 a warp. As many warps are taken as
    leave each thread 64 registers for them: that is what a thread can have if a program is as large
    as it may be, 32 warps. Fewer would spill registers to memory; more would have too little to do.
    """
    return min(max(triton.next_power_of_2(block * rows // (32 * 64)), 1), 32)


# -------------------------------------------------------------------------------------------------
# Task 1: forward
# -------------------------------------------------------------------------------------------------


@triton.jit
def rmsnorm_fwd_kernel(x_ptr, g_ptr, y_ptr, r_ptr, N, x_stride, eps, BLOCK: tl.constexpr):
    """Program i normalises row i: it reads x[i, :] and g, and writes y[i, :] and r[i].

    r costs one number a row to keep and saves the backward pass from computing it again.

    Every number is converted to float32 on arrival, and all arithmetic is done there: a sum of
    squares in float16 overflows once a row's elements reach 256, and one in bfloat16 stops growing
    when it is 256 times as large as what is added.

    N:        elements in a row; g has as many
    x_stride: elements from one row of x to the next; in y, which is new, this is N
    BLOCK:    a power of two, at least N; the lanes from N on are masked
    """
    raise NotImplementedError(
        "rmsnorm 1: load a row of x and g under a mask, in float32; compute r; store the row of y, "
        "and r"
    )


def rmsnorm_forward(
    x: torch.Tensor, g: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Normalise the rows of x; see `check_arguments` for the strides and dtypes allowed.

    x:   (M, N)
    g:   (N,)
    eps: added to the mean square, inside the root

    Returns (y, r): y (M, N) in x's dtype, contiguous; r (M,) float32.

    Bytes: loads M·N of x and N of g for each of M rows, 2·M·N·s; stores M·N·s + 4·M.
    M = 0 launches a grid of no programs, and returns empty tensors.
    """
    check_arguments(x, g)
    raise NotImplementedError(
        "rmsnorm 1: allocate y and r; launch one program a row; return (y, r)"
    )


# -------------------------------------------------------------------------------------------------
# Task 2: backward
# -------------------------------------------------------------------------------------------------


@triton.jit
def rmsnorm_bwd_kernel(
    x_ptr, g_ptr, r_ptr, dy_ptr, dx_ptr, dg_ptr, N, x_stride, dy_stride, BLOCK: tl.constexpr
):
    """Program i reads x[i, :], g, r[i] and dy[i, :], and writes dx[i, :] and dg_partial[i, :].

    x_j reaches the loss by two ways: through y_j itself, and, by way of r, through every y_i of its
    row. From r = (Σ x_i² / N + ε)^(−1/2) comes ∂r/∂x_j = −r³ · x_j / N. With w = g ⊙ dy:

        dx_j = Σ_i dy_i · ∂(g_i · x_i · r)/∂x_j
             = w_j · r  −  x_j · r³ · (1/N) Σ_i w_i · x_i
             = r · (w_j − x̂_j · mean(w ⊙ x̂))

    The gain meets every row, so its gradient is a sum over rows: dg = Σ_rows dy ⊙ x̂. Programs run
    at the same time and in no order; were all to add into one dg, some would read a value that
    another is about to replace. So each writes its row's share, and whoever launched them adds up.

    N, BLOCK:            as in the forward; dx and dg_partial are new, with rows N elements apart
    x_stride, dy_stride: elements from one row to the next, which may differ
    """
    raise NotImplementedError(
        "rmsnorm 2: load x, g, dy and r of one row, in float32; store its dx and its share of dg"
    )


def rmsnorm_backward(
    x: torch.Tensor, g: torch.Tensor, r: torch.Tensor, dy: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Gradients of x and g, the latter in parts; see `check_arguments` for strides and dtypes.

    x:  (M, N), g: (N,), as given to `rmsnorm_forward`
    r:  (M,) float32, as returned by it
    dy: (M, N)

    Returns (dx, dg_partial): dx (M, N) in x's dtype, contiguous; dg_partial (K, N) float32 with
    dg = dg_partial.sum(0). How many parts K there are is yours to choose; here it is one a row.

    Bytes: loads x, dy and per row g, 3·M·N·s, and r, 4·M; stores dx, M·N·s, and dg_partial, 4·M·N.
    """
    check_arguments(x, g, r, dy)
    raise NotImplementedError(
        "rmsnorm 2: allocate dx and dg_partial; launch one program a row; return both"
    )


# -------------------------------------------------------------------------------------------------
# Task 3: autograd
# -------------------------------------------------------------------------------------------------


def as_rows(t: torch.Tensor) -> torch.Tensor:
    """(..., N) with any strides → (M, N) whose rows are contiguous, copied only if it must be.

    A view will do if one row stride leads through all leading axes and the last stride is 1.
    Examples: a slice x[:, :N] and a tensor expanded along its rows are views; a transposed matrix
    is a copy, and so is the gradient that `y.sum().backward()` sends, one number with strides 0.
    """
    raise NotImplementedError(
        "rmsnorm 3: flatten the leading axes; copy if the last axis is not contiguous"
    )


class RMSNorm(torch.autograd.Function):
    """RMSNorm as one differentiable operation: `RMSNorm.apply(x, g, eps)`.

    x:   (..., N), any rank from 1 on, any strides
    g:   (N,), any stride
    eps: a number; it has no gradient

    y and dx have the shape and dtype of x, dg those of g.
    """

    @staticmethod
    def forward(ctx, x, g, eps):
        """Return y (..., N), and save for the backward pass what it will need."""
        if x.dim() == 0 or x.shape[-1] == 0:
            raise ValueError(
                f"x must be (..., N) with N at least 1, but has shape {tuple(x.shape)}"
            )
        raise NotImplementedError(
            "rmsnorm 3: bring x to rows and g to contiguous; run task 1; save x, g and r"
        )

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dy):
        """dy (..., N), of any strides → one gradient for each argument of forward."""
        raise NotImplementedError(
            "rmsnorm 3: bring dy to rows; run task 2; add up dg; return one gradient for each "
            "argument of forward, None for eps"
        )


def rmsnorm(x: torch.Tensor, g: torch.Tensor, eps: float = 1e-5) -> torch.Tensor:
    """y = x / sqrt(mean(x², last axis) + eps) · g, differentiable in x (..., N) and g (N,)."""
    raise NotImplementedError("rmsnorm 3: apply RMSNorm")


# -------------------------------------------------------------------------------------------------
# Task 4: persistent backward
# -------------------------------------------------------------------------------------------------


@triton.jit
def rmsnorm_bwd_persistent_kernel(
    x_ptr, g_ptr, r_ptr, dy_ptr, dx_ptr, dg_ptr, M, N, x_stride, dy_stride, BLOCK: tl.constexpr
):
    """Program p of P does rows p, p + P, p + 2P, …, and writes dg_partial[p, :] at the end.

    The mathematics is that of `rmsnorm_bwd_kernel`. What is new is what stays in registers from one
    row to the next: g, which is loaded once, and the sum of dy ⊙ x̂, which is stored once. g then
    costs P·N loads instead of M·N, and the partial sums P·N stores instead of M·N.

    A program without a row (p ≥ M) does the same: it loads g, and stores a row of zeros. Memory
    from torch.empty holds whatever was there before, and the sum over dg_partial reads it all.

    M, N: rows and columns; the other arguments as in `rmsnorm_bwd_kernel`
    """
    raise NotImplementedError(
        "rmsnorm 4: load g; start dg at zero; for each of the program's rows, store dx and add to "
        "dg; store dg once"
    )


def rmsnorm_backward_persistent(
    x: torch.Tensor, g: torch.Tensor, r: torch.Tensor, dy: torch.Tensor, programs: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """`rmsnorm_backward` by a fixed number of programs, each of which does many rows.

    x, g, r, dy: as for `rmsnorm_backward`
    programs:    P ≥ 1; may exceed M. On a GPU, a few for each of its multiprocessors.

    Returns (dx, dg_partial): dx (M, N) in x's dtype, contiguous; dg_partial (P, N) float32 with
    dg = dg_partial.sum(0), every row of it written.

    Bytes: loads x and dy, 2·M·N·s, g once a program, P·N·s, and r, 4·M;
    stores dx, M·N·s, and dg_partial, 4·P·N. This holds for P > M, too.
    """
    check_arguments(x, g, r, dy)
    if programs < 1:
        raise ValueError(f"programs must be at least 1, but is {programs}")
    raise NotImplementedError(
        "rmsnorm 4: allocate dx and dg_partial; launch `programs` programs; return both"
    )
