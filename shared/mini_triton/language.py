"""`import mini_triton.language as tl`: Triton's own language, under the simulator's name."""

import sys

import triton.language

sys.modules[__name__] = triton.language
