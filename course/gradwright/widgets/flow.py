"""The gradient-flow widget: a network in training, the gradient of every layer over steps, and where it is lost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import ClassVar

import numpy as np

from .controls import Choice, Count, Run
from .descent import ACTIVATIONS, EDGES, INITIALISATIONS, STEPS, WIDTH, Record, Setting, run_of
from .frame import Frame
from .pictures import Drawing

__all__ = ["GradientFlow"]

LAYER_NORM, NONE, ON, OFF = "layer norm", "none", "on", "off"
RATES = ("0.01", "0.1", "0.5", "2.5")
VANISHING, EXPLODING = 1e-3, 1e1
FLOWING, DEAD = "flowing", "dead"
# By state: its sign, and the look of the bars, so that nothing hangs on the colour.
SIGNS = {FLOWING: ("●", "done"), "vanishing": ("▼", "touched"), "exploding": ("▲", "current"), DEAD: ("✕", "wrong")}
LOWEST, HIGHEST = -12.0, 6.0
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class GradientFlow(Frame):
    """Choose a network and train it on the digits: the norm of every layer's gradient, and its histogram."""

    title = "Gradient flow"
    caption = (
        "Choose a preset or set the network yourself, then let it train with Play, pause it, or go step by "
        "step. Each line on the left is the gradient norm of one layer, each row on the right the magnitudes of its "
        "gradient at this step. Watch how the norm changes from the output back to layer 1, and what one other choice "
        "(activation, initialisation, layer norm, residual) makes of it."
    )
    controls = (
        Count("depth", "Hidden layers", 8, 1, 12),
        Choice("activation", "Activation", "sigmoid", tuple(ACTIVATIONS)),
        Choice("initialisation", "Initialisation", "Xavier", tuple(INITIALISATIONS)),
        Choice("normalisation", "Normalisation", NONE, (NONE, LAYER_NORM)),
        Choice("residual", "Residual", OFF, (OFF, ON)),
        Choice("rate", "Learning rate", "0.5", RATES),
        Run("step", "Step", STEPS // 2),
    )
    presets: ClassVar = {
        "vanishing sigmoid": {
            "depth": 8,
            "activation": "sigmoid",
            "initialisation": "Xavier",
            "normalisation": NONE,
            "residual": OFF,
            "rate": "0.5",
        },
        "exploding init": {
            "depth": 10,
            "activation": "tanh",
            "initialisation": "std 1",
            "normalisation": NONE,
            "residual": OFF,
            "rate": "0.01",
        },
        "dead ReLU": {
            "depth": 5,
            "activation": "relu",
            "initialisation": "Kaiming",
            "normalisation": NONE,
            "residual": OFF,
            "rate": "2.5",
        },
        "residual rescue": {
            "depth": 8,
            "activation": "sigmoid",
            "initialisation": "Xavier",
            "normalisation": NONE,
            "residual": ON,
            "rate": "0.5",
        },
    }

    def picture(
        self,
        *,
        depth: int,
        activation: str,
        initialisation: str,
        normalisation: str,
        residual: str,
        rate: str,
        step: int,
    ) -> Drawing:
        """A `step` past the end is the last one."""
        norm = normalisation == LAYER_NORM
        setting = Setting(depth, activation, initialisation, norm, residual == ON, float(rate))
        return draw(Scene(setting, run_of(setting).upto(max(min(step, STEPS - 1), 0))))


def state(norm: float) -> str:
    if norm == 0:
        return DEAD
    if not math.isfinite(norm) or norm > EXPLODING:
        return "exploding"
    return "vanishing" if norm < VANISHING else FLOWING


@dataclass(frozen=True)
class Scene:
    """A network and its steps so far."""

    setting: Setting
    records: Sequence[Record]

    @property
    def now(self) -> Record:
        return self.records[-1]

    @cached_property
    def names(self) -> list[str]:
        return [*(f"layer {n + 1}" for n in range(self.setting.depth)), "output"]

    @cached_property
    def states(self) -> list[str]:
        return [state(norm) for norm in self.now.norms]

    @property
    def network(self) -> str:
        setting = self.setting
        hidden = f"{setting.depth} hidden layer{'' if setting.depth == 1 else 's'} of {WIDTH}, {setting.activation}"
        extras = [f"initialised with {setting.initialisation}"]
        extras += ["layer norm"] * setting.normalised + ["residual"] * setting.residual
        return f"{hidden}, {', '.join(extras)}, learning rate {setting.rate:g}"

    @property
    def progress(self) -> str:
        if not math.isfinite(self.now.loss):
            return f"Step {len(self.records) - 1}: the loss is no longer a finite number."
        return f"Step {len(self.records) - 1}: loss {self.now.loss:.2f}, {self.now.right:.0%} of the batch right."

    @property
    def verdict(self) -> str:
        """Which layers are in trouble, a sentence for each kind of it."""
        found = []
        for kind in SIGNS:
            layers = [n for n, there in enumerate(self.states) if there == kind]
            if layers and kind != FLOWING:
                found.append(f"{SIGNS[kind][0]} {kind}: {listed(layers, self.names)}.")
        return " ".join(found) or "● The gradient reaches every layer."

    @property
    def silence(self) -> str:
        silent, units = sum(self.now.silent), self.setting.depth * WIDTH
        return f"{silent} of {units} hidden units are 0 for every digit of the batch." if silent else ""


def listed(layers: Sequence[int], names: Sequence[str]) -> str:
    """Neighbours in one phrase, as the gradient is lost from one to the next."""
    runs = [[n for _, n in run] for _, run in groupby(enumerate(layers), lambda pair: pair[1] - pair[0])]
    return ", ".join(names[run[0]] + (f" to {names[run[-1]]}" if len(run) > 1 else "") for run in runs)


def ten_to(power: int) -> str:
    return f"10{str(power).translate(RAISED)}" if power else "1"


def figures(norm: float) -> str:
    """A norm in three figures; very small and large ones with a power of ten."""
    if not math.isfinite(norm):
        return "not finite"
    if norm == 0 or 1e-3 <= norm < 1e4:
        return f"{norm:.3g}"
    digits, _, power = f"{norm:.1e}".partition("e")
    return f"{digits}·{ten_to(int(power))}"


def draw(scene: Scene) -> Drawing:
    drawing = Drawing()
    drawing.steps = STEPS
    first, last = scene.now.norms[0], scene.now.norms[-1]
    drawing.alt = f"A network with {scene.network}. {scene.progress} Gradient norm {figures(first)} in layer 1 and "
    drawing.alt += f"{figures(last)} in the output layer. {scene.verdict}"
    drawing.words(0, 16, scene.progress, bold=True)
    drawing.words(0, 38, scene.verdict, "strong" if set(scene.states) == {FLOWING} else "warn")
    drawing.words(0, 58, scene.silence, "soft", 12)
    Curves(drawing, scene).draw()
    Rows(drawing, scene).draw()
    drawing.height = max(drawing.height, Curves.bottom + 66)
    return drawing


@dataclass(frozen=True)
class Curves:
    """The norm of every layer over steps, on a logarithmic scale."""

    drawing: Drawing
    scene: Scene

    left: ClassVar[float] = 46.0
    right: ClassVar[float] = 318.0
    top: ClassVar[float] = 104.0
    bottom: ClassVar[float] = 384.0

    def x(self, step: int) -> float:
        return self.left + (self.right - self.left) * step / (STEPS - 1)

    def y(self, norm: float) -> float:
        """Norms beyond the scale are at its end: 0 is at the lower one."""
        tens = LOWEST if norm == 0 else min(max(math.log10(norm), LOWEST), HIGHEST)
        return self.bottom - (self.bottom - self.top) * (tens - LOWEST) / (HIGHEST - LOWEST)

    def draw(self) -> None:
        self.drawing.words(0, self.top - 18, "Gradient norm of each layer over steps", bold=True)
        self.draw_axes()
        for norm, words, shift in ((EXPLODING, "▲ exploding above", -5), (VANISHING, "▼ vanishing below", 13)):
            self.drawing.line([(self.left, self.y(norm)), (self.right, self.y(norm))], "warn", 1, dashed=True)
            self.drawing.words(self.right, self.y(norm) + shift, words, "soft", 11, "end")
        for layer in (*range(1, self.scene.setting.depth), 0, self.scene.setting.depth):
            self.draw_layer(layer)
        self.draw_key()

    def draw_axes(self) -> None:
        corner = [(self.left, self.top), (self.left, self.bottom), (self.right, self.bottom)]
        self.drawing.line(corner, "line", 1)
        for tens in range(int(LOWEST), int(HIGHEST) + 1, 2):
            y = self.y(10.0**tens)
            self.drawing.line([(self.left - 4, y), (self.left, y)], "line", 1)
            label = "0" if tens == LOWEST else ten_to(tens)
            self.drawing.words(self.left - 8, y + 4, label, "soft", 11, "end")
        for step in range(0, STEPS, 10):
            self.drawing.words(self.x(step), self.bottom + 17, str(step), "soft", 11, "middle")
        self.drawing.words(self.right, self.bottom + 17, "step", "soft", 11, "end")

    def style(self, layer: int) -> dict[str, object]:
        if layer == self.scene.setting.depth:
            return {"ink": "orange", "width": 2.5, "dashed": True}
        return {"ink": "blue", "width": 3} if layer == 0 else {"ink": "line", "width": 1}

    def draw_layer(self, layer: int) -> None:
        """A line as far as the norm is a number, and a dot at its end."""
        norms = [record.norms[layer] for record in self.scene.records]
        points = [(self.x(step), self.y(norm)) for step, norm in enumerate(norms) if math.isfinite(norm)]
        if not points:
            return
        self.drawing.line(points, **self.style(layer))
        x, y = points[-1]
        if layer in (0, self.scene.setting.depth):
            self.drawing.box(x - 4, y - 4, 8, 8, "", "done" if layer == 0 else "current")

    def draw_key(self) -> None:
        y, x = self.bottom + 42, self.left
        for layer, words, room in ((0, "layer 1", 88), (1, "between", 92), (self.scene.setting.depth, "output", 0)):
            if words == "between" and self.scene.setting.depth < 2:
                continue
            self.drawing.line([(x, y), (x + 24, y)], **self.style(layer))
            self.drawing.words(x + 30, y + 4, words, "soft", 12)
            x += room


@dataclass(frozen=True)
class Rows:
    """A row for each layer: its state in a sign and a word, its norm, and the histogram of its gradient."""

    drawing: Drawing
    scene: Scene

    left: ClassVar[float] = 350.0
    bars: ClassVar[float] = 562.0
    right: ClassVar[float] = 754.0
    top: ClassVar[float] = 104.0

    @property
    def high(self) -> float:
        return min(40.0, (Curves.bottom - self.top) / len(self.scene.names))

    @property
    def bottom(self) -> float:
        return self.top + self.high * len(self.scene.names)

    def draw(self) -> None:
        self.drawing.words(self.left, self.top - 18, "At this step", bold=True)
        self.drawing.words(self.bars - 12, self.top - 18, "norm", "soft", 11, "end")
        self.drawing.words(self.bars, self.top - 18, "magnitudes of its gradient", "soft", 11)
        for layer, name in enumerate(self.scene.names):
            self.draw_row(layer, name)
        step = (self.right - self.bars) / (EDGES[-1] - EDGES[0])
        for tens in range(int(EDGES[0]), int(EDGES[-1]) + 1, 4):
            x = self.bars + step * (tens - EDGES[0])
            anchor = "end" if tens == EDGES[-1] else "start" if tens == EDGES[0] else "middle"
            self.drawing.words(x, self.bottom + 17, ten_to(tens), "soft", 11, anchor)

    def draw_row(self, layer: int, name: str) -> None:
        base = self.top + self.high * (layer + 1)
        there = self.scene.states[layer]
        sign, look = SIGNS[there]
        ink = "soft" if there == FLOWING else "warn"
        self.drawing.words(self.left, base - 6, name, "strong", 12)
        self.drawing.words(self.left + 62, base - 6, f"{sign} {there}", ink, 12, bold=there != FLOWING)
        self.drawing.words(self.bars - 12, base - 6, figures(self.scene.now.norms[layer]), "strong", 12, "end")
        self.drawing.line([(self.bars, base), (self.right, base)], "line", 0.8)
        if there == DEAD:
            self.drawing.words(self.bars, base - 6, "every number is 0", "soft", 11)
        counts = self.scene.now.histograms[layer]
        wide, most = (self.right - self.bars) / len(counts), max(int(counts.max()), 1)
        for place in np.flatnonzero(counts):
            height = max((self.high - 4) * counts[place] / most, 1.0)
            self.drawing.box(self.bars + wide * place, base - height, wide, height, "", look)
