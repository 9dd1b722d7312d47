"""The learning-rate curves: any number of schedules over the steps of a training, and what each makes of the loss."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from autograder.errors import BadInput

from .controls import Choice, Count, LogSlider, Run, Slider, Text
from .controls import Collection as Kept
from .frame import Frame
from .pictures import Drawing
from .rehearsal import MOST_STEPS, losses_under
from .schedules import KINDS, Mark, finite, read_calls, written_call, written_code
from .shapes import minus

__all__ = ["LearningRateCurves"]

OWN = "your function"
LINEAR, LOGARITHMIC = "linear", "logarithmic"
OFF, ON = "off", "on"
STYLES = (
    {"ink": "blue", "width": 2.5},
    {"ink": "orange", "width": 2.0, "dashed": True},
    {"ink": "green", "width": 2.0},
    {"ink": "pink", "width": 2.0, "dashed": True},
)
ALONE = {"lr": 0.05, "steps": 100, "axis": LINEAR, "kept": ""}
WARM_UP = ALONE | {"schedule": "warmup_cosine", "warmup": 10, "total": 100, "lr_min": 0.0}
WITH_WARM_UP = "warmup_cosine(lr=0.1, warmup=20, total=100, lr_min=0.0)"
THREE = (
    "StepLR(lr=0.05, step_size=30, gamma=0.3); CosineAnnealingLR(lr=0.05, T_max=100, eta_min=0.0); "
    "ExponentialLR(lr=0.05, gamma=0.95)"
)


class LearningRateCurves(Frame):
    """Choose a schedule and its arguments; keep curves for comparison; see the loss of a training under each."""

    title = "Learning-rate curves"
    caption = (
        "Choose a preset or set the schedule and its arguments yourself. Keep leaves the curve there, and you go on "
        "with another; the list can be edited, too. Below is the loss, a little smoothed, of one small network that "
        "Adam trains on the digits with just these rates. Walk along the steps for the values. Watch what the curve "
        "does at step 0, at the end and beyond, and what the loss does where the rate is at its highest. The code "
        "makes the curve shown."
    )
    controls = (
        Choice("schedule", "Schedule", "warmup_cosine", (*KINDS, OWN)),
        LogSlider("lr", "Rate (initial or highest)", 0.05, 1e-4, 1.0),
        Count("steps", "Steps of the training", 100, 2, MOST_STEPS),
        Count("warmup", "warmup", 10, 0, MOST_STEPS),
        Count("total", "total", 100, 1, MOST_STEPS),
        Slider("lr_min", "lr_min", 0.0, 0.0, 0.05, 0.001),
        Count("step_size", "step_size", 30, 1, MOST_STEPS),
        Text("milestones", "milestones", "30, 60, 90", width="220px"),
        Slider("gamma", "gamma", 0.3, 0.05, 1.0, 0.01),
        Slider("start_factor", "start_factor", 0.1, 0.01, 1.0, 0.01),
        Slider("end_factor", "end_factor", 1.0, 0.0, 1.0, 0.01),
        Count("total_iters", "total_iters", 10, 0, MOST_STEPS),
        Count("T_max", "T_max", 90, 1, MOST_STEPS),
        Count("T_0", "T_0", 20, 1, MOST_STEPS),
        Count("T_mult", "T_mult", 1, 1, 4),
        Slider("eta_min", "eta_min", 0.0, 0.0, 0.05, 0.001),
        Count("total_steps", "total_steps", 100, 1, MOST_STEPS),
        Slider("pct_start", "pct_start", 0.3, 0.0, 1.0, 0.01),
        Slider("div_factor", "div_factor", 25.0, 1.0, 100.0, 1.0),
        LogSlider("final_div_factor", "final_div_factor", 1e4, 1.0, 1e6),
        Choice("anneal_strategy", "anneal_strategy", "cos", ("cos", "linear")),
        Choice("three_phase", "three_phase", OFF, (OFF, ON)),
        Slider("factor", "factor", 0.3, 0.05, 0.95, 0.05),
        Count("patience", "patience", 2, 0, 20),
        Count("cooldown", "cooldown", 0, 0, 20),
        Slider("min_lr", "min_lr", 0.0, 0.0, 0.05, 0.001),
        Choice("axis", "Axis of the rate", LINEAR, (LINEAR, LOGARITHMIC)),
        Kept("kept", "Kept", "", width="420px"),
        Run("step", "Step", 40),
    )
    presets: ClassVar = {
        "warm-up, then cosine": WARM_UP,
        "staircase": ALONE | {"schedule": "StepLR", "step_size": 30, "gamma": 0.3},
        "beyond the end": ALONE | {"schedule": "CosineAnnealingLR", "T_max": 60},
        "warm restarts": ALONE | {"schedule": "CosineAnnealingWarmRestarts", "T_0": 15, "T_mult": 2},
        "one cycle": ALONE | {"schedule": "OneCycleLR", "lr": 0.1, "total_steps": 100, "pct_start": 0.3},
        "plateau": ALONE | {"schedule": "ReduceLROnPlateau", "steps": 150, "factor": 0.3, "patience": 2},
        "no warm-up": WARM_UP | {"lr": 0.1, "warmup": 0, "kept": WITH_WARM_UP},
        "all of it warm-up": WARM_UP | {"warmup": 80, "total": 80},
        "four in one": WARM_UP | {"kept": THREE, "axis": LOGARITHMIC},
    }

    def __init__(self, *own: Callable[[int], float], preset: str | None = None, **values: object) -> None:
        for function in own:
            if not callable(function):
                raise BadInput(f"A schedule of your own is a function of the step, and this is {function!r}.")
        self.own = own
        super().__init__(preset, **({"schedule": OWN} if own and preset is None else {}) | values)

    def hidden(self, **values: object) -> Collection[str]:
        kind = str(values["schedule"])
        every = {name for kind in KINDS.values() for name in kind.arguments}
        return every | {"lr"} if kind == OWN else every - set(KINDS[kind].arguments)

    def picture(
        self, *, schedule: str, lr: float, steps: int, axis: str, kept: str, step: int, **others: object
    ) -> Sheet:
        """A `step` past the end is the last one."""
        curves = [*self.chosen(schedule, lr, steps, others), *self.kept(kept, steps)]
        named = [Named(*curve) for curve in zip(letters(), STYLES * len(curves), curves, strict=False)]
        return Sheet(Scene(named, steps, min(step, steps - 1), axis == LOGARITHMIC))

    def chosen(self, schedule: str, lr: float, steps: int, others: Mapping[str, object]) -> Iterator[Curve]:
        if schedule != OWN:
            yield curve_of(schedule, lr, steps, {name: others[name] for name in KINDS[schedule].arguments})
            return
        if not self.own:
            raise BadInput("There is no function of yours here: call learning_rate_curves(your_function).")
        for function in self.own:
            yield curve_of_own(function, steps)

    def kept(self, text: str, steps: int) -> Iterator[Curve]:
        named = {control.name: control for control in self.controls}
        for kind, given in read_calls(text):
            unknown = sorted(given.keys() - {"lr", *KINDS[kind].arguments})
            if unknown:
                raise BadInput(f"{kind} has no {unknown[0]}: it has lr, {', '.join(KINDS[kind].arguments)}.")
            names = ("lr", *KINDS[kind].arguments)
            values = {name: named[name].accept(given.get(name, named[name].default)) for name in names}
            yield curve_of(kind, values.pop("lr"), steps, values)


@dataclass(frozen=True)
class Curve:
    """`call` is the curve in one line, empty for a function of the reader's."""

    title: str
    rates: tuple[float, ...]
    marks: tuple[Mark, ...]
    call: str
    code: str

    @cached_property
    def losses(self) -> np.ndarray:
        return losses_under(finite(self.rates).tolist())


