"""What `profile` makes of findings, and kernels that are right: all silent."""

from __future__ import annotations

import mini_triton
import pytest
import torch
import triton
import triton.language as tl
from mini_triton import LaunchRecord, settings
from mini_triton.checks import ALL

from tests.kernels import examples

EXAMPLES = examples.examples()


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_kernels_of_the_suite_are_silent_and_count_the_same(name: str) -> None:
    run, _ = EXAMPLES[name]
    with mini_triton.profile() as plain:
        expected = run()
    with mini_triton.profile(check="all", on_finding="report") as checked:
        outputs = run()
    assert [str(finding) for finding in checked.findings] == []
    assert vars(checked.total) == vars(plain.total)
    assert [op.name for op in checked.host] == [op.name for op in plain.host]
    for output, other in zip(outputs, expected, strict=True):
        assert torch.equal(output, other)


@triton.jit
def _all_at_once(y):
    tl.store(y, tl.program_id(0))


def test_findings_raise_when_the_region_has_ended() -> None:
    y = torch.zeros(1)
    region = mini_triton.profile(check="all")
    p = region.__enter__()
    for _ in range(3):
        _all_at_once[(2,)](y)
    with pytest.raises(mini_triton.SanitizerError, match=r"race: y\[0\] is stored by") as raised:
        region.__exit__(None, None, None)
    assert len(p.launches) == 3
    assert len(p.findings) == len(raised.value.findings) == 1  # one fault, however often it shows
    assert y.item() == 1


def test_an_error_in_the_region_goes_before_its_findings() -> None:
    def fails() -> None:
        _all_at_once[(2,)](torch.zeros(1))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), mini_triton.profile(check="all"):
        fails()


def test_nothing_is_looked_for_unless_it_is_asked_for() -> None:
    with mini_triton.profile() as p:
        _all_at_once[(2,)](torch.zeros(1))
    assert p.findings == []
    with settings.use(checks=ALL), pytest.raises(mini_triton.SanitizerError):
        _all_at_once[(2,)](torch.zeros(1))


def test_a_record_keeps_its_findings_as_plain_data() -> None:
    with mini_triton.profile(check="races", on_finding="report") as p:
        _all_at_once[(2,)](torch.zeros(1))
    (record,) = p.launches
    again = LaunchRecord.from_dict(record.to_dict())
    assert again.findings == record.findings
    assert [str(finding) for finding in again.findings] == [str(f) for f in record.findings]


def test_a_launch_that_fails_is_checked_no_further() -> None:
    with pytest.raises(mini_triton.OutOfBounds), mini_triton.profile(check="all"):
        _all_at_once[(2,)](torch.zeros(0))
