"""Tasks 5 and 6: decoding in splits, and what attention costs by formula."""

import math

import torch
from gradescope_utils.autograder_utils.decorators import number, visibility, weight

from assignments.flash_attention import oracle
from grader.testing import AssignmentTestCase, Call, Record


class TestDecode(AssignmentTestCase):
    """O and the parts of `flash_decode`."""

    def check(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, n_split: int) -> Call:
        """flash_decode(q, k, v, n_split): O, and parts that together are the state of all keys."""
        call = self.student.call("flash_decode", q, k, v, n_split)
        o, parts = self.unpack(call, "O", "parts", kinds=(torch.Tensor, list))
        self.assert_close("O", o, oracle.attention(q, k, v)[0], dtype=q.dtype)
        self.assertEqual(len(parts), n_split, "the number of parts")
        for part in parts:
            if not isinstance(part, Record) or part.kind != "SoftmaxState":
                self.fail(f"every part is to be a SoftmaxState, not {part!r:.80}")
            for name, shape in (("m", q.shape[:-1]), ("l", q.shape[:-1]), ("o", q.shape)):
                value = getattr(part, name)
                if not isinstance(value, torch.Tensor) or value.shape != shape:
                    self.fail(f"{name} of a part is to be a tensor of shape {tuple(shape)}")
        together = oracle.joined([(part.m, part.l, part.o) for part in parts])
        s = q.double() @ k.double().transpose(-1, -2) / math.sqrt(q.shape[-1])
        whole = oracle.state(s, v)
        for name, got, right in zip("mlo", together, whole, strict=True):
            self.assert_close(f"{name} of all parts together", got, right, rtol=1e-5, floor=1e-30)
        return call

    @weight(1)
    @number("5.1")
    @visibility("visible")
    def test_one_split(self):
        """One query, 10 keys, one split"""
        self.check(self.randn(1, 8), self.randn(10, 8), self.randn(10, 8), n_split=1)

    @weight(1)
    @number("5.2")
    @visibility("visible")
    def test_splits(self):
        """64 keys in 4 splits; 37 in 5, as evenly as they go"""
        self.check(self.randn(1, 8), self.randn(64, 8), self.randn(64, 8), n_split=4)
        v = self.randn(37, 8)
        parts = self.check(self.zeros(1, 8), self.randn(37, 8), v, n_split=5).value[1]
        # With q = 0 every score is 0: l of a part is the number of its keys, o the sum of its v.
        sizes = [int(part.l) for part in parts]
        if sum(sizes) != 37:
            self.fail(f"the parts have {sizes} keys, {sum(sizes)} together, of 37")
        if max(sizes) - min(sizes) > 1:
            self.fail(f"the parts have {sizes} keys: no part is to have two more than another")
        for part, piece in zip(parts, v.double().split(sizes), strict=True):
            self.assert_close("o of a part", part.o, piece.sum(0, keepdim=True), dtype=v.dtype)

    @weight(1)
    @number("5.3")
    @visibility("visible")
    def test_more_splits_than_keys(self):
        """3 keys in 7 splits: four parts are empty"""
        call = self.check(self.randn(2, 8), self.randn(3, 8), self.randn(3, 8), n_split=7)
        empty = [part for part in call.value[1] if not part.l.any()]
        self.assertEqual(len(empty), 4, "parts without keys")
        for part in empty:
            self.assert_close("m of an empty part", part.m, torch.full((2,), -math.inf).double())
            self.assert_close("o of an empty part", part.o, self.zeros(2, 8).double(), floor=1e-30)


class TestFormulas(AssignmentTestCase):
    """`attention_flops`, `io_standard` and `io_flash`."""

    def check(self, expected: int, name: str, *sizes: int, **options: bool) -> None:
        """A formula's value, exactly."""
        call = self.student.call(name, *sizes, **options)
        if type(call.value) not in (int, float):
            self.fail(f"{name} returned {call.value!r:.80}; a number was expected")
        given = [*map(str, sizes), *(f"{key}={value}" for key, value in options.items())]
        self.assertEqual(call.value, expected, f"{name}({', '.join(given)})")

    @weight(1)
    @number("6.1")
    @visibility("visible")
    def test_flops(self):
        """FLOPs of the matrix products: forward, backward, causal, without recomputation"""
        N, d = 1024, 64
        self.check(4 * N * N * d, "attention_flops", N, d)
        self.check(2 * N * N * d, "attention_flops", N, d, causal=True)
        self.check(10 * N * N * d, "attention_flops", N, d, backward=True)
        self.check(8 * N * N * d, "attention_flops", N, d, backward=True, recompute=False)

    @weight(1)
    @number("6.2")
    @visibility("visible")
    def test_io(self):
        """Elements moved: standard, flash with Br = 128, and flash with K and V in cache"""
        N, d = 1024, 64
        self.check(4 * N * d + 4 * N * N, "io_standard", N, d)
        self.check(2 * N * d + N + 2 * N * d * 8, "io_flash", N, d, 128)
        self.check(4 * N * d + N, "io_flash", N, d, 128, kv_cached=True)
