"""Operations on one array with what backward gives for each, in plain NumPy, and their Jacobians in two ways."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

__all__ = ["OPERATIONS", "Operation", "analytic", "numerical"]

STEP = 1e-5
Array = np.ndarray
WEIGHT = np.array([[1.0, -0.5], [0.3, 2.0], [-1.2, 0.7], [0.6, 1.1]])
OFFSET = np.array([[0.5], [-1.0]])


@dataclass(frozen=True)
class Operation:
    """`forward(x)` is y, and `backward(x, u)` the gradient of sum(u * y) for x, of which it needs `axes` at least."""

    written: str
    forward: Callable[[Array], Array]
    backward: Callable[[Array, Array], Array]
    axes: int = 1


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def softmax_backward(x: Array, u: Array) -> Array:
    y = softmax(x)
    return y * (u - (u * y).sum(-1, keepdims=True))


def log_softmax(x: Array) -> Array:
    shifted = x - x.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def log_softmax_backward(x: Array, u: Array) -> Array:
    return u - softmax(x) * u.sum(-1, keepdims=True)


def spread(x: Array, u: Array) -> Array:
    """The gradient of a sum over the last axis, in each of its places."""
    return np.broadcast_to(u[..., None], x.shape)


def amax_backward(x: Array, u: Array) -> Array:
    """Shared evenly among the largest."""
    largest = x == x.max(-1, keepdims=True)
    return spread(x, u) * largest / largest.sum(-1, keepdims=True)


def cumsum_backward(x: Array, u: Array) -> Array:
    return u[..., ::-1].cumsum(-1)[..., ::-1]


def weight(x: Array) -> Array:
    """A matrix that fits behind x."""
    return np.resize(WEIGHT, (x.shape[-1], 2))


def offset(x: Array) -> Array:
    """An array with one axis more than x, of 2 and then 1s."""
    return OFFSET.reshape(2, *[1] * x.ndim)


OPERATIONS = {
    "relu": Operation("x.relu()", lambda x: np.maximum(x, 0), lambda x, u: u * (x > 0), axes=0),
    "softmax": Operation("x.softmax(-1)", softmax, softmax_backward),
    "log_softmax": Operation("x.log_softmax(-1)", log_softmax, log_softmax_backward),
    "sum": Operation("x.sum(-1)", lambda x: x.sum(-1), spread),
    "mean": Operation("x.mean(-1)", lambda x: x.mean(-1), lambda x, u: spread(x, u) / x.shape[-1]),
    "amax": Operation("x.amax(-1)", lambda x: x.max(-1), amax_backward),
    "cumsum": Operation("x.cumsum(-1)", lambda x: x.cumsum(-1), cumsum_backward),
    "matmul": Operation("x @ w", lambda x: x @ weight(x), lambda x, u: u @ weight(x).T),
    "broadcast add": Operation("x + a", lambda x: x + offset(x), lambda x, u: u.sum(0), axes=0),
    "permute, reshape": Operation(
        "x.T.reshape(-1)", lambda x: x.T.reshape(-1), lambda x, u: u.reshape(x.shape[::-1]).T, axes=0
    ),
    "repeat_interleave": Operation(
        "x.repeat_interleave(2, -1)", lambda x: x.repeat(2, -1), lambda x, u: u.reshape(*x.shape, 2).sum(-1)
    ),
}


def analytic(operation: Operation, x: Array) -> Array:
    """One row an output, one column an input: what backward gives for a seed of 1 at that output and 0 elsewhere."""
    shape = np.shape(operation.forward(x))
    seeds = np.eye(int(np.prod(shape)))
    return np.stack([operation.backward(x, seed.reshape(shape)).reshape(-1) for seed in seeds])


def numerical(operation: Operation, x: Array) -> Array:
    """The same from values alone: each input a little up, a little down, and the difference of all outputs."""
    columns = []
    for nudge in STEP * np.eye(x.size):
        up, down = (operation.forward(x + side * nudge.reshape(x.shape)) for side in (1, -1))
        columns.append(np.reshape(up - down, -1) / (2 * STEP))
    return np.stack(columns, axis=1)
