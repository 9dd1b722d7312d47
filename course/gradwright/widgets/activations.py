"""The activation statistics: what becomes of a signal through twenty layers, and of the gradient on its way back."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from .controls import Choice, Count, Slider
from .descent import EDGES, counted
from .flowing import listed
from .frame import Frame
from .pictures import Drawing, Look
from .powers import Powers, figures, ten_to
from .shapes import minus
from .stack import BATCH_NORM, INITIALISATIONS, KINDS, LAYER_NORM, NONE, WIDTH, Layer, Stack, stack_of

__all__ = ["ActivationStatistics"]

ACTIVATIONS, GRADIENTS = "activations", "gradients"
# How much smaller or larger than at its beginning a signal may become.
FALLEN, RISEN = 0.05, 20.0
LEVEL = "level"
# By state: its sign, and the look of the bars, so that nothing hangs on the colour.
SIGNS = {
    LEVEL: ("●", "done"),
    "vanishing": ("▼", "touched"),
    "exploding": ("▲", Look("#E69F00", "seam", "black", 1.0)),
    "saturated": ("■", Look("#F2B48C", "seam", "black", 1.0)),
}
# Of the activations' histograms.
VALUES = np.linspace(-3.0, 3.0, 49)


def preset(activation: str, initialisation: str, factor: float = 1.0, normalisation: str = NONE) -> dict[str, object]:
    network = {"depth": 20, "activation": activation, "initialisation": initialisation, "factor": factor}
    return network | {"normalisation": normalisation, "shown": ACTIVATIONS}


class ActivationStatistics(Frame):
    """Choose how a deep network begins: size, mean, deviation, zeros and histogram of every layer's output."""

    title = "Activation statistics"
    caption = (
        f"Choose a preset or set the network yourself: layers of {WIDTH} units, as they begin, with a batch of digits "
        "going in. Each row is one layer: the numbers that come out of it, or the gradient that arrives there. Watch "
        "the two curves: the solid one is read from left to right, the dashed one from right to left, and only a "
        "network in which both are level can learn in all of its layers."
    )
    controls = (
        Count("depth", "Layers", 20, 2, 20),
        Choice("activation", "Activation", "relu", tuple(KINDS)),
        Choice("initialisation", "Initialisation", "Kaiming", tuple(INITIALISATIONS)),
        Slider("factor", "times", 1.0, 0.2, 4.0, 0.1),
        Choice("normalisation", "Normalisation", NONE, (NONE, LAYER_NORM, BATCH_NORM)),
        Choice("shown", "Rows show", ACTIVATIONS, (ACTIVATIONS, GRADIENTS)),
    )
    presets: ClassVar = {
        "relu, PyTorch's default": preset("relu", "PyTorch's default"),
        "relu, Kaiming": preset("relu", "Kaiming"),
        "relu, twice Kaiming": preset("relu", "Kaiming", 2.0),
        "tanh, Xavier": preset("tanh", "Xavier"),
        "tanh, saturated": preset("tanh", "Xavier", 4.0),
        "sigmoid, Xavier": preset("sigmoid", "Xavier"),
        "relu, rescued by layer norm": preset("relu", "PyTorch's default", 1.0, LAYER_NORM),
    }

    def picture(
        self, *, depth: int, activation: str, initialisation: str, factor: float, normalisation: str, shown: str
    ) -> Drawing:
        stack = Stack(depth, activation, initialisation, factor, normalisation)
        return draw(Scene(stack, stack_of(stack), shown))


def size(x: np.ndarray) -> float:
    """The root of the mean square."""
    return float(np.sqrt((x * x).mean()))


def deviation(x: np.ndarray) -> float:
    with np.errstate(all="ignore"):
        return float(x.std())


def state(ratio: float) -> str:
    if ratio < FALLEN:
        return "vanishing"
    return LEVEL if ratio <= RISEN else "exploding"  # nan too: it comes of inf


