"""How the tensors of chapter 01's cases lie in their storage: with gaps, turned round, backwards, repeated."""

from __future__ import annotations

from math import prod

import numpy as np


def laid_out(shape, key=(), dims=None):
    """Storage size, shape, strides and offset of a view: an array of `shape`, indexed by `key`, its axes permuted."""
    places = np.arange(prod(shape))
    view = places.reshape(shape)[key]
    view = view.transpose(dims) if dims else view
    strides = tuple(step // view.itemsize for step in view.strides)
    return prod(shape), view.shape, strides, int(view.flat[0]) if view.size else 0


def describe(rng, size, shape, strides, offset, dtype=np.float64):
    return {
        "storage": rng.standard_normal(size).astype(dtype),
        "shape": np.array(shape, dtype=np.int64),
        "strides": np.array(strides, dtype=np.int64),
        "offset": np.array(offset),
    }


PLAIN = laid_out((2, 3, 4))
GAPS = laid_out((4, 5, 6), np.s_[1:, ::2, 1:5])
TURNED = laid_out((4, 3, 2), dims=(2, 0, 1))
BACKWARDS = laid_out((3, 3, 4), np.s_[:, ::-1, ::-2])
REPEATED = (5, (2, 3, 4), (0, 1, 0), 1)


def draw_layout(rng, ndim=3):
    """A view with gaps, an offset, axes in another order, and sometimes a negative stride."""
    base = tuple(int(n) for n in rng.integers(3, 6, size=ndim))
    key = tuple(slice(int(rng.integers(0, 2)), None, int(rng.choice([1, 2]))) for _ in base)
    if rng.random() < 0.4:
        key = (slice(None, None, -1), *key[1:])
    return laid_out(base, key, tuple(int(i) for i in rng.permutation(ndim)))


def draw_shape(rng, most=4):
    return tuple(int(n) for n in rng.integers(1, 5, size=rng.integers(1, most + 1)))
