"""Takes the declared files out of whatever a student handed in.

    submission = read(path, manifest.load("rmsnorm"), into)

`path` is a folder, a zip, a Python file or a notebook. `into` then holds the declared files, in
UTF-8 with `\\n` line ends, and nothing else. Notes say what was changed or assumed, problems what
keeps a file from being graded. Nothing in a submission is run, followed or extracted.
"""

from grader.submission.read import read
from grader.submission.result import Limits, Problem, Submission

__all__ = ["Limits", "Problem", "Submission", "read"]
