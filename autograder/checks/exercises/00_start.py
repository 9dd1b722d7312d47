"""Chapter 00: a dot product by loop, then vectorised. Both exercises meet the same cases."""

from __future__ import annotations

import numpy as np

from autograder.checks.exercise import Exercise, raised


def probe_dot(target, arrays, framework):
    """Two vectors -> their dot product, or whether two lengths that do not fit were refused."""
    a, b = arrays["a"], arrays["b"]
    if len(a) != len(b):
        return {"refused with ValueError": raised(ValueError, target, a, b)}
    return {"dot product": as_float64(target(a, b))}


def as_float64(result):
    """Any real number as float64: a first exercise does not turn on the kind of number. The rest stays as it is."""
    if isinstance(result, (int, float, np.number)) or (isinstance(result, np.ndarray) and result.shape == ()):
        return np.asarray(result, dtype=np.float64)
    return result


def by_hand(rng):
    return {"a": np.array([2.0, 1.0, 3.0]), "b": np.array([4.0, 5.0, 6.0])}


def of_lengths(rng, n, m):
    return {"a": rng.standard_normal(n), "b": rng.standard_normal(m)}


def cancelling(rng):
    return {"a": np.array([1.5, -2.0, 0.5, 1.0]), "b": np.array([2.0, 1.0, -3.0, 0.25])}


def fractions(rng):
    return {"a": rng.uniform(0.1, 0.9, 6), "b": rng.uniform(0.1, 0.9, 6)}


def whole_numbers(rng):
    return {"a": np.array([3, 1, 4, 1]), "b": np.array([2, 7, 1, 8])}


def eighths(rng):
    """float32 numbers whose products and sums are exact, so that no order of summing is better than another."""
    a, b = rng.integers(-16, 17, size=(2, 5)).astype(np.float32) / np.float32(8)
    return {"a": a, "b": b}


def inputs(rng, make, *args):
    return MAKERS[make](rng, *args)


MAKERS = {maker.__name__: maker for maker in (by_hand, of_lengths, cancelling, fractions, whole_numbers, eighths)}

CASES = {
    "small numbers, to follow by hand": ("by_hand",),
    "products of both signs, which partly cancel": ("cancelling",),
    "numbers below one, which whole-number arithmetic throws away": ("fractions",),
    "one element, the first and the last at once": ("of_lengths", 1, 1),
    "no elements at all, which add up to 0": ("of_lengths", 0, 0),
    "whole numbers, not floats": ("whole_numbers",),
    "float32 numbers, not only float64": ("eighths",),
    "b shorter than a, so that one element has no partner": ("of_lengths", 4, 3),
    "b longer than a, so that a loop over a never sees its end": ("of_lengths", 3, 5),
    "b of one element, which NumPy would repeat": ("of_lengths", 4, 1),
    "a of one element, which NumPy would repeat": ("of_lengths", 1, 3),
}


def draw(rng):
    """Two vectors of up to twelve elements, of one length three times out of four."""
    n = int(rng.integers(1, 13))
    return "of_lengths", n, n if rng.random() < 0.75 else n + int(rng.integers(1, 4))


exercises = [
    Exercise(
        id=id,
        name=name,
        kind="function",
        difficulty="Easy",
        minutes=5,
        points=2,
        probe=probe_dot,
        cases=CASES,
        inputs=inputs,
        draw=draw,
        see="the folded hints below the exercise: does one of them sound like you?",
    )
    for id, name in [("start-dot-loop", "dot_loop"), ("start-dot", "dot")]
]
