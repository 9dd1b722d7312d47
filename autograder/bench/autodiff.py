"""One step, forward and backward, of a small network on the engine, against the same step written by hand in NumPy.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m autograder.bench.autodiff

The steps run in shuffled order in one process: whoever follows a large step starts with cold caches, and that should
not always be the same one. PyTorch and HIPS autograd run beside them where they are installed.
"""

from __future__ import annotations

import importlib.util
import itertools
import random
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

from gradwright.chapters import autodiff

Steps = dict[str, Callable[[], Any]]
BATCH, SIZES = 64, (784, 256, 128, 10)
SEQUENCES, LENGTH, WIDTH, HEADS = 8, 64, 64, 4


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


def softmax(t: Any) -> Any:
    return t.new(softmax_of(t.array))


class Softmax(autodiff.Operation, of=softmax):
    def forward(self, t: Any) -> Any:
        out = softmax(t)
        self.save(out)
        return out

    def backward(self, grad: np.ndarray) -> np.ndarray:
        (out,) = self.saved
        return softmax_backward(grad, out)


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


def mlp() -> Steps:
    """A perceptron of three layers on a batch of 64, with cross entropy."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((BATCH, SIZES[0]), np.float32)
    labels = rng.integers(0, SIZES[-1], BATCH)
    shapes = [shape for n, m in itertools.pairwise(SIZES) for shape in ((n, m), (m,))]
    weights = [rng.standard_normal(shape, np.float32) / np.float32(shape[0] ** 0.5) for shape in shapes]

    def by_hand() -> list[np.ndarray]:
        w1, b1, w2, b2, w3, b3 = weights
        h1 = np.maximum(x @ w1 + b1, 0)
        h2 = np.maximum(h1 @ w2 + b2, 0)
        p = softmax_of(h2 @ w3 + b3)
        losses_of(p, labels)
        g3 = cross_entropy_backward(p, labels)
        g2 = (g3 @ w3.T) * (h2 > 0)
        g1 = (g2 @ w2.T) * (h1 > 0)
        pairs = ((x, g1), (h1, g2), (h2, g3))
        return [array for h, g in pairs for array in (h.T @ g, np.add.reduce(g, axis=0))]

    inputs, leaves = autodiff.tensor(x), [autodiff.tensor(w, requires_grad=True) for w in weights]

    def on_the_engine() -> list[Any]:
        h = inputs
        for i in (0, 2, 4):
            h = h @ leaves[i] + leaves[i + 1]
            h = h.apply(relu, h) if i < 4 else h
        return gradients(h.apply(cross_entropy, h, labels=labels), leaves)

    steps = {"by hand": by_hand, "gradwright": on_the_engine}
    if importlib.util.find_spec("torch"):
        steps["torch"] = mlp_in_torch(x, labels, weights)
    if importlib.util.find_spec("autograd"):
        steps["HIPS autograd"] = mlp_in_hips(x, labels, weights)
    return steps


def attention() -> Steps:
    """Self-attention with four heads on 8 sequences of 64 vectors of 64 numbers, with a plain sum as the loss."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((SEQUENCES, LENGTH, WIDTH), np.float32)
    weights = [rng.standard_normal((WIDTH, WIDTH), np.float32) / np.float32(WIDTH**0.5) for _ in range(4)]
    scale = np.float32((WIDTH / HEADS) ** -0.5)
    apart, together = (SEQUENCES, LENGTH, HEADS, WIDTH // HEADS), (SEQUENCES, LENGTH, WIDTH)

    def by_hand() -> list[np.ndarray]:
        rows = x.reshape(-1, WIDTH)
        q, k, v = ((rows @ w).reshape(apart).transpose(0, 2, 1, 3) for w in weights[:3])
        a = softmax_of((q @ k.mT) * scale)
        o = (a @ v).transpose(0, 2, 1, 3).reshape(-1, WIDTH)
        np.add.reduce(o @ weights[3], axis=None)
        g = np.ones((len(rows), WIDTH), np.float32)
        g_out, g = o.T @ g, (g @ weights[3].T).reshape(apart).transpose(0, 2, 1, 3)
        g_v = a.mT @ g
        g_a = softmax_backward(g @ v.mT, a) * scale
        parts = (g_a @ k, g_a.mT @ q, g_v)
        flat = [part.transpose(0, 2, 1, 3).reshape(-1, WIDTH) for part in parts]
        g_x = flat[0] @ weights[0].T + flat[1] @ weights[1].T + flat[2] @ weights[2].T
        return [g_x.reshape(together), *(rows.T @ part for part in flat), g_out]

    leaves = [autodiff.tensor(array, requires_grad=True) for array in (x, *weights)]

    def on_the_engine() -> list[Any]:
        t = leaves[0]
        q, k, v = ((t @ w).view(apart).permute(0, 2, 1, 3) for w in leaves[1:4])
        scores = (q @ k.mT) * scale
        o = scores.apply(softmax, scores) @ v
        out = o.permute(0, 2, 1, 3).reshape(together) @ leaves[4]
        return gradients(out.sum(), leaves)

    steps = {"by hand": by_hand, "gradwright": on_the_engine}
    if importlib.util.find_spec("torch"):
        steps["torch"] = attention_in_torch(x, weights, float(scale), apart, together)
    return steps


def gradients(loss: Any, leaves: list[Any]) -> list[Any]:
    for leaf in leaves:
        leaf.grad = None
    loss.backward()
    return [leaf.grad for leaf in leaves]


def mlp_in_torch(x: np.ndarray, labels: np.ndarray, weights: list[np.ndarray]) -> Callable[[], Any]:
    import torch

    inputs, targets = torch.from_numpy(x), torch.from_numpy(labels)
    leaves = [torch.from_numpy(w.copy()).requires_grad_() for w in weights]

    def step() -> list[Any]:
        h = inputs
        for i in (0, 2, 4):
            h = torch.addmm(leaves[i + 1], h, leaves[i])
            h = h.relu() if i < 4 else h
        return gradients(torch.nn.functional.cross_entropy(h, targets), leaves)

    return step


def attention_in_torch(
    x: np.ndarray, weights: list[np.ndarray], scale: float, apart: tuple[int, ...], together: tuple[int, ...]
) -> Callable[[], Any]:
    import torch

    leaves = [torch.from_numpy(array.copy()).requires_grad_() for array in (x, *weights)]

    def step() -> list[Any]:
        q, k, v = ((leaves[0] @ w).view(apart).permute(0, 2, 1, 3) for w in leaves[1:4])
        o = torch.softmax((q @ k.mT) * scale, -1) @ v
        return gradients((o.permute(0, 2, 1, 3).reshape(together) @ leaves[4]).sum(), leaves)

    return step


def mlp_in_hips(x: np.ndarray, labels: np.ndarray, weights: list[np.ndarray]) -> Callable[[], Any]:
    import autograd
    import autograd.numpy as anp

    rows = np.arange(len(x))

    def loss(weights: list[np.ndarray]) -> Any:
        h = x
        for i in (0, 2, 4):
            h = anp.dot(h, weights[i]) + weights[i + 1]
            h = anp.maximum(h, 0) if i < 4 else h
        h = h - anp.max(h, axis=1, keepdims=True)
        return anp.mean(anp.log(anp.sum(anp.exp(h), axis=1)) - h[rows, labels])

    gradient = autograd.grad(loss)
    return lambda: gradient(weights)


def measure(steps: Steps, rounds: int = 300, seed: int = 0) -> dict[str, float]:
    """The median time of each step in seconds. They run once each a round, in an order that changes."""
    shuffle = random.Random(seed)
    times: dict[str, list[float]] = {name: [] for name in steps}
    order = list(steps)
    for turn in range(rounds + 20):
        shuffle.shuffle(order)
        for name in order:
            begun = time.perf_counter()
            steps[name]()
            if turn >= 20:
                times[name].append(time.perf_counter() - begun)
    return {name: median(taken) for name, taken in times.items()}


def overhead(rounds: int = 20_000) -> float:
    """Seconds for one recorded operation on a single number, forward and backward."""
    x = autodiff.tensor([1.0], requires_grad=True)
    one = autodiff.tensor([1.0])
    begun = time.perf_counter()
    h = x
    for _ in range(rounds):
        h = h * one
    h.backward()
    return (time.perf_counter() - begun) / rounds


def main() -> None:
    for benchmark in (mlp, attention):
        taken = measure(benchmark())
        hand = taken.pop("by hand")
        print(f"{benchmark.__name__:10} by hand {hand * 1e3:.2f} ms", end="")
        print("".join(f", {name} {seconds / hand:.2f}" for name, seconds in taken.items()))
    print(f"an operation, forward and backward: {overhead() * 1e6:.1f} us")


if __name__ == "__main__":
    main()
