"""on_ranks.py: a student's file on real processes, and clear words where it fails."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner

HOUSE = Path(__file__).resolve().parents[3]
SCRIPT = HOUSE / "assignments/tensor_parallel/on_ranks.py"
SOLUTION = HOUSE / "solutions/tensor_parallel/shard_lab.py"
STARTER = HOUSE / "starter/tensor_parallel"

spec = importlib.util.spec_from_file_location("tensor_parallel_on_ranks", SCRIPT)
assert spec is not None and spec.loader is not None
on_ranks = importlib.util.module_from_spec(spec)
spec.loader.exec_module(on_ranks)


def start(*command: object) -> subprocess.CompletedProcess[str]:
    """Runs a command as a student does, but for variables of the tests' own environment."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TORCHELASTIC")}
    return subprocess.run(
        [sys.executable, *map(str, command)],
        capture_output=True,
        text=True,
        timeout=250,
        env=environment,
    )


def invoke(*arguments: object):
    """Runs the script in this process: for what ends before ranks are started."""
    return CliRunner().invoke(on_ranks.main, [str(argument) for argument in arguments])


def changed(folder: Path, text: str) -> Path:
    """The solution with definitions that replace its own."""
    (folder / "shard_lab.py").write_text(SOLUTION.read_text() + "\n\n" + text)
    return folder


def cells(output: str, label: str) -> list[str]:
    """The cells beside the one row that begins with the label."""
    (row,) = (
        line for line in output.splitlines() if re.match(rf"\| +{re.escape(label)} +\|", line)
    )
    return [cell.strip() for cell in row.strip("|").split("|")][1:]


def check_report(output: str) -> None:
    """Checks what is printed for the solution on two ranks."""
    held = [cells(output, rank) for rank in "01"]
    assert len({process for process, *_ in held}) == 2
    # Half of the matrices; embedding (104 × 64), head and five norms.
    layer = (64 * 80 * 2 + 64 * 40 * 2 + 3 * 64 * 176) // 2
    numbers = f"{2 * layer + 104 * 64 + 104 * 64 // 2 + 5 * 64:,}"
    assert [rest for _, *rest in held] == [["[0, 1]", numbers], ["[2, 3]", numbers]]
    for function, called in (
        ("tp_forward", "4 all_reduce, 1 all_gather"),
        ("tp_generate", "24 all_reduce, 6 all_gather"),
        ("tp_forward_sp", "6 all_gather, 4 reduce_scatter"),
        ("tp_backward", "9 all_reduce"),
    ):
        error, *rest = cells(output, function)
        assert float(error.removesuffix(" ✓")) < 1e-12
        assert rest == [called, "✓"]
    assert re.search(r"^Generated after sequence 0:( \d+){6}$", output, re.MULTILINE)


