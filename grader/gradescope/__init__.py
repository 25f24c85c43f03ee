"""The zip that Gradescope runs, and a rehearsal of how it will.

build       the zip: `setup.sh`, `run_autograder`, the packages, one assignment with hidden tests
check       unpacks the zip as `/autograder`, installs it, grades four submissions and compares
rehearsal   the folders, environment and processes of a container, as far as one can go without one
submissions what is handed in then, and which results it must have
borrowed    the packages of an environment that is there, where installing would take too long
meter       wall time, CPU time and memory of a process with all its descendants
box         half a core and 0.75 GB, by control groups
templates/  the scripts, as they are put into the zip
"""
