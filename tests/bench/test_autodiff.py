"""The steps of chapter 02 are the same on every side: the same weights, the same gradients."""

from __future__ import annotations

import numpy as np

from autograder.bench import autodiff
from autograder.bench.harness import OURS, agree, arrays_of


def test_every_side_gives_the_gradients_of_the_hand_written_step() -> None:
    found = list(autodiff.comparisons())
    assert [one.name for one in found] == ["784-256-128-10, batch 64", "attention, 8x64x64, 4 heads"]
    for comparison in found:
        agree(comparison)
        ours = arrays_of(comparison.sides[OURS]())
        assert {array.dtype for array in ours} == {np.dtype(np.float32)}
        assert all(np.abs(array).max() > 0 for array in ours)


def test_a_step_by_hand_is_right() -> None:
    """Moved along a random direction, the perceptron's loss changes as its gradient says."""
    rng = np.random.default_rng(0)
    x, labels = rng.standard_normal((5, 4)), rng.integers(0, 3, 5)
    weights = [rng.standard_normal(shape) for shape in ((4, 6), (6,), (6, 4), (4,), (4, 3), (3,))]
    directions = [rng.standard_normal(w.shape) for w in weights]

    def loss(step: float) -> float:
        w1, b1, w2, b2, w3, b3 = (w + step * d for w, d in zip(weights, directions, strict=True))
        h = np.maximum(np.maximum(x @ w1 + b1, 0) @ w2 + b2, 0)
        return autodiff.losses_of(autodiff.softmax_of(h @ w3 + b3), labels)

    grads = autodiff.perceptron_by_hand(x, labels, *weights)
    claimed = sum(float((g * d).sum()) for g, d in zip(grads, directions, strict=True))
    assert np.isclose((loss(1e-6) - loss(-1e-6)) / 2e-6, claimed, rtol=1e-6)
