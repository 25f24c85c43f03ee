"""The bound on a program's memory: values that are alive at once, not all that there are."""

import pytest
from mini_triton.execute.liveness import _SCRATCH, peak_bytes
from mini_triton.execute.prepare import prepare

HEAD = "module {{\n  tt.func public @k(%p: !tt.ptr<f32>) {{\n{}\n    tt.return\n  }}\n}}\n"
TILE = 1024 * 4


def peak(*lines):
    body = "\n".join(f"    {line}" for line in lines)
    return peak_bytes(prepare(HEAD.format(body), "k").program)


def chain(length):
    """Each value is used by the next one only."""
    lines = ["%v0 = arith.constant dense<1.0> : tensor<1024xf32>"]
    for n in range(1, length):
        lines.append(f"%v{n} = math.exp %v{n - 1} : tensor<1024xf32>")
    return lines


def test_a_chain_holds_two_values_at_a_time():
    assert peak(*chain(3)) == peak(*chain(30))
    assert peak(*chain(3)) == 8 + 2 * TILE + 1024 * _SCRATCH


@pytest.mark.parametrize("count", [2, 5])
def test_values_that_are_used_later_stay(count):
    lines = [f"%v{n} = arith.constant dense<{n}.0> : tensor<1024xf32>" for n in range(count)]
    lines.append("%s1 = arith.addf %v0, %v1 : tensor<1024xf32>")
    for n in range(2, count):
        lines.append(f"%s{n} = arith.addf %s{n - 1}, %v{n} : tensor<1024xf32>")
    assert peak(*lines) == 8 + (count + 1) * TILE + 1024 * _SCRATCH
