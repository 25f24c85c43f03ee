"""Random programs that are well formed: only clear errors, and no memory but the tensors'."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mini_triton import BadProgram

from tests.mini_triton.hostile.guarded import Tensor, run
from tests.mini_triton.hostile.programs import PARAMETERS, program
from tests.mini_triton.hostile.test_mutated import HUNT, hunting

ARGUMENTS = [*(Tensor((size,), element) for element, size in PARAMETERS), 5, 0.5]


@settings(hunting, max_examples=HUNT or 40)
@given(seed=st.integers(0, 2**40))
@pytest.mark.timeout(36_000 if HUNT else 60)
def test_generated(seed):
    error = run(program(seed), ARGUMENTS)
    assert not isinstance(error, BadProgram), error
