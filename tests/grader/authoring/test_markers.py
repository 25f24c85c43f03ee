import textwrap

import pytest

from grader.authoring.markers import AuthoringError, Block, find_blocks

WHOLE = '''\
"""A module."""


def f(x):
    """A docstring."""
    # BEGIN SOLUTION softmax 1: subtract the maximum;
    # exponentiate and divide
    # by the sum

    # a comment of the code
    y = x - x.max()
    return y
    # END SOLUTION


class C:
    @staticmethod
    def g(x):
        if x:
            # BEGIN SOLUTION softmax 2.1: return x
            return x
            # END SOLUTION
        return 0
'''


def find(source: str, **checks) -> list[Block]:
    return find_blocks(textwrap.dedent(source), "softmax.py", **checks)


def refusal(source: str, **checks) -> str:
    with pytest.raises(AuthoringError) as refused:
        find(source, **checks)
    message = str(refused.value)
    assert message.startswith(f"softmax.py, line {refused.value.line}: ")
    return message


def test_blocks_with_hint_extent_and_indentation() -> None:
    assert find(WHOLE) == [
        Block(
            assignment="softmax",
            task="1",
            hint="subtract the maximum; exponentiate and divide by the sum",
            begin=6,
            end=13,
            first=11,
            last=12,
            indent=4,
        ),
        Block("softmax", "2.1", "return x", begin=20, end=22, first=21, last=21, indent=12),
    ]


def test_without_markers_there_are_no_blocks() -> None:
    assert find("x = 1  # the BEGINning of a SOLUTION\n") == []
    assert find("solution = begin = 1\nBEGIN_SOLUTION = 2\n") == []


def body(*lines: str) -> str:
    return "def f(x):\n" + "".join(f"    {line}\n" for line in lines)


BEGIN = "# BEGIN SOLUTION softmax 1: hint"
END = "# END SOLUTION"


@pytest.mark.parametrize("end", ["    return x\n", "    return x\n    # END\n"])
def test_unclosed(end: str) -> None:
    message = refusal(f"def f(x):\n    {BEGIN}\n{end}")
    assert message.startswith("softmax.py, line 2: the block is never ended")


def test_nested() -> None:
    message = refusal(body(BEGIN, "x = 1", BEGIN, "x = 2", END, END))
    assert message.startswith("softmax.py, line 4: BEGIN within the block that begins in line 2")


def test_stray_end() -> None:
    message = refusal(body(BEGIN, "return x", END, END))
    assert message.startswith("softmax.py, line 5: END without a BEGIN")


@pytest.mark.parametrize(
    "marker",
    [
        "# BEGIN SOLUTION",
        "# BEGIN SOLUTION softmax 1",
        "# BEGIN SOLUTION softmax 1:",
        "# BEGIN SOLUTION softmax 1: ",
        "# BEGIN SOLUTION softmax: hint",
        "# BEGIN SOLUTION 1: hint",
        "# BEGIN SOLUTION Softmax 1: hint",
        "# BEGIN SOLUTION softmax one: hint",
        "# BEGIN SOLUTION softmax 1 : hint",
        "#BEGIN SOLUTION softmax 1: hint",
        "# BEGIN  SOLUTION softmax 1: hint",
        "# begin solution softmax 1: hint",
        "# BEGIN-SOLUTION softmax 1: hint",
        "## BEGIN SOLUTION softmax 1: hint",
        "# TODO BEGIN SOLUTION softmax 1: hint",
    ],
)
def test_malformed_begin(marker: str) -> None:
    message = refusal(body(marker, "return x", END))
    assert message.startswith(f"softmax.py, line 2: {marker!r} is not a marker; write")


@pytest.mark.parametrize(
    "marker", ["# END SOLUTION.", "#END SOLUTION", "# End solution", "# END SOLUTION 1"]
)
def test_malformed_end(marker: str) -> None:
    message = refusal(body(BEGIN, "return x", marker))
    assert message.startswith(f"softmax.py, line 4: {marker!r} is not a marker")


def test_unknown_task() -> None:
    message = refusal(
        body("# BEGIN SOLUTION softmax 3: hint", "return x", END), task_ids=("1", "2")
    )
    assert "line 2: there is no task '3' in the manifest, which has 1, 2" in message


def test_another_assignment() -> None:
    message = refusal(body(BEGIN, "return x", END), assignment="attention")
    assert "line 2: the marker is for 'softmax', but this is 'attention'" in message