class TestOnProcesses:
    def test_the_solution(self):
        result = start(SCRIPT, "--ranks", 2, "--file", SOLUTION)
        assert result.returncode == 0, result.stderr
        assert f"TINY on 2 processes, gloo: {SOLUTION}" in result.stdout
        check_report(result.stdout)

    def test_the_solution_under_torchrun(self):
        launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", 2)
        result = start(*launcher, SCRIPT, "--file", SOLUTION)
        assert result.returncode == 0, result.stderr
        assert result.stdout.count("TINY on 2 processes") == 1
        check_report(result.stdout)

    def test_a_rank_raises(self, tmp_path):
        """One rank in one function: it is named, and the line; there is no traceback."""
        text = (
            "def mlp_of_rank(p, index, h):\n"
            "    if p['kv_groups'] == [2, 3]:\n"
            "        raise KeyError('w_gate')  # here\n"
            "    return np.zeros_like(h)\n"
        )
        result = start(SCRIPT, "--ranks", 2, "--file", changed(tmp_path, text))
        assert result.returncode == 1
        assert "Error: rank 1 of 2 failed: KeyError: 'w_gate'" in result.stderr
        assert "(tp_forward was called)" in result.stderr
        assert re.search(r"shard_lab\.py:\d+, in tp_forward: ", result.stderr)
        assert "in mlp_of_rank: raise KeyError('w_gate')  # here" in result.stderr
        assert "Traceback" not in result.stderr + result.stdout

    def test_a_rank_forgets_a_collective(self, tmp_path):
        """The other one waits in vain, and is told for what."""
        text = (
            "_everywhere = all_reduce\n\n\n"
            "def all_reduce(comm, arrays, algo='ring'):\n"
            "    if comm.ranks == (1,):\n"
            "        return list(arrays)\n"
            "    return _everywhere(comm, arrays, algo)\n"
        )
        result = start(SCRIPT, "--ranks", 2, "--file", changed(tmp_path, text))
        assert result.returncode == 1
        assert (
            "rank 0 calls all_reduce ('all-reduce'), rank 1 calls all_gather_into_tensor"
        ) in result.stderr
        assert "Traceback" not in result.stderr + result.stdout

    def test_a_rank_returns_early(self, tmp_path):
        """Shown is the line of the one that is left in a collective, and what was called."""
        text = (
            "_whole = tp_forward_sp\n\n\n"
            "def tp_forward_sp(dev_params, cfg, tokens, comm):\n"
            "    if comm.ranks == (0,):\n"
            "        return np.zeros((*tokens.shape, cfg.vocab))\n"
            "    return _whole(dev_params, cfg, tokens, comm)\n"
        )
        result = start(SCRIPT, "--ranks", 2, "--file", changed(tmp_path, text))
        assert result.returncode == 1
        assert "Error: rank 1 of 2 failed: ValueError: rank 0 has come to its end" in result.stderr
        assert "(tp_forward_sp was called)" in result.stderr
        assert re.search(r"shard_lab\.py:\d+, in tp_forward_sp: ", result.stderr)
        assert "Traceback" not in result.stderr + result.stdout

    def test_a_rank_does_not_come(self, tmp_path):
        text = (
            "_whole = tp_generate\n\n\n"
            "def tp_generate(dev_params, cfg, prompt, steps, comm):\n"
            "    while comm.ranks == (1,):\n"
            "        pass\n"
            "    return _whole(dev_params, cfg, prompt, steps, comm)\n"
        )
        driver = tmp_path / "driver.py"
        driver.write_text(
            "import sys\n\n"
            f"sys.path.insert(0, {str(SCRIPT.parent)!r})\n"
            "import on_ranks\n\n"
            "if __name__ == '__main__':\n"
            "    on_ranks.PATIENCE = 8.0\n"
            "    on_ranks.main()\n"
        )
        result = start(driver, "--ranks", 2, "--file", changed(tmp_path, text))
        assert result.returncode == 1
        words = "Error: rank 1 of 2 did not come to all_reduce, where rank 0 has waited for it for"
        assert words in result.stderr
        assert "(tp_generate was called)" in result.stderr
        assert re.search(r"shard_lab\.py:\d+, in tp_forward: ", result.stderr)
        assert "gloo/" not in result.stderr

    def test_wrong_results_and_stubs(self, tmp_path):
        """What is right in a simulation and wrong on ranks; and the rest is shown all the same."""
        text = (
            "_right, _cut = tp_forward, tp_forward_sp\n\n\n"
            "def tp_forward(dev_params, cfg, tokens, comm, *args, **kwargs):\n"
            "    off = comm.ranks[0] if kwargs.get('gather_logits', True) else 0\n"
            "    return _right(dev_params, cfg, tokens, comm, *args, **kwargs) + off\n\n\n"
            "def tp_forward_sp(dev_params, cfg, tokens, comm):\n"
            "    if len(dev_params) == 1:\n"
            "        _cut(dev_params, cfg, tokens, comm)  # and forgets to return it\n"
            "        comm.all_gather([np.zeros(3)])\n"
            "    else:\n"
            "        return _cut(dev_params, cfg, tokens, comm)\n\n\n"
            "def tp_generate(*args):\n"
            "    raise NotImplementedError('tensor_parallel 5: choose a token')\n"
        )
        result = start(SCRIPT, "--ranks", 2, "--file", changed(tmp_path, text))
        assert result.returncode == 1, result.stderr
        output = result.stdout
        error = cells(output, "tp_forward")[0]
        assert error.startswith("1.0e+00")
        assert error.endswith(" at rank 1 ✗")
        error, *rest = cells(output, "tp_forward_sp")
        assert error == "inf at rank 0 ✗"
        assert rest == ["7 all_gather, 4 reduce_scatter", "✗ 6 all_gather, 4 reduce_scatter"]
        assert cells(output, "tp_backward")[-1] == "✓"
        assert "\nnot started: tensor_parallel 5: choose a token\n" in output
        assert "Generated" not in output


class TestBeforeRanksAreStarted:
    def test_a_list_has_an_entry_for_each_rank_held(self):
        assert on_ranks.per_rank([{}], 1) == [{}]
        for strange in (None, {}, [], [{}, {}]):
            with pytest.raises(TypeError, match="a list of 1 is to be returned"):
                on_ranks.per_rank(strange, 1)

    def test_the_starter_is_not_started(self):
        result = invoke("--file", STARTER)
        assert result.exit_code == 1
        assert "not started: tensor_parallel 3: " in result.output

    def test_a_number_of_ranks_that_cannot_share(self):
        result = invoke("--file", SOLUTION, "--ranks", 3)
        assert result.exit_code == 1
        expected = "cutting the parameters failed: ValueError: n_heads is 8; 3 ranks cannot share"
        assert expected in result.output
        assert "in shard_params_tp: check_model(cfg, n)" in result.output

    def test_no_gpus_for_nccl(self, monkeypatch):
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
        result = invoke("--file", SOLUTION, "--backend", "nccl")
        assert result.exit_code == 1
        assert "nccl needs a GPU for each of 2 ranks; this machine has 1" in result.output

    def test_no_python(self, tmp_path):
        (tmp_path / "shard_lab.py").write_text("def shard(x:\n")
        result = invoke("--file", tmp_path)
        assert result.exit_code == 1
        assert "loading the file failed: " in result.output
        assert "SyntaxError" in result.output

    def test_the_default_file_is_named(self):
        output = " ".join(invoke("--help").output.split())
        assert "[default: solutions/tensor_parallel]" in output
        assert "the solution," not in output

    def test_no_file(self, tmp_path):
        result = invoke("--file", tmp_path)
        assert result.exit_code == 1
        assert f"there is no {tmp_path / 'shard_lab.py'}" in result.output


def test_largest_error():
    right = {"a": np.zeros(3), "layers": [{"w": np.ones((2, 2))}], "lm_head": None}

    def error(**changes):
        return on_ranks.largest_error(right | changes, right)

    assert error() == 0
    assert error(a=np.array([0, -0.5, 0.25])) == 0.5
    assert error(layers=[{"w": np.full((2, 2), 3.0)}]) == 2
    for strange in (None, np.zeros(4), np.array([0, np.nan, 0]), 0.0, [0.0, 0.0, 0.0]):
        assert error(a=strange) == np.inf
    for strange in (None, [], [{}], [{"w": np.ones((2, 2))}] * 2):
        assert error(layers=strange) == np.inf
