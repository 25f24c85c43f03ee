"""`AssignmentTestCase`: what every test of an assignment derives from, whoever runs it.

Under pytest the submission runs in the same process; under the grader it runs in another one, and
the tests cannot tell. Every comparison leaves a row of evidence, whether it passes or not.
"""

from __future__ import annotations

import hashlib
import unittest
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import mini_triton
import numpy
import torch

from grader.testing import provenance
from grader.testing.budget import Budget
from grader.testing.communication import check_counts, check_sent
from grader.testing.compare import compare
from grader.testing.evidence import Row
from grader.testing.ranks import RanksCall
from grader.testing.record import Record
from grader.testing.replay import Unclear, replay, substitute
from grader.testing.running import describe
from grader.testing.student import Call, Launches, Student
from grader.testing.trace import leaves_of, reach
from grader.testing.traffic import Direction, check_traffic, no_kernel

#: 32-bit registers of a multiprocessor, compute capability 5.0 and later (CUDA C++ Programming
#: Guide, technical specifications per compute capability).
REGISTERS = 65_536


def test_seed(run_seed: int, number: str) -> int:
    """The seed of one test's generator: a function of the run's seed and the test's number only.

    So a test draws the same inputs whether it runs alone or after others.
    """
    digest = hashlib.sha256(f"{run_seed}:{number}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def _wanted(kind: type) -> str:
    """A type for "not a …": as students know it."""
    known = {
        torch.Tensor: "a torch.Tensor",
        numpy.ndarray: "a numpy.ndarray of numbers",
        Record: "a dataclass",
    }
    return known.get(kind, f"a {kind.__name__}")


def _as_tensor(array: numpy.ndarray) -> torch.Tensor | None:
    """None for an array of objects or texts, or of another byte order: torch has none of these."""
    try:
        # A copy, as torch shares no memory with arrays that are read-only or run backwards.
        return torch.from_numpy(numpy.array(array, order="C"))
    except (TypeError, ValueError):
        return None


test_seed.__test__ = False  # type: ignore[attr-defined]  # pytest: not a test


class AssignmentTestCase(unittest.TestCase):
    """A test case with a submission to call, random inputs, and assertions that explain.

    Attributes:
        student: the submission; set by whoever runs the tests.
        run_seed: seed of the run; set likewise.
        evidence: rows measured by the assertions of the test that is running.
        generator: the test's own random numbers.
    """

    student: Student
    run_seed: int = 0

    def __init__(self, methodName: str = "runTest") -> None:
        super().__init__(methodName)
        self.evidence: list[Row] = []
        self._generator: torch.Generator | None = None
        self._by_kernels = True  # whether the call unpacked last launched any
        self._again: list[tuple[Call, Call]] = []  # calls, and these on other inputs

    @property
    def number(self) -> str:
        """The test's number, as its `@number` decorator says."""
        method = getattr(self, self._testMethodName)
        return str(getattr(method, "__number__", self._testMethodName))

    @property
    def generator(self) -> torch.Generator:
        """Random numbers seeded by the run's seed and the test's number."""
        if self._generator is None:
            self._generator = torch.Generator().manual_seed(test_seed(self.run_seed, self.number))
        return self._generator

    def randn(
        self, *shape: int, dtype: torch.dtype = torch.float32, scale: float = 1.0
    ) -> torch.Tensor:
        """Normal random numbers times `scale`, rounded to `dtype`; contiguous."""
        values = torch.randn(*shape, generator=self.generator, dtype=torch.float64)
        return (values * scale).to(dtype)

    def like(self, tensor: torch.Tensor) -> torch.Tensor:
        """Other normal random numbers, laid out as `tensor`: its shape, strides and dtype.

        Numbers that are equal are replaced by equal ones, in all tensors of a test, and zeros stay:
        so it does not matter which of several equal numbers a kernel was given (`assert_follows`).
        """
        seed = test_seed(self.run_seed, f"{self.number} other")
        return substitute(reach(tensor), seed).as_strided(tensor.shape, tensor.stride())

    def zeros(self, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """Zeros; contiguous."""
        return torch.zeros(*shape, dtype=dtype)

    def ones(self, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """Ones; contiguous."""
        return torch.ones(*shape, dtype=dtype)

    def unpack(self, call: Call, *names: str, kinds: Sequence[type] = ()) -> tuple[Any, ...]:
        """The outputs of a call that is to return `len(names)` values as a tuple.

        Args:
            call: the call.
            *names: what to call the outputs.
            kinds: their types; by default every one is a torch.Tensor. A numpy.ndarray comes back
                as a tensor, for `assert_close`.

        Raises:
            AssertionError: it returned something else; the text says what and what was expected.
        """
        self._by_kernels = bool(call.profile.launches)
        wanted = f"({', '.join(names)}{',' if len(names) == 1 else ''})"
        value = call.value
        if not isinstance(value, tuple | list):
            self.fail(f"{call.name} returned {describe(value)}; a tuple {wanted} was expected")
        if len(value) != len(names):
            self.fail(f"{call.name} returned {len(value)} values; {wanted} was expected")
        kinds = kinds or [torch.Tensor] * len(names)
        outputs = []
        for name, item, kind in zip(names, value, kinds, strict=True):
            output = _as_tensor(item) if type(item) is numpy.ndarray else item
            if type(item) is not kind or output is None:
                self.fail(f"{call.name} returned {describe(item)} for {name}, not {_wanted(kind)}")
            outputs.append(output)
        return tuple(outputs)

    def assertEqual(self, first: Any, second: Any, msg: Any = None) -> None:
        """As of unittest, but a tensor or array that `first` holds for a number is a failure.

        Of several elements it would be neither equal nor unequal to one, which is an error.
        """
        for leaf in leaves_of(first):
            if isinstance(leaf, torch.Tensor | numpy.ndarray) and leaf.shape:
                self.fail(f"{msg or 'a value'}: {describe(leaf)} stands where a number should")
        super().assertEqual(first, second, msg)  # noqa: PT009

    def assert_close(
        self,
        name: str,
        got: Any,
        expected: torch.Tensor | numpy.ndarray,
        *,
        dtype: torch.dtype | None = None,
        rtol: float | None = None,
        floor: float = 0.0,
        per_row: bool = False,
    ) -> None:
        """Checks an output: exactly a torch.Tensor, on the CPU, of the right shape and values.

        A numpy.ndarray of numbers will do as well; where `expected` is one, nothing else. See
        `grader.testing.compare.compare` for the arguments and for how the error is judged.

        Raises:
            AssertionError: it is wrong; the text says where, by how much, and perhaps why.
            ValueError: the expected value could not tell right from wrong.
        """
        wanted: type = torch.Tensor
        array = type(got) is numpy.ndarray
        if isinstance(expected, numpy.ndarray):
            wanted, expected = numpy.ndarray, torch.from_numpy(numpy.array(expected))
        if array and (tensor := _as_tensor(got)) is not None:
            got = tensor
        elif not array and wanted is numpy.ndarray and type(got) is torch.Tensor:
            self.fail(f"{name} is {describe(got)}; {_wanted(wanted)} was expected")
        outcome = compare(
            name,
            got,
            expected,
            wanted=_wanted(wanted),
            dtype=dtype,
            rtol=rtol,
            floor=floor,
            per_row=per_row,
            kernels=self._by_kernels,
        )
        self.evidence.append(outcome.row)
        if outcome.failure is not None:
            raise self.failureException(outcome.failure)

    def assert_traffic(
        self,
        call: Call,
        *,
        loaded: Budget | None = None,
        stored: Budget | None = None,
        moved: Budget | None = None,
    ) -> None:
        """Checks that a call launched a kernel and that its kernels stay within a byte budget.

        They have to do so on other inputs, too, if `assert_follows` has run them on such before.

        Args:
            call: the call.
            loaded: the most bytes that its kernels may load.
            stored: the most bytes that they may store.
            moved: the most bytes that they may load and store together: for a task that leaves the
                choice between the two.

        Raises:
            AssertionError: no launch, or over budget: the text names the tensors and lines.
        """
        budgets: dict[Direction, Budget | None] = {
            "loaded": loaded,
            "stored": stored,
            "moved": moved,
        }
        failures = []
        if (missing := no_kernel(call)) is not None:
            raise self.failureException(missing)
        for which, budget in budgets.items():
            if budget is None:
                continue
            outcome = check_traffic(call, which, budget, self.student.source)
            self.evidence.append(outcome.row)
            if outcome.failure is not None:
                failures.append(outcome.failure)
                continue
            for again in (other for first, other in self._again if first is call):
                outcome = check_traffic(again, which, budget, self.student.source)
                if outcome.failure is not None:
                    failures.append(f"launched again on other inputs, {outcome.failure}")
        if failures:
            raise self.failureException("\n".join(failures))

    def each(self, call: RanksCall, name: str) -> list[Any]:
        """What each rank returned, in rank order, where every one returned a list of one.

        Args:
            call: the call.
            name: what to call the lists.

        Raises:
            AssertionError: a rank returned something else; the text says which, and what.
        """
        values = []
        for rank, value in enumerate(call.values):
            if not isinstance(value, tuple | list) or len(value) != 1:
                self.fail(
                    f"{name}: rank {rank} returned {describe(value)} from {call.name}; it holds "
                    "one rank, so a list of one was expected"
                )
            values.append(value[0])
        return values

    def assert_comm(
        self,
        call: RanksCall,
        *,
        counts: Mapping[str, int] | None = None,
        sent: Budget | None = None,
    ) -> None:
        """Checks which collectives each rank of a call called, and how much each sent.

        Args:
            call: the call.
            counts: how often each rank has to call each collective, exactly, by torch's names, as
                its CommDebugMode counts them: "all_reduce", "all_gather_into_tensor",
                "reduce_scatter_tensor"; None leaves it open.
            sent: the most bytes that a rank may send; None leaves it open.

        Raises:
            AssertionError: otherwise; the text names the rank, and the labels of what it sent.
        """
        failures = []
        if counts is not None and (wrong := check_counts(call, counts)) is not None:
            failures.append(wrong)
        if sent is not None:
            outcome = check_sent(call, sent)
            self.evidence.append(outcome.row)
            if outcome.failure is not None:
                failures.append(outcome.failure)
        if failures:
            raise self.failureException("\n".join(failures))

    def assert_tiles_fit(self, call: Call) -> None:
        """Checks that a call's kernels work in tiles that a GPU could hold.

        A multiprocessor has 65,536 registers of 32 bits. A kernel that takes a whole axis as one
        tile compiles on the simulator, and moves few bytes; it has not solved the problem.

        Raises:
            AssertionError: a tile is larger; the text says which kernel's.
        """
        for record in call.profile.launches:
            if record.largest_tile > REGISTERS:
                self.fail(
                    f"kernel {record.kernel} makes a tile of {record.largest_tile:,} elements, but "
                    f"a multiprocessor has {REGISTERS:,} registers: go through a long axis block "
                    "by block"
                )

    def assert_programs(self, call: Call, programs: int, why: str) -> None:
        """Checks that one of a call's launches has so many programs, which can run side by side.

        Args:
            call: the call.
            programs: the fewest.
            why: how many these are, for people: `n_split·B·G`.

        Raises:
            AssertionError: none has.
        """
        most = max((record.programs for record in call.profile.launches), default=0)
        if most < programs:
            self.fail(
                f"{call.name} launches at most {most} programs at once; {why} = {programs} were "
                "expected"
            )

    def assert_by_kernels(
        self,
        call: Call,
        *,
        sums: dict[str, torch.Tensor] | None = None,
        **stored: torch.Tensor,
    ) -> None:
        """Checks that a call's kernels computed what it returned, and not torch on the host.

        Outside kernels numbers may be moved (copied, sliced, transposed, padded), but not made:
        what kernels load has to be inputs of the call, or stored by an earlier launch. See module
        `provenance`.

        Args:
            call: the call.
            sums: outputs that may also be the sum over the rows of what a kernel has stored.
            **stored: outputs, each of whose numbers a kernel has to have stored.

        Raises:
            AssertionError: otherwise; the text names tensor, kernel and element.
        """
        missing = no_kernel(call)
        found = [missing] if missing else provenance.complaints(call.trace, stored, sums or {})
        if found:
            raise self.failureException("\n".join(found))

    def assert_follows(self, call: Call, check: Callable[[Call], None], *inputs: Any) -> None:
        """Checks that the launches of a call, executed again on other inputs, are right for these.

        So an answer that reached the kernels as scalar arguments or constants is found out.

        Args:
            call: the call.
            check: judges a call as the first one was judged, but for the other inputs.
            *inputs: the other inputs, tensors made by `like`; in the order of the call's tensors.

        Raises:
            AssertionError: `check` does, or a kernel fails on these inputs.
        """
        shown = len(self.evidence)
        try:
            self._check_again(call, check, inputs)
        except (self.failureException, mini_triton.KernelError) as failure:
            words = str(failure)
            if isinstance(failure, mini_triton.KernelError):
                words = failure.report(self.student.source)
            raise self.failureException(
                f"the kernels of {call.name} do not compute its result from its inputs: launched "
                "again on other inputs, with the same scalar arguments, they give what is wrong "
                f"for these\n{words}"
            ) from failure
        finally:
            del self.evidence[shown:]  # rows of the first call say it all

    def _check_again(
        self, call: Call, check: Callable[[Call], None], inputs: tuple[Any, ...]
    ) -> None:
        """Checks a replay; where numbers could have been several inputs, any of these will do."""
        guesses: list[int | None] = [None, *range(len(call.trace.inputs))]
        for guess in guesses:
            try:
                value, records = replay(call.trace, inputs, call.value, guess)
                again = Call(call.name, value, Launches(tuple(records)))
                check(again)
                self._again.append((call, again))
                return
            except Unclear:
                continue
            except (self.failureException, mini_triton.KernelError):
                if guess in (None, guesses[-1]):
                    raise
