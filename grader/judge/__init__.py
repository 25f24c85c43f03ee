"""Grades a submission: its code in one process, tests, expected values and counters in another.

    supervisor   runs the tests in order and owns clock, memory limits and results (`Judge`)
    match        one test: its processes, and what is made of how they end
    workers      the student's processes of a test; `memory`, `printed`: what they hold and print
    child        the judge's child: the test, its verdict
    remote       the submission as the child's test sees it; executes and counts its launches
    remote_ranks the same on ranks, each in a process of its own, which `staff` asks for
    wire         what crosses between them: frames of plain data; `arguments`, `rank_wire`
    worker       the student's process; `rank_worker`: that of a rank
    zygote       what student processes are forked from
    isolation    how they are confined; `landlock`, `seccomp`

A submission is not believed about anything but bytes of data.
"""

import os

# Workers are forked, and a fork takes no threads along: with one thread, none is missed. Libraries
# read these when they load, so they are set before any module of this package imports one.
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")
