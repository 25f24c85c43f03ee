"""What tests of collectives share."""

import math

import numpy as np
from comm_sim import Comm, LinkSpec, switch

LINK = LinkSpec(alpha=3e-6, bw=2e9)
SLOW = LinkSpec(alpha=11e-6, bw=1e8)


def idle(n, link=LINK):
    """n ranks on a switch that is idle."""
    return Comm(switch(n, link))


def numbers(n, length, dtype=np.float64, seed=0):
    """For each of n ranks an array of random numbers."""
    generator = np.random.default_rng(seed)
    return [(100 * generator.standard_normal(length)).astype(dtype) for _ in range(n)]


def same(seconds, expected):
    """Whether two times are equal but for rounding."""
    return math.isclose(seconds, expected, rel_tol=1e-12, abs_tol=1e-18)


def bits(array):
    """The bytes of an array: NaNs are equal if their bits are."""
    return array.dtype.str, array.tobytes()
