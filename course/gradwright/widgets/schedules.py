"""The schedules that the learning-rate widget can draw: whole curves, their marks, and the code that makes them.

The curves are drawn here, as arrays over all steps at once, and not computed by the framework's schedulers: the widget
stands in the chapter in which those are written, where they are out of reach. The tests hold them to the schedulers.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from autograder.errors import BadInput

from .rehearsal import losses_under

__all__ = ["KINDS", "ROUND", "Kind", "Mark", "finite", "read_calls", "read_milestones", "written_call", "written_code"]

OPTIMIZER = "optimizer = Adam(model.parameters(), lr={lr})"
# Steps between two looks of the plateau scheduler, and by how much a loss must be better.
ROUND, MARGIN = 5, 1e-4

Arguments = Mapping[str, object]


@dataclass(frozen=True)
class Mark:
    step: float
    words: str


@dataclass(frozen=True)
class Kind:
    """`arguments` are the names of the controls that it has; `curve(lr, steps, arguments)` is the rate of every step,
    nan from where there is none."""

    arguments: tuple[str, ...]
    curve: Callable[[float, int, Arguments], np.ndarray]
    code: str
    marks: Callable[[Arguments], Iterator[Mark]] = lambda arguments: iter(())


def wave(share: np.ndarray) -> np.ndarray:
    """From 1 to 0 while the share goes from 0 to 1, flat at both ends; and back."""
    return np.sin(np.pi / 2 * (1 - share)) ** 2


def stairs(lr: float, steps: int, a: Arguments) -> np.ndarray:
    t = np.arange(steps)
    return lr * np.cumprod(np.where((t > 0) & (t % a["step_size"] == 0), a["gamma"], 1.0))


def chosen_stairs(lr: float, steps: int, a: Arguments) -> np.ndarray:
    falls = [step for step in read_milestones(str(a["milestones"])) if step < steps]
    return lr * np.cumprod(float(a["gamma"]) ** np.bincount(np.array(falls, int), minlength=steps))


def shrinking(lr: float, steps: int, a: Arguments) -> np.ndarray:
    return lr * np.cumprod(np.append(1.0, np.full(steps - 1, a["gamma"])))


def straight(lr: float, steps: int, a: Arguments) -> np.ndarray:
    if not a["total_iters"]:
        return np.full(steps, lr * a["start_factor"])
    return lr * np.interp(np.arange(steps), [0, a["total_iters"]], [a["start_factor"], a["end_factor"]])


def waves(lr: float, steps: int, a: Arguments) -> np.ndarray:
    return a["eta_min"] + (lr - a["eta_min"]) * wave(np.arange(steps) / a["T_max"])


def restarting(lr: float, steps: int, a: Arguments) -> np.ndarray:
    cycles, length = [], a["T_0"]
    while sum(map(len, cycles)) < steps:
        cycles.append(wave(np.arange(length) / length))
        length *= a["T_mult"]
    return a["eta_min"] + (lr - a["eta_min"]) * np.concatenate(cycles)[:steps]


def restarts(a: Arguments) -> Iterator[Mark]:
    begin, length = 0, a["T_0"]
    for _ in range(400):
        begin, length = begin + length, length * a["T_mult"]
        yield Mark(begin, "restart")


def risen(lr: float, steps: int, a: Arguments) -> np.ndarray:
    """The course's warmup_cosine."""
    warmup, total, low = a["warmup"], a["total"], a["lr_min"]
    if warmup > total:
        raise BadInput(f"A warm-up of {warmup} steps does not fit into a total of {total}: make one smaller.")
    rise = np.linspace(lr / max(warmup, 1), lr, warmup)
    fall = low + (lr - low) * wave(np.linspace(0, 1, total - warmup, endpoint=False))
    return np.concatenate([rise, fall, np.full(max(steps - total, 0), low)])[:steps]


def handed_over(lr: float, steps: int, a: Arguments) -> np.ndarray:
    """LinearLR, then CosineAnnealingLR."""
    rise = lr * np.interp(np.arange(a["total_iters"]), [0, max(a["total_iters"], 1)], [a["start_factor"], 1])
    return np.concatenate([rise, waves(lr, max(steps - len(rise), 0), a)])[:steps]


