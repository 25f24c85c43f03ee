"""Large tiles come from the heap, whose pages stay, not from the system."""

import subprocess
import sys

from mini_triton.execute import pages

_PROGRAM = """
import runpy, sys
from pathlib import Path
import torch

runpy.run_path(sys.argv[1])["keep_pages"]()
tile = torch.empty(6 << 20)  # 24 MiB
heap = next(line for line in Path("/proc/self/maps").read_text().splitlines() if "[heap]" in line)
first, last = (int(end, 16) for end in heap.split()[0].split("-"))
print(first <= tile.data_ptr() < last)
"""


def test_a_tile_comes_from_the_heap():
    found = subprocess.run(
        [sys.executable, "-c", _PROGRAM, pages.__file__], capture_output=True, text=True, check=True
    ).stdout
    assert found == "True\n"
