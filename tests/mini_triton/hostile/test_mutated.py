"""Mutated programs of real kernels: only clear errors, and no memory but the tensors'.

    BYTEWISE_HUNT=20000 python -m pytest tests/mini_triton/hostile

tries so many programs in another order each time.
"""

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.mini_triton.hostile.guarded import run
from tests.mini_triton.hostile.mutations import choices, mutated
from tests.mini_triton.hostile.seeds import seeds

HUNT = int(os.environ.get("BYTEWISE_HUNT", "0"))
hunting = settings(
    max_examples=HUNT or 10,
    derandomize=not HUNT,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize("number", range(len(seeds())))
def test_as_they_are(number):
    """They run, or end with the budget: what is mutated is no text that fails anyway."""
    seed = seeds()[number]
    error = run(seed.ttir, list(seed.arguments))
    assert error is None or "operations" in str(error), error


@pytest.mark.parametrize("number", range(len(seeds())))
@hunting
@given(changes=st.lists(choices, min_size=1, max_size=4))
@pytest.mark.timeout(3600 if HUNT else 60)
def test_mutated(number, changes):
    seed = seeds()[number]
    ttir = seed.ttir
    for change in changes:
        ttir = mutated(ttir, change)
    run(ttir, list(seed.arguments))
