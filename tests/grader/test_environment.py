import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from grader import environment, house
from grader.environment import OnlyAvailable, absent_imports, available


def found(tmp_path: Path, source: str, files: tuple[str, ...] = ("lab.py",)) -> list[tuple]:
    (tmp_path / "lab.py").write_text(textwrap.dedent(source))
    return [(one.file, one.line, one.module) for one in absent_imports(tmp_path, files)]


def test_what_the_grader_depends_on_is_available_and_extras_are_not() -> None:
    assert {"torch", "triton", "numpy", "math", "mini_triton", "sympy", "rich"} <= available()
    assert not {"matplotlib", "pytest", "hypothesis", "PIL", "no_such_module"} & available()
    assert {
        path.parent.name for path in house.here().root.glob("shared/*/__init__.py")
    } < available()


def test_where_the_grader_was_not_installed_nothing_is_hidden(monkeypatch) -> None:
    monkeypatch.setattr(environment, "_DISTRIBUTION", "no-such-distribution")
    assert {"torch", "pytest", "math", "mini_triton"} <= available.__wrapped__()


@pytest.mark.parametrize(
    "source",
    [
        "import matplotlib.pyplot as plt",
        "from matplotlib import pyplot",
        "import os, matplotlib",
        "if True:\n    import matplotlib",
        "with open('x'):\n    import matplotlib",
        "class C:\n    import matplotlib",
        "try:\n    import matplotlib\nfinally:\n    pass",
        "try:\n    import matplotlib\nexcept ValueError:\n    pass",
    ],
)
def test_an_import_that_runs_is_found(tmp_path: Path, source: str) -> None:
    [(file, _, module)] = found(tmp_path, source)
    assert (file, module.partition(".")[0]) == ("lab.py", "matplotlib")


@pytest.mark.parametrize(
    "source",
    [
        "import torch, triton, triton.language as tl\nimport numpy as np\nimport math",
        "def plot():\n    import matplotlib",
        "if __name__ == '__main__':\n    import matplotlib",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import matplotlib",
        "if False:\n    import matplotlib",
        "try:\n    import matplotlib\nexcept ImportError:\n    matplotlib = None",
        "try:\n    import matplotlib\nexcept (ValueError, Exception):\n    matplotlib = None",
        "try:\n    import matplotlib\nexcept:\n    matplotlib = None",
        "from . import matplotlib",
        "import (",
    ],
)
def test_an_import_that_does_no_harm_is_not(tmp_path: Path, source: str) -> None:
    assert found(tmp_path, source) == []


def test_each_module_once_and_files_handed_in_are_there(tmp_path: Path) -> None:
    source = "import scipy\nimport scipy\nimport other\nimport helpers"
    assert found(tmp_path, source, ("lab.py", "other.py")) == [
        ("lab.py", 1, "scipy"),
        ("lab.py", 4, "helpers"),
    ]


def test_a_hidden_module_is_not_found_and_its_submodules_of_others_are() -> None:
    code = """
    import sys
    from grader.environment import OnlyAvailable
    sys.meta_path.insert(0, OnlyAvailable(frozenset({"xml"})))
    import xml.dom.minidom
    try:
        import wave
    except ModuleNotFoundError as error:
        assert (str(error), error.name) == ("No module named 'wave'", "wave")
        print("hidden")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "hidden\n"
    assert OnlyAvailable(available()).find_spec("torch") is None
