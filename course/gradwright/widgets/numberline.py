"""The number line of float16: where the gradients of a step lie on it, and what a loss scale makes of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from autograder.errors import BadInput

from .controls import Choice, Count, Run
from .frame import Frame
from .pictures import Drawing
from .training import STEPS, gradients_of_run

__all__ = ["NumberLine"]

OWN = "your gradients"
WEIGHTS = ("1", "0.001", "0.00001")
# Powers of two. Of float16: the smallest number, the smallest normal one, and where inf begins.
SMALLEST, NORMAL, INFINITE = -24, -14, 16
LOWEST, HIGHEST = -48, 24
MOST = 40
INTERVAL = 8
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class NumberLine(Frame):
    """Gradients on the number line of float16: those of a training on the digits, or `number_line(model)` your own."""

    title = "The number line of float16"
    caption = (
        "Choose a preset or set the weight of the loss and the loss scale yourself, then follow the run with Play or "
        "step by step; number_line(model) shows the gradients that your own model has. Watch the bars: the scale moves "
        "them to the right, out of the zone where they become 0, and at last into the one where they become inf. Watch "
        "the curve too: it is the scale of a run that begins where you have set it, halves at every overflow and "
        "doubles after 8 good steps."
    )
    controls = (
        Choice("weight", "Weight of the loss", "0.00001", (*WEIGHTS, OWN)),
        Count("power", "Loss scale 2ⁿ, n", 0, 0, MOST),
        Run("step", "Step", STEPS // 3),
    )
    presets: ClassVar = {
        "weight 0.00001": {"weight": "0.00001", "power": 0},
        "weight 0.00001, scaled": {"weight": "0.00001", "power": 22},
        "a scale too large": {"weight": "0.00001", "power": 38},
        "weight 1": {"weight": "1", "power": 0},
    }

    def __init__(
        self, gradients: Any = None, scales: Iterable[float] | None = None, preset: str | None = None, **values: object
    ) -> None:
        """gradients  a model after backward, a tensor or an array, or a list of such; None for the digits
        scales     the scale after each step of a training of yours, for the curve
        """
        self.own = None if gradients is None else numbers_of(gradients)
        self.scales = None if scales is None else checked_scales(scales)
        if self.own is not None and preset is None:
            values = {"weight": OWN} | values
        super().__init__(preset, **values)

    def picture(self, *, weight: str, power: int, step: int) -> Drawing:
        """A `step` past the end is the last one. Raises BadInput for gradients of your own that were not given."""
        if weight == OWN and self.own is None:
            raise BadInput("Gradients of your own are shown by number_line(model), after backward: none were given.")
        run = gradients_of_run() * (1.0 if weight == OWN else float(weight))
        own = self.own if weight == OWN else None
        scales = self.scales if weight == OWN else None
        return draw(Scene(run, own, scales, weight, power, max(step, 0)))


def numbers_of(thing: Any) -> np.ndarray:
    """All gradients of a model, or all numbers of arrays and tensors, in one row. BadInput where there are none."""
    if hasattr(thing, "parameters"):
        parts = [p.grad for p in thing.parameters() if p.grad is not None]
        if not parts:
            raise BadInput("The model has no gradients: call backward on its loss first.")
    else:
        parts = list(thing) if isinstance(thing, list | tuple) else [thing]
    arrays = [np.asarray(getattr(part, "array", part)) for part in parts]
    for array in arrays:
        if array.dtype.kind != "f":
            raise BadInput(f"Gradients are floats, and among these are {array.dtype} numbers.")
    if not sum(array.size for array in arrays):
        raise BadInput("There is no number among these gradients: give a model after backward, or arrays.")
    return np.concatenate([array.astype(np.float64).ravel() for array in arrays])


def checked_scales(scales: Iterable[float]) -> list[float]:
    said = "The scales of a run are positive numbers, one for each step: take get_scale() after update()."
    try:
        found = [float(scale) for scale in scales]
    except (TypeError, ValueError) as error:
        raise BadInput(said) from error
    if not found or not all(0 < scale < float("inf") for scale in found):
        raise BadInput(said)
    return found


@dataclass(frozen=True)
class Scene:
    run: np.ndarray
    own: np.ndarray | None
    own_scales: list[float] | None
    weight: str
    power: int
    asked: int

    @property
    def has_run(self) -> bool:
        """Gradients of one's own are of a single step."""
        return self.own is None or self.own_scales is not None

    @property
    def steps(self) -> int:
        return len(self.scales)

    @property
    def step(self) -> int:
        return min(self.asked, self.steps - 1)

    @cached_property
    def gradients(self) -> np.ndarray:
        return self.run[self.step] if self.own is None else self.own

    @cached_property
    def scaled(self) -> np.ndarray:
        """The sizes of this step's gradients, times the scale; a gradient that is 0 has nothing to lose."""
        sizes = np.abs(self.gradients[np.isfinite(self.gradients) & (self.gradients != 0)])
        with np.errstate(over="ignore"):
            return sizes * 2.0**self.power

    @property
    def left_out(self) -> str:
        """What is not on the line, of gradients of one's own: no scale helps what is nan, inf or 0 already."""
        if self.own is None:
            return ""
        counts = (np.isnan(self.own).sum(), "nan"), (np.isinf(self.own).sum(), "inf"), ((self.own == 0).sum(), "0")
        parts = [f"{count:,} {'is' if count == 1 else 'are'} {what}" for count, what in counts if count]
        return f" Not counted: of {self.own.size:,}, {', '.join(parts)} already." if parts else ""

    def share(self, there: np.ndarray) -> float:
        return float(there.mean()) if there.size else 0.0

    @cached_property
    def lost(self) -> float:
        """The share that float16 rounds to 0."""
        return self.share(self.scaled <= 2.0 ** (SMALLEST - 1))

    @cached_property
    def coarse(self) -> float:
        """The share of subnormal numbers, which have fewer digits."""
        return self.share((self.scaled > 2.0 ** (SMALLEST - 1)) & (self.scaled < 2.0**NORMAL))

    @cached_property
    def infinite(self) -> float:
        return self.share(self.scaled >= 65520)

    @cached_property
    def counts(self) -> np.ndarray:
        """How many sizes lie between each two powers of two; those beyond an end are counted at the end."""
        powers = np.clip(np.log2(self.scaled), LOWEST, HIGHEST - 1e-9)
        return np.histogram(powers, np.arange(LOWEST, HIGHEST + 1))[0]

    @cached_property
    def scales(self) -> list[float]:
        """After each step, the power of two that the scale has then."""
        if self.own_scales is not None:
            return np.log2(self.own_scales).tolist()
        if self.own is not None:
            return [float(self.power)]
        power, good, found = float(self.power), 0, []
        for largest in np.abs(self.run).max(1):
            if largest * 2.0**power >= 65520:
                power, good = power - 1, 0
            else:
                good += 1
                power, good = (power + 1, 0) if good == INTERVAL else (power, good)
            found.append(power)
        return found

    @cached_property
    def skipped(self) -> list[int]:
        begin = [self.scales[0] if self.own_scales is not None else float(self.power)]
        return [n for n, (a, b) in enumerate(zip(begin + self.scales, self.scales, strict=False)) if b < a]

    @property
    def beyond_bfloat16(self) -> bool:
        return bool((self.scaled <= 2.0**-134).any() or (self.scaled >= 2.0**128).any())

    @property
    def told(self) -> str:
        if not self.scaled.size:
            return "none of them lies on the line"
        return f"{percent(self.lost)} become 0, {percent(self.coarse)} lose digits, {percent(self.infinite)} become inf"


