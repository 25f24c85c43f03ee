"""The simulator against Triton's own interpreter, in one subprocess."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.mini_triton import interpreted_cases
from tests.mini_triton.comparing import from_triton

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def interpreted(tmp_path_factory):
    target = tmp_path_factory.mktemp("interpreted") / "results.pt"
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    env = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", interpreted_cases.__file__, str(target)],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return torch.load(target)


@from_triton((3, 7), "its interpreter takes arrays of one element for numbers; NumPy 2.4 does not")
def test_the_same_results(interpreted):
    simulated = interpreted_cases.results()
    assert simulated.keys() == interpreted.keys()
    wrong = [
        name
        for name, result in simulated.items()
        if result.dtype != interpreted[name].dtype
        or not torch.allclose(result.double(), interpreted[name].double(), rtol=1e-6, atol=1e-6)
    ]
    assert wrong == []
    assert len(simulated) > 30
