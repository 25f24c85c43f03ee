"""The script that installs: what it does where something is missing or fails.

It finds nothing on its PATH but the programs of `WHOLESOME` and stand-ins that write down how they
were called. (That it installs for real is shown by `test_check`.)
"""

import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from grader.gradescope.build import template

WHOLESOME = ("bash", "env", "dirname", "cat", "rm", "chmod", "mkdir", "cp", "ln", "sh")
#: Answers as Python does to what the script asks of it; a virtual environment holds a copy of it.
PYTHON = """#!/bin/bash
echo "python $*" >>"$LOG"
case "$*" in
  "-V") echo "Python 3.12.0" ;;
  "-I - "*) exit "$([ -e "$0.too-old" ] && echo 1 || echo 0)" ;;
  "-m venv --clear "*) mkdir -p "$4/bin"; cp "$0" "$4/bin/python" ;;
  *" -m pip install "*"--index-url bad "*) echo "no such index" >&2; exit 1 ;;
  *" -m pip install "*"${FAILS:-nothing at all}"*) exit 1 ;;
esac
"""


class Machine:
    """A machine with the given programs, on which the script is run."""

    def __init__(self, folder: Path) -> None:
        self.bin, self.source = folder / "bin", folder / "source"
        self.prefix, self.log = folder / "opt" / "bytewise", folder / "log"
        for made in (self.bin, self.source):
            made.mkdir()
        self.log.touch()
        for name in WHOLESOME:
            found = shutil.which(name)
            assert found is not None, name
            (self.bin / name).symlink_to(found)
        (self.source / "setup.sh").write_text(template("setup.sh"))
        self.settings("")
        self.program(
            "id", 'case "$*" in "-u"|"-un") echo "$WHO";; *) [ -e "$LOG.user" ] && echo 777;; esac'
        )
        self.program("useradd", 'echo "useradd $*" >>"$LOG"; : >"$LOG.user"')
        self.program("setpriv", 'echo "setpriv $*" >>"$LOG"')
        self.program("apt-get", 'echo "apt-get $*" >>"$LOG"; exit 100')

    def settings(self, index: str) -> None:
        text = f"ASSIGNMENT=lab\nTORCH=torch==1.2.3\nBUILT_WITH_TORCH_INDEX_URL={index}\n"
        (self.source / "settings.sh").write_text(text)

    def program(self, name: str, text: str) -> Path:
        path = self.bin / name
        path.write_text(text if text.startswith("#!") else f"#!/bin/bash\n{text}\n")
        path.chmod(0o755)
        return path

    def setup(self, **environment: str) -> tuple[int, str]:
        """Runs the script as root (or who `WHO` says); its status, and what it printed."""
        done = subprocess.run(
            ["bash", self.source / "setup.sh"],
            env={
                "PATH": str(self.bin),
                "LOG": str(self.log),
                "WHO": "0",
                "BYTEWISE_PREFIX": str(self.prefix),
                **environment,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        return done.returncode, done.stdout

    @property
    def calls(self) -> list[str]:
        return self.log.read_text().splitlines()

    def called(self, *words: str) -> list[str]:
        return [call for call in self.calls if all(word in call for word in words)]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_everything_is_there(machine: Machine) -> None:
    machine.program("python3.12", PYTHON)
    status, printed = machine.setup()
    assert status == 0, printed
    assert not machine.called("apt-get")
    assert machine.called("pip install", "--no-deps torch==1.2.3")
    assert machine.called("pip install", f"-e {machine.source}")
    assert machine.called("compileall") and machine.called("preload()")
    assert machine.called("useradd", "student")
    assert (machine.prefix / "student.uid").read_text() == "777\n"
    assert stat.S_IMODE(machine.source.stat().st_mode) == 0o700
    assert printed.endswith("setup: ready\n")


def test_again_is_no_harm(machine: Machine) -> None:
    machine.program("python3.12", PYTHON)
    assert machine.setup()[0] == 0
    machine.log.write_text("")
    status, printed = machine.setup()
    assert status == 0, printed
    assert not machine.called("venv") and not machine.called("useradd")
    assert (machine.prefix / "student.uid").read_text() == "777\n"


def test_an_old_python_is_passed_over(machine: Machine) -> None:
    machine.program("python3", PYTHON)
    machine.program("python3.too-old", "")
    machine.program("python3.11", PYTHON)
    status, printed = machine.setup()
    assert status == 0, printed
    assert f"Python: {machine.bin}/python3.11" in printed
    assert machine.called("-m venv --clear")


def test_python_from_apt(machine: Machine) -> None:
    machine.program("new", PYTHON)
    machine.program(
        "apt-get",
        'echo "apt-get $*" >>"$LOG"\n'
        f'[[ "$*" == *python3.12-venv* ]] && cp "{machine.bin}/new" "{machine.bin}/python3.12"; :',
    )
    status, printed = machine.setup()
    assert status == 0, printed
    assert "apt-get update -qq" in machine.calls
    assert f"Python: {machine.bin}/python3.12" in printed


def test_a_stand_alone_python_where_apt_has_none(machine: Machine) -> None:
    machine.program("python3", PYTHON)
    machine.program("python3.too-old", "")
    machine.program(
        "apt-get", 'echo "apt-get $*" >>"$LOG"; [[ "$*" == update* || "$*" == *python3-venv ]]'
    )
    # What pip would have brought: uv, which puts a Python where it is told to.
    uv = machine.program(
        "uv-to-be",
        'echo "uv $*" >>"$LOG"; mkdir -p "$UV_PYTHON_INSTALL_DIR/cpython-3.12/bin"\n'
        f'cp "{machine.bin}/python3" "$UV_PYTHON_INSTALL_DIR/cpython-3.12/bin/python3.12"',
    )
    text = PYTHON.replace(
        'cp "$0" "$4/bin/python"', f'cp "$0" "$4/bin/python"; cp "{uv}" "$4/bin/uv"'
    )
    machine.program("python3", text)
    status, printed = machine.setup()
    assert status == 0, printed
    assert machine.called("uv python install", "3.12")
    assert f"Python: {machine.prefix}-python/cpython-3.12/bin/python3.12" in printed
    assert not Path(f"{machine.prefix}-uv").exists()


def test_no_python_to_be_had(machine: Machine) -> None:
    status, printed = machine.setup()
    assert status == 1
    assert "setup FAILED: no Python 3.11 or newer could be installed" in printed
    assert "BYTEWISE_PYTHON" in printed


def test_the_machine_is_left_as_it_is_if_asked(machine: Machine) -> None:
    status, printed = machine.setup(BYTEWISE_SYSTEM="keep")
    assert status == 1
    assert "setup FAILED: no Python 3.11 or newer here" in printed
    assert not machine.called("apt-get")


def test_a_python_that_will_not_do(machine: Machine) -> None:
    status, printed = machine.setup(BYTEWISE_PYTHON="/bin/false")
    assert status == 1
    assert "setup FAILED: BYTEWISE_PYTHON=/bin/false is no final release" in printed


VERSION = "sys.version_info = collections.namedtuple('V', 'major minor micro releaselevel serial')"


@pytest.mark.parametrize(
    ("python", "said"),
    [
        ("sys.base_prefix = '/usr'", "setup: Python: "),
        # pytest's temporary folders are closed, as /root is.
        ("sys.base_prefix = tempfile.gettempdir()", "WARNING: other users cannot enter where"),
        (VERSION + "(3, 11, 0, 'candidate', 1)", "no Python 3.11 or newer here"),
        (VERSION + "(3, 10, 12, 'final', 0)", "no Python 3.11 or newer here"),
        (VERSION + "(3, 99, 0, 'final', 0)", "no Python 3.11 or newer here"),
        ("sys.modules['ensurepip'] = None", "no Python 3.11 or newer here"),
    ],
)
def test_the_question_whether_a_python_will_do(
    machine: Machine, tmp_path: Path, python: str, said: str
) -> None:
    """Asked of a real Python that pretends to be another."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    machine.program(
        "python3.12",
        f'#!/bin/bash\n[ "$2" = - ] || {{ [ "$1" = -V ]; exit; }}\n'
        f'{{ echo "import collections, sys, tempfile; {python}"; cat; }} |'
        f' TMPDIR="{closed}" exec "{sys.executable}" "$@"',
    )
    status, printed = machine.setup(BYTEWISE_SYSTEM="keep")
    assert status == 1  # it makes no environment
    assert said in printed
    assert ("WARNING" in printed) == ("WARNING" in said)


@pytest.mark.parametrize("how", ["variable", "built"])
def test_torch_from_the_index_that_is_named(machine: Machine, how: str) -> None:
    machine.program("python3.12", PYTHON)
    machine.settings("https://built" if how == "built" else "https://other")
    asked = {"TORCH_INDEX_URL": "https://asked"} if how == "variable" else {}
    status, printed = machine.setup(**asked)
    index = "https://asked" if how == "variable" else "https://built"
    assert status == 0, printed
    assert machine.called("--no-deps", f"--index-url {index} torch==1.2.3")
    assert f"setup: torch==1.2.3 from {index}" in printed
    # Whatever else is installed comes from the index that pip knows.
    assert not machine.called("--index-url", "-e ")


def test_an_index_that_fails_is_replaced_by_the_default_one(machine: Machine) -> None:
    machine.program("python3.12", PYTHON)
    status, printed = machine.setup(TORCH_INDEX_URL="bad")
    assert status == 0, printed
    assert "WARNING: torch==1.2.3 is not to be had from bad" in printed
    tried = machine.called("--no-deps", "torch==1.2.3")
    assert len(tried) == 2 and "--index-url" not in tried[1]


@pytest.mark.parametrize(
    ("fails", "said"),
    [
        ("--no-deps torch", "setup FAILED: torch==1.2.3 could not be installed"),
        ("-e ", "setup FAILED: the grader's packages could not be installed"),
    ],
)
def test_what_cannot_be_installed_is_said(machine: Machine, fails: str, said: str) -> None:
    machine.program("python3.12", PYTHON)
    status, printed = machine.setup(FAILS=fails)
    assert status == 1
    assert said in printed
    assert not (machine.prefix / "student.uid").exists()


def test_a_student_who_cannot_run_python(machine: Machine) -> None:
    machine.program("python3.12", PYTHON)
    machine.program("setpriv", "exit 1")
    status, printed = machine.setup()
    assert status == 1
    assert "setup FAILED: student cannot run" in printed
    status, printed = machine.setup(BYTEWISE_SYSTEM="keep")
    assert status == 0
    assert "WARNING: student cannot run" in printed
    assert not (machine.prefix / "student.uid").exists()


def test_not_as_root(machine: Machine) -> None:
    machine.program("python3.12", PYTHON)
    status, printed = machine.setup(WHO="1000")
    assert status == 0, printed
    assert "not root: student code will run as" in printed
    assert not machine.called("useradd") and not machine.called("setpriv")
