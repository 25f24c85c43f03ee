"""Liger-Kernel's own tests, in a process of their own, and a table of what came of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from rich.table import Table

ROOT = Path(__file__).parents[3]

#: Files without a Triton kernel, or with models that have to be downloaded.
LEFT_OUT = {
    "test_auto_model.py": "models",
    "test_cute_moe_autograd.py": "CuTe",
    "test_cutedsl_fused_linear_cross_entropy_sm90.py": "CuTe DSL",
    "test_cutedsl_rms_norm.py": "CuTe DSL",
    "test_cutedsl_rms_norm_fastpath.py": "CuTe DSL",
    "test_cutedsl_rope.py": "CuTe DSL",
    "test_cutile_backend.py": "cuTile",
    "test_cutile_fused_linear_cross_entropy_sm90.py": "cuTile",
    "test_cutile_rms_norm.py": "cuTile",
    "test_cutile_rope.py": "cuTile",
    "test_flex_attention.py": "torch.compile",
    "test_fused_linear_scaled_cross_entropy.py": "CUTLASS",
    "test_monkey_patch.py": "models",
    "test_moe.py": "models",
    "test_swiglu_cutedsl.py": "CuTe DSL",
    "test_trainer_integration.py": "models",
    "test_transformers.py": "models",
}

#: Why a test fails that is no fault of the simulator's: test function → reason.
EXPLAINED = {
    "test_group_norm.py::test_liger_group_norm": (
        "the bias's gradient of 131,072 terms: torch's float32 sum on CPU, their reference, is "
        "5e-4 away from the exact one, the kernel's 1e-4, and the test allows 1e-4 between them"
    ),
}


def run_tests(
    folder: Path, site: Path, pattern: str, sample: int, seconds: int, target: Path
) -> None:
    """Runs the tests below `folder`; `target` gets a line of JSON for each (`results_plugin`).

    sample: how many parametrizations of each test; 0 for all. seconds: limit for one test.
    """
    folder = folder.resolve()
    repository = folder.parents[1]
    paths = [site, ROOT, repository, os.environ.get("PYTHONPATH", "")]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths))}
    env |= {"TRITON_DEFAULT_BACKEND": "mini_triton", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", "--tb=short", "-W", "ignore"]
    command += ["-p", "no:cacheprovider", "--rootdir", str(repository), "-c", os.devnull]
    command += ["-p", "tests.fidelity.liger_plugin", "-p", "tests.fidelity.results_plugin"]
    command += ["--timeout", str(seconds), "--continue-on-collection-errors"]
    command += ["--results", str(target), "--sample", str(sample)]
    command += [f"--ignore={folder / name}" for name in LEFT_OUT]
    command += ["-k", pattern] if pattern else []
    target.unlink(missing_ok=True)
    subprocess.run([*command, str(folder)], env=env, cwd=repository, check=False)


def their_table(target: Path) -> Table:
    """A row for each file of tests."""
    counts: dict[str, Counter[str]] = {}
    for line in _lines(target):
        counts.setdefault(line["test"].partition("::")[0], Counter())[line["outcome"]] += 1
    table = Table(title="Liger-Kernel's own tests", title_justify="left")
    outcomes = ("passed", "failed", "skipped")
    table.add_column("file")
    for outcome in outcomes:
        table.add_column(outcome, justify="right")
    for name, count in sorted(counts.items()):
        table.add_row(name, *(str(count[outcome]) for outcome in outcomes))
    totals = (str(sum(count[outcome] for count in counts.values())) for outcome in outcomes)
    table.add_row("all", *totals)
    return table


def failures(target: Path) -> list[str]:
    """`test: message` of each test that failed."""
    return [f"{x['test']}: {x['message']}" for x in _lines(target) if x["outcome"] == "failed"]


def in_words(target: Path, sample: str) -> list[str]:
    """Lines of Markdown: how many, and each failure with its reason."""
    lines = _lines(target)
    count = Counter(line["outcome"] for line in lines)
    words = [
        f"Liger's own tests ({sample}) on CPU tensors: {count['passed']} passed, "
        f"{count['failed']} failed, {count['skipped']} skipped themselves.",
        "",
    ]
    for line in lines:
        if line["outcome"] == "failed":
            reason = EXPLAINED.get(line["test"].partition("[")[0])
            first = line["message"].strip().split("\n")[0][:150]
            words.append(f"- `{line['test']}`: {reason or first}.")
    return words if len(words) == 2 else [*words, ""]


def _lines(target: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in target.read_text().splitlines()]