def curve_of(kind: str, lr: object, steps: int, arguments: Mapping[str, object]) -> Curve:
    lr = float(f"{lr:.4g}")
    rates = tuple(KINDS[kind].curve(lr, steps, arguments).tolist())
    marks = tuple(mark for mark in KINDS[kind].marks(arguments) if mark.step <= steps)
    return Curve(kind, rates, marks, written_call(kind, lr, arguments), written_code(kind, lr, arguments))


def curve_of_own(function: Callable[[int], float], steps: int) -> Curve:
    name = getattr(function, "__name__", type(function).__name__).replace("<lambda>", "your_function")
    rates = []
    for step in range(steps):
        try:
            found = function(step)
        except Exception as error:  # whatever a reader's code raises is said, and the last picture stays
            raise BadInput(f"At step {step}, {name} raised {type(error).__name__}: {error}.") from error
        rates.append(checked_rate(found, f"At step {step}, {name} returned {found!r}"))
    code = f"optimizer = Adam(model.parameters(), lr=1.0)\nscheduler = LambdaLR(optimizer, {name})"
    return Curve(name, tuple(rates), (), "", code)


def checked_rate(found: object, what: str) -> float:
    try:
        rate = float(found)
    except (TypeError, ValueError) as error:
        raise BadInput(f"{what}: a rate is a number.") from error
    if not 0 <= rate < math.inf:
        raise BadInput(f"{what}: a rate is finite, and 0 or more.")
    return rate


