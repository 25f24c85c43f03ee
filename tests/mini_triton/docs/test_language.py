"""docs/language.md is what the code generates, and leaves out nothing that the front end has."""

from pathlib import Path

import pytest
import triton
from mini_triton.docs import language
from mini_triton.docs.language_table import GROUPS, PARTS

PAGE = Path(__file__).parents[3] / "docs" / "language.md"
PINNED = "3.7.1"

needs_pinned = pytest.mark.skipif(
    triton.__version__ != PINNED, reason=f"the page is about Triton {PINNED}"
)


@needs_pinned
def test_the_page_is_what_the_code_generates():
    assert PAGE.read_text() == language.page(), "run: python -m mini_triton.docs > docs/language.md"


@needs_pinned
def test_every_method_of_the_builder_has_one_entry():
    named = [name for entries in GROUPS.values() for entry in entries for name in entry.builder]
    assert len(named) == len(set(named))
    assert set(named) == set(language.methods())
    assert not PARTS & set(named)


def test_an_operation_that_nothing_executes_is_no_entry():
    with pytest.raises(KeyError, match=r"tt\.dream"):
        language._file("tt.dream")


def test_a_row_names_the_file_that_executes_it():
    rows = language.page().splitlines()
    (row,) = (row for row in rows if row.startswith("| `histogram` |"))
    assert "`operations/histogram.py`" in row
    (row,) = (row for row in rows if "`make_block_ptr`" in row)
    assert "written out as pointers" in row
