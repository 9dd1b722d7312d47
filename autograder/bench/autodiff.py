"""One step, forward and backward, of two small networks on the engine, against the same step by hand in NumPy.

Tensors and softmax are chapter 03's; relu and cross entropy are operations of one piece too, as later chapters have
them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from autograder.bench.harness import BASE, OURS, Comparison
from autograder.bench.rivals import rival
from gradwright.chapters import autodiff, operations

__all__ = ["RIVALS", "comparisons"]

RIVALS = ("PyTorch", "HIPS autograd")
GROUP = "forward and backward"
BATCH, LAYERS = 64, (784, 256, 128, 10)
SEQUENCES, LENGTH, WIDTH, HEADS = 8, 64, 64, 4
APART, TOGETHER = (SEQUENCES, LENGTH, HEADS, WIDTH // HEADS), (SEQUENCES, LENGTH, WIDTH)


def comparisons() -> Iterator[Comparison]:
    yield perceptron()
    yield attention()


# Operations


def relu(t: Any) -> Any:
    return t.new(np.maximum(t.array, 0))


class Relu(autodiff.Operation, of=relu):
    def forward(self, t: Any) -> Any:
        out = relu(t)
        self.save(out)
        return out

    def backward(self, grad: np.ndarray) -> np.ndarray:
        (out,) = self.saved
        return grad * (out > 0)


def cross_entropy(logits: Any, labels: np.ndarray) -> Any:
    return logits.new(losses_of(softmax_of(logits.array), labels))


class CrossEntropy(autodiff.Operation, of=cross_entropy):
    def forward(self, logits: Any, labels: np.ndarray) -> Any:
        self.probabilities, self.labels = softmax_of(logits.array), labels
        return logits.new(losses_of(self.probabilities, labels))

    def backward(self, grad: np.ndarray) -> np.ndarray:
        return cross_entropy_backward(self.probabilities, self.labels) * grad


def softmax_of(x: np.ndarray) -> np.ndarray:
    """Over the last axis. The sums of short rows are faster as a matrix product."""
    out = x - np.maximum.reduce(x, axis=-1, keepdims=True)
    np.exp(out, out=out)
    out /= out @ np.ones((x.shape[-1], 1), x.dtype)
    return out


def softmax_backward(grad: np.ndarray, out: np.ndarray) -> np.ndarray:
    result = grad - np.vecdot(grad, out)[..., None]
    result *= out
    return result


def losses_of(p: np.ndarray, labels: np.ndarray) -> np.ndarray:
    picked = p[np.arange(len(p)), labels]
    return -np.add.reduce(np.log(picked)) / picked.dtype.type(len(p))


def cross_entropy_backward(p: np.ndarray, labels: np.ndarray) -> np.ndarray:
    grad = p.copy()
    grad[np.arange(len(p)), labels] -= 1
    grad /= grad.dtype.type(len(p))
    return grad


def gradients(loss: Any, leaves: list[Any]) -> list[Any]:
    """What backward leaves, for a step that begins with none."""
    for leaf in leaves:
        leaf.grad = None
    loss.backward()
    return [leaf.grad for leaf in leaves]


# A perceptron


def perceptron() -> Comparison:
    """Three layers on a batch of 64, with cross entropy."""
    rng = np.random.default_rng(0)
    x, labels = rng.standard_normal((BATCH, LAYERS[0]), np.float32), rng.integers(0, LAYERS[-1], BATCH)
    shapes = [shape for n, m in itertools.pairwise(LAYERS) for shape in ((n, m), (m,))]
    weights = [rng.standard_normal(shape, np.float32) / np.float32(shape[0] ** 0.5) for shape in shapes]
    sides = {OURS: perceptron_here(x, labels, weights), BASE: lambda: perceptron_by_hand(x, labels, *weights)}
    if torch := rival("PyTorch"):
        sides["PyTorch"] = perceptron_in_torch(torch, x, labels, weights)
    if hips := rival("HIPS autograd"):
        sides["HIPS autograd"] = perceptron_in_hips(hips, x, labels, weights)
    return Comparison("784-256-128-10, batch 64", GROUP, sum(w.size for w in weights), sides)


def perceptron_by_hand(x, labels, w1, b1, w2, b2, w3, b3) -> list[np.ndarray]:
    h1 = np.maximum(x @ w1 + b1, 0)
    h2 = np.maximum(h1 @ w2 + b2, 0)
    p = softmax_of(h2 @ w3 + b3)
    losses_of(p, labels)
    g3 = cross_entropy_backward(p, labels)
    g2 = (g3 @ w3.T) * (h2 > 0)
    g1 = (g2 @ w2.T) * (h1 > 0)
    pairs = ((x, g1), (h1, g2), (h2, g3))
    return [array for h, g in pairs for array in (h.T @ g, np.add.reduce(g, axis=0))]


def perceptron_here(x: np.ndarray, labels: np.ndarray, weights: list[np.ndarray]) -> Callable[[], Any]:
    inputs, leaves = operations.tensor(x), [operations.tensor(w, requires_grad=True) for w in weights]

    def step() -> list[Any]:
        h = inputs
        for i in (0, 2, 4):
            h = leaves[i + 1].addmm(h, leaves[i])
            h = h.apply(relu, h) if i < 4 else h
        return gradients(h.apply(cross_entropy, h, labels=labels), leaves)

    return step


def perceptron_in_torch(torch: Any, x: np.ndarray, labels: np.ndarray, weights: list[np.ndarray]) -> Callable[[], Any]:
    inputs, targets = torch.from_numpy(x), torch.from_numpy(labels)
    leaves = [torch.tensor(w, requires_grad=True) for w in weights]

    def step() -> list[Any]:
        h = inputs
        for i in (0, 2, 4):
            h = torch.addmm(leaves[i + 1], h, leaves[i])
            h = h.relu() if i < 4 else h
        return gradients(torch.nn.functional.cross_entropy(h, targets), leaves)

    return step


def perceptron_in_hips(hips: Any, x: np.ndarray, labels: np.ndarray, weights: list[np.ndarray]) -> Callable[[], Any]:
    np_of_hips, rows = hips.numpy, np.arange(len(x))

    def loss(weights: list[np.ndarray]) -> Any:
        h = x
        for i in (0, 2, 4):
            h = np_of_hips.dot(h, weights[i]) + weights[i + 1]
            h = np_of_hips.maximum(h, 0) if i < 4 else h
        h = h - np_of_hips.max(h, axis=1, keepdims=True)
        return np_of_hips.mean(np_of_hips.log(np_of_hips.sum(np_of_hips.exp(h), axis=1)) - h[rows, labels])

    gradient = hips.grad(loss)
    return lambda: gradient(weights)


# Attention


def attention() -> Comparison:
    """Self-attention with four heads on 8 sequences of 64 vectors of 64 numbers. The loss is the sum."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal(TOGETHER, np.float32)
    weights = [rng.standard_normal((WIDTH, WIDTH), np.float32) / np.float32(WIDTH**0.5) for _ in range(4)]
    scale = np.float32((WIDTH / HEADS) ** -0.5)
    sides = {OURS: attention_here(x, weights, scale), BASE: lambda: attention_by_hand(x, weights, scale)}
    if torch := rival("PyTorch"):
        sides["PyTorch"] = attention_in_torch(torch, x, weights, float(scale))
    return Comparison("attention, 8x64x64, 4 heads", GROUP, x.size, sides)