def percent(share: float) -> str:
    """A share that is not none and not all is not called so."""
    if 0 < share < 0.001 or 0.999 < share < 1:
        return "under 0.1 %" if share < 0.5 else "over 99.9 %"
    return f"{100 * share:.1f} %".replace(".0 ", " ")


def two_to(power: float) -> str:
    return f"2{str(round(power)).translate(RAISED)}"


LEFT, RIGHT, BASE, TALL = 46.0, 742.0, 214.0, 130.0


def place(power: float) -> float:
    return LEFT + (RIGHT - LEFT) * (min(max(power, LOWEST), HIGHEST) - LOWEST) / (HIGHEST - LOWEST)


def draw(scene: Scene) -> Drawing:
    drawing = Drawing()
    drawing.steps = scene.steps
    whose = "Your gradients" if scene.own is not None else f"Gradients of step {scene.step}, loss times {scene.weight}"
    drawing.alt = f"{whose}, under a loss scale of {two_to(scene.power)}, on the number line of float16: {scene.told}."
    drawing.alt += f"{scene.left_out} "
    drawing.alt += "In bfloat16 none of them does. " if scene.scaled.size and not scene.beyond_bfloat16 else ""
    if scene.has_run:
        begin, now = two_to(scene.scales[0]), two_to(scene.scales[scene.step])
        drawing.alt += f"Over the run the scale goes from {begin} to {now} at step {scene.step}, "
        skipped = sum(n <= scene.step for n in scene.skipped)
        drawing.alt += f"with {skipped} step{'' if skipped == 1 else 's'} skipped so far."
    drawing.alt = drawing.alt.rstrip()
    drawing.words(0, 16, f"{whose}, scaled by {two_to(scene.power)}", bold=True)
    trouble = scene.lost > 0.01 or scene.infinite > 0 or not np.isfinite(scene.gradients).all()
    drawing.words(0, 38, f"float16: {scene.told}.{scene.left_out}", "warn" if trouble else "strong")
    draw_bars(drawing, scene)
    draw_ranges(drawing)
    if scene.has_run:
        Curve(drawing, scene).draw()
    else:
        drawing.words(0, Curve.top - 18, "number_line(model, scales) shows the loss scale over your run, too.", "soft")
    return drawing


