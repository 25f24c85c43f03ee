"""`TensorParallelCase`: what all tests of this assignment share.

    with self.student.ranks(4) as ranks:
        call = ranks.call("all_reduce", [(COMM, [x]) for x in xs])
    self.assert_all(call, "the sum", sum(xs))

Each rank is a process of its own, and is given its own part only; what every one of them returned
is judged.
"""

import math
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from transformer_lab import Config, init_params

from assignments.tensor_parallel import oracle
from grader.testing import AssignmentTestCase, Call, RanksCall
from grader.testing.problems import StudentError
from grader.testing.running import describe


class TensorParallelCase(AssignmentTestCase):
    """Random models, and assertions on what ranks return."""

    def array(self, *shape: int) -> np.ndarray:
        """Normal random numbers, float64."""
        return self.randn(*shape, dtype=torch.float64).numpy()

    def arrays(self, n: int, *shape: int) -> list[np.ndarray]:
        """n arrays of random numbers, one a rank."""
        return [self.array(*shape) for _ in range(n)]

    def model(self, cfg: Config, tied: bool = False) -> dict[str, Any]:
        """Random parameters of a whole model; others at each call."""
        return init_params(cfg, self.whole_number(1 << 31), tied=tied)

    def tokens(self, cfg: Config, B: int, T: int) -> np.ndarray:
        """Random tokens (B, T), int64."""
        return torch.randint(cfg.vocab, (B, T), generator=self.generator).numpy()

    def whole_number(self, below: int) -> int:
        """A random number, 0 or more."""
        return int(torch.randint(below, (), generator=self.generator))

    def replica_gradients(self, cfg: Config, n: int) -> list[dict[str, Any]]:
        """For each rank random gradients of its own KV heads, as `sum_over_replicas` takes them."""
        shards = oracle.shards(self.model(cfg), cfg, n)
        names = ("wk", "wv", "wq")
        return [
            {
                "final_norm": self.array(cfg.d_model),
                "layers": [
                    {w: self.array(*layer[w].shape) for w in names} for layer in p["layers"]
                ],
            }
            for p in shards
        ]

    # ---------------------------------------------------------------------------------------------
    # What ranks returned. Of several arrays the one that comes closest to being wrong is shown.
    # ---------------------------------------------------------------------------------------------

    def assert_all(self, call: RanksCall, name: str, expected: np.ndarray) -> None:
        """Checks that every rank returned the same array, the expected one."""
        with self._worst_shown():
            for rank, value in enumerate(call.values):
                self.assert_close(f"{name} of rank {rank}", value, expected, dtype=torch.float64)

    def assert_each(
        self,
        call: RanksCall,
        name: str,
        expected: Sequence[np.ndarray] | np.ndarray,
        dtype: torch.dtype = torch.float64,
    ) -> None:
        """Checks that every rank returned a list of one array.

        Args:
            call: the call.
            name: what to call the arrays.
            expected: what is due to each rank, a list; or to all of them, an array.
            dtype: theirs.
        """
        if isinstance(expected, np.ndarray):
            expected = [expected] * len(call.values)
        with self._worst_shown():
            for rank, value in enumerate(self.each(call, name)):
                self.assert_close(f"{name} of rank {rank}", value, expected[rank], dtype=dtype)

    def assert_parts(self, name: str, value: Any, expected: Sequence[np.ndarray]) -> None:
        """Checks a list of arrays."""
        if not isinstance(value, list | tuple) or len(value) != len(expected):
            self.fail(f"{name}: {describe(value)}; a list of {len(expected)} was expected")
        with self._worst_shown():
            for index, (got, due) in enumerate(zip(value, expected, strict=True)):
                self.assert_close(f"{name}[{index}]", got, due, dtype=torch.float64)

    def assert_tokens(self, call: RanksCall, expected: np.ndarray) -> None:
        """Checks that every rank returned these tokens (B, steps), int64."""
        with self._worst_shown():
            for rank, value in enumerate(call.values):
                name = f"the array of tokens of rank {rank}"
                if type(value) is not np.ndarray or value.dtype != np.int64:
                    kind = f"{value.dtype}" if type(value) is np.ndarray else describe(value)
                    self.fail(f"{name}: {kind}; an array of int64 was expected")
                if value.shape != expected.shape:
                    self.fail(f"{name} has shape {value.shape}; {expected.shape} was expected")
                if expected.size:
                    self.assert_close(name, value, expected)

    def assert_block(self, call: Call, what: str, dh: np.ndarray, grads: dict[str, Any]) -> None:
        """Checks the backward of a block: (dh, gradients)."""
        got, found = self.unpack(call, "dh", "gradients", kinds=(np.ndarray, dict))
        self.assert_close(f"dh of {what}", got, torch.from_numpy(dh), dtype=torch.float64)
        self.assert_params(f"gradients of {what}", found, grads)

    def assert_params(
        self, name: str, got: Any, expected: Any, only: Collection[str] | None = None
    ) -> None:
        """Checks parameters or gradients: nested dicts and lists of arrays.

        Args:
            name: what to call it.
            got: what student code returned.
            expected: as it has to be: dicts with these keys and no others.
            only: look at these entries of dicts alone; the others need but be there.
        """
        with self._worst_shown():
            self._check(name, "", got, expected, only)

    def _check(
        self, name: str, path: str, got: Any, due: Any, only: Collection[str] | None
    ) -> None:
        where = f"{name}: {path}" if path else name
        if isinstance(due, np.ndarray):
            self.assert_close(where, got, due, dtype=torch.float64)
        elif isinstance(due, dict):
            if not isinstance(got, dict) or got.keys() != due.keys():
                self.fail(
                    f"{where}: a dict with {', '.join(due)} was expected; {_unlike(got, due)}"
                )
            for key in due if only is None else (key for key in due if key in only):
                self._check(name, f"{path}.{key}" if path else key, got[key], due[key], only)
        elif isinstance(due, list) and isinstance(due[0], dict):
            if not isinstance(got, list | tuple) or len(got) != len(due):
                self.fail(f"{where}: a list of {len(due)} was expected; it is {describe(got)}")
            for index, item in enumerate(due):
                self._check(name, f"{path}[{index}]", got[index], item, only)
        elif isinstance(due, list):
            self.assert_whole_numbers(where, got, due)
        else:
            self.assertEqual(got, due, where)  # noqa: PT009  (an array for a number is a failure)

    @contextmanager
    def _worst_shown(self) -> Iterator[None]:
        """Of the rows of evidence of its region, leaves one."""
        shown = len(self.evidence)
        try:
            yield
        finally:
            rows = self.evidence[shown:]
            if rows:
                self.evidence[shown:] = [max(rows, key=lambda row: (not row.ok, _closeness(row)))]

    # ---------------------------------------------------------------------------------------------
    # Bytes, numbers, refusals
    # ---------------------------------------------------------------------------------------------

    def assert_sends(self, call: RanksCall, nbytes: int, why: str) -> None:
        """Checks that every rank sent exactly so many bytes, by which an algorithm is known."""
        for rank in range(call.comm.n):
            sent = call.comm.sent(rank)
            if sent != nbytes:
                self.fail(f"in {call.name} rank {rank} sent {sent:,.0f} B, not {nbytes:,} B, {why}")

    def assert_number(self, name: str, got: Any, expected: float) -> None:
        """Checks a number, but for a few roundings."""
        if isinstance(got, bool) or not isinstance(got, int | float | np.number):
            self.fail(f"{name} is a {type(got).__name__}; a number was expected")
        if not math.isclose(got, expected, rel_tol=1e-12):
            self.fail(f"{name} is {got:.12g}; {expected:.12g} was expected")

    def assert_whole_numbers(self, name: str, got: Any, expected: Sequence[int]) -> None:
        """Checks a list of whole numbers, as of heads; a tuple will do as well."""
        found = describe(got)
        if isinstance(got, list | tuple):
            others = [item for item in got if not isinstance(item, int | np.integer)]
            if not others:
                if list(got) != list(expected):
                    self.fail(f"{name}: {got}; {list(expected)} was expected")
                return
            found = f"a {type(got).__name__} with {describe(others[0])} in it"
        self.fail(f"{name}: {found}; a list of whole numbers was expected")

    def assert_pair(self, name: str, got: Any, expected: tuple[float, float]) -> None:
        """Checks a tuple of two numbers."""
        if not isinstance(got, tuple | list) or len(got) != 2:
            self.fail(f"{name}: {describe(got)}; a tuple of two numbers was expected")
        for index, due in enumerate(expected):
            self.assert_number(f"element {index} of {name}", got[index], due)

    def assert_numbers(self, name: str, got: Any, expected: dict[str, float]) -> None:
        """Checks a dict of numbers."""
        if not isinstance(got, dict) or got.keys() != expected.keys():
            due = ", ".join(expected)
            self.fail(f"{name}: a dict with {due} was expected; {_unlike(got, expected)}")
        for key, due in expected.items():
            self.assert_number(f"{key} of {name}", got[key], due)

    @contextmanager
    def refuses(self, what: str, *numbers: int | str) -> Iterator[None]:
        """Checks that the call in its region raises a ValueError that says what does not fit.

            with self.refuses("shard of 7 elements into 3", 7, 3):
                self.student.call("shard", self.array(7), 0, 3)

        Args:
            what: what is called, for people.
            *numbers: what the message has to hold: numbers, or words.
        """
        try:
            yield
        except StudentError as error:
            kind, _, words = re.sub(r"^rank \d+: ", "", error.message).partition(":")
            if kind.strip() != "ValueError":
                raise
            named = set(re.findall(r"\w+", words))
            missing = [str(number) for number in numbers if str(number) not in named]
            if missing:
                self.fail(
                    f"{what} raises a ValueError that does not name {', '.join(missing)}:{words}"
                )
        else:
            self.fail(f"{what} is to raise a ValueError, but it returned something")


def _closeness(row: Any) -> float:
    """How much of its tolerance an output uses up."""
    return row.error / row.tolerance if row.error and row.tolerance else 0.0


def _unlike(got: Any, due: Collection[str]) -> str:
    """What came instead of a dict with these keys, for people."""
    if not isinstance(got, dict):
        return f"it is {describe(got)}"
    missing = [key for key in due if key not in got]
    surplus = [str(key) for key in got if key not in due]
    parts = [
        f"{_listed(keys)} {why}"
        for keys, why in ((missing, "missing"), (surplus, "not among them"))
        if keys
    ]
    return ", ".join(parts)


def _listed(keys: Sequence[str]) -> str:
    """`a is`, `a and b are`."""
    if len(keys) == 1:
        return f"{keys[0]} is"
    return f"{', '.join(keys[:-1])} and {keys[-1]} are"
