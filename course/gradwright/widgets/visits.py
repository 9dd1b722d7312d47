"""The visit counter: a chain of diamonds walked back by plain recursion and in topological order, visit by visit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import ClassVar

from .controls import Count, Steps
from .frame import Frame
from .pictures import Drawing

__all__ = ["VisitCounter"]

DEEPEST = 8
CELL = 31.0
HIGH = 106.0
PLOT = 150.0


class VisitCounter(Frame):
    """How often each node of a chain of diamonds is visited, along every path and once each."""

    title = "Visit counter"
    caption = (
        "Choose a preset or set the number of diamonds, then walk back from the result on the left with the slider or "
        "the buttons. Both walks go forward together, one visit a step; the number on a node is how often it has been "
        "visited. Watch what one more diamond does to the number of visits: recursion makes twice as many, topological "
        "order 3 more."
    )
    controls = (Count("diamonds", "Diamonds", 2, 1, DEEPEST), Steps("visit", "Visit", 0))
    presets: ClassVar = {
        "one diamond": {"diamonds": 1},
        "three diamonds": {"diamonds": 3},
        "eight diamonds": {"diamonds": 8},
    }

    def picture(self, *, diamonds: int, visit: int) -> Drawing:
        """A `visit` past the end is the last one; visit 0 is the first, that of the result."""
        visit = max(min(visit, paths(diamonds) - 1), 0)
        return draw(Race(diamonds, visit))


def paths(diamonds: int) -> int:
    """The visits that recursion makes: one for every path from the result to any node."""
    return 2 ** (diamonds + 2) - 3


def nodes(diamonds: int) -> int:
    """The visits in topological order. Node 0 is the result; 3k+1 and 3k+2 lie side by side, and 3k+3 behind them."""
    return 3 * diamonds + 1


def targets(node: int, diamonds: int) -> tuple[int, ...]:
    if node % 3:
        return (node + 3 - node % 3,)
    return (node + 1, node + 2) if node < 3 * diamonds else ()


def along_every_path(diamonds: int) -> Iterator[tuple[int, ...]]:
    """For each visit of the recursion the path that led to it, which is also the stack of unfinished calls."""
    waiting = [(0,)]
    while waiting:
        path = waiting.pop()
        yield path
        waiting += [(*path, target) for target in reversed(targets(path[-1], diamonds))]


@lru_cache(maxsize=DEEPEST + 1)
def recursion(diamonds: int) -> Sequence[tuple[int, ...]]:
    return tuple(along_every_path(diamonds))


@dataclass(frozen=True)
class Race:
    """Both walks at one visit."""

    diamonds: int
    visit: int

    @cached_property
    def path(self) -> tuple[int, ...]:
        return recursion(self.diamonds)[self.visit]

    @cached_property
    def recursive(self) -> Counter[int]:
        return Counter(path[-1] for path in recursion(self.diamonds)[: self.visit + 1])

    @cached_property
    def ordered(self) -> Counter[int]:
        return Counter(range(min(self.visit + 1, nodes(self.diamonds))))

    @property
    def told(self) -> tuple[str, str]:
        """A sentence on each walk."""
        every, once, at = paths(self.diamonds), nodes(self.diamonds), self.visit + 1
        calls = "call is" if len(self.path) == 1 else "calls are"
        first = f"visit {at} of {every}. This node has been visited {times(self.recursive[self.path[-1]])}, "
        first += f"and {len(self.path)} {calls} open."
        return first, f"visit {at} of {once}." if at <= once else f"done after {once} visits, each node once."


def times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def draw(race: Race) -> Drawing:
    drawing = Drawing()
    first, second = race.told
    drawing.steps = paths(race.diamonds)
    count = f"{race.diamonds} diamond{'' if race.diamonds == 1 else 's'}"
    drawing.alt = f"A chain of {count}, {nodes(race.diamonds)} nodes. Recursion along every path: {first} "
    drawing.alt += f"Topological order: {second} {farther()}"
    draw_walk(drawing, race, 16, "Recursion along every path", first, race.recursive, race.path)
    order = (race.visit,) if race.visit < nodes(race.diamonds) else ()
    draw_walk(drawing, race, 34 + HIGH + 40, "Topological order", second, race.ordered, order)
    draw_plot(drawing, race, 2 * HIGH + 130)
    return drawing


def farther() -> str:
    return f"With 20 diamonds it would be {paths(20):,} visits against {nodes(20)}."


def draw_walk(
    drawing: Drawing, race: Race, top: float, name: str, told: str, counts: Counter[int], path: Sequence[int]
) -> None:
    """One chain: the counts on its nodes, and the path to the node at hand in thick lines."""
    drawing.words(0, top, f"{name}: {told}", bold=True)
    # The last node in thick lines is drawn after its neighbours.
    for source in range(nodes(race.diamonds)):
        for target in targets(source, race.diamonds):
            walked = (source, target) in pairwise(path)
            ends = place(race, source, top, CELL), place(race, target, top, 0)
            drawing.line(ends, "strong" if walked else "line", 3 if walked else 1, head=True)
    for node in sorted(range(nodes(race.diamonds)), key=lambda node: node in path[-1:]):
        x, y = place(race, node, top, 0)
        look = "current" if node in path[-1:] else "done" if counts[node] else "empty"
        drawing.box(x, y - CELL / 2, CELL, CELL, counts[node], look, 12)


def place(race: Race, node: int, top: float, shift: float) -> tuple[float, float]:
    """The middle of a node's left side, or of what is `shift` to the right of it."""
    column, side = divmod(node, 3)
    step = min(150.0, 716 / race.diamonds)
    x, y = 4 + step * (column + (side > 0) / 2) + shift, top + 14 + HIGH / 2
    return x, y + (0, -33, 33)[side]


def draw_plot(drawing: Drawing, race: Race, top: float) -> None:
    """Visits over the number of diamonds for both walks, with the chain at hand marked."""
    left, width, most = 62.0, 330.0, paths(DEEPEST)
    bottom = top + 18 + PLOT
    drawing.words(0, top, "Visits over the number of diamonds", bold=True)
    drawing.line([(left, top + 18), (left, bottom), (left + width, bottom)], "line", 1)
    for visits in (0, 250, 500, 750, 1000):
        y = bottom - PLOT * visits / most
        drawing.line([(left - 4, y), (left, y)], "line", 1)
        drawing.words(left - 8, y + 4, f"{visits:,}", "soft", 11, "end")
    for number in range(DEEPEST + 1):
        drawing.words(left + width * number / DEEPEST, bottom + 16, str(number), "soft", 11, "middle")
    beside = left + width + 24
    for count, ink, name, y in ((paths, "orange", "recursion", 44), (nodes, "blue", "topological order", 96)):
        points = [(left + width * n / DEEPEST, bottom - PLOT * count(n) / most) for n in range(DEEPEST + 1)]
        drawing.line(points, ink, 2.5, dashed=count is nodes)
        x, height = points[race.diamonds]
        drawing.box(x - 5, height - 5, 10, 10, "", "current")
        drawing.line([(beside, top + y - 4), (beside + 26, top + y - 4)], ink, 2.5, dashed=count is nodes)
        rule = "2ⁿ⁺² − 3" if count is paths else "3n + 1"
        drawing.words(beside + 34, top + y, f"{name}: {rule}", "strong", 13)
        drawing.words(beside + 34, top + y + 18, f"{count(race.diamonds):,} for n = {race.diamonds}", "soft", 12)
    drawing.words(beside, top + 152, farther(), "soft", 11)
    drawing.height = bottom + 24
