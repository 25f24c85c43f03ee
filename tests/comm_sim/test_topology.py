"""Which ports a message passes, and what its way costs."""

import itertools

import pytest
from comm_sim import LinkSpec, hierarchical, ring, switch, torus

LINK = LinkSpec(alpha=1e-6, bw=1e9)
SLOW = LinkSpec(alpha=5e-6, bw=1e8)


def hops(topology, src, dst):
    return [tuple(map(int, port.split(" to "))) for port in topology.route(src, dst).ports]


def test_on_a_switch_every_message_passes_its_senders_and_its_receivers_port():
    topology = switch(4, LINK)
    assert topology.route(2, 0) == (("2 out", "0 in"), LINK.alpha, LINK.bw)
    assert not set(topology.route(0, 1).ports) & set(topology.route(1, 0).ports)  # full duplex
    assert not set(topology.route(0, 1).ports) & set(topology.route(2, 3).ports)


def test_a_ring_is_walked_the_shorter_way_round():
    topology = ring(6, LINK)
    assert hops(topology, 0, 1) == [(0, 1)]
    assert hops(topology, 0, 5) == [(0, 5)]
    assert hops(topology, 5, 1) == [(5, 0), (0, 1)]
    assert hops(topology, 1, 4) == [(1, 2), (2, 3), (3, 4)]  # as long as the other: upwards
    assert topology.route(5, 1).alpha == 2 * LINK.alpha
    assert topology.route(5, 1).bw == LINK.bw


def test_a_torus_is_walked_axis_by_axis():
    topology = torus((3, 4), LINK)  # device = 4·x + y
    assert topology.n == 12
    assert hops(topology, 0, 3) == [(0, 3)]
    assert hops(topology, 0, 8) == [(0, 8)]
    assert hops(topology, 1, 11) == [(1, 9), (9, 10), (10, 11)]
    assert topology.nodes == ((0, 1, 2, 3), (4, 5, 6, 7), (8, 9, 10, 11))


@pytest.mark.parametrize("shape", [(2, 3), (3, 4), (2, 2, 2), (3, 4, 5)])
def test_on_a_torus_every_device_is_reached_over_neighbours_in_the_fewest_hops(shape):
    topology = torus(shape, LINK)

    def coordinates(device):
        found = []
        for size in reversed(shape):
            found.append(device % size)
            device //= size
        return found[::-1]

    def distance(a, b):
        pairs = zip(shape, coordinates(a), coordinates(b), strict=True)
        return sum(min((x - y) % size, (y - x) % size) for size, x, y in pairs)

    for src in range(topology.n):
        for dst in set(range(topology.n)) - {src}:
            way = hops(topology, src, dst)
            assert len(way) == distance(src, dst)
            assert (way[0][0], way[-1][1]) == (src, dst)
            assert all(distance(a, b) == 1 for a, b in way)
            assert all(a[1] == b[0] for a, b in itertools.pairwise(way))


def test_nodes_have_a_switch_inside_and_a_card_for_each_gpu_between_them():
    topology = hierarchical(2, 4, LINK, SLOW)
    assert topology.n == 8
    assert topology.nodes == ((0, 1, 2, 3), (4, 5, 6, 7))
    assert topology.route(1, 3) == (("1 out", "3 in"), LINK.alpha, LINK.bw)
    assert topology.route(1, 6) == (("node 0 nic 1 out", "node 1 nic 2 in"), SLOW.alpha, SLOW.bw)


def test_cards_may_be_shared():
    topology = hierarchical(2, 4, LINK, SLOW, nics=2)
    cards = [topology.route(gpu, 4).ports[0] for gpu in range(4)]
    assert cards == ["node 0 nic 0 out"] * 2 + ["node 0 nic 1 out"] * 2


def test_only_a_switch_forms_sums():
    up, down = switch(4, LINK).switch_ports(2)
    assert (up, down) == ((("2 out",), LINK.alpha, LINK.bw), (("2 in",), LINK.alpha, LINK.bw))
    for topology in (ring(4, LINK), torus((2, 2), LINK), hierarchical(2, 2, LINK, SLOW)):
        with pytest.raises(ValueError, match="no one switch"):
            topology.switch_ports(0)


@pytest.mark.parametrize("topology", [switch(4, LINK), ring(4, LINK), torus((2, 2), LINK)])
def test_what_is_no_way_is_refused(topology):
    with pytest.raises(ValueError, match="device 1 sends to itself"):
        topology.route(1, 1)
    for src, dst in ((4, 0), (0, -1)):
        with pytest.raises(ValueError, match=r"there is no device .* has 0 to 3"):
            topology.route(src, dst)


@pytest.mark.parametrize("n", [0, -1, 2.0, True, "4"])
def test_sizes_are_positive_whole_numbers(n):
    for make in (switch, ring):
        with pytest.raises(ValueError, match=r"n is .*whole number, 1 or more"):
            make(n, LINK)
    with pytest.raises(ValueError, match="axis 1 of the torus is"):
        torus((2, n), LINK)
    with pytest.raises(ValueError, match="gpus_per_node is"):
        hierarchical(2, n, LINK, SLOW)


def test_shapes_and_cards_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="two or three axes"):
        torus((4,), LINK)
    with pytest.raises(ValueError, match="4 GPUs cannot share 3 network cards evenly"):
        hierarchical(2, 4, LINK, SLOW, nics=3)