@dataclass(frozen=True)
class Named:
    """A curve with the letter and the look that it has in the picture."""

    letter: str
    style: Mapping[str, object]
    curve: Curve


def letters() -> Iterator[str]:
    alphabet = [chr(ord("A") + i) for i in range(26)]
    yield from alphabet
    yield from (f"{letter}{round_}" for round_ in range(2, 100) for letter in alphabet)


def number(x: float) -> str:
    return minus(f"{x:.1e}" if x and (abs(x) < 1e-3 or abs(x) >= 1e4) else f"{x:.3g}")


@dataclass(frozen=True)
class Scene:
    curves: Sequence[Named]
    steps: int
    step: int
    logarithmic: bool

    @property
    def first(self) -> Curve:
        return self.curves[0].curve

    @cached_property
    def highest(self) -> float:
        tops = [finite(named.curve.rates).max(initial=0.0) for named in self.curves]
        return max(*tops, 1e-9)

    def rate(self, curve: Curve) -> str:
        rate = curve.rates[self.step]
        return f"rate {number(rate)}" if math.isfinite(rate) else "no rate any more"

    def loss(self, curve: Curve) -> str:
        if self.step >= len(curve.losses):
            return "no loss any more"
        loss = curve.losses[self.step]
        return f"loss {number(loss)}" if math.isfinite(loss) else "loss not finite"

    def told(self) -> str:
        """The picture in words; the curves behind the fourth are only counted."""
        parts = [f"{n.letter}, {n.curve.title}: {self.rate(n.curve)}, {self.loss(n.curve)}" for n in self.curves[:4]]
        more = f"; and {len(self.curves) - 4} more" if len(self.curves) > 4 else ""
        marks = ", ".join(f"{mark.words} at {mark.step:g}" for mark in self.first.marks[:4])
        return f"At step {self.step}: {'; '.join(parts)}{more}.{f' Marks of A: {marks}.' if marks else ''}"


