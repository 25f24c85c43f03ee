"""What scripts print: headings, tables, what to see in them, and numbers with units.

    print_header("Bytes against N")
    print_table(["N", "moved"], [[512, fmt_bytes(2_200_000)]])
    print_observations(["Four times the bytes for **twice** the length."])

In a terminal it has colours and lines, and is as wide as that. In a pipe or a file it is plain
text: tables are Markdown's, and no line is broken, so that one can search and parse it.
"""

from console.printing import print_header, print_observations, print_table
from console.units import fmt_bytes, fmt_time

__all__ = ["fmt_bytes", "fmt_time", "print_header", "print_observations", "print_table"]
