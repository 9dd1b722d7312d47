"""Wrong and other right answers of chapter 00. The docstring of a mistake is the sentence that the learner reads."""

from __future__ import annotations

import math

import numpy as np


def refuse_different_lengths(a, b):
    if len(a) != len(b):
        raise ValueError(f"a has {len(a)} elements and b has {len(b)}")


def oracle_dot(arrays, torch):
    """torch.dot, in float64; it refuses different lengths too (with its own RuntimeError)."""
    a, b = (torch.from_numpy(arrays[name]).double() for name in ("a", "b"))
    if len(a) != len(b):
        return {"refused with ValueError": True}
    return {"dot product": torch.dot(a, b).numpy()}  # float64 for float32 vectors too, as the probe makes it


class start_dot_loop:
    oracle = oracle_dot

    class mistakes:
        def overwritten(a, b):
            """Each product replaced the total, so only the last one is left: add it to the total instead."""
            refuse_different_lengths(a, b)
            total = 0.0
            for x, y in zip(a, b, strict=True):
                total = x * y
            return total

        def returned_inside_the_loop(a, b):
            """The function returned after the first product: the `return` belongs after the loop, not inside it."""
            refuse_different_lengths(a, b)
            for x, y in zip(a, b, strict=True):
                return x * y

        def returned_inside_the_loop_and_after_it(a, b):
            """The function returned after the first product: keep the `return` after the loop, and none inside it."""
            refuse_different_lengths(a, b)
            return a[0] * b[0] if len(a) else 0.0

        def returned_inside_the_loop_lengths_unchecked(a, b):
            """The function returned after the first product: the `return` belongs after the loop, not inside it. Before
            the loop, compare the lengths."""
            for x, y in zip(a, b, strict=False):
                return x * y

        def return_never_reached_when_empty(a, b):
            """It returns from inside the loop, which an empty vector never enters: return once, after the loop."""
            refuse_different_lengths(a, b)
            total = 0.0
            for i in range(len(a)):
                total += a[i] * b[i]
                if i == len(a) - 1:
                    return total

        def started_at_one(a, b):
            """The total started at 1. A sum starts at 0: 1 is where a product starts."""
            refuse_different_lengths(a, b)
            return sum(a * b, 1.0)

        def started_with_the_first_product(a, b):
            """The total started with the first product, which an empty vector does not have: start at 0."""
            refuse_different_lengths(a, b)
            total = a[0] * b[0]
            for i in range(1, len(a)):
                total += a[i] * b[i]
            return total

        def first_skipped(a, b):
            """The first product is missing: places are counted from 0, so the loop must begin there."""
            refuse_different_lengths(a, b)
            return sum(a[1:] * b[1:])

        def last_skipped(a, b):
            """The last product is missing: `range(n)` already stops before n, so nothing is to be taken off."""
            refuse_different_lengths(a, b)
            return sum(a[:-1] * b[:-1])

        def added_instead_of_multiplied(a, b):
            """The elements were added in pairs. Multiply each pair, and add the products."""
            refuse_different_lengths(a, b)
            return sum(a + b)

        def never_left_zero(a, b):
            """The total never left 0: each product is to be added to it, and the sum to become the new total."""
            refuse_different_lengths(a, b)
            return 0.0

        def every_pair(a, b):
            """Every element of `a` met every element of `b`, not only its partner: pair equal places."""
            refuse_different_lengths(a, b)
            return sum(a) * sum(b)

        def a_twice(a, b):
            """Both factors came from `a`: one of them belongs to `b`."""
            refuse_different_lengths(a, b)
            return sum(a * a)

        def a_alone(a, b):
            """Only the elements of `a` were added up: multiply each by its partner in `b` first."""
            refuse_different_lengths(a, b)
            return sum(a)

        def absolute_values(a, b):
            """The signs of the products were dropped. A negative product takes its share away from the total."""
            refuse_different_lengths(a, b)
            return sum(abs(a * b))

        def fractions_cut_off(a, b):
            """The fractions were cut off on the way: keep the total a float, and use no `int()` and no `//`."""
            refuse_different_lengths(a, b)
            return sum(int(product) for product in a * b)

        def mean_of_products(a, b):
            """The sum was divided by the number of elements: a dot product is a sum, not a mean."""
            refuse_different_lengths(a, b)
            return sum(a * b) / max(len(a), 1)

        def wrapped(a, b):
            """The number is right but wrapped, as the only element of an array, a list or a tuple (a comma behind it
            makes one): return the number itself."""
            refuse_different_lengths(a, b)
            return (sum(a * b, 0.0),)

        def cut_to_the_shorter(a, b):
            """Vectors of different lengths were not refused, and whatever came back, they have no dot product: compare
            the lengths first (`zip` alone does not), and raise ValueError."""
            return sum(x * y for x, y in zip(a, b, strict=False))

        def lengths_left_to_indexing(a, b):
            """The lengths were not compared: a shorter `b` ends in an IndexError, a longer one in a wrong number.
            Compare them before the loop, and raise ValueError."""
            return sum((a[i] * b[i] for i in range(len(a))), 0.0)

        def only_shorter_b_refused(a, b):
            """A shorter `b` is refused, a longer one accepted, and its last elements ignored: refuse both."""
            if len(b) < len(a):
                raise ValueError(f"b has only {len(b)} elements, a has {len(a)}")
            return sum(a * b[: len(a)])

        def asserted(a, b):
            """Different lengths end in an AssertionError, which `python -O` switches off: raise ValueError."""
            assert len(a) == len(b)
            return sum(a * b)

    class alternatives:
        def zip_strict(a, b):
            total = 0.0
            for x, y in zip(a, b, strict=True):
                total += x * y
            return total

        def enumerated(a, b):
            refuse_different_lengths(a, b)
            total = 0
            for i, x in enumerate(a):
                total = total + x * b[i]
            return float(total)

        def generator(a, b):
            refuse_different_lengths(a, b)
            return sum(x * y for x, y in zip(a, b, strict=True))

        def from_the_end(a, b):
            refuse_different_lengths(a, b)
            total, i = 0.0, len(a)
            while i:
                i -= 1
                total += float(a[i]) * float(b[i])
            return total

        def compensated(a, b):
            refuse_different_lengths(a, b)
            return math.fsum(x * y for x, y in zip(a, b, strict=True))