def attention_by_hand(x: np.ndarray, weights: list[np.ndarray], scale: np.float32) -> list[np.ndarray]:
    rows = x.reshape(-1, WIDTH)
    q, k, v = ((rows @ w).reshape(APART).transpose(0, 2, 1, 3) for w in weights[:3])
    a = softmax_of((q @ k.mT) * scale)
    o = (a @ v).transpose(0, 2, 1, 3).reshape(-1, WIDTH)
    np.add.reduce(o @ weights[3], axis=None)
    g = np.ones((len(rows), WIDTH), np.float32)
    g_out, g = o.T @ g, (g @ weights[3].T).reshape(APART).transpose(0, 2, 1, 3)
    g_v = a.mT @ g
    g_a = softmax_backward(g @ v.mT, a) * scale
    parts = [part.transpose(0, 2, 1, 3).reshape(-1, WIDTH) for part in (g_a @ k, g_a.mT @ q, g_v)]
    g_x = parts[0] @ weights[0].T + parts[1] @ weights[1].T + parts[2] @ weights[2].T
    return [g_x.reshape(TOGETHER), *(rows.T @ part for part in parts), g_out]


def attention_here(x: np.ndarray, weights: list[np.ndarray], scale: np.float32) -> Callable[[], Any]:
    leaves = [operations.tensor(array, requires_grad=True) for array in (x, *weights)]

    def step() -> list[Any]:
        q, k, v = ((leaves[0] @ w).view(APART).permute(0, 2, 1, 3) for w in leaves[1:4])
        o = ((q @ k.mT) * scale).softmax(-1) @ v
        return gradients((o.permute(0, 2, 1, 3).reshape(TOGETHER) @ leaves[4]).sum(), leaves)

    return step


def attention_in_torch(torch: Any, x: np.ndarray, weights: list[np.ndarray], scale: float) -> Callable[[], Any]:
    leaves = [torch.tensor(array, requires_grad=True) for array in (x, *weights)]

    def step() -> list[Any]:
        q, k, v = ((leaves[0] @ w).view(APART).permute(0, 2, 1, 3) for w in leaves[1:4])
        o = torch.softmax((q @ k.mT) * scale, -1) @ v
        return gradients((o.permute(0, 2, 1, 3).reshape(TOGETHER) @ leaves[4]).sum(), leaves)

    return step
