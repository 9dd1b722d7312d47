"""Chapter 01's Tensor against NumPy, operation by operation, from 1 to 10^7 elements.

All sides, PyTorch among them where it is installed, read the same memory. Chapter 01 indexes by numbers and slices
alone: what it gathers are the elements of a view, into a row of their own. Where indices are arrays, the tensor is
chapter 03's, the first that takes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np

from autograder.bench.harness import BASE, OURS, Comparison
from autograder.bench.rivals import rival

__all__ = ["RIVALS", "SIZES", "comparisons"]

RIVALS = ("PyTorch",)
SIZES = tuple(10**power for power in range(8))
LARGEST_MATRIX = 64


@dataclass(frozen=True)
class Operands:
    """What the operations read, as one side sees it.

    x, y     a matrix of the given number of elements, in row-major order
    s, u     the same shape, every second column of a wider matrix
    p, q     x and y transposed, as views
    row      as many elements as x has columns
    a, b     two stacks of square matrices, of as many elements or some less
    rows     the rows of all matrices of a in one matrix; gaps: the same shape, every second column of a wider matrix
    w, wt    one square matrix that fits the rows, and its transpose as a view
    v        a row of w
    full     x, as a tensor that can be indexed by arrays
    picks    as many numbers of rows as x has, in any order and with repeats
    places   in the shape of x, numbers of columns
    """

    x: Any
    y: Any
    s: Any
    u: Any
    p: Any
    q: Any
    row: Any
    a: Any
    b: Any
    rows: Any
    gaps: Any
    w: Any
    wt: Any
    v: Any
    full: Any
    picks: Any
    places: Any


@dataclass(frozen=True)
class Side:
    """How a side sees an array, without copying it: plainly, and so that arrays can index it."""

    convert: Callable[[np.ndarray], Any]
    indexed: Callable[[np.ndarray], Any]


def operands(size: int, arrays: Sequence[np.ndarray], side: Side) -> Operands:
    """The operands of `size` elements in the memory of `arrays`, as a side sees them.

    From there on there are only views, made by the side itself, so that each walks its own strides.
    """
    plain, other, wide, weight = map(side.convert, arrays[:4])
    full, picks, places = map(side.indexed, (arrays[0], *arrays[4:]))
    width = matrix_width(size)
    count = size // width**2
    height = count * width
    return Operands(
        x=plain,
        y=other,
        s=wide[:, ::2],
        u=wide[:, 1::2],
        p=plain.T,
        q=other.T,
        row=other[0],
        a=plain.reshape(-1)[: count * width**2].reshape(count, width, width),
        b=other.reshape(-1)[: count * width**2].reshape(count, width, width),
        rows=plain.reshape(-1)[: height * width].reshape(height, width),
        gaps=wide.reshape(-1)[: 2 * height * width].reshape(height, 2 * width)[:, ::2],
        w=weight,
        wt=weight.T,
        v=weight[0],
        full=full,
        picks=picks,
        places=places,
    )


def memory(size: int) -> list[np.ndarray]:
    """Random numbers for x, y, the wider matrix and w, then for picks and places.

    They lie between 0.5 and 1.5: no sum of them cancels, no product of them is so small that it takes longer.
    """
    across, along = shape_of(size)
    width = matrix_width(size)
    rng = np.random.default_rng(0)
    shapes = [(across, along), (across, along), (across, 2 * along), (width, width)]
    numbers = [rng.random(shape, np.float32) + np.float32(0.5) for shape in shapes]
    return [*numbers, rng.integers(across, size=across), rng.integers(along, size=(across, along))]


def matrix_width(size: int) -> int:
    return min(isqrt(size), LARGEST_MATRIX)


def shape_of(size: int) -> tuple[int, int]:
    """Two factors of size, as equal as can be, the smaller one first."""
    rows = next(n for n in range(isqrt(size), 0, -1) if size % n == 0)
    return rows, size // rows


Operation = Callable[[Operands], Any]

OPERATIONS: dict[str, dict[str, Operation | tuple[Operation, Operation]]] = {
    "elementwise": {
        "x + y": lambda d: d.x + d.y,
        "x * 2": lambda d: d.x * 2,
        "x + row": lambda d: d.x + d.row,
        "x > y": lambda d: d.x > d.y,
        "exp(x)": (lambda d: d.x.exp(), lambda d: np.exp(d.x)),
        "x + y, strided": lambda d: d.s + d.u,
        "exp(x), strided": (lambda d: d.s.exp(), lambda d: np.exp(d.s)),
        "x + y, transposed": lambda d: d.p + d.q,
    },
    "reduction": {
        "sum": lambda d: d.x.sum(),
        "sum over rows": lambda d: d.x.sum(0),
        "sum over columns": lambda d: d.x.sum(1),
        "mean over columns": lambda d: d.x.mean(1),
        "max over columns": (lambda d: d.x.amax(1), lambda d: d.x.max(1)),
        "argmax over columns": lambda d: d.x.argmax(1),
        "sum over columns, strided": lambda d: d.s.sum(1),
    },
    "view": {
        "x[0]": lambda d: d.x[0],
        "x[:, ::2]": lambda d: d.x[:, ::2],
        "x[None, ..., -1]": lambda d: d.x[None, ..., -1],
        "x.T": lambda d: d.x.T,
        "reshape(-1)": lambda d: d.x.reshape(-1),
        "broadcast_to": (lambda d: d.x.broadcast_to((2, *d.x.shape)), lambda d: np.broadcast_to(d.x, (2, *d.x.shape))),
    },
    "gather": {
        "x[:, ::2].contiguous()": (lambda d: d.s.contiguous(), lambda d: np.ascontiguousarray(d.s)),
        "x.T.contiguous()": (lambda d: d.p.contiguous(), lambda d: np.ascontiguousarray(d.p)),
        "x.T.reshape(-1)": lambda d: d.p.reshape(-1),
        "x[rows]": lambda d: d.full[d.picks],
        "x.gather(1, columns)": (
            lambda d: d.full.gather(1, d.places),
            lambda d: np.take_along_axis(d.full, d.places, 1),
        ),
    },
    "matmul": {
        "rows @ w": lambda d: d.rows @ d.w,
        "rows @ w.T": lambda d: d.rows @ d.wt,
        "rows @ w, strided": lambda d: d.gaps @ d.w,
        "rows @ vector": lambda d: d.rows @ d.v,
        "stack @ w": (lambda d: d.a @ d.w, lambda d: (d.a.reshape(-1, d.a.shape[-1]) @ d.w).reshape(d.a.shape)),
        "stack @ stack": lambda d: d.a @ d.b,
    },
}
"""Group, name, and what is calculated. Two functions where NumPy spells it differently: ours, which is also PyTorch's,
then NumPy's, written as one would by hand."""


def comparisons(sizes: Sequence[int] = SIZES) -> Iterator[Comparison]:
    """Every operation at every size, on contiguous and on strided float32 data."""
    from gradwright.chapters import operations as third
    from gradwright.chapters import tensor as first

    sides = {OURS: Side(first.from_numpy, third.from_numpy), BASE: Side(np.asarray, np.asarray)}
    if torch := rival("PyTorch"):
        sides["PyTorch"] = Side(torch.from_numpy, torch.from_numpy)
    for size in sizes:
        arrays = memory(size)
        data = {name: operands(size, arrays, side) for name, side in sides.items()}
        for group, operations in OPERATIONS.items():
            for name, ways in operations.items():
                ours, numpys = ways if isinstance(ways, tuple) else (ways, ways)
                yield Comparison(name, group, size, {s: bind(numpys if s == BASE else ours, data[s]) for s in data})


def bind(operation: Operation, data: Operands) -> Callable[[], Any]:
    return lambda: operation(data)
