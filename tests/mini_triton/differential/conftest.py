"""One interpreter and one folder of generated sources for all of these tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.mini_triton.differential.interpreter import Interpreter
from tests.mini_triton.differential.programs import Runner


@pytest.fixture(scope="session")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    interpreter = Interpreter()
    yield Runner(tmp_path_factory.mktemp("programs"), interpreter)
    interpreter.close()