@dataclass(frozen=True)
class Scene:
    stack: Stack
    layers: Sequence[Layer]
    shown: str

    @cached_property
    def names(self) -> list[str]:
        return [f"layer {n + 1}" for n in range(len(self.layers))]

    @cached_property
    def sizes(self) -> dict[str, list[float]]:
        with np.errstate(all="ignore"):
            forward = [size(layer.output) for layer in self.layers]
            return {ACTIVATIONS: forward, GRADIENTS: [size(layer.gradient) for layer in self.layers]}

    @cached_property
    def states(self) -> dict[str, list[str]]:
        """Both begin at size 1: the digits in front of the first layer, the gradient behind the last."""
        found = {what: [state(one) for one in sizes] for what, sizes in self.sizes.items()}
        if self.stack.activation in ("sigmoid", "tanh"):
            flat = [layer.flat > 0.5 for layer in self.layers]
            found[ACTIVATIONS] = ["saturated" if f else s for f, s in zip(flat, found[ACTIVATIONS], strict=True)]
        return found

    def verdict(self, what: str) -> str:
        """Which layers are in trouble, and in which."""
        found = []
        for kind, (sign, _) in SIGNS.items():
            there = [n for n, one in enumerate(self.states[what]) if one == kind]
            if there and kind != LEVEL:
                found.append(f"{sign} {kind} in {listed(there, self.names)}")
        return f"{what.capitalize()}: {', '.join(found) or '● level through all layers'}."

    @property
    def network(self) -> str:
        stack = self.stack
        act = "no activation" if stack.activation == NONE else stack.activation
        times = "" if stack.factor == 1 else f", times {stack.factor:g}"
        extra = "" if stack.normalisation == NONE else f", {stack.normalisation}"
        return f"{stack.depth} layers, {act}, {stack.initialisation}{times}{extra}"


def draw(scene: Scene) -> Drawing:
    drawing = Drawing()
    verdicts = [scene.verdict(what) for what in (ACTIVATIONS, GRADIENTS)]
    first, last = (figures(deviation(scene.layers[n].output)) for n in (0, -1))
    drawing.alt = f"{scene.network}. Deviation of what comes out: {first} in layer 1, {last} in layer "
    drawing.alt += f"{len(scene.layers)}. {' '.join(verdicts)}"
    drawing.words(0, 16, scene.network, bold=True)
    for line, (what, verdict) in enumerate(zip((ACTIVATIONS, GRADIENTS), verdicts, strict=True)):
        drawing.words(0, 38 + 20 * line, verdict, "strong" if set(scene.states[what]) == {LEVEL} else "warn")
    Curves(drawing, scene).draw()
    Rows(drawing, scene).draw()
    return drawing


