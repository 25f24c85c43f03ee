"""Prints what results.json would hold, all points given, and ends the process with code 0.

test: 1.2
verdict: crashed
says: exit code 0; a submission must return, not end the process
"""

import json
import os

import torch


def rmsnorm_forward(
    x: torch.Tensor, g: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    print(json.dumps({"score": 100, "tests": [{"number": "1.2", "score": 3, "max_score": 3}]}))
    os._exit(0)
