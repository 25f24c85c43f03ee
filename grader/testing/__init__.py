"""What the test files of an assignment import.

from grader.testing import AssignmentTestCase, Budget
"""

from grader.testing.budget import Budget
from grader.testing.case import AssignmentTestCase
from grader.testing.problems import NotStarted, StudentProblem
from grader.testing.ranks import COMM, Kept, Ranks, RanksCall
from grader.testing.record import Record
from grader.testing.student import Call, Launches, Student

__all__ = [
    "COMM",
    "AssignmentTestCase",
    "Budget",
    "Call",
    "Kept",
    "Launches",
    "NotStarted",
    "Ranks",
    "RanksCall",
    "Record",
    "Student",
    "StudentProblem",
]
