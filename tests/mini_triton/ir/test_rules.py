"""There is a rule for each operation that is executed. What the rules say: test_verify."""

from mini_triton.execute.prepare import HANDLER_MODULES
from mini_triton.execute.registry import FRAMED, LAZY, PURE
from mini_triton.ir.rules import RULES

#: `verify` itself looks at these: their rules are about regions and functions.
STRUCTURAL = {"scf.for", "scf.if", "scf.while", "tt.call", "tt.map_elementwise"}
#: The handler refuses all but a few texts.
BY_TEXT = {"tt.elementwise_inline_asm", "tt.extern_elementwise"}


def test_each_operation_has_a_rule():
    assert HANDLER_MODULES
    assert {*PURE, *LAZY, *FRAMED} - RULES.keys() <= STRUCTURAL | BY_TEXT