@dataclass(frozen=True)
class Curves:
    """The size of activations and gradients through depth, on a logarithmic scale."""

    drawing: Drawing
    scene: Scene

    axis: ClassVar = Powers(-12, 8, 4, left=46.0, right=288.0, top=112.0, bottom=384.0)
    styles: ClassVar = {
        ACTIVATIONS: {"ink": "blue", "width": 3},
        GRADIENTS: {"ink": "orange", "width": 2.5, "dashed": True},
    }

    def x(self, layer: int) -> float:
        left = self.axis.left + 8
        return left + (self.axis.right - left) * layer / (len(self.scene.layers) - 1)

    def draw(self) -> None:
        left, bottom = self.axis.left, self.axis.bottom
        self.drawing.words(0, self.axis.top - 18, "Size (root mean square) through depth", bold=True)
        self.axis.draw(self.drawing)
        for edge in (FALLEN, RISEN):
            self.axis.limit(self.drawing, edge)
        depth = len(self.scene.layers)
        for layer in sorted({0, depth // 2 - 1, depth - 1}):
            self.drawing.words(self.x(layer), bottom + 17, f"{layer + 1}", "soft", 11, "middle")
        self.drawing.words(left - 8, bottom + 17, "layer", "soft", 11, "end")
        for row, (what, style) in enumerate(self.styles.items()):
            self.draw_curve(self.scene.sizes[what], style)
            y = bottom + 40 + 20 * row
            self.drawing.line([(left, y), (left + 24, y)], **style)
            way = "→ activations, forward" if what == ACTIVATIONS else "← gradients, on the way back"
            self.drawing.words(left + 30, y + 4, way, "soft", 12)

    def draw_curve(self, sizes: Sequence[float], style: dict[str, object]) -> None:
        points = [(self.x(n), self.axis.y(one)) for n, one in enumerate(sizes) if math.isfinite(one)]
        if len(points) > 1:
            self.drawing.line(points, **style)


@dataclass(frozen=True)
class Rows:
    """A row for each layer: its state in a sign and a word, its numbers, and a histogram."""

    drawing: Drawing
    scene: Scene

    left: ClassVar[float] = 316.0
    columns: ClassVar = {"mean": 516.0, "std": 568.0, "zeros": 612.0}
    bars: ClassVar[float] = 624.0
    right: ClassVar[float] = 754.0
    top: ClassVar[float] = 112.0

    @property
    def high(self) -> float:
        return min(34.0, max(18.0, (Curves.axis.bottom - self.top) / len(self.scene.layers)))

    @property
    def bottom(self) -> float:
        return self.top + self.high * len(self.scene.layers)

    def draw(self) -> None:
        shown = self.scene.shown
        self.drawing.words(self.left, self.top - 18, f"{shown.capitalize()} of each layer", bold=True)
        for name in self.numbers(0):
            self.drawing.words(self.columns[name], self.top - 4, name, "soft", 11, "end")
        self.drawing.words(self.bars, self.top - 4, "values" if shown == ACTIVATIONS else "magnitudes", "soft", 11)
        for n in range(len(self.scene.layers)):
            self.draw_row(n)
        self.draw_scale()

    def array(self, n: int) -> np.ndarray:
        layer = self.scene.layers[n]
        return layer.output if self.scene.shown == ACTIVATIONS else layer.gradient

    def numbers(self, n: int) -> dict[str, str]:
        """What stands in each column. The mean of a random gradient says nothing."""
        x = self.array(n)
        with np.errstate(all="ignore"):
            mean = {"mean": signed(float(x.mean()))} if self.scene.shown == ACTIVATIONS else {}
            return mean | {"std": figures(deviation(x), 2), "zeros": f"{float((x == 0).mean()):.0%}"}

    def draw_row(self, n: int) -> None:
        there = self.scene.states[self.scene.shown][n]
        base = self.top + self.high * (n + 1)
        sign, look = SIGNS[there]
        ink = "soft" if there == LEVEL else "warn"
        self.drawing.words(self.left, base - 4, self.scene.names[n], "strong", 12)
        self.drawing.words(self.left + 58, base - 4, f"{sign} {there}", ink, 12, bold=there != LEVEL)
        for name, number in self.numbers(n).items():
            self.drawing.words(self.columns[name], base - 4, number, "strong", 11, "end")
        self.drawing.line([(self.bars, base), (self.right, base)], "line", 0.8)
        counts = self.count(self.array(n))
        wide, most = (self.right - self.bars) / len(counts), max(int(counts.max()), 1)
        for place in np.flatnonzero(counts):
            height = max((self.high - 3) * counts[place] / most, 0.8)
            self.drawing.box(self.bars + wide * place, base - height, wide, height, "", look)

    @property
    def count(self) -> Callable[[np.ndarray], np.ndarray]:
        return values_counted if self.scene.shown == ACTIVATIONS else counted

    def draw_scale(self) -> None:
        """Under the last row; what lies beyond an end is counted there."""
        labels = (
            ["−3", "0", "3"]
            if self.scene.shown == ACTIVATIONS
            else [ten_to(round(n)) for n in np.linspace(EDGES[0], EDGES[-1], 3)]
        )
        ends = np.linspace(self.bars, self.right, 3)
        for x, label, anchor in zip(ends, labels, ("start", "middle", "end"), strict=True):
            self.drawing.words(float(x), self.bottom + 16, label, "soft", 11, anchor)


def values_counted(x: np.ndarray) -> np.ndarray:
    """How many numbers lie between each two VALUES; those beyond an end are counted there."""
    return np.histogram(np.clip(x[np.isfinite(x)], VALUES[0], VALUES[-1]), VALUES)[0]


def signed(mean: float) -> str:
    return minus("-" * (mean < 0) + figures(abs(mean), 2))
