"""A graph laid out in layers: every edge leads downward, few of them cross, and each node stands below its neighbours.

The four steps are those of Sugiyama, Tagawa and Toda (1981): layers, a stand-in wherever an edge passes through a
layer, an order within each layer, and places from left to right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from statistics import fmean, median

__all__ = ["Layout", "lay_out"]

SWEEPS = 12
PASSING = 22.0


@dataclass(frozen=True)
class Layout:
    """`places` has the layer and the centre of every node, `routes` the same for all that each edge goes through.

    `size` is how wide a node may be, the space beside it included.
    """

    places: list[tuple[int, float]]
    routes: list[list[tuple[int, float]]]
    size: float

    @property
    def layers(self) -> int:
        return 1 + max(layer for layer, _ in self.places)


def lay_out(nodes: int, edges: Sequence[tuple[int, int]], room: float, largest: float) -> Layout:
    """Places within `room` for nodes 0 to nodes-1. Node 0 reaches all others, and edges form no ring."""
    layer = layers_of(nodes, edges)
    routes = []
    for source, target in edges:
        passing = range(len(layer), len(layer) + layer[target] - layer[source] - 1)
        layer += [layer[source] + 1 + n for n in range(len(passing))]
        routes.append([source, *passing, target])
    steps = [step for route in routes for step in pairwise(route)]
    rows = ordered(layer, steps)
    size = min(largest, *(fair_share(row, nodes, room) for row in rows))
    width = [size if n < nodes else PASSING for n in range(len(layer))]
    x = placed(rows, steps, width, room)
    at = list(zip(layer, x, strict=True))
    return Layout(at[:nodes], [[at[n] for n in route] for route in routes], size)


def fair_share(row: Sequence[int], nodes: int, room: float) -> float:
    """How wide each node of a layer can be beside the edges that pass through."""
    standing = sum(n < nodes for n in row)
    return (room - PASSING * (len(row) - standing)) / max(standing, 1)


def layers_of(nodes: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """The longest way to each node from node 0."""
    layer = [0] * nodes
    # A longest way has fewer edges than there are nodes.
    for _ in range(nodes):
        before = list(layer)
        for source, target in edges:
            layer[target] = max(layer[target], layer[source] + 1)
        if layer == before:
            break
    return layer


def neighbours(count: int, steps: Sequence[tuple[int, int]]) -> tuple[list[list[int]], list[list[int]]]:
    """For every item those above and those below it."""
    above, below = [[[] for _ in range(count)] for _ in range(2)]
    for upper, lower in steps:
        above[lower].append(upper)
        below[upper].append(lower)
    return above, below


def ordered(layer: Sequence[int], steps: Sequence[tuple[int, int]]) -> list[list[int]]:
    """The layers in the order with the fewest crossings that sweeps down and up by medians have come upon."""
    rows: list[list[int]] = [[] for _ in range(max(layer) + 1)]
    for item, n in enumerate(layer):
        rows[n].append(item)
    above, below = neighbours(len(layer), steps)
    best, fewest = [list(row) for row in rows], crossings(rows, steps)
    for sweep in range(SWEEPS):
        side, walk = (above, rows) if sweep % 2 == 0 else (below, rows[::-1])
        place = {item: n for row in rows for n, item in enumerate(row)}
        for row in walk:
            row.sort(key=lambda item: median(place[n] for n in side[item]) if side[item] else place[item])
            place |= {item: n for n, item in enumerate(row)}
        if crossings(rows, steps) < fewest:
            best, fewest = [list(row) for row in rows], crossings(rows, steps)
    return best


def crossings(rows: Sequence[Sequence[int]], steps: Sequence[tuple[int, int]]) -> int:
    place = {item: (n, i) for n, row in enumerate(rows) for i, item in enumerate(row)}
    ends = [(*place[upper], place[lower][1]) for upper, lower in steps]
    return sum(a[0] == b[0] and (a[1] - b[1]) * (a[2] - b[2]) < 0 for a, b in combinations(ends, 2))


def placed(
    rows: Sequence[Sequence[int]], steps: Sequence[tuple[int, int]], width: Sequence[float], room: float
) -> list[float]:
    """Centres from left to right: each item as near to the middle of its neighbours as the order allows."""
    x = [room / 2] * len(width)
    above, below = neighbours(len(width), steps)
    # Down, up, down ...; the last ones look both ways.
    for sides in [(above,), (below,)] * 3 + [(above, below)] * 4:
        for row in rows if sides[0] is above else rows[::-1]:
            wanted = [fmean(near) if (near := [x[n] for side in sides for n in side[i]]) else x[i] for i in row]
            for item, centre in zip(row, spaced(wanted, [width[i] for i in row], room), strict=True):
                x[item] = centre
    half = [w / 2 for w in width]
    left = min(centre - side for centre, side in zip(x, half, strict=True))
    right = max(centre + side for centre, side in zip(x, half, strict=True))
    return [centre + (room - left - right) / 2 for centre in x]


def spaced(wanted: Sequence[float], widths: Sequence[float], room: float) -> list[float]:
    """The centres in this order without overlap, nearest to the wanted ones in the sense of least squares."""
    packed, end = [], 0.0
    for width in widths:
        packed.append(end + width / 2)
        end += width
    # Without the widths the centres have only to grow: neighbours that do not are pooled at their mean.
    pools: list[list[float]] = []
    for want, left in zip(wanted, packed, strict=True):
        pools.append([want - left])
        while len(pools) > 1 and fmean(pools[-2]) > fmean(pools[-1]):
            pools[-2:] = [pools[-2] + pools[-1]]
    shifts = [min(max(fmean(pool), 0.0), max(room - end, 0.0)) for pool in pools for _ in pool]
    return [left + shift for left, shift in zip(packed, shifts, strict=True)]