def cycle(lr: float, steps: int, a: Arguments) -> np.ndarray:
    total, rise = a["total_steps"], a["pct_start"] * a["total_steps"] - 1
    first = lr / a["div_factor"]
    last = first / a["final_div_factor"]
    corners, values = [0.0, rise, total - 1.0], [first, lr, last]
    if a["three_phase"] == "on":
        corners, values = [0.0, rise, 2 * rise, total - 1.0], [first, lr, first, last]
    while len(corners) > 2 and corners[1] <= 0:  # a phase that is over before it begins
        corners, values = corners[1:], values[1:]
    while len(corners) > 2 and corners[-2] >= corners[-1]:  # one that begins when all is over
        corners, values = corners[:-1], values[:-1]
    place = np.interp(np.arange(total), corners, range(len(corners)))
    if a["anneal_strategy"] == "cos":
        place = np.floor(place) + 1 - wave(place % 1)
    return fitted(np.interp(place, range(len(values)), values), steps)


def fitted(curve: np.ndarray, steps: int) -> np.ndarray:
    """As many steps as are asked for, with nan behind the curve's own end."""
    return np.append(curve, np.full(max(steps - len(curve), 0), np.nan))[:steps]


def watching(lr: float, steps: int, a: Arguments) -> np.ndarray:
    """A plateau scheduler that looks at the mean loss of every round of this very training."""
    rates, best, better, fell = [], math.inf, 0, -(10**6)
    for seen in range(1, steps // ROUND + 1):
        rates += [lr] * ROUND
        mean = float(losses_under(rates)[-ROUND:].mean())
        if mean < best - MARGIN * best or best == math.inf:
            best, better = mean, seen
        if seen - max(better, fell + a["cooldown"]) > a["patience"]:
            lr, fell = max(lr * a["factor"], a["min_lr"]), seen
    return np.array(rates + [lr] * (steps - len(rates)))


def ends(name: str, word: str = "end") -> Callable[[Arguments], Iterator[Mark]]:
    return lambda a: iter([Mark(a[name], word)])


def warm_marks(a: Arguments) -> Iterator[Mark]:
    if a["warmup"]:
        yield Mark(a["warmup"], "warm-up ends")
    yield Mark(a["total"], "end")


def hand_over_marks(a: Arguments) -> Iterator[Mark]:
    if a["total_iters"]:
        yield Mark(a["total_iters"], "warm-up ends")
    yield Mark(a["total_iters"] + a["T_max"], "end")


def cycle_marks(a: Arguments) -> Iterator[Mark]:
    top = a["pct_start"] * a["total_steps"] - 1
    if top > 0:
        yield Mark(top, "top")
    yield Mark(a["total_steps"] - 1, "end")


KINDS: dict[str, Kind] = {
    "warmup_cosine": Kind(
        ("warmup", "total", "lr_min"),
        risen,
        "optimizer = Adam(model.parameters(), lr=1.0)\n"
        "scheduler = LambdaLR(optimizer, lambda step: warmup_cosine(step, {lr}, {warmup}, {total}, {lr_min}))",
        warm_marks,
    ),
    "StepLR": Kind(("step_size", "gamma"), stairs, "StepLR(optimizer, {arguments})"),
    "MultiStepLR": Kind(
        ("milestones", "gamma"),
        chosen_stairs,
        "MultiStepLR(optimizer, milestones=[{milestones}], gamma={gamma})",
        lambda a: (Mark(step, "milestone") for step in read_milestones(str(a["milestones"]))),
    ),
    "ExponentialLR": Kind(("gamma",), shrinking, "ExponentialLR(optimizer, {arguments})"),
    "LinearLR": Kind(
        ("start_factor", "end_factor", "total_iters"),
        straight,
        "LinearLR(optimizer, {arguments})",
        ends("total_iters", "warm-up ends"),
    ),
    "CosineAnnealingLR": Kind(("T_max", "eta_min"), waves, "CosineAnnealingLR(optimizer, {arguments})", ends("T_max")),
    "CosineAnnealingWarmRestarts": Kind(
        ("T_0", "T_mult", "eta_min"), restarting, "CosineAnnealingWarmRestarts(optimizer, {arguments})", restarts
    ),
    "SequentialLR": Kind(
        ("start_factor", "total_iters", "T_max", "eta_min"),
        handed_over,
        "warmup = LinearLR(optimizer, start_factor={start_factor}, total_iters={total_iters})\n"
        "cosine = CosineAnnealingLR(optimizer, T_max={T_max}, eta_min={eta_min})\n"
        "scheduler = SequentialLR(optimizer, [warmup, cosine], milestones=[{total_iters}])",
        hand_over_marks,
    ),
    "OneCycleLR": Kind(
        ("total_steps", "pct_start", "div_factor", "final_div_factor", "anneal_strategy", "three_phase"),
        cycle,
        "OneCycleLR(optimizer, max_lr={lr}, total_steps={total_steps}, pct_start={pct_start},\n"
        "                       div_factor={div_factor}, final_div_factor={final_div_factor}, "
        "anneal_strategy={anneal_strategy!r},\n                       three_phase={three_phase}, "
        "cycle_momentum=False)",
        cycle_marks,
    ),
    "ReduceLROnPlateau": Kind(
        ("factor", "patience", "cooldown", "min_lr"),
        watching,
        "ReduceLROnPlateau(optimizer, {arguments})\n"
        f"# and after every {ROUND} steps: scheduler.step(the mean of their losses)",
    ),
}


def read_milestones(text: str) -> list[int]:
    """Whole numbers with commas between them, in rising order. Raises BadInput for anything else."""
    found = []
    for part in filter(None, (part.strip() for part in text.strip("[] ").split(","))):
        if not (part.isascii() and part.isdigit() and len(part) < 7):
            raise BadInput(f"The milestone {part!r} is not a step: type whole numbers with commas, as in 30, 60, 90.")
        found.append(int(part))
    return sorted(found)


def written_code(kind: str, lr: float, arguments: Arguments) -> str:
    """The lines that make this schedule, in the framework and in PyTorch."""
    values = {name: plain(value) for name, value in arguments.items()}
    inside = ", ".join(f"{name}={value}" for name, value in values.items())
    if "milestones" in values:
        values["milestones"] = ", ".join(map(str, read_milestones(str(arguments["milestones"]))))
    if "three_phase" in values:
        values["three_phase"] = str(arguments["three_phase"] == "on")
    lines = KINDS[kind].code.format(lr=plain(lr), arguments=inside, **values)
    if "scheduler = " not in lines:
        lines = f"scheduler = {lines}"
    return lines if lines.startswith("optimizer") else f"{OPTIMIZER.format(lr=plain(lr))}\n{lines}"


def plain(value: object) -> object:
    """A number as somebody would type it."""
    return float(f"{value:.6g}") if isinstance(value, float) else value


def written_call(kind: str, lr: float, arguments: Arguments) -> str:
    """A curve in one line, as the list of kept curves holds it."""
    inside = [("lr", plain(lr)), *((name, plain(value)) for name, value in arguments.items())]
    return f"{kind}({', '.join(f'{name}={value!r}' for name, value in inside)})"


def read_calls(text: str) -> Iterator[tuple[str, dict[str, object]]]:
    """The curves of the list: kind and arguments, `lr` among them. Raises BadInput for what cannot be read."""
    for part in filter(None, (part.strip() for part in text.split(";"))):
        try:
            call = ast.parse(part, mode="eval").body
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
                raise ValueError("no call")
            arguments = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
        except (SyntaxError, ValueError) as error:
            how = "write it as in StepLR(lr=0.1, step_size=30), with a semicolon between two"
            raise BadInput(f"{part!r} is not a curve: {how}.") from error
        if call.func.id not in KINDS:
            raise BadInput(f"There is no schedule {call.func.id!r}: choose one of {', '.join(KINDS)}.")
        yield call.func.id, arguments


def finite(curve: Sequence[float]) -> np.ndarray:
    """The part of a curve before it ends."""
    array = np.asarray(curve, float)
    stops = np.flatnonzero(~np.isfinite(array))
    return array[: stops[0]] if len(stops) else array
