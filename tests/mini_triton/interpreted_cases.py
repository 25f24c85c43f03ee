"""Kernels of the tests, run again for comparison with Triton's own interpreter.

    TRITON_INTERPRET=1 python interpreted_cases.py results.pt

saves what they compute there; `test_interpreter` runs the same cases on the simulator. Left out is
what the interpreter gets wrong or refuses: rounding of casts, saturation, order of updates.
"""

import sys

import numpy as np
import torch

from tests.mini_triton.comparing import integers, normal
from tests.mini_triton.execute import test_control, test_random_programs
from tests.mini_triton.execute.memory import test_atomics, test_load_store
from tests.mini_triton.execute.operations import test_dot, test_integer, test_reduce, test_shape


def integer_cases():
    for name in ("int8", "int16", "int32", "int64"):  # it has no ~ of unsigned integers
        dtype, bits, _ = test_integer.DTYPES[name]
        a, b = test_integer.pairs(name)
        some = slice(None, None, 331 if bits == 8 else 7)
        a, b = a[some], np.where((b[some] <= 0) | (b[some] >= bits), 3, b[some])
        out = torch.empty((len(test_integer.ARITHMETIC), 256), dtype=dtype)
        left, right = (test_integer.wrapped(v[:256], dtype) for v in (a, b))
        n = len(left)
        test_integer.arithmetic_kernel[(1,)](left, right, out, n, BLOCK=256)
        yield f"arithmetic of {name}", out.flatten()[: n * len(test_integer.ARITHMETIC)]
        out = torch.empty((6, n), dtype=torch.uint8)
        test_integer.comparison_kernel[(1,)](left, right, out, n, BLOCK=256)
        yield f"comparisons of {name}", out


def control_cases():
    n, m = (torch.tensor(v, dtype=torch.int32) for v in ([0, 3, 5, 7], [4, 4, 0, 7]))
    out = torch.empty(4, dtype=torch.int32)
    test_control.nested_kernel[(4,)](n, m, out)
    yield "nested loops", out
    start, steps = torch.tensor([1, 2, 27, 6], dtype=torch.int32), torch.empty(4, dtype=torch.int32)
    test_control.collatz_kernel[(4,)](start, steps)
    yield "while loops", steps
    flags = torch.tensor([1, 0, 2, 1, -3], dtype=torch.int32)
    out, other = torch.zeros(10, 8), torch.zeros(5, dtype=torch.int32)
    test_control.branches_kernel[(5,)](normal(5, 8), flags, out, other, N=8)
    yield "branches", torch.cat([out.flatten(), other])
    out = torch.zeros(5, 8)
    lengths = torch.tensor([1, 8, 3, 3, 5], dtype=torch.int32)
    test_control.walking_kernel[(5,)](normal(5, 32), lengths, out, N=32)
    yield "walking pointers", out


def memory_cases():
    for name, mask in test_load_store.MASKS.items():
        out = torch.full((5, 16), 9.0)
        mask = mask.to(torch.int8).contiguous()
        test_load_store.masked_copy_kernel[(5,)](
            normal(5, 16), mask, out, -1.5, N=16, HAS_OTHER=True
        )  # fmt: skip
        yield f"mask: {name}", out
    x, out = normal(10, 13).T.contiguous().T, torch.zeros(10, 13)
    test_load_store.strided_kernel[(3, 2)](x, out, 10, 13, *x.stride(), *out.stride(), BM=4, BN=8)
    yield "strides", out
    out = torch.empty(18, 16, dtype=torch.int32)
    test_load_store.backwards_kernel[(1,)](integers(16, low=0, high=100), out, 16, N=16)
    yield "negative strides", out
    out = torch.full((40,), -1, dtype=torch.int32)
    test_load_store.overlapping_kernel[(5,)](out, STEP=3, N=8)
    yield "overlapping stores", out
    x, out = integers(100, low=0, high=7), torch.zeros(7, dtype=torch.int32)
    test_atomics.histogram_kernel[(7,)](x, out, 100, BLOCK=16)
    yield "histogram", out


def tile_cases():
    x, y, out, halves = (
        normal(3, 8),
        normal(3, 8, seed=1),
        torch.empty(2, 3, 8, 2),
        torch.empty(2, 3, 4),
    )
    test_shape.join_kernel[(3,)](x, y, out, halves, N=8)
    yield "joins", torch.cat([out.flatten(), halves.flatten()])
    out = torch.empty(2, 8, 2, 4)
    test_shape.permute_kernel[(2,)](normal(2, 2, 4, 8), out, A=2, B=4, C=8)
    yield "permute", out
    out = torch.empty(3, 4, 8)
    index = integers(3, 4, 8, low=0, high=8)
    test_shape.gather_kernel[(3,)](normal(3, 4, 8), index, out, M=4, N=8, AXIS=1)
    yield "gather", out
    out, best = torch.empty((3, 20), dtype=torch.int32), torch.empty(20)
    x = integers(20, 32, low=0, high=4, dtype=torch.float32)
    test_reduce.arg_kernel[(20,)](x, out, best, N=32)
    yield "argmax", torch.cat([out.flatten(), best])
    out = torch.empty(3, 3, 4)
    test_reduce.custom_kernel[(3,)](normal(3, 4, 16), out, M=4, N=16)
    yield "custom reductions", out
    a, b = (integers(1, 16, 16, low=-8, high=9, seed=s, dtype=torch.float16) for s in (0, 1))
    out = torch.empty(1, 16, 16)
    test_dot.dot_kernel[(1,)](
        a, b, normal(1, 16, 16), out, M=16, N=16, K=16, PRECISION="ieee", OUT=test_dot.tl.float32
    )
    yield "dot", out


def random_cases():
    code = integers(16, 10, 2, low=0, high=9, seed=5)
    lengths = integers(16, low=0, high=11, seed=6)
    x, y = (integers(16, 8, low=-2000, high=2000, seed=s) for s in (0, 1))
    out = torch.zeros((16, 8), dtype=torch.int32)
    test_random_programs.machine_kernel[(16,)](code, lengths, x, y, out, MOST=10, N=8)
    yield "random programs", out


def results():
    """{case: result}."""
    found = {}
    for cases in (integer_cases, control_cases, memory_cases, tile_cases, random_cases):
        found.update(cases())
    return found


if __name__ == "__main__":
    torch.save(results(), sys.argv[1])
