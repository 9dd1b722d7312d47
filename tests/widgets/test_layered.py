"""The layout of a graph: downward, without overlap, within the room, and with few crossings."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from gradwright.widgets.layered import crossings, lay_out, layers_of, ordered, spaced

ROOM, LARGEST = 760.0, 178.0


def random_graph(seed: int) -> tuple[int, list[tuple[int, int]]]:
    """Every node but the first hangs below some earlier one; a few more edges, some of them twice."""
    rng = random.Random(seed)
    nodes = rng.randint(2, 25)
    edges = [(rng.randrange(max(0, n - 4), n), n) for n in range(1, nodes)]
    edges += [tuple(sorted(rng.sample(range(nodes), 2))) for _ in range(rng.randint(0, 8))]
    return nodes, edges + edges[:2]


@pytest.mark.parametrize("seed", range(40))
def test_nodes_of_a_layer_stand_apart_and_within_the_room(seed: int) -> None:
    nodes, edges = random_graph(seed)
    layout = lay_out(nodes, edges, ROOM, LARGEST)
    for layer in range(layout.layers):
        row = sorted(x for n, x in layout.places if n == layer)
        assert all(right - left >= layout.size - 1e-6 for left, right in pairwise(row))
        assert row[0] - layout.size / 2 > -1e-6 and row[-1] + layout.size / 2 < ROOM + 1e-6


@pytest.mark.parametrize("seed", range(40))
def test_every_edge_goes_down_one_layer_at_a_time_from_its_source_to_its_target(seed: int) -> None:
    nodes, edges = random_graph(seed)
    layout = lay_out(nodes, edges, ROOM, LARGEST)
    for (source, target), route in zip(edges, layout.routes, strict=True):
        assert (route[0], route[-1]) == (layout.places[source], layout.places[target])
        assert [layer for layer, _ in route] == list(range(route[0][0], route[-1][0] + 1))


def test_a_layer_is_the_longest_way_from_the_result() -> None:
    assert layers_of(5, [(0, 1), (1, 2), (0, 2), (2, 3), (0, 4)]) == [0, 1, 2, 3, 1]


def test_two_crossed_pairs_are_uncrossed() -> None:
    layer, steps = [0, 1, 1, 2, 2], [(0, 1), (0, 2), (1, 4), (2, 3)]
    assert crossings([[0], [1, 2], [3, 4]], steps) == 1
    assert crossings(ordered(layer, steps), steps) == 0


def test_a_chain_is_one_straight_line() -> None:
    layout = lay_out(6, [(n, n + 1) for n in range(5)], ROOM, LARGEST)
    assert layout.places == [(n, ROOM / 2) for n in range(6)]


@pytest.mark.parametrize(
    ("wanted", "centres"),
    [
        ([50.0, 200.0], [50.0, 200.0]),
        ([100.0, 100.0], [90.0, 110.0]),
        ([-40.0, 0.0], [10.0, 30.0]),
        ([500.0, 500.0, 500.0], [350.0, 370.0, 390.0]),
        ([200.0, 100.0, 300.0], [140.0, 160.0, 300.0]),
    ],
)
def test_centres_are_the_nearest_to_the_wanted_ones_without_overlap(wanted: list[float], centres: list[float]) -> None:
    assert spaced(wanted, [20.0] * len(wanted), 400.0) == pytest.approx(centres)
