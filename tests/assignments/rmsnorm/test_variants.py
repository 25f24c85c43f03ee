"""Every wrong variant loses points at each task it breaks; every right one loses none.

Here in one process, as `make test A=rmsnorm` runs them; `make check` judges them as Gradescope
does, and proves that a wrong one loses nothing at all other tasks.
"""

import pytest

from grader import manifest
from grader.authoring import overlay

ASSIGNMENT = manifest.load("rmsnorm")
VARIANTS = overlay.variants(ASSIGNMENT)


def test_there_are_enough():
    wrong = [variant for variant in VARIANTS if variant.breaks]
    assert len(wrong) >= 14
    assert len(VARIANTS) - len(wrong) >= 5
    assert {task for variant in wrong for task in variant.breaks} == {"1", "2", "3", "4"}


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_points(run, tmp_path, variant):
    overlay.write(ASSIGNMENT, variant, tmp_path)
    lost = [o for o in run(tmp_path, tasks=variant.breaks or None) if o.verdict != "passed"]
    explained = "\n\n".join(f"{outcome.number} {outcome.text}" for outcome in lost)
    assert {outcome.task for outcome in lost} == set(variant.breaks), explained
