"""Layers import one way: what is below knows nothing of what is above."""

import ast
from pathlib import Path

import mini_triton
import pytest

ROOT = Path(mini_triton.__file__).parent
#: From the bottom to the top. Those of one layer may import each other.
LAYERS = (
    {"checks", "host", "language", "location", "settings"},
    {"finding"},
    {"errors"},
    {"ir"},
    {"launch"},
    {"execute", "groups"},
    {"hardware", "sanitize"},
    {"device", "docs"},
    {"page", "display"},
    {"profiler"},
    {"backend"},
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}


def imported(path: Path) -> set[str]:
    """The parts of the package that a file imports when it is itself imported."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module == "mini_triton":
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mini_triton."):
            found.add((node.module or "").split(".")[1])
    return found


@pytest.mark.parametrize("part", sorted(RANK))
def test_a_part_imports_nothing_from_above(part):
    files = (
        [ROOT / f"{part}.py"] if (ROOT / f"{part}.py").is_file() else (ROOT / part).rglob("*.py")
    )
    for path in files:
        above = {name for name in imported(path) if RANK[name] > RANK[part]}
        assert not above, f"{path.relative_to(ROOT)} imports {above}"


def test_every_part_has_its_layer():
    files = {path.stem for path in ROOT.glob("*.py")} - {"__init__"}
    assert files | {path.parent.name for path in ROOT.glob("*/__init__.py")} == set(RANK)
