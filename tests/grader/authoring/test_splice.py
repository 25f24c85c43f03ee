import textwrap

import pytest

from grader.authoring.markers import AuthoringError
from grader.authoring.splice import overlay

SOLUTION = '''\
"""Softmax."""

import torch
import triton

BLOCK = 128
LOW, HIGH = 0, 1


# The kernel.
@triton.jit
@twice
def kernel(x):
    """Docs."""
    # BEGIN SOLUTION softmax 1: one
    return 1
    # END SOLUTION


def softmax(x):
    return kernel(x)  # launched


class Softmax:
    def f(self):
        return 1


TAIL = 1
'''


def spliced(variant: str, solution: str = SOLUTION) -> str:
    return overlay(solution, textwrap.dedent(variant), "softmax.py", "wrong_x.py")


def refusal(variant: str, solution: str = SOLUTION) -> str:
    with pytest.raises(AuthoringError) as refused:
        spliced(variant, solution)
    message = str(refused.value)
    assert message.startswith("wrong_x.py, line ")
    return message


def test_a_function_is_replaced_with_its_decorators_and_nothing_else_changes() -> None:
    made = spliced(
        '''\
        """Says."""

        import triton


        @triton.jit
        def kernel(x):
            return 2  # wrong
        '''
    )
    old = SOLUTION[SOLUTION.index("@triton.jit") : SOLUTION.index("\n\n\ndef softmax")]
    assert made == SOLUTION.replace(old, "@triton.jit\ndef kernel(x):\n    return 2  # wrong")


def test_the_solutions_markers_go_with_what_is_replaced() -> None:
    assert "SOLUTION" not in spliced("def kernel(x):\n    return 2\n")


def test_a_class_and_an_assignment() -> None:
    made = spliced("class Softmax:\n    pass\n\n\nBLOCK = 64  # less\n")
    assert "BLOCK = 64  # less\nLOW, HIGH = 0, 1\n" in made
    assert "class Softmax:\n    pass\n\n\nTAIL = 1\n" in made
    assert "BLOCK = 128" not in made
    assert "def f(self)" not in made


def test_an_annotated_assignment_and_several_names() -> None:
    made = spliced("BLOCK: int = 64\nLOW, HIGH = 2, 3\n")
    assert "BLOCK: int = 64\nLOW, HIGH = 2, 3\n\n\n# The kernel." in made


def test_an_async_function_and_the_last_definition() -> None:
    made = spliced("async def softmax(x):\n    pass\nTAIL = 2")
    assert "async def softmax(x):\n    pass\n\n\nclass Softmax" in made
    assert made.endswith("\n\n\nTAIL = 2\n")


def test_new_definitions_come_before_the_first_replaced_in_their_order() -> None:
    made = spliced(
        """\
        SCALE = 2


        def softmax(x):
            return helper(x)


        @triton.jit
        def helper(x):
            return SCALE


        class Softmax:
            pass
        """
    )
    assert (
        "SCALE = 2\n\n\n@triton.jit\ndef helper(x):\n    return SCALE\n\n\n"
        "def softmax(x):\n    return helper(x)\n\n\nclass Softmax:\n    pass\n" in made
    )
    compile(made, "made", "exec")


def test_new_imports_come_behind_the_solutions() -> None:
    made = spliced(
        "import math\nimport torch\nfrom os import path, sep as s\n\n\ndef softmax(x):\n    pass\n"
    )
    assert made.startswith(
        '"""Softmax."""\n\nimport torch\nimport triton\nimport math\nfrom os import path\n'
        "from os import sep as s\n\nBLOCK = 128\n"
    )


def test_imports_where_the_solution_has_none() -> None:
    made = spliced("import math\ndef f():\n    pass\n", '"""Docs."""\n\n\ndef f():\n    return 1\n')
    assert made == '"""Docs."""\nimport math\n\n\ndef f():\n    pass\n'


def test_an_import_directly_before_what_is_replaced() -> None:
    made = spliced("import math\nx = 2\nnew = 3\n", "import os\nx = 1\n")
    assert made == "import os\nimport math\nnew = 3\n\n\nx = 2\n"


def test_an_import_of_another_thing_by_the_same_name() -> None:
    message = refusal("import numpy as torch\ndef softmax(x):\n    pass\n")
    assert "line 1: imports 'torch' by `import numpy as torch`" in message
    assert "softmax.py by `import torch`" in message


def test_a_future_import() -> None:
    message = refusal("from __future__ import annotations\ndef softmax(x):\n    pass\n")
    assert "holds for a whole file" in message


def test_an_import_behind_what_is_replaced() -> None:
    assert "has an import behind" in refusal("x = 2\n", "x = 1\nimport os\n")


@pytest.mark.parametrize(
    "variant", ['"""Says."""\n', "def sotfmax(x):\n    pass\n", "import math\n"]
)
def test_a_variant_that_replaces_nothing(variant: str) -> None:
    message = refusal(variant)
    assert "line 1: replaces nothing of softmax.py, which has BLOCK, HIGH, LOW, Softmax" in message


def test_a_variant_that_replaces_by_the_same() -> None:
    """Comments, docstrings and layout make no difference."""
    message = refusal("def softmax(x):\n    '''Docs.'''\n    return kernel(\n        x)  # why\n")
    assert "replaces definitions just by the same ones" in message


def test_one_real_difference_is_enough() -> None:
    assert "TAIL = 2" in spliced("def softmax(x):\n    return kernel(x)\n\n\nTAIL = 2\n")


def test_a_name_of_several() -> None:
    message = refusal("def softmax(x):\n    pass\n\n\nLOW = 3\n")
    assert "line 5: 'LOW' is assigned together with other names in softmax.py" in message


def test_a_name_defined_twice() -> None:
    assert "line 3: 'softmax' is defined twice" in refusal(
        "def softmax(x):\n    pass\ndef softmax(x):\n    return 1\n"
    )


@pytest.mark.parametrize(
    "line", ["print(1)", "x[0] = 1", "BLOCK += 1", "if 1:\n    y = 2", "del BLOCK", "'a string'"]
)
def test_anything_else_at_top_level(line: str) -> None:
    message = refusal(f"def softmax(x):\n    pass\n\n\n{line}\n")
    assert "line 5: is neither an import nor the definition" in message


def test_a_variant_that_is_not_python() -> None:
    assert "line 2: is not Python" in refusal("x = 1\ny = = 2\n")


def test_a_solution_that_is_not_python() -> None:
    with pytest.raises(AuthoringError, match=r"^softmax\.py, line 1: is not Python"):
        overlay("x = = 1", "x = 2", "softmax.py")
