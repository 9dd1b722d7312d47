"""The optimizer paths: four optimizers set out from the same point of a surface, and go on step by step together."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

import numpy as np

from .controls import Choice, Run, Slider
from .descents import METHODS, STEPS, SURFACES, Surface, contours, walked
from .frame import Frame
from .pictures import Drawing
from .shapes import minus

__all__ = ["OptimizerPaths"]

# Of the height above the minimum.
ARRIVED = 1e-9
# By optimizer: its letter, where that stands beside the end of its line, and the look of the line.
STYLES: dict[str, tuple[str, tuple[int, int], dict[str, object]]] = {
    "SGD": ("S", (0, -9), {"ink": "orange", "width": 2.0}),
    "momentum": ("M", (0, 20), {"ink": "blue", "width": 2.0}),
    "RMSprop": ("R", (14, 5), {"ink": "green", "width": 2.5, "dashed": True}),
    "Adam": ("A", (-14, 5), {"ink": "pink", "width": 2.5, "dashed": True}),
}


class OptimizerPaths(Frame):
    """SGD, SGD with momentum, RMSprop and Adam on a valley, a saddle or Rosenbrock's function."""

    title = "Optimizer paths"
    caption = (
        "Choose a preset or set the rates and the momentum yourself, then let the four go with Play, or go "
        "step by step. The letters show where each is: S for SGD, M for SGD with momentum, R for RMSprop, A for "
        "Adam. Watch who bounces between walls, who creeps along the floor, who is last to leave the saddle, and at "
        "which rate a path leaves the picture for good."
    )
    controls = (
        Choice("surface", "Surface", "valley", tuple(SURFACES)),
        Slider("rate", "Rate of S and M", 0.9, 0.01, 1.2, 0.01),
        Slider("adaptive", "Rate of R and A", 0.2, 0.01, 0.5, 0.01),
        Slider("momentum", "Momentum, Adam's β₁", 0.6, 0.0, 0.98, 0.01),
        Run("step", "Step", 30),
    )
    presets: ClassVar = {
        "valley": {"surface": "valley", "rate": 0.9, "adaptive": 0.2, "momentum": 0.6},
        "a rate too high": {"surface": "valley", "rate": 1.03, "adaptive": 0.5, "momentum": 0.6},
        "saddle": {"surface": "saddle", "rate": 0.1, "adaptive": 0.05, "momentum": 0.9},
        "Rosenbrock": {"surface": "Rosenbrock", "rate": 0.07, "adaptive": 0.1, "momentum": 0.9},
    }

    def picture(self, *, surface: str, rate: float, adaptive: float, momentum: float, step: int) -> Drawing:
        """A `step` past the end is the last one."""
        step = max(min(step, STEPS - 1), 0)
        paths = {method: walked(surface, method, rate, adaptive, momentum) for method in METHODS}
        return draw(Scene(surface, step, paths))


@dataclass(frozen=True)
class Scene:
    name: str
    step: int
    paths: Mapping[str, np.ndarray]

    @property
    def surface(self) -> Surface:
        return SURFACES[self.name]

    def so_far(self, method: str) -> np.ndarray:
        return self.paths[method][: self.step + 1]

    @cached_property
    def heights(self) -> dict[str, np.ndarray]:
        """Along each path so far, how far above the minimum it is."""
        bottom = self.surface.bottom
        return {method: self.surface.value(*self.so_far(method).T) - bottom for method in self.paths}

    def inside(self, point: np.ndarray) -> bool:
        return bool(((self.surface.low <= point) & (point <= self.surface.high)).all())

    def told(self, method: str) -> str:
        """Where an optimizer is, in a few words."""
        here = self.so_far(method)[-1]
        if len(self.so_far(method)) <= self.step:
            return f"gone for good after step {len(self.paths[method]) - 1}"
        if not self.inside(here):
            return f"outside the picture, {height(self.heights[method][-1])} above"
        if self.heights[method][-1] < ARRIVED:
            return "at the minimum"
        apart = min(math.dist(here, minimum) for minimum in self.surface.minima)
        return f"{height(self.heights[method][-1])} above, {minus(f'{apart:.2f}')} away"


def height(x: float) -> str:
    return minus(f"{x:.1e}" if x < 1e-3 or x >= 1e4 else f"{x:.3g}")


def draw(scene: Scene) -> Drawing:
    drawing = Drawing()
    drawing.steps = STEPS
    drawing.alt = f"Paths of four optimizers on the surface {scene.name}, {scene.surface.written}, after step "
    drawing.alt += f"{scene.step}, with the height above the minimum and the distance from it. "
    drawing.alt += "; ".join(f"{method}: {scene.told(method)}" for method in scene.paths) + "."
    drawing.words(0, 16, f"{scene.name}: {scene.surface.written}, step {scene.step}", bold=True)
    Map(drawing, scene).draw()
    draw_table(drawing, scene)
    Heights(drawing, scene).draw()
    drawing.height = Map.bottom + 26
    return drawing


