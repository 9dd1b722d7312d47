"""The training step of chapters 04 to 06 is the same on every side, for many steps at a rate that moves something."""

from __future__ import annotations

import numpy as np

from autograder.bench import training
from autograder.bench.harness import BASE, OURS, agree, arrays_of


def test_every_side_calculates_the_same() -> None:
    found = list(training.comparisons())
    assert [one.name for one in found] == ["784-256-128-10, batch 64", "AdamW alone"]
    for comparison in found:
        agree(comparison)


def test_ten_steps_end_at_the_same_weights_far_from_where_they_began() -> None:
    _, _, begin = training.data()
    for comparison in training.comparisons(lr=0.01):
        for _ in range(10):
            ours, by_hand = (arrays_of(comparison.sides[side]()) for side in (OURS, BASE))
        for mine, wanted, before in zip(ours, by_hand, begin, strict=True):
            # Adam makes a whole step of a gradient that is nearly 0, so its float32 rounding shows in a few elements.
            assert np.isclose(mine, wanted, rtol=1e-3, atol=1e-3).mean() > 0.999
            assert np.abs(wanted - before).max() > 0.05
