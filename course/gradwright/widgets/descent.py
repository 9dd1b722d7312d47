"""A small network for the digits under plain descent, in NumPy alone, with the gradient of every layer kept.

It stands on no chapter, so that the widget works before chapter 04 is written. One step has one batch; step 0 has the
gradients of the initial weights. The same setting gives the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path

import numpy as np

from autograder.errors import BadInput

__all__ = ["ACTIVATIONS", "EDGES", "INITIALISATIONS", "STEPS", "WIDTH", "Record", "Setting", "run_of"]

DATA = Path(__file__).parents[2] / "data" / "digits.npz"
STEPS, WIDTH, BATCH, CLASSES = 40, 32, 64, 10
# Of the histograms: powers of ten of a gradient's magnitude.
EDGES = np.linspace(-12.0, 4.0, 33)


def sigmoid(z: np.ndarray) -> np.ndarray:
    return 0.5 * (1 + np.tanh(0.5 * z))


# Each with its derivative, as functions of the input.
ACTIVATIONS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], Callable[[np.ndarray], np.ndarray]]] = {
    "sigmoid": (sigmoid, lambda z: sigmoid(z) * sigmoid(-z)),
    "tanh": (np.tanh, lambda z: 1 - np.tanh(z) ** 2),
    "relu": (lambda z: np.maximum(z, 0.0), lambda z: (z > 0) * 1.0),
    "silu": (lambda z: z * sigmoid(z), lambda z: sigmoid(z) * (1 + z * sigmoid(-z))),
}
# The standard deviation of the weights, by the number of inputs and outputs of the layer.
INITIALISATIONS: dict[str, Callable[[int, int], float]] = {
    "Xavier": lambda inputs, outputs: (2 / (inputs + outputs)) ** 0.5,
    "Kaiming": lambda inputs, outputs: (2 / inputs) ** 0.5,
    "std 0.01": lambda inputs, outputs: 0.01,
    "std 1": lambda inputs, outputs: 1.0,
}


@dataclass(frozen=True)
class Setting:
    """`depth` counts the hidden layers; the output layer comes on top."""

    depth: int
    activation: str
    initialisation: str
    normalised: bool
    residual: bool
    rate: float


@dataclass(frozen=True)
class Record:
    """One step. By layer: the norm of its gradient, the histogram of log10 of its magnitudes, and the units that
    were zero for the whole batch."""

    loss: float
    right: float
    norms: tuple[float, ...]
    histograms: np.ndarray
    silent: tuple[int, ...]


@cache
def digits() -> tuple[np.ndarray, np.ndarray]:
    """The images as rows between -1 and 1, and their labels."""
    if not DATA.exists():
        raise BadInput(f"The digits are not there: put {DATA.name} back into the folder {DATA.parent}.")
    with np.load(DATA) as data:
        return data["images"].reshape(-1, 64) / 8.0 - 1.0, data["labels"].astype(int)


@dataclass
class Hidden:
    """What the pass forward leaves for the pass backward through one hidden layer."""

    input: np.ndarray
    spread: np.ndarray
    z: np.ndarray
    output: np.ndarray


class Run:
    """Trains as far as it is asked to, and remembers every step."""

    def __init__(self, setting: Setting) -> None:
        self.setting, self.records = setting, []
        self.act, self.slope = ACTIVATIONS[setting.activation]
        self.rng = np.random.default_rng(4)
        sizes = [64, *[WIDTH] * setting.depth, CLASSES]
        scale = INITIALISATIONS[setting.initialisation]
        pairs = list(pairwise(sizes))
        self.weights = [self.rng.normal(size=pair) * scale(*pair) for pair in pairs]
        self.biases = [np.zeros(size) for size in sizes[1:]]

    def upto(self, step: int) -> Sequence[Record]:
        """The records of step 0 to this one."""
        # A run that explodes is what the widget is there to show.
        with np.errstate(all="ignore"):
            while len(self.records) <= step:
                self.advance()
        return self.records[: step + 1]

    def advance(self) -> None:
        images, labels = digits()
        batch = self.rng.integers(len(labels), size=BATCH)
        wanted = np.eye(CLASSES)[labels[batch]]
        hidden = self.forward(images[batch])
        logits = hidden[-1].output @ self.weights[-1] + self.biases[-1]
        shifted = logits - logits.max(1, keepdims=True)
        log_p = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
        loss = float(-(log_p * wanted).sum() / BATCH)
        right = float((logits.argmax(1) == labels[batch]).mean())
        gradients = self.backward(hidden, (np.exp(log_p) - wanted) / BATCH)
        silent = tuple(int((layer.output == 0).all(0).sum()) for layer in hidden)
        flat = [np.concatenate([w.ravel(), b]) for w, b in gradients]
        self.records.append(Record(loss, right, tuple(map(norm, flat)), np.array([counted(g) for g in flat]), silent))
        for layer, (w, b) in enumerate(gradients):
            self.weights[layer] -= self.setting.rate * w
            self.biases[layer] -= self.setting.rate * b

    def forward(self, h: np.ndarray) -> list[Hidden]:
        kept = []
        for w, b in zip(self.weights[:-1], self.biases[:-1], strict=True):
            z, spread = h @ w + b, np.ones(1)
            if self.setting.normalised:
                z = z - z.mean(1, keepdims=True)
                spread = np.sqrt((z**2).mean(1, keepdims=True) + 1e-5)
                z = z / spread
            output = self.act(z) + (h if self.skips(h) else 0.0)
            kept.append(Hidden(h, spread, z, output))
            h = output
        return kept

    def skips(self, h: np.ndarray) -> bool:
        """Whether a layer adds its input to its output: the first cannot, as it has 64 inputs and 32 outputs."""
        return self.setting.residual and h.shape[1] == WIDTH

    def backward(self, hidden: Sequence[Hidden], g: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """The gradients of every layer's weight and bias, from the gradient of the logits."""
        gradients = [(hidden[-1].output.T @ g, g.sum(0))]
        g = g @ self.weights[-1].T
        for layer in range(len(hidden) - 1, -1, -1):
            kept = hidden[layer]
            inner = g * self.slope(kept.z)
            if self.setting.normalised:
                inner = inner / kept.spread
                # What the spread sends back, and then the mean.
                inner = inner - kept.z * (inner * kept.z).mean(1, keepdims=True)
                inner = inner - inner.mean(1, keepdims=True)
            gradients.append((kept.input.T @ inner, inner.sum(0)))
            g = inner @ self.weights[layer].T + (g if self.skips(kept.input) else 0.0)
        return gradients[::-1]


def norm(g: np.ndarray) -> float:
    return float(np.sqrt((g * g).sum()))


def counted(g: np.ndarray) -> np.ndarray:
    """How many magnitudes lie between each two EDGES; those beyond an end are counted at the end, zeros nowhere."""
    sizes = np.abs(g[np.isfinite(g) & (g != 0)])
    return np.histogram(np.clip(np.log10(sizes), EDGES[0], EDGES[-1]), EDGES)[0]


@lru_cache(maxsize=32)
def run_of(setting: Setting) -> Run:
    return Run(setting)
