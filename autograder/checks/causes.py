"""Differences to their likely causes, where no known mistake gives the same numbers.

Each rule looks at one wrong output and says what single step would lead from the right answer to it. One case proves
little (every number is the right one times something): the judge believes a cause by how many failing cases share it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, permutations

import numpy as np

from autograder.checks.compare import Difference, allowed, distance
from autograder.checks.exercise import Arrays

MOST_AXES = 5
"""Beyond it, trying all permutations and sums would be felt."""


def likely_causes(difference: Difference, arrays: Arrays) -> list[str]:
    """Sentences that each explain this difference alone. `arrays` are the inputs of the case."""
    got, wanted = difference.got, difference.wanted
    if got is not None and got.dtype.kind == "U" != wanted.dtype.kind:
        return ["This is text and not a number: return the value itself, without quotes, `str` or an f-string."]
    if got is None or got.ndim > MOST_AXES or got.dtype.kind not in "fciub" or wanted.dtype.kind not in "fciub":
        return []
    if difference.kind == "dtype":
        return [f"The numbers are right, the dtype is not: {got.dtype} instead of {wanted.dtype}."]
    with np.errstate(all="ignore"):
        if difference.kind == "shape":
            return list(shape_causes(got, wanted))
        if "b" in (got.dtype.kind, wanted.dtype.kind):
            return list(truth_causes(got, wanted))
        return list(value_causes(got, wanted, arrays))


def equal(got: np.ndarray, wanted: np.ndarray) -> bool:
    return got.shape == wanted.shape and bool((distance(got, wanted) <= allowed(wanted)).all())


def shape_causes(got: np.ndarray, wanted: np.ndarray) -> Iterator[str]:
    if not got.size or not wanted.size:
        return
    if got.ndim == wanted.ndim:
        yield from reordered(got, wanted)
    if got.size == wanted.size and equal(got.reshape(wanted.shape), wanted):
        squeezed = [n for n in wanted.shape if n != 1] == [n for n in got.shape if n != 1]
        what = "an axis of size 1 is missing or too many" if squeezed else "reshaped"
        yield f"The numbers are right, the shape is not: {what}."
    if broadcasts(wanted.shape, got.shape) and equal(got, np.broadcast_to(wanted, got.shape)):
        yield "The right answer, repeated along an axis."
    for axes in some_axes(got.ndim):
        for reduce, word in ((np.sum, "sum"), (np.mean, "mean")):
            if any(equal(reduce(got, axes, keepdims=keep), wanted) for keep in (False, True)):
                yield f"A {word} over axis {listed(axes)} is missing."
    for axes in some_axes(wanted.ndim):
        if any(equal(got, wanted.sum(axes, keepdims=keep)) for keep in (False, True)):
            yield f"Summed over axis {listed(axes)}, which should have been kept."


def truth_causes(got: np.ndarray, wanted: np.ndarray) -> Iterator[str]:
    if got.dtype == wanted.dtype and wanted.any() and not wanted.all() and np.array_equal(got, ~wanted):
        yield "True and False are exchanged."


def value_causes(got: np.ndarray, wanted: np.ndarray, arrays: Arrays) -> Iterator[str]:
    finite = np.isfinite(wanted)
    if np.isnan(got[finite]).any():
        yield "nan where the right answer is a number: look for 0/0, inf - inf, a log or root of a negative number."
        return
    if np.isinf(got[finite]).any():
        yield "inf where the right answer is a number: look for a division by 0 or an overflow in exp."
        return
    if equal(got, -wanted):
        yield "The sign is wrong everywhere."
    elif equal(got, np.abs(wanted)):
        yield "The numbers are right, but a minus sign is lost."
    if wanted.any() and not got.any():
        yield "Everything is 0."
    yield from (f"This is the input `{name}`, unchanged." for name, array in arrays.items() if equal(got, array))
    yield from scaled(got, wanted, arrays)
    yield from reordered(got, wanted)
    if got.size > 1 and equal(np.sort(got.ravel()), np.sort(wanted.ravel())):
        yield "The right numbers, in another order."
    for change, word in ((np.square, "squared"), (np.reciprocal, "inverted (1 / x)"), (np.sqrt, "under a root")):
        if wanted.dtype.kind == "f" and not equal(wanted, change(wanted)) and equal(got, change(wanted)):
            yield f"The right answer, {word}."
    yield from at_the_edge(got, wanted)


def scaled(got: np.ndarray, wanted: np.ndarray, arrays: Arrays) -> Iterator[str]:
    """A constant factor or offset. That it is the size of something is believed where it follows that size."""
    if wanted.dtype.kind not in "fiu" or got.dtype.kind not in "fiu":
        return
    at = np.unravel_index(np.argmax(np.abs(wanted)), wanted.shape)
    if wanted[at] and got[at]:
        factor = float(got[at]) / float(wanted[at])
        if factor not in (1.0, -1.0) and equal(got.astype(float), factor * wanted.astype(float)):
            yield f"The right answer times {factor:.4g}."
            yield from size_of(factor, arrays)
    offset = float(got[at]) - float(wanted[at])
    if offset and equal(got.astype(float), wanted.astype(float) + offset):
        yield f"The right answer plus {offset:.4g}."


def size_of(factor: float, arrays: Arrays) -> Iterator[str]:
    for name, array in arrays.items():
        sizes = {f"the number of elements of `{name}`": array.size} if array.ndim else {}
        if array.ndim > 1:
            sizes |= {f"the size of axis {axis} of `{name}`": n for axis, n in enumerate(array.shape)}
        for what, n in sizes.items():
            if n > 1 and np.isclose(factor, n, 1e-6, 0):
                yield f"The right answer times {what}: a mean is missing."
            if n > 1 and np.isclose(factor, 1 / n, 1e-6, 0):
                yield f"The right answer divided by {what}: a mean where a sum is asked for."


def reordered(got: np.ndarray, wanted: np.ndarray) -> Iterator[str]:
    """Axes exchanged or reversed."""
    for order in permutations(range(wanted.ndim)):
        if order != tuple(range(wanted.ndim)) and equal(got, wanted.transpose(order)):
            how = "transposed" if wanted.ndim == 2 else f"with its axes in the order {order}"
            yield f"The right answer, {how}."
    if got.shape == wanted.shape:
        for axis in range(wanted.ndim):
            if wanted.shape[axis] > 1 and equal(got, np.flip(wanted, axis)):
                yield f"The right answer, reversed along axis {axis}."


def at_the_edge(got: np.ndarray, wanted: np.ndarray) -> Iterator[str]:
    """Wrong in the first or the last place of an axis only."""
    bad = distance(got, wanted) > allowed(wanted)
    for axis, n in enumerate(wanted.shape):
        places = np.unique(np.nonzero(bad)[axis])
        if n > 2 and len(places) == 1 and places[0] in (0, n - 1):
            yield f"Wrong only at the {'first' if places[0] == 0 else 'last'} place of axis {axis}."


def some_axes(ndim: int) -> Iterator[tuple[int, ...]]:
    """Every choice of one axis or more."""
    for n in range(1, ndim + 1):
        yield from combinations(range(ndim), n)


def broadcasts(small: tuple[int, ...], large: tuple[int, ...]) -> bool:
    pairs = zip(reversed(small), reversed(large), strict=False)
    return len(small) <= len(large) and all(a in (1, b) for a, b in pairs)


def listed(axes: tuple[int, ...]) -> str:
    return ", ".join(map(str, axes))
