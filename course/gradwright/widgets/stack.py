"""A stack of layers as it begins: what comes out of each, and how large the gradient is that arrives there.

It stands on no chapter, as `descent`, whose activations and digits it uses. Nothing is trained. All layers have the
same width, so that one standard deviation of the weights is right for all of them. The same setting gives the same
numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from .descent import ACTIVATIONS, digits

__all__ = ["BATCH_NORM", "INITIALISATIONS", "KINDS", "LAYER_NORM", "NONE", "WIDTH", "Layer", "Stack", "stack_of"]

WIDTH, BATCH = 64, 256
NONE, LAYER_NORM, BATCH_NORM = "none", "layer norm", "batch norm"
# Over which axis the mean and the deviation are taken.
AXES = {LAYER_NORM: 1, BATCH_NORM: 0}
KINDS = {NONE: (lambda z: z, np.ones_like), **ACTIVATIONS}
# The standard deviation of the weights of a layer with so many inputs and outputs.
INITIALISATIONS: dict[str, Callable[[int], float]] = {
    "PyTorch's default": lambda width: (1 / (3 * width)) ** 0.5,
    "Xavier": lambda width: (1 / width) ** 0.5,
    "Kaiming": lambda width: (2 / width) ** 0.5,
}
# Below this share of the steepest slope an output hardly moves with its input.
FLAT = 0.1


@dataclass(frozen=True)
class Stack:
    depth: int
    activation: str
    initialisation: str
    factor: float
    normalisation: str


@dataclass(frozen=True)
class Layer:
    """What comes out of one layer and the gradient that arrives there, for a batch: (examples, units)."""

    output: np.ndarray
    gradient: np.ndarray
    flat: float
    """The share of outputs on a flat part of the activation."""


@lru_cache(maxsize=64)
def stack_of(stack: Stack) -> list[Layer]:
    """Digits go in at the first layer, and a random gradient of size 1 comes back from the last."""
    # A stack that explodes is what the widget is there to show.
    with np.errstate(all="ignore"):
        return passed(stack)


def passed(stack: Stack) -> list[Layer]:
    rng = np.random.default_rng(4)
    scale = stack.factor * INITIALISATIONS[stack.initialisation](WIDTH)
    weights = rng.normal(size=(stack.depth, WIDTH, WIDTH)) * scale
    act, slope = KINDS[stack.activation]
    images = digits()[0][:BATCH]
    h, kept = (images - images.mean()) / images.std(), []
    for w in weights:
        z, spread = normalised(h @ w, AXES.get(stack.normalisation))
        h = act(z)
        kept.append((z, spread, h))
    g, layers = rng.normal(size=h.shape), []
    steepest = slope(np.zeros(1) if stack.activation in ("sigmoid", "tanh") else np.ones(1))[0]
    for w, (z, spread, h) in zip(weights[::-1], kept[::-1], strict=True):
        slopes = slope(z)
        layers.append(Layer(h, g, float((slopes < FLAT * steepest).mean())))
        g = back_through(g * slopes, z, spread, AXES.get(stack.normalisation)) @ w.T
    return layers[::-1]


def normalised(z: np.ndarray, axis: int | None) -> tuple[np.ndarray, np.ndarray]:
    """z with mean 0 and deviation 1 along the axis, and what it was divided by."""
    if axis is None:
        return z, np.ones(1)
    around = z - z.mean(axis, keepdims=True)
    spread = np.sqrt((around**2).mean(axis, keepdims=True) + 1e-5)
    return around / spread, spread


def back_through(g: np.ndarray, z: np.ndarray, spread: np.ndarray, axis: int | None) -> np.ndarray:
    """The gradient in front of the normalisation whose result is z, from the one behind it."""
    if axis is None:
        return g
    return (g - g.mean(axis, keepdims=True) - z * (g * z).mean(axis, keepdims=True)) / spread
