"""A small network for the digits in a short training by Adam, under any rate: the loss of every step.

It stands on no chapter, so that the widget works before any is written. The network, its first weights and the batches
are always the same: two trainings differ by nothing but their rates.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import cache
from itertools import pairwise

import numpy as np

from .descent import digits

__all__ = ["MOST_STEPS", "Rehearsal", "losses_under"]

MOST_STEPS, BATCH = 200, 32
SIZES = (64, 24, 24, 24, 24, 10)
FADING, FADING_SQUARES, EPS = 0.9, 0.999, 1e-8


@cache
def batches() -> tuple[np.ndarray, np.ndarray]:
    """The images and the one-hot labels of every step."""
    images, labels = digits()
    rows = np.random.default_rng(5).integers(len(labels), size=(MOST_STEPS, BATCH))
    return images[rows] / 2, np.eye(SIZES[-1])[labels[rows]]


class Rehearsal:
    """One training, step by step. All weights lie in one vector, which makes a step of Adam a few calls."""

    def __init__(self) -> None:
        rng, shapes = np.random.default_rng(4), [*pairwise(SIZES)]
        self.weights = np.concatenate(
            [np.append(rng.normal(size=a * b) * (2 / a) ** 0.5, np.zeros(b)) for a, b in shapes]
        )
        self.slope, self.mean, self.squares = (np.zeros_like(self.weights) for _ in range(3))
        self.layers, self.slopes = self.parts(self.weights), self.parts(self.slope)
        self.done, self.kept, self.kept_squares = 0, 1.0, 1.0

    @staticmethod
    def parts(vector: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Views of each layer's weight and bias."""
        found, begin = [], 0
        for a, b in pairwise(SIZES):
            end = begin + a * b
            found.append((vector[begin:end].reshape(a, b), vector[end : end + b]))
            begin = end + b
        return found

    def step(self, rate: float) -> float:
        """Take a step with this rate; the loss before it."""
        images, wanted = batches()
        x, wanted = images[self.done], wanted[self.done]
        with np.errstate(all="ignore"):
            loss = self.backward(x, wanted)
            self.descend(rate)
        self.done += 1
        return loss

    def backward(self, x: np.ndarray, wanted: np.ndarray) -> float:
        inputs = [x]
        for w, b in self.layers[:-1]:
            inputs.append(np.maximum(inputs[-1] @ w + b, 0))
        w, b = self.layers[-1]
        logits = inputs[-1] @ w + b
        logits -= logits.max(1, keepdims=True)
        shares = np.exp(logits)
        sums = shares.sum(1, keepdims=True)
        g = (shares / sums - wanted) / BATCH
        for (w, _), (of_w, of_b), seen in zip(self.layers[::-1], self.slopes[::-1], inputs[::-1], strict=True):
            np.matmul(seen.T, g, out=of_w)
            of_b[...] = g.sum(0)
            g = (g @ w.T) * (seen > 0)
        return float((np.log(sums[:, 0]) - (logits * wanted).sum(1)).mean())

    def descend(self, rate: float) -> None:
        self.mean += (1 - FADING) * (self.slope - self.mean)
        self.squares += (1 - FADING_SQUARES) * (self.slope**2 - self.squares)
        self.kept, self.kept_squares = self.kept * FADING, self.kept_squares * FADING_SQUARES
        spread = np.sqrt(self.squares / (1 - self.kept_squares)) + EPS
        self.weights -= rate / (1 - self.kept) * self.mean / spread


class Run:
    """A training that has gone as far as it was asked to, and can go on."""

    def __init__(self) -> None:
        self.training, self.rates, self.losses = Rehearsal(), [], []

    def begins(self, rates: list[float]) -> bool:
        """Whether these rates are those of this training, as far as both go."""
        both = min(len(rates), len(self.rates))
        return self.rates[:both] == rates[:both]

    def upto(self, rates: list[float]) -> np.ndarray:
        for rate in rates[len(self.rates) :]:
            self.rates.append(rate)
            self.losses.append(self.training.step(rate))
        return np.array(self.losses[: len(rates)])


RUNS: deque[Run] = deque(maxlen=64)


def losses_under(rates: Sequence[float]) -> np.ndarray:
    """The loss of every step of a training with these rates. What a training before has had in common is not done
    again, so that a schedule can be watched step by step and a training made longer."""
    wanted = list(rates)
    run = next((run for run in reversed(RUNS) if run.rates and run.begins(wanted)), None)
    if run is None:
        run = Run()
        RUNS.append(run)
    return run.upto(wanted)
