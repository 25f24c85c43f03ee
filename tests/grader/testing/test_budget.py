import pytest

from grader.testing.budget import Budget


@pytest.mark.parametrize(
    ("formula", "sizes", "text"),
    [
        ("2*M*N*s", {"M": 64, "N": 100, "s": 4}, "2·M·N·s = 2·64·100·4 = 51,200 B"),
        ("M*N*s + 4*M", {"M": 2, "N": 3, "s": 4}, "M·N·s + 4·M = 2·3·4 + 4·2 = 32 B"),
        ("(M + N)*s", {"M": 2, "N": 3, "s": 4}, "(M + N)·s = (2 + 3)·4 = 20 B"),
        ("M - (N - s)", {"M": 9, "N": 3, "s": 1}, "M − (N − s) = 9 − (3 − 1) = 7 B"),
        ("cdiv(N, B)*B", {"N": 10, "B": 4}, "cdiv(N, B)·B = cdiv(10, 4)·4 = 12 B"),
        ("N**2", {"N": 5}, "N^2 = 5^2 = 25 B"),
        ("N", {"N": 5}, "N = 5 B"),
    ],
)
def test_prints_as_a_derivation(formula, sizes, text):
    assert str(Budget(formula, **sizes)) == text


def test_is_exact_beyond_floating_point():
    assert Budget("N*N + 1", N=10**12).bytes == 10**24 + 1


@pytest.mark.parametrize(
    ("formula", "sizes", "complaint"),
    [
        ("2*M*K", {"M": 1}, "no size was given for K"),
        ("2*M", {"M": 1, "N": 2}, "does not use N"),
        ("N/2", {"N": 3}, "leaves a remainder"),
        ("N//M", {"N": 3, "M": 0}, "divides by zero"),
        ("M - N", {"M": 1, "N": 2}, "negative"),
        ("M +", {"M": 1}, "not an arithmetic formula"),
        ("M.real", {"M": 1}, "not allowed"),
        ("__import__('os')", {}, "not allowed"),
        ("M*2.5", {"M": 1}, "not allowed"),
        ("M**N", {"M": 10, "N": 10**9}, "exponent"),
        ("M", {"M": 1.5}, "not a natural number"),
    ],
)
def test_refuses(formula, sizes, complaint):
    with pytest.raises(ValueError, match=complaint):
        Budget(formula, **sizes)
