"""For those who write assignments: everything that is derived from a solution.

markers     finds the blocks of a solution that students are to write
starter     makes the starter: each block becomes a stub
overlay     makes the right and wrong variants that prove the tests
"""

from grader.authoring.markers import AuthoringError

__all__ = ["AuthoringError"]
