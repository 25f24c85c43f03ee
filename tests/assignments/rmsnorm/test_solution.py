"""The reference solution by itself: its counts, buffers, views, gradients and refusals."""

import mini_triton
import pytest
import torch

DTYPES = (torch.float32, torch.bfloat16, torch.float16)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("M", "N"), [(256, 1024), (37, 100), (1, 1), (5, 129), (3, 1500), (0, 8)])
class TestCounts:
    """A budget is an upper bound; the solution meets it to the byte."""

    @staticmethod
    def inputs(M, N, dtype):
        x, g, dy = (torch.randn(*shape).to(dtype) for shape in ((M, N), (N,), (M, N)))
        return x, g, torch.rand(M), dy

    @staticmethod
    def bytes_of(function, *args):
        with mini_triton.profile(host=False) as p:
            function(*args)
        return p.loaded_bytes, p.stored_bytes

    def test_forward(self, solution, M, N, dtype):
        x, g, _, _ = self.inputs(M, N, dtype)
        s = x.element_size()
        moved = self.bytes_of(solution.rmsnorm_forward, x, g, 1e-5)
        assert moved == (2 * M * N * s, M * N * s + 4 * M)

    def test_backward(self, solution, M, N, dtype):
        x, g, r, dy = self.inputs(M, N, dtype)
        s = x.element_size()
        moved = self.bytes_of(solution.rmsnorm_backward, x, g, r, dy)
        assert moved == (3 * M * N * s + 4 * M, M * N * s + 4 * M * N)

    @pytest.mark.parametrize("P", [1, 4, 40, 300])
    def test_persistent(self, solution, M, N, dtype, P):
        x, g, r, dy = self.inputs(M, N, dtype)
        s = x.element_size()
        moved = self.bytes_of(solution.rmsnorm_backward_persistent, x, g, r, dy, P)
        assert moved == (2 * M * N * s + P * N * s + 4 * M, M * N * s + 4 * P * N)


class TestBuffers:
    def test_shapes_and_dtypes(self, solution):
        x, g, dy = torch.randn(5, 7).half(), torch.randn(7), torch.randn(5, 7)
        y, r = solution.rmsnorm_forward(x, g, 1e-5)
        assert (y.shape, y.dtype, y.is_contiguous()) == ((5, 7), torch.float16, True)
        assert (r.shape, r.dtype) == ((5,), torch.float32)
        dx, dg_partial = solution.rmsnorm_backward(x, g, r, dy)
        assert (dx.shape, dx.dtype, dx.is_contiguous()) == ((5, 7), torch.float16, True)
        assert (dg_partial.shape, dg_partial.dtype) == ((5, 7), torch.float32)
        dx, dg_partial = solution.rmsnorm_backward_persistent(x, g, r, dy, 3)
        assert (dx.shape, dx.dtype, dx.is_contiguous()) == ((5, 7), torch.float16, True)
        assert (dg_partial.shape, dg_partial.dtype) == ((3, 7), torch.float32)

    def test_no_rows(self, solution):
        x, g, r = torch.randn(0, 7), torch.randn(7), torch.randn(0)
        y, r = solution.rmsnorm_forward(x, g, 1e-5)
        assert (y.shape, r.shape) == ((0, 7), (0,))
        for dx, dg_partial in (
            solution.rmsnorm_backward(x, g, r, x),
            solution.rmsnorm_backward_persistent(x, g, r, x, 4),
        ):
            assert dx.shape == (0, 7)
            assert dg_partial.sum(0).tolist() == [0.0] * 7

    def test_programs_without_a_row_store_zeros(self, solution):
        x, g, r, dy = torch.randn(3, 20), torch.randn(20), torch.rand(3), torch.randn(3, 20)
        _, dg_partial = solution.rmsnorm_backward_persistent(x, g, r, dy, 8)
        assert dg_partial[:3].all()
        assert not dg_partial[3:].any()

    def test_persistent_dx_is_the_one_of_task_2(self, solution):
        x, g, r, dy = torch.randn(9, 33), torch.randn(33), torch.rand(9), torch.randn(9, 33)
        dx, dg_partial = solution.rmsnorm_backward(x, g, r, dy)
        for programs in (1, 4, 9, 12):
            same, parts = solution.rmsnorm_backward_persistent(x, g, r, dy, programs)
            assert torch.equal(dx, same)
            torch.testing.assert_close(parts.sum(0), dg_partial.sum(0))


