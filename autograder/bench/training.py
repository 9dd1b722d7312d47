"""One step of training with the layers, losses and optimizers of chapters 04 to 06, against NumPy by hand.

The learning rate is so small that the weights stay what they are, to the digits that sides are compared in: every call
then calculates the same, however often it is made.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from autograder.bench.autodiff import BATCH, LAYERS, cross_entropy_backward, losses_of, softmax_of
from autograder.bench.harness import BASE, OURS, Comparison
from autograder.bench.rivals import rival
from gradwright.chapters import layers, losses, operations, optimizers

__all__ = ["RIVALS", "comparisons"]

RIVALS = ("PyTorch",)
BETAS, EPS, DECAY, MAX_NORM = (0.9, 0.999), 1e-8, 0.01, 1.0


def comparisons(lr: float = 1e-7, dtype: Any = np.float32) -> Iterator[Comparison]:
    yield training(lr, dtype)
    yield optimizer_alone(lr, dtype)


class HandWritten:
    """A perceptron of three layers and its AdamW, as somebody writes them who wants them fast."""

    def __init__(self, weights: list[np.ndarray], lr: float):
        self.weights, self.lr, self.step = [w.copy() for w in weights], lr, 0
        self.m, self.v = ([np.zeros_like(w) for w in weights] for _ in range(2))

    def gradients(self, x: np.ndarray, labels: np.ndarray) -> list[np.ndarray]:
        """Forward and backward; the weights lie as PyTorch's do, (out, in)."""
        w1, b1, w2, b2, w3, b3 = self.weights
        h1 = np.maximum(x @ w1.T + b1, 0)
        h2 = np.maximum(h1 @ w2.T + b2, 0)
        p = softmax_of(h2 @ w3.T + b3)
        losses_of(p, labels)
        g3 = cross_entropy_backward(p, labels)
        g2 = (g3 @ w3) * (h2 > 0)
        g1 = (g2 @ w2) * (h1 > 0)
        pairs = ((x, g1), (h1, g2), (h2, g3))
        return [array for h, g in pairs for array in (g.T @ h, np.add.reduce(g, axis=0))]

    def clip(self, grads: list[np.ndarray]) -> None:
        norm = sum(float(np.vdot(g, g)) for g in grads) ** 0.5
        if norm > MAX_NORM:
            for g in grads:
                g *= MAX_NORM / (norm + 1e-6)

    def adamw(self, grads: list[np.ndarray]) -> None:
        self.step += 1
        (beta1, beta2), lr = BETAS, self.lr
        root, share = (1 - beta2**self.step) ** 0.5, 1 - beta1**self.step
        for w, g, m, v in zip(self.weights, grads, self.m, self.v, strict=True):
            w *= 1 - lr * DECAY
            m *= beta1
            m += (1 - beta1) * g
            v *= beta2
            v += (1 - beta2) * (g * g)
            below = np.sqrt(v)
            below /= root
            below += EPS
            w -= lr / share * (m / below)

    def train(self, x: np.ndarray, labels: np.ndarray) -> list[np.ndarray]:
        grads = self.gradients(x, labels)
        self.clip(grads)
        self.adamw(grads)
        return self.weights


def data(dtype: Any) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """A batch, its labels, and weights."""
    rng = np.random.default_rng(0)
    x, labels = rng.standard_normal((BATCH, LAYERS[0]), dtype), rng.integers(0, LAYERS[-1], BATCH)
    shapes = [shape for n, m in itertools.pairwise(LAYERS) for shape in ((m, n), (m,))]
    return x, labels, [rng.standard_normal(shape, dtype) / dtype(shape[-1] ** 0.5) for shape in shapes]


def training(lr: float, dtype: Any) -> Comparison:
    """Forward, cross entropy, backward, clipping, AdamW."""
    x, labels, weights = data(dtype)
    by_hand = HandWritten(weights, lr)
    sides = {OURS: trained_here(x, labels, weights, lr), BASE: lambda: by_hand.train(x, labels)}
    if torch := rival("PyTorch"):
        sides["PyTorch"] = trained_in_torch(torch, x, labels, weights, lr)
    return Comparison("784-256-128-10, batch 64", "a training step", sum(w.size for w in weights), sides)


def trained_here(x: np.ndarray, labels: np.ndarray, weights: list[np.ndarray], lr: float) -> Callable[[], Any]:
    pairs = itertools.pairwise(LAYERS)
    first, second, third = (layers.Linear(n, m, dtype=x.dtype) for n, m in pairs)
    model = layers.Sequential(first, layers.ReLU(), second, layers.ReLU(), third)
    parameters = list(model.parameters())
    for p, w in zip(parameters, weights, strict=True):
        p.data.copy_(operations.tensor(w))
    inputs, targets = operations.tensor(x), operations.tensor(labels)
    optimizer = optimizers.AdamW(parameters, lr, BETAS, EPS, DECAY)

    def step() -> list[Any]:
        optimizer.zero_grad()
        losses.cross_entropy(model(inputs), targets).backward()
        losses.clip_grad_norm_(parameters, MAX_NORM)
        optimizer.step()
        return [p.data for p in parameters]

    return step


def trained_in_torch(
    torch: Any, x: np.ndarray, labels: np.ndarray, weights: list[np.ndarray], lr: float
) -> Callable[[], Any]:
    leaves = [torch.tensor(w, requires_grad=True) for w in weights]
    inputs, targets = torch.from_numpy(x), torch.from_numpy(labels)
    optimizer = torch.optim.AdamW(leaves, lr, BETAS, EPS, DECAY)

    def step() -> list[Any]:
        optimizer.zero_grad()
        h = inputs
        for i in (0, 2, 4):
            h = torch.nn.functional.linear(h, leaves[i], leaves[i + 1])
            h = h.relu() if i < 4 else h
        torch.nn.functional.cross_entropy(h, targets).backward()
        torch.nn.utils.clip_grad_norm_(leaves, MAX_NORM)
        optimizer.step()
        return [leaf.detach() for leaf in leaves]

    return step


def optimizer_alone(lr: float, dtype: Any) -> Comparison:
    """AdamW on the weights of that perceptron, with gradients that are there."""
    x, labels, weights = data(dtype)
    by_hand = HandWritten(weights, lr)
    grads = by_hand.gradients(x, labels)

    def step_by_hand() -> list[np.ndarray]:
        by_hand.adamw(grads)
        return by_hand.weights

    leaves = [operations.tensor(w.copy(), requires_grad=True) for w in weights]
    for p, g in zip(leaves, grads, strict=True):
        p.grad = operations.tensor(g)
    optimizer = optimizers.AdamW(leaves, lr, BETAS, EPS, DECAY)

    def step_here() -> list[Any]:
        optimizer.step()
        return [p.detach() for p in leaves]

    sides: dict[str, Callable[[], Any]] = {OURS: step_here, BASE: step_by_hand}
    if torch := rival("PyTorch"):
        sides["PyTorch"] = stepped_in_torch(torch, weights, grads, lr)
    return Comparison("AdamW alone", "the optimizer", sum(w.size for w in weights), sides)


def stepped_in_torch(torch: Any, weights: list[np.ndarray], grads: list[np.ndarray], lr: float) -> Callable[[], Any]:
    leaves = [torch.tensor(w, requires_grad=True) for w in weights]
    for leaf, g in zip(leaves, grads, strict=True):
        leaf.grad = torch.from_numpy(g.copy())
    optimizer = torch.optim.AdamW(leaves, lr, BETAS, EPS, DECAY)

    def step() -> list[Any]:
        optimizer.step()
        return [leaf.detach() for leaf in leaves]

    return step