class Sheet(Drawing):
    """The drawing, with the code and the one-line call that make its first curve."""

    left, right = 62.0, 500.0
    top, bottom = 56.0, 222.0
    upper, lower = 258.0, 392.0
    most_loss = 4.0

    def __init__(self, scene: Scene) -> None:
        super().__init__()
        self.scene, self.steps = scene, scene.steps
        self.code, self.call = scene.first.code, scene.first.call
        scale = "a logarithmic" if scene.logarithmic else "a linear"
        self.alt = (
            f"Learning rates over {scene.steps} steps, on {scale} axis, and below them the losses. {scene.told()}"
        )
        self.words(0, 16, f"{scene.first.title}, step {scene.step} of {scene.steps}", bold=True)
        self.frame_of(self.top, self.bottom)
        self.frame_of(self.upper, self.lower)
        self.draw_axes()
        self.draw_marks()
        for named in reversed(scene.curves):
            self.draw_curve(named)
        self.draw_cursor()
        self.draw_table()
        self.height = max(self.height, self.lower + 40)

    def x(self, step: float) -> float:
        return self.left + (self.right - self.left) * step / max(self.scene.steps - 1, 1)

    @cached_property
    def decades(self) -> range:
        """The powers of ten on a logarithmic axis: at most six, ending above the highest rate."""
        lowest = [finite(named.curve.rates) for named in self.scene.curves]
        small = min((rates[rates > 0].min(initial=1.0) for rates in lowest), default=1.0)
        top = math.ceil(math.log10(self.scene.highest) - 1e-9)
        return range(max(min(math.floor(math.log10(small)), top - 1), top - 6), top + 1)

    def y_of_rate(self, rate: float) -> float:
        if self.scene.logarithmic:
            low, high = self.decades[0], self.decades[-1]
            share = (math.log10(max(rate, 1e-300)) - low) / (high - low)
        else:
            share = rate / (1.05 * self.scene.highest)
        return self.bottom - (self.bottom - self.top) * min(max(share, 0.0), 1.0)

    def y_of_loss(self, loss: float) -> float:
        return self.lower - (self.lower - self.upper) * min(max(loss, 0.0), self.most_loss) / self.most_loss

    def frame_of(self, top: float, bottom: float) -> None:
        self.box(self.left, top, self.right - self.left, bottom - top)

    def draw_axes(self) -> None:
        self.words(0, self.top - 12, "rate", bold=True, size=12)
        self.words(0, self.upper - 12, "loss", bold=True, size=12)
        if self.scene.logarithmic:
            ticks = [(10.0**power, f"1e{minus(power)}" if power < -2 else f"{10.0**power:g}") for power in self.decades]
        else:
            ticks = [(share * self.scene.highest, number(share * self.scene.highest)) for share in (0, 0.5, 1)]
        for rate, label in ticks:
            self.tick(self.y_of_rate(rate), label)
        for loss in range(5):
            self.tick(self.y_of_loss(loss), str(loss))
        last = self.scene.steps - 1
        every = next(size for size in (1, 2, 5, 10, 20, 50) if last / size <= 8)
        for step in range(0, self.scene.steps, every):
            self.words(self.x(step), self.lower + 16, str(step), "soft", 11, "middle")
        self.words(self.right, self.lower + 32, "step", "soft", 11, "end")

    def tick(self, y: float, label: str) -> None:
        self.line([(self.left - 4, y), (self.left, y)], "line", 1)
        self.words(self.left - 8, y + 4, label, "soft", 11, "end")

    def draw_marks(self) -> None:
        """Lines through both panels; words only where there is room for them."""
        written = -math.inf
        for mark in self.scene.first.marks:
            x = min(self.x(mark.step), self.right)
            for top, bottom in ((self.top, self.bottom), (self.upper, self.lower)):
                self.line([(x, top), (x, bottom)], "line", 1, dashed=True)
            words = f"{mark.words} {mark.step:g}"
            middle = min(x, self.right - 3.2 * len(words))
            if middle - 3.4 * len(words) > written:
                self.words(middle, self.top - 8, words, "soft", 11, "middle")
                written = middle + 3.4 * len(words)

    def draw_curve(self, named: Named) -> None:
        rates, losses = finite(named.curve.rates), finite(named.curve.losses)
        places = [(self.x(step), self.y_of_rate(rate)) for step, rate in enumerate(rates)]
        if len(places) > 1:
            self.line(places, **named.style)
        slow = [(self.x(step), self.y_of_loss(loss)) for step, loss in enumerate(calmed(losses))]
        if len(slow) > 1:
            self.line(slow, **named.style)

    def draw_cursor(self) -> None:
        x = self.x(self.scene.step)
        for top, bottom in ((self.top, self.bottom), (self.upper, self.lower)):
            self.line([(x, top), (x, bottom)], "strong", 1)
        for place, named in enumerate(self.scene.curves[:8]):
            rate = named.curve.rates[self.scene.step]
            if math.isfinite(rate):
                y = self.y_of_rate(rate)
                self.box(x - 4, y - 4, 8, 8, "", "current")
                # Side by side, since curves may meet here.
                self.words(x + 8 + 11 * place, y + 14, named.letter, size=12, bold=True, halo=True)

    def draw_table(self) -> None:
        x = self.right + 16
        self.words(x, self.top - 8, f"at step {self.scene.step}", "soft", 12)
        for row, named in enumerate(self.scene.curves):
            y = self.top + 14 + 38 * row
            self.line([(x, y - 4), (x + 26, y - 4)], **named.style)
            self.words(x + 32, y, f"{named.letter}  {named.curve.title}", bold=True, size=12)
            self.words(x + 32, y + 16, f"{self.scene.rate(named.curve)}, {self.scene.loss(named.curve)}", "soft", 12)

    def png(self) -> bytes:
        """The still picture has the code in it, which stands beside the live one."""
        still = Sheet(self.scene)
        for line in self.code.splitlines():
            still.words(0, still.height + 12, line, "soft", 11)
        return Drawing.png(still)


def calmed(losses: np.ndarray, keep: float = 0.7) -> np.ndarray:
    """A fading mean, so that the course of a loss can be seen through the noise of its batches."""
    mean, found = losses[0] if len(losses) else 0.0, []
    for loss in losses:
        mean = keep * mean + (1 - keep) * loss
        found.append(mean)
    return np.array(found)