class TestRows:
    """`as_rows` copies only what no view can express."""

    @pytest.mark.parametrize(
        "t",
        [
            torch.randn(4, 6),
            torch.randn(4, 9)[:, 2:8],
            torch.randn(2, 3, 6),
            torch.randn(2, 3, 9)[..., :6],
            torch.randn(6).expand(4, 6),
            torch.randn(6),
            torch.randn(5, 1).T.T,
        ],
        ids=["matrix", "slice", "rank 3", "slice of rank 3", "repeated row", "rank 1", "column"],
    )
    def test_views(self, solution, t):
        rows = solution.as_rows(t)
        assert rows.data_ptr() == t.data_ptr()
        assert torch.equal(rows, t.reshape(-1, t.shape[-1]))

    @pytest.mark.parametrize(
        "t",
        [
            torch.randn(6, 4).T,
            torch.randn(4, 12)[:, ::2],
            torch.ones(1).expand(4, 6),
            torch.randn(3, 2, 6).transpose(0, 1),
        ],
        ids=["transposed", "every other", "one number", "swapped leading axes"],
    )
    def test_copies(self, solution, t):
        rows = solution.as_rows(t)
        assert rows.data_ptr() != t.data_ptr()
        assert rows.stride(1) == 1
        assert torch.equal(rows, t.reshape(-1, t.shape[-1]))


class TestAutograd:
    def test_only_one_of_two_wants_a_gradient(self, solution):
        x, g = torch.randn(4, 6), torch.randn(6, requires_grad=True)
        solution.rmsnorm(x, g).sum().backward()
        assert x.grad is None
        assert g.grad is not None

    def test_a_second_derivative_is_refused_rather_than_wrong(self, solution):
        x, g = torch.randn(4, 6, requires_grad=True), torch.randn(6, requires_grad=True)
        loss = solution.rmsnorm(x, g).square().sum()  # dy depends on x, too
        (dx,) = torch.autograd.grad(loss, x, create_graph=True)
        with pytest.raises(RuntimeError, match="once_differentiable"):
            dx.sum().backward()

    @pytest.mark.parametrize("shape", [(4, 6), (2, 2, 6)], ids=["rank 2", "rank 3"])
    def test_y_may_be_changed_in_place(self, solution, shape):
        x, g = torch.randn(shape, requires_grad=True), torch.randn(6, requires_grad=True)
        plain = torch.autograd.grad(solution.rmsnorm(x, g).sum(), (x, g))
        y = solution.rmsnorm(x, g)
        y *= 2
        doubled = torch.autograd.grad(y.sum(), (x, g))
        for once, twice in zip(plain, doubled, strict=True):
            torch.testing.assert_close(2 * once, twice)

    def test_x_changed_between_the_passes_is_noticed(self, solution):
        x, g = torch.randn(4, 6), torch.randn(6, requires_grad=True)
        y = solution.rmsnorm(x, g)
        x += 1
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()


class TestWrongArguments:
    """Each is refused before anything is launched, by name and shape."""

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"x": torch.ones(2, 3, 6)}, r"x must be \(M, N\).*\(2, 3, 6\)"),
            ({"x": torch.ones(4, 0)}, r"x must be \(M, N\) with N at least 1.*\(4, 0\)"),
            ({"x": torch.ones(6, 4).T}, r"x \(4, 6\) has strides \(1, 4\).*x\.contiguous\(\)"),
            ({"x": torch.ones(4, 6).double()}, r"x \(4, 6\) is torch\.float64.*bfloat16"),
            ({"g": torch.ones(5)}, r"g has shape \(5,\).*must be \(6,\)"),
            ({"g": torch.ones(12)[::2]}, r"g \(6,\) has stride 2.*g\.contiguous\(\)"),
            ({"r": torch.ones(4, 1)}, r"r has shape \(4, 1\).*must be \(4,\)"),
            ({"r": torch.ones(4).half()}, r"r \(4,\) is torch\.float16.*float32"),
            ({"dy": torch.ones(4, 7)}, r"dy has shape \(4, 7\).*must be \(4, 6\)"),
            ({"dy": torch.ones(1).expand(4, 6)}, r"dy \(4, 6\) has strides \(0, 0\)"),
            ({"dy": torch.ones(4, 6, device="meta")}, r"dy \(4, 6\) is on meta, but x is on cpu"),
            ({"programs": 0}, "programs must be at least 1, but is 0"),
        ],
        ids=lambda value: ", ".join(value) if isinstance(value, dict) else "",
    )
    def test_launchers(self, solution, change, words):
        arguments = {
            "x": torch.ones(4, 6),
            "g": torch.ones(6),
            "r": torch.ones(4),
            "dy": torch.ones(4, 6),
            "programs": 2,
        } | change
        with pytest.raises(ValueError, match=words):
            solution.rmsnorm_backward_persistent(**arguments)

    @pytest.mark.parametrize("x", [torch.tensor(1.0), torch.ones(3, 0)], ids=["scalar", "N = 0"])
    def test_autograd(self, solution, x):
        with pytest.raises(ValueError, match=r"x must be \(\.\.\., N\) with N at least 1"):
            solution.rmsnorm(x, torch.ones(1))
