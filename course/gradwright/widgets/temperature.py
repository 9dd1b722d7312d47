"""The softmax explorer: temperature and magnitude, and what is left of the softmax in float32 and float16."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from autograder.errors import BadInput

from .controls import Choice, Slider, Text
from .frame import Frame
from .pictures import Drawing
from .shapes import minus

__all__ = ["SoftmaxTemperature"]

MOST, LARGEST = 6, 10_000.0
FORMATS = {"float16": np.float16, "float32": np.float32}
CLOSE = {"float16": 5e-3, "float32": 1e-5}
TEMPERATURES = (0.1, 10.0)


class SoftmaxTemperature(Frame):
    """Softmax of a few logits: exactly, and as a format has it, by the naive formula and by the stable one."""

    title = "Softmax, temperature and magnitude"
    caption = (
        "Choose a preset or type logits of your own, then move the temperature T, and the number c that is added to "
        "every logit. Watch the bars: T sharpens or flattens them, c leaves them alone. Watch the tables as well: the "
        "naive formula breaks where exp leaves the range of the format, and the stable one, which takes the largest "
        "logit off first, does not."
    )
    controls = (
        Text("logits", "Logits", "3, 2, 1, 0", width="220px"),
        Slider("temperature", "Temperature T", 1.0, *TEMPERATURES, 0.1),
        Slider("shift", "Added to every logit, c", 0.0, -120.0, 120.0, 1.0),
        Choice("dtype", "Format", "float32", tuple(FORMATS)),
    )
    presets: ClassVar = {
        "four classes": {"logits": "3, 2, 1, 0", "temperature": 1.0, "shift": 0.0, "dtype": "float32"},
        "sharp": {"logits": "3, 2, 1, 0", "temperature": 0.3, "shift": 0.0, "dtype": "float32"},
        "flat": {"logits": "3, 2, 1, 0", "temperature": 5.0, "shift": 0.0, "dtype": "float32"},
        "overflow in float16": {"logits": "3, 2, 1, 0", "temperature": 1.0, "shift": 9.0, "dtype": "float16"},
        "overflow in float32": {"logits": "3, 2, 1, 0", "temperature": 1.0, "shift": 90.0, "dtype": "float32"},
        "all underflow": {"logits": "3, 2, 1, 0", "temperature": 1.0, "shift": -110.0, "dtype": "float32"},
    }

    def picture(self, *, logits: str, temperature: float, shift: float, dtype: str) -> Drawing:
        return draw(Scene(read_logits(logits), temperature, shift, dtype))


def read_logits(text: str) -> tuple[float, ...]:
    """Two to six numbers, with commas between them. Raises BadInput for anything else."""
    numbers = []
    for part in text.split(","):
        try:
            numbers.append(float(part))
        except ValueError as error:
            remedy = "type logits with commas between them, as in 3, 2, 1, 0"
            raise BadInput(f"{part.strip()!r} is not a number: {remedy}.") from error
        if not abs(numbers[-1]) <= LARGEST:
            raise BadInput(f"The logit {part.strip()} is out of range: use numbers from −10,000 to 10,000.")
    if not 2 <= len(numbers) <= MOST:
        count = f"{len(numbers)} logit{'' if len(numbers) == 1 else 's'}"
        raise BadInput(f"{text!r} has {count}: type 2 to {MOST}.")
    return tuple(numbers)


@dataclass(frozen=True)
class Computed:
    """One formula in one format: exponents, exponentials, their sum and the quotients, every step rounded to it."""

    exponents: np.ndarray
    powers: np.ndarray
    total: float
    p: np.ndarray

    def verdict(self, exact: np.ndarray, tolerance: float) -> str:
        if np.isnan(self.p).any():
            return "inf / inf is nan" if math.isinf(self.total) else "0 / 0 is nan"
        if math.isinf(self.total):
            return "the sum is inf, so every p is 0"
        return "right" if np.abs(self.p - exact).max() <= tolerance else "few digits are left"


@dataclass(frozen=True)
class Scene:
    logits: tuple[float, ...]
    temperature: float
    shift: float
    dtype: str

    @cached_property
    def z(self) -> np.ndarray:
        """What goes into the softmax: (x + c) / T, exactly."""
        return (np.array(self.logits) + self.shift) / self.temperature

    @cached_property
    def exact(self) -> np.ndarray:
        powers = np.exp((np.array(self.logits) - max(self.logits)) / self.temperature)
        return powers / powers.sum()

    def computed(self, stable: bool) -> Computed:
        kind = FORMATS[self.dtype]
        # Overflow is what the table is there to show.
        with np.errstate(all="ignore"):
            z = self.z.astype(kind)
            exponents = z - z.max() if stable else z
            powers = np.exp(exponents)
            total = powers.sum(dtype=kind)
            return Computed(exponents, powers, float(total), powers / total)

    @cached_property
    def naive(self) -> Computed:
        return self.computed(stable=False)

    @cached_property
    def stable(self) -> Computed:
        return self.computed(stable=True)

    def verdict(self, computed: Computed) -> str:
        return computed.verdict(self.exact, CLOSE[self.dtype])

    @cached_property
    def range(self) -> tuple[float, float]:
        """Of the numbers whose exponential is neither 0 nor inf in the format."""
        kind = np.finfo(FORMATS[self.dtype])
        # Half of the smallest number is rounded to 0.
        return math.log(float(kind.smallest_subnormal) / 2), math.log(float(kind.max))


def draw(scene: Scene) -> Drawing:
    drawing = Drawing()
    bars = ", ".join(f"{p:.3f}" for p in scene.exact)
    logits = ", ".join(minus(f"{x:g}") for x in scene.logits)
    drawing.alt = f"Softmax of the logits {logits} plus {decimal(scene.shift)}, at temperature {scene.temperature:g}: "
    drawing.alt += f"{bars}. In {scene.dtype} the naive formula: {scene.verdict(scene.naive)}; the stable one: "
    drawing.alt += f"{scene.verdict(scene.stable)}."
    draw_bars(drawing, scene)
    draw_table(drawing, scene, 210, "naive: exp(z) / sum of exp(z)", scene.naive)
    draw_table(drawing, scene, 330, "stable: exp(z − max) / sum of exp(z − max)", scene.stable)
    Range(drawing, scene).draw()
    return drawing


def decimal(x: float) -> str:
    """A number in four figures, or fewer."""
    return minus(f"{float(x):.3g}" if abs(x) < 1000 or not math.isfinite(x) else f"{float(x):.2g}")


LEFT, COLUMN = 92.0, 84.0


def draw_bars(drawing: Drawing, scene: Scene) -> None:
    """The softmax itself, a bar for each logit."""
    bottom, most = 176.0, 118.0
    title = f"p = softmax((x + c) / T), c = {decimal(scene.shift)}, T = {scene.temperature:g}"
    drawing.words(0, 16, title, bold=True)
    drawing.words(0, bottom - 4, "p", "soft", 12)
    drawing.words(0, bottom + 16, "logit x", "soft", 12)
    for n, (x, p) in enumerate(zip(scene.logits, scene.exact, strict=True)):
        left, height = LEFT + COLUMN * n, most * p
        drawing.box(left + 12, bottom - height, COLUMN - 24, height, "", "done")
        drawing.words(left + COLUMN / 2, bottom - height - 6, f"{p:.3f}", "strong", 12, "middle")
        drawing.words(left + COLUMN / 2, bottom + 16, minus(f"{x:g}"), "soft", 12, "middle")
    drawing.line([(LEFT, bottom), (LEFT + COLUMN * len(scene.logits), bottom)], "line", 1)


def draw_table(drawing: Drawing, scene: Scene, top: float, name: str, computed: Computed) -> None:
    """Three rows of what the format holds; what is inf, nan or 0 in a thick frame."""
    verdict = scene.verdict(computed)
    sign = "✓" if verdict == "right" else "✕"
    drawing.words(0, top + 16, f"{scene.dtype}, {name}", bold=True)
    drawing.words(754, top + 16, f"{sign} {verdict}", "strong" if sign == "✓" else "warn", 13, "end", bold=True)
    rows = {"exponent": computed.exponents, "exp": computed.powers, "p": computed.p}
    for row, (label, numbers) in enumerate(rows.items()):
        y = top + 26 + 26 * row
        drawing.words(0, y + 17, label, "soft", 12)
        for n, number in enumerate(numbers):
            # A 0 that is right to the last digit has lost nothing.
            lost = row > 0 and (not math.isfinite(number) or (number == 0 and verdict != "right"))
            drawing.box(LEFT + COLUMN * n, y, COLUMN, 26, decimal(number), "wrong" if lost else "touched", 12)
    x = LEFT + COLUMN * len(scene.logits) + 12
    drawing.words(x, top + 69, f"sum {decimal(computed.total)}", "strong", 12)


@dataclass(frozen=True)
class Range:
    """The exponents of both formulas on a line, beside the range where the format holds their exponentials."""

    drawing: Drawing
    scene: Scene

    left: ClassVar[float] = 92.0
    right: ClassVar[float] = 736.0
    top: ClassVar[float] = 462.0
    end: ClassVar[float] = 130.0

    def x(self, exponent: float) -> float:
        share = (min(max(exponent, -self.end), self.end) + self.end) / (2 * self.end)
        return self.left + share * (self.right - self.left)

    def draw(self) -> None:
        low, high = self.scene.range
        y = self.top + 26
        title = f"Exponents, and where exp of them is neither 0 nor inf in {self.scene.dtype}"
        self.drawing.words(0, self.top, title, bold=True)
        self.drawing.box(self.x(low), y, self.x(high) - self.x(low), 56, "", "touched")
        self.drawing.words(self.x(low), y - 6, f"0 below {decimal(low)}", "soft", 11, "end")
        self.drawing.words(self.x(high), y - 6, f"inf above {decimal(high)}", "soft", 11)
        self.draw_ticks("naive", y + 8, self.scene.naive.exponents)
        self.draw_ticks("stable", y + 34, self.scene.stable.exponents)
        for number in range(-120, 121, 40):
            self.drawing.line([(self.x(number), y + 58), (self.x(number), y + 63)], "line", 1)
            self.drawing.words(self.x(number), y + 76, minus(str(number)), "soft", 11, "middle")
        self.drawing.line([(self.left, y + 58), (self.right, y + 58)], "line", 1)

    def draw_ticks(self, name: str, y: float, exponents: Sequence[float]) -> None:
        """A mark for each exponent; one beyond the line stands at its end."""
        low, high = self.scene.range
        self.drawing.words(0, y + 13, name, "soft", 12)
        for exponent in exponents:
            ink, width = ("black", 2) if low < exponent <= high else ("warn", 4)
            self.drawing.line([(self.x(exponent), y), (self.x(exponent), y + 16)], ink, width)
