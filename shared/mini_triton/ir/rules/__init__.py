"""What operands, attributes and results of each operation must be: `RULES[name](op)`.

The rules are those of Triton's and MLIR's own verifiers, which a program made by Triton's front end
has passed. A forged one has not; and the handlers that execute an operation rely on them.
"""

from mini_triton.ir.rules.arithmetic import ARITHMETIC
from mini_triton.ir.rules.checking import Rule
from mini_triton.ir.rules.combining import COMBINING
from mini_triton.ir.rules.memory import MEMORY
from mini_triton.ir.rules.programs import PROGRAMS
from mini_triton.ir.rules.shapes import SHAPES

RULES: dict[str, Rule] = {**ARITHMETIC, **SHAPES, **MEMORY, **COMBINING, **PROGRAMS}
