"""Results as a terminal table and as a section of docs/fidelity.md."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from tests.fidelity.liger_cases.adaptations import ADAPTATIONS
from tests.fidelity.liger_cases.all_cases import WITHOUT_KERNEL
from tests.fidelity.liger_cases.compare import Result

HEADINGS = (
    "kernel",
    "dtype",
    "right",
    "forward error",
    "backward error",
    "bound",
    "launches",
    "seconds",
)
_SECTION = "Liger-Kernel"


def case_line(result: Result) -> str:
    """One case in a line."""
    errors = " ".join(_number(e) for e in (result.forward, result.backward))
    head = f"{result.kernel} {result.variant} {result.dtype}: {errors} {result.seconds:.2f} s"
    return f"{head} FAILED {result.failure}" if result.failure else head


def _number(error: float | None) -> str:
    return "–" if error is None else f"{error:.1e}"


def _rows(results: Sequence[Result]) -> list[tuple[str, ...]]:
    """A row for each kernel and dtype: the worst errors of its cases."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        groups.setdefault((result.kernel, result.dtype), []).append(result)
    rows = []
    for (kernel, dtype), group in groups.items():
        forward, backward = (
            max((e for e in (getattr(r, side) for r in group) if e is not None), default=None)
            for side in ("forward", "backward")
        )
        launches = (
            sum(r.forward_launches for r in group),
            sum(r.backward_launches for r in group),
        )
        rows.append(
            (
                kernel,
                dtype,
                f"{sum(r.failure is None for r in group)} of {len(group)}",
                _number(forward),
                _number(backward),
                f"{max(r.bound for r in group):.0e}",
                f"{launches[0]} + {launches[1]}",
                f"{sum(r.seconds for r in group):.1f}",
            )
        )
    return rows


def _summary(results: Sequence[Result]) -> str:
    right = sum(r.failure is None for r in results)
    kernels = len({r.kernel for r in results})
    return f"{right} of {len(results)} cases right, {kernels} kernels"


def kernel_table(results: Sequence[Result]) -> Table:
    """For the terminal."""
    table = Table(title=_summary(results), title_justify="left")
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading in ("kernel", "dtype") else "right")
    for row in _rows(results):
        table.add_row(*row)
    return table


def _section(results: Sequence[Result], version: str, theirs: Sequence[str]) -> str:
    lines = [
        f"## {_SECTION}",
        "",
        f"Liger-Kernel {version}, forward and backward, CPU tensors, against references in float64",
        "that are ours. An error is the largest difference in a tensor over the largest value of",
        "the reference in it, the worst of all cases; launches are those of the forward and of the",
        "backward pass; seconds include compiling. Made by",
        "`python -m tests.fidelity.liger run --markdown`.",
        "",
        f"{_summary(results)}.",
        "",
        "| " + " | ".join(HEADINGS) + " |",
        "|---|---|" + "---:|" * (len(HEADINGS) - 2),
        *("| " + " | ".join(row) + " |" for row in _rows(results)),
        "",
    ]
    failed = [r for r in results if r.failure]
    if failed:
        lines += ["Failures:", ""]
        lines += [f"- `{r.kernel}` {r.variant}, {r.dtype}: {r.failure}" for r in failed]
        lines.append("")
    lines += theirs
    lines += ["What Liger-Kernel asks of its machine, and what it is told:", ""]
    lines += [f"- {what}: {answer}." for what, answer in ADAPTATIONS.items()]
    lines += ["", "Not run, since no Triton kernel is launched:", ""]
    lines += [f"- `{name}`: {why}." for name, why in WITHOUT_KERNEL.items()]
    return "\n".join(lines) + "\n"


def write_section(
    path: Path, results: Sequence[Result], version: str, theirs: Sequence[str] = ()
) -> None:
    """Replaces the section of a file, or adds it at its end; other sections stay.

    theirs: lines about Liger's own tests.
    """
    text = path.read_text() if path.exists() else "# Fidelity\n"
    section = _section(results, version, theirs)
    pattern = re.compile(rf"^## {_SECTION}\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
    if pattern.search(text):
        text = pattern.sub(lambda _: section + "\n", text)
    else:
        text = text.rstrip("\n") + "\n\n" + section
    path.parent.mkdir(exist_ok=True)
    path.write_text(text.rstrip("\n") + "\n")
