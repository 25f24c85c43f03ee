"""The script on a suite of five tests, with pytest and both plug-ins as they are used."""

import json

import pytest
from click.testing import CliRunner

from tests.fidelity import triton_suite

CONFTEST = """
import pytest

def pytest_addoption(parser):
    parser.addoption("--device", default="cuda")

@pytest.fixture
def device(request):
    return request.config.getoption("--device")
"""
SUITE = """
import pytest
import torch
import triton
import triton.language as tl
from triton._internal_testing import is_blackwell, is_cuda

@triton.jit
def double(x_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(x_ptr + i, tl.load(x_ptr + i) * 2)

@pytest.mark.parametrize("n", [1, 2, 4, 8])
def test_right(n, device):
    assert is_cuda()
    x = torch.ones(n, device="cuda", pin_memory=True)
    assert x.device.type == device == "cpu"
    double[(1,)](x, n)
    assert x.tolist() == [2] * n

def test_wrong():
    assert 1 == 2, "of course"

@pytest.mark.skipif(not is_blackwell(), reason="Requires Blackwell")
def test_blackwell():
    assert torch.cuda.get_device_capability() == (10, 0)
"""


@pytest.fixture
def suite(tmp_path):
    folder = tmp_path / "test" / "unit"
    folder.mkdir(parents=True)
    (tmp_path / "test" / "conftest.py").write_text(CONFTEST)
    (folder / "test_tiny.py").write_text(SUITE)
    return folder


def test_a_suite_runs_adapted_is_sampled_and_compared(suite, tmp_path):
    docs, data = tmp_path / "fidelity.md", tmp_path / "all.json"
    docs.write_text(f"before\n{triton_suite.BEGIN}\nold\n{triton_suite.END}\nafter\n")
    options = ["--side", "simulator", "--jobs", "1", "--sample", "2"]
    options += ["--out", tmp_path / "out", "--json", data, "--markdown", docs]
    done = CliRunner().invoke(triton_suite.main, [str(suite), *map(str, options)])
    assert done.exit_code == 1, done.output  # a failure that nothing explains
    found = json.loads(data.read_text())
    assert found["tests"]["test_tiny.py::test_right"]["ours"] == {"passed": 2}
    assert found["tests"]["test_tiny.py::test_blackwell"]["ours"] == {"passed": 1}
    (failure,) = found["unexplained"]
    assert failure["test"] == "test_tiny.py::test_wrong"
    assert "of course" in failure["message"]
    assert "test_tiny.py::test_wrong" in done.output
    before, _, rest = docs.read_text().partition(triton_suite.BEGIN)
    assert before == "before\n"
    assert "| test_tiny | 3 / 1 / 0 |" in rest
    assert rest.endswith("\nafter\n")
    assert "old" not in rest

    done = CliRunner().invoke(triton_suite.main, [str(suite), *map(str, options), "--resume"])
    results = (tmp_path / "out" / "simulator.jsonl").read_text()
    assert results.count("test_wrong") == 1  # and was not run again
    found = json.loads(data.read_text())
    assert found["total"]["ours"] == {"passed": 3, "failed": 1}


def test_a_folder_without_the_suites_own_fixtures_is_refused(tmp_path):
    done = CliRunner().invoke(triton_suite.main, [str(tmp_path), "--out", str(tmp_path / "out")])
    assert done.exit_code == 1
    assert "no conftest.py" in done.output


def test_documentation_without_a_place_for_the_table_is_left_alone(tmp_path):
    docs = tmp_path / "fidelity.md"
    docs.write_text("no marks\n")
    with pytest.raises(Exception, match="has no lines"):
        triton_suite.write_between(docs, "table")
    assert docs.read_text() == "no marks\n"