class start_dot:
    oracle = oracle_dot

    class mistakes:
        def products_not_summed(a, b):
            """These are the products, one for each place: what is missing is their sum, a single number."""
            refuse_different_lengths(a, b)
            return a * b

        def outer_product(a, b):
            """This is the outer product, a table of every pair. The dot product is the sum of its diagonal."""
            refuse_different_lengths(a, b)
            return np.outer(a, b)

        def every_pair(a, b):
            """Every element of `a` met every element of `b`, as in the whole table of the picture: sum its diagonal."""
            refuse_different_lengths(a, b)
            return a.sum() * b.sum()

        def running_total(a, b):
            """These are the running totals, one for each place: what is asked for is the whole sum, a single number."""
            refuse_different_lengths(a, b)
            return np.cumsum(a * b)

        def axis_kept(a, b):
            """The number is right but wrapped, as the only element of an array, a list or a tuple (a comma behind it
            makes one): return the number itself."""
            refuse_different_lengths(a, b)
            return np.sum(a * b, keepdims=True)

        def repeated_by_broadcasting(a, b):
            """A vector of one element was repeated to fit the other: NumPy broadcasts before you see it. Compare the
            lengths yourself, and raise ValueError."""
            return (a * b).sum()

        def cut_to_the_shorter(a, b):
            """Vectors of different lengths were not refused, and whatever came back, they have no dot product: compare
            the lengths first, and raise ValueError."""
            n = min(len(a), len(b))
            return a[:n] @ b[:n]

        def asserted(a, b):
            """Different lengths end in an AssertionError, which `python -O` switches off: raise ValueError."""
            assert len(a) == len(b)
            return a @ b

        def empty_refused(a, b):
            """Two empty vectors were refused. They fit each other, and their dot product is 0."""
            if not len(a) or len(a) != len(b):
                raise ValueError(f"a has {len(a)} elements and b has {len(b)}")
            return a @ b

        def mean_of_products(a, b):
            """The products were averaged: a dot product is their sum. (The mean of no products is nan.)"""
            refuse_different_lengths(a, b)
            return (a * b).sum() / len(a) if len(a) else float("nan")

        def added_instead_of_multiplied(a, b):
            """The elements were added in pairs. Multiply each pair, and add the products."""
            refuse_different_lengths(a, b)
            return (a + b).sum()

        def a_twice(a, b):
            """Both factors came from `a`: one of them belongs to `b`."""
            refuse_different_lengths(a, b)
            return a @ a

        def absolute_values(a, b):
            """The signs of the products were dropped. A negative product takes its share away from the total."""
            refuse_different_lengths(a, b)
            return np.abs(a * b).sum()

        def fractions_cut_off(a, b):
            """The fractions were cut off on the way: keep the products floats, and use no `int()` and no `//`."""
            refuse_different_lengths(a, b)
            return (a * b).astype(int).sum()

        def cosine(a, b):
            """The dot product was divided by the two lengths in space, which makes it the cosine of the angle: do not
            divide."""
            refuse_different_lengths(a, b)
            norms = math.sqrt(a @ a) * math.sqrt(b @ b)
            return a @ b / norms if norms else 0.0

        def second_reversed(a, b):
            """`b` was read backwards, so the first element met the last: pair equal places."""
            refuse_different_lengths(a, b)
            return a @ b[::-1]

    class alternatives:
        def matmul(a, b):
            return a @ b

        def numpy_dot(a, b):
            return np.dot(a, b)

        def inner(a, b):
            return np.inner(a, b)

        def einsum(a, b):
            refuse_different_lengths(a, b)
            return np.einsum("i,i->", a, b)

        def products_then_sum(a, b):
            refuse_different_lengths(a, b)
            return np.multiply(a, b).sum()

        def row_times_column(a, b):
            refuse_different_lengths(a, b)
            return (a.reshape(1, -1) @ b.reshape(-1, 1)).item()
