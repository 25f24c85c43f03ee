"""Every wrong variant loses points at exactly the tasks it breaks; every right one loses none.

Here in one process, where a failure shows at once; `make check` proves the same through the grader.
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
    lost = [outcome for outcome in run(tmp_path) if outcome.verdict != "passed"]
    explained = "\n\n".join(f"{outcome.number} {outcome.text}" for outcome in lost)
    assert {outcome.task for outcome in lost} == set(variant.breaks), explained
