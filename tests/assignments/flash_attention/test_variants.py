"""The variants: enough of them, of every file and every task, and each a program that compiles.

How each is judged is proved by `make check`, which grades them all; not once more here.
"""

import ast
import functools

import pytest

from grader.authoring import overlay
from tests.assignments.flash_attention.in_process import ASSIGNMENT

VARIANTS = overlay.variants(ASSIGNMENT)


@functools.cache
def applied(variant) -> tuple[str, dict[str, str]]:
    """The file that a variant changes, and the text of all."""
    return overlay.apply(ASSIGNMENT, variant)


def test_there_are_enough():
    wrong = [variant for variant in VARIANTS if not variant.right]
    assert len(wrong) >= 24
    assert len(VARIANTS) - len(wrong) >= 7
    assert {task for variant in wrong for task in variant.breaks} == set(ASSIGNMENT.task_ids)


@pytest.mark.parametrize("file", ASSIGNMENT.files)
def test_every_file_has_right_and_wrong_ones(file):
    of_file = [variant for variant in VARIANTS if applied(variant)[0] == file]
    assert {variant.right for variant in of_file} == {True, False}


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_is_a_program_of_its_own_file(variant):
    file, files = applied(variant)
    ast.parse(files[file])
    tasks = {task.id for task in ASSIGNMENT.tasks if ASSIGNMENT.file_of(task) == file}
    assert set(variant.breaks) <= tasks