def test_known_task_and_assignment() -> None:
    assert len(find(body(BEGIN, "return x", END), task_ids=("1",), assignment="softmax")) == 1


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ('"""Stubs stand between # BEGIN SOLUTION and # END SOLUTION."""\n', 1),
        ('"""Docs.\n\n# END SOLUTION\n"""\n', 3),
        ("x = 'begin solution'\n", 1),
        ("x = f'{1} END_SOLUTION'\n", 1),
        (f'def f(x):\n    """\n    {BEGIN}\n    """\n    return x\n    {END}\n', 3),
    ],
)
def test_markers_in_strings(source: str, line: int) -> None:
    message = refusal(source)
    assert message.startswith(f"softmax.py, line {line}: ")
    assert "is in a string" in message


def test_markers_in_prose() -> None:
    message = refusal("# What is between BEGIN SOLUTION and END SOLUTION is cut out.\n")
    assert "is not a marker" in message
    assert "speak of markers nowhere else" in message


@pytest.mark.parametrize("marker", [BEGIN, END])
def test_markers_behind_code(marker: str) -> None:
    message = refusal(body(f"x = 1  {marker}", "return x"))
    assert "line 2: a marker needs a line of its own" in message


@pytest.mark.parametrize("inside", [(), ("",), ("# just a comment",), ("# hint", "", "# comment")])
def test_empty(inside: tuple[str, ...]) -> None:
    message = refusal(body("y = 1", BEGIN, *inside, END, "return x"))
    assert message.startswith("softmax.py, line 3: the block is empty")


def test_indentation_of_begin_and_end_must_agree() -> None:
    message = refusal(body("if x:", f"    {BEGIN}", "    return x", END, "return 0"))
    assert "line 5: END is in column 5, but its BEGIN (line 3) in 9" in message


def test_indentation_must_be_that_of_the_code() -> None:
    message = refusal(body("if x:", BEGIN, "    return x", END, "return 0"))
    assert "line 3: the markers are in column 5, the code between them in 9" in message


@pytest.mark.parametrize(
    "lines",
    [
        (BEGIN, "if x:", END, "    return x"),
        (BEGIN, "if x:", "    y = 1", END, "else:", "    y = 2"),
        ("if x:", "    y = 1", BEGIN, "else:", "    y = 2", END),
        ("if x:", f"    {BEGIN}", "    y = 1", "else:", "    y = 2", f"    {END}"),
        ("if x:", f"    y = 0\n        {BEGIN}", "else:", "    y = 2", f"    {END}"),
        ("y = f(", f"    {BEGIN}", "    x,", f"    {END}", ")"),
        (BEGIN, "y = f(", END, "    x)"),
        ("y = (", BEGIN, "x)", "z = 1", END),
        ("try:", f"    {BEGIN}", "    y = 1", "except E:", "    y = 2", f"    {END}"),
        ("match x:", f"    {BEGIN}", "    case 1:", "        return 1", f"    {END}"),
        (BEGIN, "y = 1; z = (", END, "2)"),
        (BEGIN, "@decorated", END, "def g(): pass"),
    ],
)
def test_splitting_a_statement(lines: tuple[str, ...]) -> None:
    message = refusal(body(*lines))
    assert "the block splits the statement in lines" in message


@pytest.mark.parametrize(
    "lines",
    [
        ("if x:", f"    {BEGIN}", "    y = 1", f"    {END}", "else:", "    y = 2"),
        ("if x:", "    y = 1", "else:", f"    {BEGIN}", "    y = 2", f"    {END}"),
        ("try:", "    y = 1", "except E:", f"    {BEGIN}", "    y = 2", f"    {END}"),
        ("try:", "    y = 1", "finally:", f"    {BEGIN}", "    y = 2", f"    {END}"),
        ("match x:", "    case 1:", f"        {BEGIN}", "        return 1", f"        {END}"),
        ("for i in x:", f"    {BEGIN}", "    y = 2", f"    {END}", "else:", "    y = 3"),
        ("with x:", f"    {BEGIN}", "    y = 2", "", f"    {END}"),
        (BEGIN, "y = 1; z = 2", "if y:", "    z = (3,", "    )", END),
        (BEGIN, "@decorated", "def g():", "    pass", "return g", END),
    ],
)
def test_whole_statements_of_one_suite(lines: tuple[str, ...]) -> None:
    assert len(find(body(*lines))) == 1


def test_at_module_level() -> None:
    message = refusal(f"x = 1\n{BEGIN}\ndef f():\n    pass\n{END}\n")
    assert message.startswith("softmax.py, line 2: the block is at the module's top level")
    assert "mark the body of a function" in message


def test_within_an_if_at_module_level() -> None:
    message = refusal(f"if x:\n    {BEGIN}\n    y = 1\n    {END}\n")
    assert "at the module's top level" in message


def test_in_a_class_body() -> None:
    source = f"def f():\n    class C:\n        {BEGIN}\n        x = 1\n        {END}\n"
    assert "line 3: the block is at a class's body" in refusal(source)


def test_not_python() -> None:
    assert refusal("x = 1\ny = = 2\n").startswith("softmax.py, line 2: is not Python")
