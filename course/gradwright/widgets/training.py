"""The gradients of a short training on the digits, for the number line: one hidden layer, Adam, NumPy alone.

It stands on no chapter, so that the widget works before any of them is written. Adam does not notice a constant in
front of the loss, so one training serves for every weight of it: the gradients are multiplied by the weight.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from .descent import digits

__all__ = ["STEPS", "gradients_of_run"]

STEPS, HIDDEN, CLASSES, BATCH = 60, 32, 10, 64
RATE, FADING, EPSILON = 3e-3, (0.9, 0.999), 1e-12


@cache
def gradients_of_run() -> np.ndarray:
    """Every gradient of every step, shape (STEPS, number of parameters), float64. The same every time."""
    images, labels = digits()
    rng = np.random.default_rng(10)
    sizes = [(64, HIDDEN), (HIDDEN,), (HIDDEN, CLASSES), (CLASSES,)]
    parameters = [rng.uniform(-1, 1, size) / 8 for size in sizes]
    means = [np.zeros((2, *p.shape)) for p in parameters]
    seen = []
    for step in range(1, STEPS + 1):
        batch = rng.integers(len(labels), size=BATCH)
        gradients = slopes(parameters, (images[batch] + 1) / 2, np.eye(CLASSES)[labels[batch]])
        seen.append(np.concatenate([g.ravel() for g in gradients]))
        for p, g, (m, v) in zip(parameters, gradients, means, strict=True):
            m += (1 - FADING[0]) * (g - m)
            v += (1 - FADING[1]) * (g * g - v)
            p -= RATE * m / (1 - FADING[0] ** step) / (np.sqrt(v / (1 - FADING[1] ** step)) + EPSILON)
    return np.array(seen)


def slopes(parameters: list[np.ndarray], x: np.ndarray, wanted: np.ndarray) -> list[np.ndarray]:
    """The gradients of the mean cross entropy, in the order of the parameters."""
    first, first_bias, second, second_bias = parameters
    z = x @ first + first_bias
    hidden = np.maximum(z, 0)
    logits = hidden @ second + second_bias
    powers = np.exp(logits - logits.max(1, keepdims=True))
    g = (powers / powers.sum(1, keepdims=True) - wanted) / len(x)
    inner = (g @ second.T) * (z > 0)
    return [x.T @ inner, inner.sum(0), hidden.T @ g, g.sum(0)]
