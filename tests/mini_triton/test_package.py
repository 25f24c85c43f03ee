"""The package as a user meets it: imported as Triton, in any order, chosen by the environment."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import mini_triton
import pytest
import torch
import triton

#: Where there is a GPU, the simulator has to be asked for.
without_gpu = pytest.mark.skipif(
    torch.cuda.is_available(), reason="this machine has a GPU, which Triton takes by default"
)

KERNEL = """
import torch
import triton.language as tl

@triton.jit
def twice_kernel(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2, mask=i < n)

def twice():
    x = torch.ones(5)
    twice_kernel[(1,)](x, 5, BLOCK=8)
    return x.tolist()
"""


def run(tmp_path, imports, rest, **env):
    """Runs a script in a fresh process; what it prints."""
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(imports) + KERNEL + textwrap.dedent(rest))
    env = {k: v for k, v in (os.environ | env).items() if v is not None}
    done = subprocess.run(
        [sys.executable, str(script)], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.split("\n")


@pytest.mark.parametrize(
    ("imports", "asked"),
    [
        pytest.param("import triton", None, marks=without_gpu),
        ("import mini_triton\nimport triton", "mini_triton"),
        pytest.param("import triton\nimport mini_triton", None, marks=without_gpu),
    ],
)
def test_any_order_of_imports(tmp_path, imports, asked):
    rest = "print(triton.runtime.driver.active.get_current_target().backend, twice())"
    out = run(tmp_path, imports, rest, TRITON_DEFAULT_BACKEND=asked)
    assert out[0] == "mini_triton [2.0, 2.0, 2.0, 2.0, 2.0]"


def test_the_package_in_place_of_triton(tmp_path):
    rest = """
    triton.reset_stats()
    twice(), twice()
    print(triton.get_stats()["loaded"], triton.get_stats()["stored"], triton.cdiv(7, 2))
    """
    assert run(tmp_path, "import mini_triton as triton", rest)[0] == "10 10 4"


@without_gpu
def test_the_simulator_stands_aside_for_a_gpu(monkeypatch):
    from mini_triton.backend.driver import MiniTritonDriver

    monkeypatch.delenv("TRITON_DEFAULT_BACKEND", raising=False)
    assert MiniTritonDriver.is_active()
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    assert not MiniTritonDriver.is_active()
    monkeypatch.setenv("TRITON_DEFAULT_BACKEND", "mini_triton")
    assert MiniTritonDriver.is_active()
    monkeypatch.setenv("TRITON_DEFAULT_BACKEND", "nvidia")
    assert not MiniTritonDriver.is_active()


def test_names_of_triton_are_found_here():
    assert mini_triton.jit is triton.jit
    assert mini_triton.language is triton.language
    assert mini_triton.next_power_of_2(100) == 128
    with pytest.raises(AttributeError, match="neither mini_triton nor triton has 'no_such_name'"):
        _ = mini_triton.no_such_name


def test_every_public_name_is_there():
    for name in mini_triton.__all__:
        assert hasattr(mini_triton, name)
    errors = (mini_triton.BadLaunch, mini_triton.BadProgram, mini_triton.OutOfBounds)
    for error in (*errors, mini_triton.UnsupportedOp, mini_triton.DeviceAssertion):
        assert issubclass(error, mini_triton.KernelError)


def test_no_module_of_ours_hides_a_name_of_tritons():
    ours = {path.stem for path in Path(mini_triton.__file__).parent.iterdir()} - {"__pycache__"}
    # The simulator's own errors, which Triton has as well; and a name for Triton's language.
    assert ours & set(vars(triton)) <= {"errors", "language"}


def test_the_language_by_the_package_s_name(tmp_path):
    imports = """
    import mini_triton as triton
    import mini_triton.language as ours
    """
    rest = """
    print(ours is tl, twice())
    """
    assert run(tmp_path, imports, rest)[0].startswith("True")
