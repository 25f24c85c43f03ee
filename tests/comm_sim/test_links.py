"""A link's time, its two regimes, and what is refused."""

import math

import comm_sim
import pytest
from comm_sim import LinkSpec


def test_a_message_takes_alpha_and_its_bytes_over_the_bandwidth():
    link = LinkSpec(alpha=2e-6, bw=1e9)
    assert link.time(0) == 2e-6
    assert link.time(1000) == pytest.approx(3e-6, rel=1e-15)


def test_half_of_the_bandwidth_is_reached_where_both_terms_are_equal():
    link = LinkSpec(alpha=2e-6, bw=1e9)
    assert link.half_size == 2000
    assert link.half_size / link.time(link.half_size) == pytest.approx(link.bw / 2)


def test_latency_alone_and_bandwidth_alone_are_links_too():
    assert LinkSpec(0, 1e9).time(500) == 500 / 1e9
    assert LinkSpec(1e-6, math.inf).time(1e12) == 1e-6


@pytest.mark.parametrize("alpha", [-1e-9, math.nan, math.inf])
def test_a_latency_out_of_range_is_refused(alpha):
    with pytest.raises(ValueError, match="alpha is"):
        LinkSpec(alpha, 1e9)


@pytest.mark.parametrize("bw", [0, -1.0, math.nan])
def test_a_bandwidth_out_of_range_is_refused(bw):
    with pytest.raises(ValueError, match="bw is"):
        LinkSpec(1e-6, bw)


@pytest.mark.parametrize(
    ("name", "gb_per_s"),
    [
        ("NVLINK3", 600 / 2),
        ("NVLINK4", 900 / 2),
        ("NVLINK5", 1800 / 2),
        ("PCIE5", 16 * 32 / 8 * 128 / 130),
        ("IB_HDR", 200 / 8),
        ("IB_NDR", 400 / 8),
        ("ICI_V5E", 400 / 4 / 2),  # of a chip in both directions, over its four links
        ("ICI_V5P", 1200 / 6 / 2),  # six links
    ],
)
def test_presets_are_one_direction_of_what_vendors_say(name, gb_per_s):
    link = getattr(comm_sim, name)
    assert link.bw / 1e9 == pytest.approx(gb_per_s, rel=2e-3)
    assert 1e-7 < link.alpha < 1e-5
