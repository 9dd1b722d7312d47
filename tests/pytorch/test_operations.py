"""Chapter 03 beside PyTorch: elementwise operations and reductions, their values and gradients."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from .beside import F32, F64, compare, numbers, with_ties

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore:(var|std)... degrees of freedom:UserWarning")]

nan, inf = math.nan, math.inf
SHAPES = [(), (1,), (5,), (3, 4), (2, 3, 4), (0,), (3, 0), (0, 3)]
PAIRS = [
    *[((), ()), ((), (2, 3)), ((2, 3), ()), ((3, 4), (3, 4)), ((2, 3, 4), (4,)), ((4,), (2, 3, 4))],
    *[((3, 1), (1, 4)), ((2, 1, 4), (3, 1)), ((0, 3), (3,)), ((0, 3), (1, 3)), ((1,), (1, 1)), ((1, 0), (4, 1))],
]
EDGES = [nan, -inf, inf, -800.0, -40.0, -1.0, -0.0, 0.0, 1e-8, 1.0, 20.0, 25.0, 800.0]


UNARY: dict[str, Callable] = {
    "neg": lambda m, a: -a,
    "exp": lambda m, a: a.exp(),
    "log": lambda m, a: a.log(),
    "log1p": lambda m, a: a.log1p(),
    "expm1": lambda m, a: a.expm1(),
    "sqrt": lambda m, a: a.sqrt(),
    "rsqrt": lambda m, a: a.rsqrt(),
    "abs": lambda m, a: a.abs(),
    "sin": lambda m, a: a.sin(),
    "cos": lambda m, a: a.cos(),
    "tanh": lambda m, a: a.tanh(),
    "sigmoid": lambda m, a: a.sigmoid(),
    "relu": lambda m, a: a.relu(),
    "reciprocal": lambda m, a: a.reciprocal(),
    "square": lambda m, a: a.square(),
    "silu": lambda m, a: m.silu(a),
    "gelu": lambda m, a: m.gelu(a),
    "gelu tanh": lambda m, a: m.gelu(a, approximate="tanh"),
    "softplus": lambda m, a: m.softplus(a),
    "softplus beta": lambda m, a: m.softplus(a, 2.5, 4),
    "clamp": lambda m, a: a.clamp(-1, 1),
    "clamp below": lambda m, a: a.clamp(min=0.0),
    "clamp above": lambda m, a: a.clamp(max=0.5),
    "clamp crossed": lambda m, a: a.clamp(1, -1),
    "maximum of itself": lambda m, a: m.maximum(a, a * a),
    "where with a number": lambda m, a: m.where(a > 0, a, -1.5),
    "where with a number first": lambda m, a: m.where(a > 0, 2.0, a * a),
    "where of a pole": lambda m, a: m.where(a > 0, a.sqrt(), a * 2),
    "masked_fill": lambda m, a: a.masked_fill(a > 0.5, -inf),
    "squared and back": lambda m, a: (a**2 + 1).sqrt() * a,
}
BINARY: dict[str, Callable] = {
    "maximum": lambda m, a, b: m.maximum(a, b),
    "minimum": lambda m, a, b: m.minimum(a, b),
    "where": lambda m, a, b: m.where(a > b, a, b * b),
    "where method": lambda m, a, b: a.where(b > 0, b),
    "pow": lambda m, a, b: (a * a + 0.1) ** b,
    "div": lambda m, a, b: a / (b * b + 0.5),
}


@pytest.mark.parametrize("dtype", [F64, F32])
@pytest.mark.parametrize("name", list(UNARY))
def test_one_input(name: str, dtype: Any) -> None:
    for shape in SHAPES:
        compare(lambda m, a: UNARY[name](m, a), numbers(shape, dtype=dtype))
        compare(lambda m, a: UNARY[name](m, a), with_ties(shape, dtype=dtype))


@pytest.mark.parametrize("name", list(UNARY))
def test_one_input_at_the_edges(name: str) -> None:
    compare(UNARY[name], np.array(EDGES))


@pytest.mark.parametrize("name", list(UNARY))
def test_one_input_in_another_order(name: str) -> None:
    compare(lambda m, a: UNARY[name](m, a.permute(2, 0, 1)), numbers((2, 3, 4)))
    compare(lambda m, a: UNARY[name](m, a[:, 1:, None, 2]), numbers((2, 3, 4)))
    compare(lambda m, a: UNARY[name](m, a.expand(3, 4)), numbers((3, 1)))


@pytest.mark.parametrize(("name", "shapes"), list(itertools.product(BINARY, PAIRS)))
def test_two_inputs(name: str, shapes: tuple) -> None:
    compare(BINARY[name], *[numbers(shape, i) for i, shape in enumerate(shapes)])
    compare(BINARY[name], *[with_ties(shape, i) for i, shape in enumerate(shapes)])
    compare(BINARY[name], *[numbers(shape, i, F32) for i, shape in enumerate(shapes)])


@pytest.mark.parametrize("name", ["maximum", "minimum", "where", "where method"])
def test_two_inputs_at_the_edges(name: str) -> None:
    pairs = np.array(list(itertools.product(EDGES, EDGES))).T
    compare(BINARY[name], pairs[0].copy(), pairs[1].copy())


REDUCTIONS: dict[str, Callable] = {
    "sum": lambda m, a, dim, k: a.sum(dim, keepdim=k),
    "mean": lambda m, a, dim, k: a.mean(dim, keepdim=k),
    "var": lambda m, a, dim, k: a.var(dim, keepdim=k),
    "var 0": lambda m, a, dim, k: a.var(dim, correction=0, keepdim=k),
    "std": lambda m, a, dim, k: a.std(dim, keepdim=k),
    "amax": lambda m, a, dim, k: a.amax(dim, keepdim=k),
    "amin": lambda m, a, dim, k: a.amin(dim, keepdim=k),
    "logsumexp": lambda m, a, dim, k: a.logsumexp(dim, keepdim=k),
    "norm 1": lambda m, a, dim, k: a.norm(1, dim, keepdim=k),
    "norm 2": lambda m, a, dim, k: a.norm(2, dim, keepdim=k),
    "norm inf": lambda m, a, dim, k: a.norm(inf, dim, keepdim=k),
}
ALONG: dict[str, Callable] = {
    "max": lambda m, a, dim, k: a.max(dim, keepdim=k),
    "min": lambda m, a, dim, k: a.min(dim, keepdim=k),
    "prod": lambda m, a, dim, k: a.prod(dim, keepdim=k),
    "cumsum": lambda m, a, dim, k: a.cumsum(dim),
    "softmax": lambda m, a, dim, k: a.softmax(dim),
    "log_softmax": lambda m, a, dim, k: a.log_softmax(dim),
    "argmax": lambda m, a, dim, k: [a.argmax(dim, keepdim=k), a.argmin(dim, keepdim=k), a * 1],
}
WHOLE: dict[str, Callable] = {
    "sum": lambda m, a: a.sum(),
    "mean": lambda m, a: a.mean(),
    "var": lambda m, a: a.var(),
    "std": lambda m, a: a.std(),
    "prod": lambda m, a: a.prod(),
    "norm": lambda m, a: a.norm(),
}
EXTREMA: dict[str, Callable] = {
    "max": lambda m, a: a.max(),
    "min": lambda m, a: a.min(),
    "amax": lambda m, a: a.amax(),
    "amin": lambda m, a: a.amin(),
    "norm inf": lambda m, a: a.norm(inf),
    "argmax": lambda m, a: [a.argmax(), a.argmin(), a * 1],
}


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dim", [0, -1, 1, (0, 2), (-1, 0), (0, 1, 2)])
@pytest.mark.parametrize("name", list(REDUCTIONS))
def test_over_axes(name: str, dim: Any, keepdim: bool) -> None:
    for array in (numbers((2, 3, 4)), with_ties((2, 3, 4)), numbers((2, 3, 4), dtype=F32), np.ones((2, 1, 3))):
        compare(lambda m, a: REDUCTIONS[name](m, a, dim, keepdim), array)
    compare(lambda m, a: REDUCTIONS[name](m, a.permute(1, 2, 0), dim, keepdim), numbers((2, 3, 4)))


@pytest.mark.parametrize("name", [name for name in REDUCTIONS if name not in ("amax", "amin", "norm inf")])
def test_over_axes_of_no_elements(name: str) -> None:
    for shape, dim in (((0, 3), 0), ((0, 3), 1), ((3, 0), (0, 1)), ((0,), 0)):
        compare(lambda m, a, dim=dim: REDUCTIONS[name](m, a, dim, False), np.zeros(shape))


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dim", [0, -1, 1])
@pytest.mark.parametrize("name", list(ALONG))
def test_along_an_axis(name: str, dim: int, keepdim: bool) -> None:
    for array in (numbers((2, 3, 4)), with_ties((2, 3, 4)), numbers((2, 3, 4), dtype=F32), 900 * numbers((2, 3, 4))):
        compare(lambda m, a: ALONG[name](m, a, dim, keepdim), array)
    compare(lambda m, a: ALONG[name](m, a.permute(1, 2, 0), dim, keepdim), numbers((2, 3, 4)))


@pytest.mark.parametrize("name", list(ALONG))
def test_along_the_only_axis_and_none(name: str) -> None:
    compare(lambda m, a: ALONG[name](m, a, 0, False), numbers((5,)))
    compare(lambda m, a: ALONG[name](m, a, -1, False), numbers(()))
    if name in ("prod", "cumsum", "softmax", "log_softmax"):
        for shape, dim in (((0, 3), 0), ((0, 3), 1), ((3, 0), 1)):
            compare(lambda m, a, dim=dim: ALONG[name](m, a, dim, True), np.zeros(shape))


@pytest.mark.parametrize("name", list(WHOLE))
def test_over_everything(name: str) -> None:
    for shape in SHAPES:
        compare(WHOLE[name], numbers(shape))
        compare(WHOLE[name], with_ties(shape))


@pytest.mark.parametrize("name", list(EXTREMA))
def test_extremes_of_everything(name: str) -> None:
    for shape in [shape for shape in SHAPES if 0 not in shape]:
        compare(EXTREMA[name], numbers(shape))
        compare(EXTREMA[name], with_ties(shape))
    compare(EXTREMA[name], np.array([1.0, nan, 2.0, nan]))
    compare(EXTREMA[name], np.array([inf, 2.0, inf, -inf, -inf]))


ROWS = [
    [nan, 1.0, 2.0],
    [-inf, 0.0, 1.0],
    [-inf, -inf, -inf],
    [inf, 1.0, 1.0],
    [0.0, 0.0, 3.0],
    [0.0, 2.0, inf],
    [1.0, 2.0, 0.0],
]


@pytest.mark.parametrize("name", [*ALONG, *[f"over {name}" for name in REDUCTIONS]])
@pytest.mark.parametrize("row", ROWS)
def test_rows_at_the_edges(name: str, row: list) -> None:
    program = REDUCTIONS[name[5:]] if name.startswith("over ") else ALONG[name]
    compare(lambda m, a: program(m, a, 1, False), np.array([row, [0.5, 0.25, 0.125]]))


@pytest.mark.parametrize("row", ROWS)
def test_products_at_the_edges(row: list) -> None:
    compare(lambda m, a: a.prod(), np.array(row))