@dataclass(frozen=True)
class Map:
    """The surface from above."""

    drawing: Drawing
    scene: Scene

    left: ClassVar[float] = 34.0
    right: ClassVar[float] = 474.0
    top: ClassVar[float] = 32.0
    bottom: ClassVar[float] = 382.0

    def place(self, point: np.ndarray) -> tuple[float, float]:
        (low_x, low_y), (high_x, high_y) = self.scene.surface.low, self.scene.surface.high
        x = self.left + (self.right - self.left) * (point[0] - low_x) / (high_x - low_x)
        return x, self.bottom - (self.bottom - self.top) * (point[1] - low_y) / (high_y - low_y)

    def draw(self) -> None:
        self.drawing.box(self.left, self.top, self.right - self.left, self.bottom - self.top)
        for line in contours(self.scene.name):
            self.drawing.line([self.place(point) for point in line], "line", 0.7)
        self.draw_ticks()
        for minimum in self.scene.surface.minima:
            x, y = self.place(np.array(minimum))
            self.drawing.words(x, y + 7, "*", "strong", 19, "middle")
        x, y = self.place(np.array(self.scene.surface.start))
        self.drawing.words(x, y - 26, "start", "soft", 12, "middle", halo=True)
        for method in self.scene.paths:
            self.draw_path(method)
        for method in self.scene.paths:
            self.draw_letter(method)

    def draw_ticks(self) -> None:
        (low_x, low_y), (high_x, high_y) = self.scene.surface.low, self.scene.surface.high
        for x in range(math.ceil(low_x), math.floor(high_x) + 1, 2 if high_x - low_x > 8 else 1):
            across, _ = self.place(np.array([x, 0.0]))
            self.drawing.words(across, self.bottom + 16, minus(str(x)), "soft", 11, "middle")
        for y in range(math.ceil(low_y), math.floor(high_y) + 1):
            _, down = self.place(np.array([0.0, y]))
            self.drawing.words(self.left - 8, down + 4, minus(str(y)), "soft", 11, "end")

    def draw_path(self, method: str) -> None:
        """As far as the edge of the picture, and on from where it comes back."""
        points = self.scene.so_far(method)
        pieces: list[list[np.ndarray]] = [[points[0]]]
        for before, after in pairwise(points):
            if self.scene.inside(after):
                if not self.scene.inside(before):
                    pieces.append([self.edge(after, before)])
                pieces[-1].append(after)
            elif self.scene.inside(before):
                pieces[-1].append(self.edge(before, after))
        for piece in pieces:
            if len(piece) > 1:
                self.drawing.line([self.place(point) for point in piece], **STYLES[method][2])

    def edge(self, inside: np.ndarray, outside: np.ndarray) -> np.ndarray:
        """Where the way from one point to the other crosses the edge of the window."""
        way = outside - inside
        ahead = np.where(way > 0, self.scene.surface.high, self.scene.surface.low) - inside
        share = min(float(a / w) for a, w in zip(ahead, way, strict=True) if w)
        return inside + share * way

    def draw_letter(self, method: str) -> None:
        here = self.scene.so_far(method)[-1]
        if self.scene.inside(here):
            (x, y), (letter, (right, down), _) = self.place(here), STYLES[method]
            self.drawing.box(x - 4, y - 4, 8, 8, "", "label" if self.scene.step == 0 else "current")
            self.drawing.words(x + right, y + down, letter, "strong", 14, "middle", bold=True, halo=True)


def draw_table(drawing: Drawing, scene: Scene) -> None:
    x = Map.right + 20
    for row, method in enumerate(scene.paths):
        letter, _, style = STYLES[method]
        y = Map.top + 14 + 42 * row
        drawing.line([(x, y - 4), (x + 30, y - 4)], **style)
        drawing.words(x + 38, y, f"{letter}  {method}", bold=True)
        drawing.words(x + 38, y + 17, scene.told(method), "soft", 12)


@dataclass(frozen=True)
class Heights:
    """The height above the minimum over steps, on a logarithmic scale."""

    drawing: Drawing
    scene: Scene

    left: ClassVar[float] = Map.right + 58
    right: ClassVar[float] = 752.0
    top: ClassVar[float] = 232.0
    lowest: ClassVar[float] = -6.0
    highest: ClassVar[float] = 2.0

    def place(self, step: int, above: float) -> tuple[float, float]:
        tens = min(max(math.log10(max(above, 1e-300)), self.lowest), self.highest)
        y = Map.bottom - (Map.bottom - self.top) * (tens - self.lowest) / (self.highest - self.lowest)
        return self.left + (self.right - self.left) * step / (STEPS - 1), y

    def draw(self) -> None:
        self.drawing.words(Map.right + 20, self.top - 14, "f above its minimum, over steps", bold=True, size=12)
        bottom = Map.bottom
        self.drawing.line([(self.left, self.top), (self.left, bottom), (self.right, bottom)], "line", 1)
        for tens, label in ((-6, "10⁻⁶"), (-4, "10⁻⁴"), (-2, "10⁻²"), (0, "1"), (2, "100")):
            _, y = self.place(0, 10.0**tens)
            self.drawing.line([(self.left - 4, y), (self.left, y)], "line", 1)
            self.drawing.words(self.left - 8, y + 4, label, "soft", 11, "end")
        for step in range(0, STEPS, 20):
            self.drawing.words(self.place(step, 1)[0], bottom + 16, str(step), "soft", 11, "middle")
        for method, heights in self.scene.heights.items():
            if len(heights) > 1:
                self.drawing.line([self.place(*point) for point in enumerate(heights)], **STYLES[method][2])
