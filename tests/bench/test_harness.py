"""The harness on calculations whose time is known."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from autograder.bench.harness import SAMPLE, Comparison, Ratio, Timing, agree, measure
from autograder.errors import GradwrightError


def test_a_ratio_is_formed_within_each_round() -> None:
    """The machine is half as fast in the second round; no ratio notices."""
    comparison = Comparison("x", "g", 1, {})
    timing = Timing(comparison, {"Gradwright": np.array([3.0, 6.0, 3.6]), "NumPy": np.array([2.0, 4.0, 2.0])})
    assert timing.ratio() == pytest.approx(Ratio(1.5, 1.5, 1.65))
    assert timing.overhead() == pytest.approx(1e6)


def test_measured_times_are_those_of_the_calculations(workshop) -> None:
    [timing] = measure([workshop.comparison(Gradwright=3.0, NumPy=2.0, PyTorch=5.0)], 4, clock=workshop.clock)
    assert {side: list(seconds) for side, seconds in timing.seconds.items()} == {
        "Gradwright": [3.0] * 4,
        "NumPy": [2.0] * 4,
        "PyTorch": [5.0] * 4,
    }
    assert timing.ratio("PyTorch").median == 2.5
    assert timing.overhead("PyTorch") == 3e6


def test_short_calls_are_repeated_until_they_can_be_measured(workshop) -> None:
    [timing] = measure([workshop.comparison(Gradwright=SAMPLE / 10, NumPy=SAMPLE / 40)], 2, clock=workshop.clock)
    assert timing.ratio().median == pytest.approx(4)
    # Two calls to compare the numbers (the base twice), two to find how often, then per round one untimed and 40.
    assert workshop.log.count(("x + y", "Gradwright")) == 1 + 2 + 2 * 41
    assert workshop.log.count(("x + y", "NumPy")) == 2 + 2 + 2 * 41


def rounds(workshop, seed: int) -> list[list[tuple[str, str]]]:
    """Who was timed in each of six rounds, in order."""
    comparisons = [workshop.comparison(name, Gradwright=1.0, NumPy=1.0) for name in "abcd"]
    workshop.log.clear()
    measure(comparisons, 6, seed, workshop.clock)
    timed = workshop.log[-6 * 4 * 2 * 2 :]
    assert timed[::2] == timed[1::2], "each call that is timed follows one that is not"
    return [timed[start : start + 16 : 2] for start in range(0, len(timed), 16)]


def test_every_round_is_shuffled_and_the_sides_stay_together(workshop) -> None:
    found = rounds(workshop, seed=0)
    everybody = {(name, side) for name in "abcd" for side in ("Gradwright", "NumPy")}
    assert [set(one) for one in found] == [everybody] * 6
    assert all(first[0] == second[0] for one in found for first, second in zip(one[::2], one[1::2], strict=True))
    assert all(one != other for one, other in pairwise(found))
    assert {one[i][1] for one in found for i in range(0, 8, 2)} == {"Gradwright", "NumPy"}


def test_the_same_seed_shuffles_in_the_same_way(workshop) -> None:
    assert rounds(workshop, seed=1) == rounds(workshop, seed=1) != rounds(workshop, seed=2)


@pytest.mark.parametrize(
    "other",
    [np.array([1.0, 2.0, 3.01]), np.array([[1.0, 2.0, 3.0]]), np.array(1.0), (np.arange(1.0, 4.0),) * 2, [np.nan] * 3],
    ids=["value", "shape", "broadcasts", "number of results", "nan"],
)
def test_sides_that_differ_are_not_compared(other, workshop) -> None:
    wrong = Comparison("x + y", "sums", 3, {"Gradwright": lambda: other, "NumPy": lambda: np.arange(1.0, 4.0)})
    with pytest.raises(GradwrightError, match=r"x \+ y of 3 elements: Gradwright and NumPy do not calculate the same"):
        measure([wrong], clock=workshop.clock)


def test_sides_may_round_differently_and_return_several_arrays() -> None:
    near = np.arange(3, dtype=np.float32) * np.float32(1 + 1e-6)
    agree(Comparison("x", "g", 3, {"Gradwright": lambda: [near, near > 1], "NumPy": lambda: (np.arange(3), near > 1)}))
    agree(Comparison("x", "g", 0, {"Gradwright": lambda: np.ones((0, 2)), "NumPy": lambda: np.zeros((0, 2))}))