def draw_bars(drawing: Drawing, scene: Scene) -> None:
    """The histogram, and the borders of float16 in it."""
    wide, most = (RIGHT - LEFT) / (HIGHEST - LOWEST), max(int(scene.counts.max()), 1)
    for n in np.flatnonzero(scene.counts):
        power, height = LOWEST + int(n), max(TALL * scene.counts[n] / most, 1.5)
        out = power < SMALLEST - 1 or power >= INFINITE
        look = "wrong" if out else "touched" if power < NORMAL else "done"
        drawing.box(place(power), BASE - height, wide, height, "", look)
    top = BASE - TALL - 8
    for power, words, anchor in ((SMALLEST - 1, "✕ becomes 0", "end"), (INFINITE, "✕ becomes inf", "start")):
        x, shift = place(power), -6 if anchor == "end" else 6
        drawing.line([(x, top - 10), (x, BASE)], "warn", 1.5, dashed=True)
        drawing.words(x + shift, top, words, "warn", 12, anchor, halo=True)
    drawing.line([(place(NORMAL), top - 10), (place(NORMAL), BASE)], "line", 1, dashed=True)
    drawing.words(place(NORMAL) - 6, top, "fewer digits", "soft", 12, "end", halo=True)
    drawing.line([(LEFT, BASE), (RIGHT, BASE)], "line", 1)
    for power in range(LOWEST, HIGHEST + 1, 8):
        drawing.line([(place(power), BASE), (place(power), BASE + 5)], "line", 1)
        drawing.words(place(power), BASE + 19, two_to(power), "soft", 12, "middle")


def draw_ranges(drawing: Drawing) -> None:
    y = BASE + 30
    drawing.box(place(SMALLEST), y, place(NORMAL) - place(SMALLEST), 22, "subnormal", "touched", 11)
    drawing.box(place(NORMAL), y, place(INFINITE) - place(NORMAL), 22, "float16", "done", 12)
    words = f"bfloat16 goes on far beyond both ends, from {two_to(-133)} to {two_to(128)}"
    drawing.box(LEFT, y + 28, RIGHT - LEFT, 22, words, "touched", 12)


@dataclass(frozen=True)
class Curve:
    """The scale over the run, its skipped steps, and where the run is now."""

    drawing: Drawing
    scene: Scene

    top: ClassVar[float] = 356.0
    bottom: ClassVar[float] = 486.0

    @cached_property
    def span(self) -> tuple[float, float]:
        low, high = min(self.scene.scales), max(self.scene.scales)
        return 4 * (low // 4), max(4 * (high // 4 + 1), 4 * (low // 4) + 8)

    def x(self, step: float) -> float:
        return LEFT + (RIGHT - LEFT) * step / max(self.scene.steps - 1, 1)

    def y(self, power: float) -> float:
        low, high = self.span
        return self.bottom - (self.bottom - self.top) * (power - low) / (high - low)

    def draw(self) -> None:
        scene = self.scene
        own = "your run" if scene.own_scales is not None else "a run, each step judged by its largest gradient"
        self.drawing.words(0, self.top - 18, f"The loss scale over {own}", bold=True)
        self.drawing.line([(LEFT, self.top), (LEFT, self.bottom), (RIGHT, self.bottom)], "line", 1)
        low, high = self.span
        for power in np.linspace(low, high, 5):
            self.drawing.words(LEFT - 8, self.y(power) + 4, two_to(power), "soft", 12, "end")
        for step in range(0, scene.steps, max(scene.steps // 6, 1)):
            self.drawing.words(self.x(step), self.bottom + 18, str(step), "soft", 12, "middle")
        self.drawing.words(RIGHT, self.bottom + 18, "step", "soft", 12, "end")
        points = [(self.x(n), self.y(power)) for n, power in enumerate(scene.scales)]
        corners = [corner for a, b in pairwise(points) for corner in (a, (b[0], a[1]))]
        self.drawing.line([*corners, points[-1]], "blue", 2)
        for n in scene.skipped:
            self.drawing.words(points[n][0], points[n][1] + 5, "✕", "warn", 12, "middle", bold=True, halo=True)
        x, y = points[scene.step]
        self.drawing.box(x - 5, y - 5, 10, 10, "", "current")
        count = len(scene.skipped)
        words = f"✕ overflow, step skipped: {count} of {scene.steps}"
        self.drawing.words(LEFT, self.bottom + 42, words, "warn" if count else "soft", 12)
