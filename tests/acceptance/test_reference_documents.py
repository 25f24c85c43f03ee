"""The course's reference documents run unmodified on our modules, and their figures come out.

The documents are not part of the repository. Where a folder `shared/reference` lies beside the
checkout they are run; elsewhere these tests are skipped and say so.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

REFERENCE = Path(__file__).resolve().parents[3] / "shared" / "reference"


def run(name: str) -> str:
    document = REFERENCE / name
    if not document.exists():
        pytest.skip(f"the reference document {name} is not beside this checkout")
    done = subprocess.run(
        [sys.executable, str(document)], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_rmsnorm() -> None:
    output = run("05_triton_rmsnorm.py")
    differences = [float(x) for x in re.findall(r"\d\.\de[+-]\d+", output)]
    assert len(differences) == 9
    assert max(differences) < 1e-5
    counts = [int(c.replace(",", "")) for c in re.findall(r"\d{3},\d{3}", output)]
    m, n = 256, 1024
    assert counts == [m * n, 2 * m * n, m * n + m, 3 * m * n + m, 2 * m * n]
    assert counts[1:] == [524_288, 262_400, 786_688, 524_288]
