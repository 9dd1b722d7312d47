"""The training step of chapters 04 to 06 is the same on every side, for many steps at a rate that moves something."""

from __future__ import annotations

import numpy as np

from autograder.bench import training
from autograder.bench.harness import BASE, agree, arrays_of


def test_every_side_calculates_the_same() -> None:
    found = list(training.comparisons())
    assert [one.name for one in found] == ["784-256-128-10, batch 64", "AdamW alone"]
    for comparison in found:
        agree(comparison)


def test_ten_steps_end_at_the_same_weights_far_from_where_they_began() -> None:
    """In float64: Adam makes a whole step of a gradient that is nearly 0, in float32 one of its rounding."""
    _, _, begin = training.data(np.float64)
    for comparison in training.comparisons(lr=0.01, dtype=np.float64):
        for _ in range(10):
            found = {side: arrays_of(step()) for side, step in comparison.sides.items()}
        wanted = found[BASE]
        for weights in found.values():
            for mine, right, before in zip(weights, wanted, begin, strict=True):
                np.testing.assert_allclose(mine, right, rtol=1e-9, atol=1e-11)
                assert np.abs(right - before).max() > 0.03
