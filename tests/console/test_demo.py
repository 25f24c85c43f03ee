import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from console.demo import Missing, command, default_submission, load, module_of, pyplot, run


@pytest.fixture
def demo(tmp_path) -> Path:
    """Where `demo.py` of an assignment `lab` lies, whose starter, `work.py`, has one function."""
    for folder in ("assignments/lab", "starter/lab"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "starter/lab/work.py").write_text("def answer():\n    return 42\n")
    return tmp_path / "assignments/lab/demo.py"


@pytest.fixture(autouse=True)
def modules(tmp_path):
    """Forgets the modules of the submissions; `sys.modules` itself stays: imports know no other."""
    yield
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]


def answer(student):
    click.echo(f"the answer is {student.answer()}")


def stub(student, *png):
    raise NotImplementedError("lab 2: ask")


def draw(student, png):
    png.write_text(str(student.answer()))


def invoke(demo, *arguments, parts=(answer,), plots=None):
    main = command(str(demo), "First line.\n\nMore.", module_of("work"), parts, plots or {})
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


class TestCommand:
    def test_the_starter_where_there_is_no_solution(self, demo):
        result = invoke(demo)
        file = default_submission(demo) / "work.py"
        assert result.output == f"Running {file}\nthe answer is 42\n"
        assert default_submission(demo) == demo.parents[2] / "starter/lab"

    def test_the_solution_where_there_is_one(self, demo):
        solution = demo.parents[2] / "solutions/lab"
        solution.mkdir(parents=True)
        (solution / "work.py").write_text("def answer():\n    return 43\n")
        assert default_submission(demo) == solution
        assert "the answer is 43" in invoke(demo).output

    @pytest.mark.parametrize("name", ["mine/work.py", "mine/other.py", "mine"])
    def test_a_file_or_its_folder(self, demo, tmp_path, name):
        path = tmp_path / name
        file = path if path.suffix else path / "work.py"
        file.parent.mkdir()
        file.write_text("def answer():\n    return 44\n")
        assert f"Running {file}\nthe answer is 44\n" in invoke(demo, "--submission", path).output

    def test_no_file(self, demo, tmp_path):
        result = invoke(demo, "--submission", tmp_path)
        assert result.exit_code == 1
        assert result.output == f"Error: there is no {tmp_path / 'work.py'}\n"

    def test_a_part_that_is_not_started_does_not_stop_the_others(self, demo):
        result = invoke(demo, parts=(stub, answer))
        assert result.exit_code == 0
        assert "not started: lab 2: ask\nthe answer is 42\n" in result.output

    def test_plots(self, demo, tmp_path):
        folder = tmp_path / "new/plots"
        plots = {"a.png": draw, "b.png": stub}
        result = invoke(demo, "--png", folder, plots=plots)
        assert result.output.endswith(f"\nSaved {folder / 'a.png'}\nnot started: lab 2: ask\n")
        assert [path.name for path in folder.iterdir()] == ["a.png"]

    def test_help(self, demo):
        output = invoke(demo, "--help", plots={"a.png": draw}).output
        assert "First line." in output
        assert "More." not in output


def test_a_part_whose_file_is_missing(capsys, tmp_path):
    assert not run(lambda: load(tmp_path / "other.py"))
    assert capsys.readouterr().out == f"left out: there is no {tmp_path / 'other.py'}\n"


def test_load_names_the_module_after_its_file(tmp_path):
    (tmp_path / "some_lab.py").write_text("from dataclasses import dataclass\nx = __name__\n")
    assert load(tmp_path / "some_lab.py").x == "some_lab"
    assert "some_lab" in sys.modules
    with pytest.raises(Missing, match="there is no"):
        load(tmp_path)


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(click.ClickException, match="pip install matplotlib"):
        pyplot()
