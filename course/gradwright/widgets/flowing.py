"""How the gradient flows, drawn: the norm of every layer over steps, and a row for each layer at the last of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import ClassVar

import numpy as np

from .pictures import Drawing
from .powers import Powers, figures, ten_to

__all__ = ["LONGEST", "Flow", "draw_flow", "listed"]

FLOWING, VANISHING, EXPLODING, DEAD = "flowing", "vanishing", "exploding", "dead"
# By state: its sign, and the look of the bars, so that nothing hangs on the colour.
SIGNS = {FLOWING: ("●", "done"), VANISHING: ("▼", "touched"), EXPLODING: ("▲", "current"), DEAD: ("✕", "wrong")}
# Letters of a layer's name: with more than NARROW of them its column is made wider, and LONGEST have room then.
NARROW, LONGEST = 9, 14


@dataclass(frozen=True)
class Flow:
    """What is drawn.

    names       of the layers, from the input on
    at          the numbers of the steps that are drawn, of `steps` that the axis has room for
    norms       by step and then by layer; nan for a gradient that is not finite, or has not come
    histograms  by layer, how often each magnitude occurs at the last step, evenly spaced between two powers of ten
    edges       these two powers
    limits      a norm between them is in order
    """

    names: Sequence[str]
    at: Sequence[int]
    steps: int
    norms: Sequence[Sequence[float]]
    histograms: Sequence[np.ndarray]
    edges: tuple[float, float]
    limits: tuple[float, float]

    @property
    def last(self) -> int:
        return len(self.names) - 1

    @cached_property
    def states(self) -> list[str]:
        return [self.state(norm) for norm in self.norms[-1]]

    def state(self, norm: float) -> str:
        if norm == 0:
            return DEAD
        if not math.isfinite(norm) or norm > self.limits[1]:
            return EXPLODING
        return VANISHING if norm < self.limits[0] else FLOWING

    @property
    def verdict(self) -> str:
        """Which layers are in trouble, a sentence for each kind of it."""
        found = []
        for kind in SIGNS:
            layers = [n for n, there in enumerate(self.states) if there == kind]
            if layers and kind != FLOWING:
                found.append(f"{SIGNS[kind][0]} {kind}: {listed(layers, self.names)}.")
        return " ".join(found) or "● The gradient reaches every layer."


def listed(layers: Sequence[int], names: Sequence[str]) -> str:
    """Neighbours in one phrase, as the gradient is lost from one to the next."""
    runs = [[n for _, n in run] for _, run in groupby(enumerate(layers), lambda pair: pair[1] - pair[0])]
    return ", ".join(names[run[0]] + (f" to {names[run[-1]]}" if len(run) > 1 else "") for run in runs)


def spacing(steps: int) -> int:
    """How many steps lie between two marks on the axis: 1, 2 or 5 times a power of ten, for five marks or so."""
    rough = max(steps / 5, 1)
    ten = 10 ** math.floor(math.log10(rough))
    return next(int(ten * times) for times in (1, 2, 5, 10) if ten * times >= rough)


def draw_flow(drawing: Drawing, flow: Flow, progress: str, note: str = "") -> None:
    """Three lines of words (how far it is, the verdict, a note), and below them the curves and the rows."""
    drawing.words(0, 16, progress, bold=True)
    drawing.words(0, 38, flow.verdict, "strong" if set(flow.states) == {FLOWING} else "warn")
    drawing.words(0, 58, note, "soft", 12)
    Curves(drawing, flow).draw()
    Rows(drawing, flow).draw()
    drawing.height = max(drawing.height, Curves.axis.bottom + 66)


@dataclass(frozen=True)
class Curves:
    """The norm of every layer over steps, on a logarithmic scale."""

    drawing: Drawing
    flow: Flow

    axis: ClassVar = Powers(-12, 6, 2, left=46.0, right=318.0, top=104.0, bottom=384.0)

    def x(self, step: int) -> float:
        return self.axis.left + (self.axis.right - self.axis.left) * step / max(self.flow.steps - 1, 1)

    def draw(self) -> None:
        self.drawing.words(0, self.axis.top - 18, "Gradient norm of each layer over steps", bold=True)
        self.axis.draw(self.drawing, zero=True)
        for step in range(0, self.flow.steps, spacing(self.flow.steps)):
            self.drawing.words(self.x(step), self.axis.bottom + 17, str(step), "soft", 11, "middle")
        self.drawing.words(self.axis.right, self.axis.bottom + 17, "step", "soft", 11, "end")
        limits = zip(self.flow.limits, ("▼ vanishing below", "▲ exploding above"), (13, -5), strict=True)
        for norm, words, shift in limits:
            y = self.axis.limit(self.drawing, norm)
            self.drawing.words(self.axis.right, y + shift, words, "soft", 11, "end")
        for layer in (*range(1, self.flow.last), 0, self.flow.last):
            self.draw_layer(layer)
        self.draw_key()

    def style(self, layer: int) -> dict[str, object]:
        if layer == self.flow.last:
            return {"ink": "orange", "width": 2.5, "dashed": True}
        return {"ink": "blue", "width": 3} if layer == 0 else {"ink": "line", "width": 1}

    def draw_layer(self, layer: int) -> None:
        """A line as far as the norm is a number, and a dot at its end."""
        norms = [norms[layer] for norms in self.flow.norms]
        steps = zip(self.flow.at, norms, strict=True)
        points = [(self.x(step), self.axis.y(norm)) for step, norm in steps if math.isfinite(norm)]
        if not points:
            return
        self.drawing.line(points, **self.style(layer))
        x, y = points[-1]
        if layer in (0, self.flow.last):
            self.drawing.box(x - 4, y - 4, 8, 8, "", "done" if layer == 0 else "current")

    def draw_key(self) -> None:
        y, x = self.axis.bottom + 42, self.axis.left
        first, last = self.flow.names[0], self.flow.names[-1]
        for layer, words, room in ((0, first, 88), (1, "between", 92), (self.flow.last, last, 0)):
            if words == "between" and self.flow.last < 2:
                continue
            self.drawing.line([(x, y), (x + 24, y)], **self.style(layer))
            self.drawing.words(x + 30, y + 4, words, "soft", 12)
            x += room


@dataclass(frozen=True)
class Rows:
    """A row for each layer: its state in a sign and a word, its norm, and the histogram of its gradient."""

    drawing: Drawing
    flow: Flow

    left: ClassVar[float] = 350.0
    right: ClassVar[float] = 754.0
    top: ClassVar[float] = 104.0

    @cached_property
    def middle(self) -> float:
        """Where the names end and the states begin."""
        return self.left + (62 if max(map(len, self.flow.names)) <= NARROW else 102)

    @property
    def bars(self) -> float:
        return self.middle + 150

    @property
    def high(self) -> float:
        return min(40.0, max(17.0, (Curves.axis.bottom - self.top) / len(self.flow.names)))

    @property
    def bottom(self) -> float:
        return self.top + self.high * len(self.flow.names)

    def draw(self) -> None:
        self.drawing.words(self.left, self.top - 18, "At this step", bold=True)
        self.drawing.words(self.bars - 12, self.top - 18, "norm", "soft", 11, "end")
        self.drawing.words(self.bars, self.top - 18, "magnitudes of its gradient", "soft", 11)
        for layer, name in enumerate(self.flow.names):
            self.draw_row(layer, name)
        low, high = self.flow.edges
        for tens, anchor in ((-12, "start"), (-4, "middle"), (4, "end")):
            x = self.bars + (self.right - self.bars) * (tens - low) / (high - low)
            self.drawing.words(x, self.bottom + 17, ten_to(tens), "soft", 11, anchor)

    def draw_row(self, layer: int, name: str) -> None:
        base = self.top + self.high * (layer + 1)
        there = self.flow.states[layer]
        sign, look = SIGNS[there]
        ink = "soft" if there == FLOWING else "warn"
        self.drawing.words(self.left, base - 4, name, "strong", 12)
        self.drawing.words(self.middle, base - 4, f"{sign} {there}", ink, 12, bold=there != FLOWING)
        self.drawing.words(self.bars - 12, base - 4, figures(self.flow.norms[-1][layer]), "strong", 12, "end")
        self.drawing.line([(self.bars, base), (self.right, base)], "line", 0.8)
        if there == DEAD:
            self.drawing.words(self.bars, base - 4, "every number is 0", "soft", 11)
        counts = self.flow.histograms[layer]
        wide, most = (self.right - self.bars) / len(counts), max(int(counts.max()), 1)
        for place in np.flatnonzero(counts):
            height = max((self.high - 4) * counts[place] / most, 1.0)
            self.drawing.box(self.bars + wide * place, base - height, wide, height, "", look)
