"""Times several ways to calculate the same thing, in one run, so that their ratio means something.

A machine is faster in one minute than in the next. So nothing is compared across minutes: a round times every
comparison once, in shuffled order, its sides one right after the other, also shuffled; a ratio is formed within each
round. What is reported is the median of these ratios, with the quartiles as spread.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from autograder.errors import GradwrightError

__all__ = ["BASE", "OURS", "ROUNDS", "Comparison", "Ratio", "Timing", "agree", "measure"]

OURS, BASE = "Gradwright", "NumPy"
ROUNDS = 25
SAMPLE = 4e-3
"""Seconds that a sample lasts at least: short calls are repeated until they fill it."""
MOST_CALLS = 2000
CLOCK = time.thread_time if time.get_clock_info("thread_time").resolution < 1e-6 else time.perf_counter
"""This thread's own time, so that the turns of other programs do not count. Windows counts it too coarsely."""
TOLERANCE = 1e-4
"""Of the largest number: float32 sums of 10^7 elements in another order differ by some 1e-6 of it."""


@dataclass(frozen=True)
class Comparison:
    """One calculation on the same data, done by several sides.

    name   what is calculated, as one would write it: "x + y"
    group  what it is shown with: a block of the table, a panel of the picture
    size   how many elements it works on; a name may come at several sizes
    sides  for each side a function without arguments; OURS and BASE are among them. It returns what it calculated:
           an array, a tensor, or a tuple or list of them
    """

    name: str
    group: str
    size: int
    sides: Mapping[str, Callable[[], Any]]


class Ratio(NamedTuple):
    """A side's time divided by NumPy's: the median over the rounds, and the quartiles."""

    median: float
    low: float
    high: float


@dataclass(frozen=True)
class Timing:
    """What was measured of a comparison: for each side the seconds of one call, one number a round."""

    comparison: Comparison
    seconds: Mapping[str, np.ndarray]

    def ratio(self, side: str = OURS) -> Ratio:
        low, median, high = np.quantile(self.seconds[side] / self.seconds[BASE], [0.25, 0.5, 0.75])
        return Ratio(float(median), float(low), float(high))

    def overhead(self, side: str = OURS) -> float:
        """Microseconds that a call takes longer than NumPy's, from the fastest round: disturbances only ever add."""
        return float(self.seconds[side].min() - self.seconds[BASE].min()) * 1e6


def measure(
    comparisons: Iterable[Comparison],
    rounds: int = ROUNDS,
    seed: int = 0,
    clock: Callable[[], float] = CLOCK,
) -> list[Timing]:
    """Time every comparison in each of `rounds` rounds; the same seed shuffles in the same way.

    Raises GradwrightError, before anything is timed, where two sides of a comparison do not give the same numbers.
    """
    comparisons = list(comparisons)
    for comparison in comparisons:
        agree(comparison)
    calls = [calls_for(comparison, clock) for comparison in comparisons]
    timings = [Timing(c, {side: np.empty(rounds) for side in c.sides}) for c in comparisons]
    order = random.Random(seed)
    for number in range(rounds):
        for i in order.sample(range(len(timings)), len(timings)):
            sides = comparisons[i].sides
            for side in order.sample(list(sides), len(sides)):
                timings[i].seconds[side][number] = seconds_of_a_call(sides[side], calls[i], clock)
    return timings


def seconds_of_a_call(function: Callable[[], Any], calls: int, clock: Callable[[], float]) -> float:
    function()  # not timed: every side then finds its own data in the caches, whatever ran before it
    begun = clock()
    for _ in range(calls):
        function()
    return (clock() - begun) / calls


def calls_for(comparison: Comparison, clock: Callable[[], float]) -> int:
    """How many calls make a sample that the clock can measure, for the fastest side; the same for all sides."""
    fastest = min(seconds_of_a_call(function, 1, clock) for function in comparison.sides.values())
    return MOST_CALLS if fastest * MOST_CALLS < SAMPLE else math.ceil(SAMPLE / fastest)


def agree(comparison: Comparison) -> None:
    """Raise GradwrightError unless every side gives NumPy's numbers, up to rounding."""
    wanted = arrays_of(comparison.sides[BASE]())
    for side, function in comparison.sides.items():
        got = arrays_of(function())
        if len(got) != len(wanted) or not all(map(close, got, wanted)):
            raise GradwrightError(
                f"{comparison.name} of {comparison.size} elements: {side} and {BASE} do not calculate the same, "
                f"so their times cannot be compared."
            )


def arrays_of(result: Any) -> list[np.ndarray]:
    return [np.asarray(one) for one in (result if isinstance(result, tuple | list) else [result])]


def close(got: np.ndarray, wanted: np.ndarray) -> bool:
    if got.shape != wanted.shape:
        return False
    scale = np.abs(wanted).max(initial=0)
    return np.allclose(got, wanted, rtol=TOLERANCE, atol=TOLERANCE * scale)
