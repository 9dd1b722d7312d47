"""Chapter 03 beside PyTorch: values and every gradient, in float64 to 1e-9, in float32 to its own digits."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import gradwright
from gradwright.chapters import operations

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore:(var|std)... degrees of freedom:UserWarning")]

nan, inf = math.nan, math.inf
F32, F64 = np.float32, np.float64
SHAPES = [(), (1,), (5,), (3, 4), (2, 3, 4), (0,), (3, 0), (0, 3)]
PAIRS = [
    *[((), ()), ((), (2, 3)), ((2, 3), ()), ((3, 4), (3, 4)), ((2, 3, 4), (4,)), ((4,), (2, 3, 4))],
    *[((3, 1), (1, 4)), ((2, 1, 4), (3, 1)), ((0, 3), (3,)), ((0, 3), (1, 3)), ((1,), (1, 1)), ((1, 0), (4, 1))],
]
EDGES = [nan, -inf, inf, -800.0, -40.0, -1.0, -0.0, 0.0, 1e-8, 1.0, 20.0, 25.0, 800.0]


class Both:
    """What a program finds in one place: all that gradwright has, or torch, with nn.functional."""

    def __init__(self, *modules: Any):
        self.modules = modules

    def __getattr__(self, name: str) -> Any:
        return next(getattr(module, name) for module in self.modules if hasattr(module, name))


class Ours(Both):
    def given(self, values: Any) -> Any:
        return operations.tensor(np.array(values))


class Theirs(Both):
    def given(self, values: Any) -> Any:
        return torch.tensor(np.array(values))


OURS, THEIRS = Ours(gradwright, gradwright.nn.functional), Theirs(torch, torch.nn.functional)


def outputs(result: Any) -> list:
    return list(result) if isinstance(result, tuple | list) else [result]


def same(ours: Any, theirs: torch.Tensor, dtype: Any) -> None:
    array, wanted = ours.detach().numpy(), theirs.detach().numpy()
    assert array.shape == wanted.shape
    assert array.dtype == wanted.dtype
    digits = {"rtol": 1e-9, "atol": 1e-9} if dtype is F64 else {"rtol": 2e-5, "atol": 2e-5}
    np.testing.assert_allclose(array, wanted, **digits)


def compare(program: Callable, *arrays: np.ndarray) -> None:
    """Run a program on both sides, and go backward from all its float outputs with random seeds."""
    dtype = arrays[0].dtype.type
    ours = [operations.tensor(array, requires_grad=True) for array in arrays]
    theirs = [torch.from_numpy(array.copy()).requires_grad_() for array in arrays]
    rng = np.random.default_rng(7)
    with np.errstate(all="ignore"):
        got, wanted = outputs(program(OURS, *ours)), outputs(program(THEIRS, *theirs))
        assert len(got) == len(wanted)
        for mine, other in zip(got, wanted, strict=True):
            same(mine, other, dtype)
            assert mine.requires_grad == other.requires_grad
            if other.requires_grad:
                begin = np.asarray(rng.standard_normal(tuple(other.shape)).astype(other.detach().numpy().dtype))
                mine.backward(operations.tensor(begin), retain_graph=True)
                other.backward(torch.from_numpy(begin), retain_graph=True)
    for a, b in zip(ours, theirs, strict=True):
        assert (a.grad is None) == (b.grad is None)
        if a.grad is not None:
            same(a.grad, b.grad, dtype)


def numbers(shape: tuple[int, ...], seed: int = 0, dtype: Any = F64) -> np.ndarray:
    return np.asarray(np.random.default_rng(seed).standard_normal(shape)).astype(dtype)


def with_ties(shape: tuple[int, ...], seed: int = 0, dtype: Any = F64) -> np.ndarray:
    return np.asarray(np.random.default_rng(seed).integers(-2, 3, shape)).astype(dtype)


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


PRODUCTS = [
    *[((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)), ((2, 1, 3, 4), (5, 4, 6)), ((4,), (4,))],
    *[((3, 4), (4,)), ((4,), (4, 3)), ((2, 3, 4), (4,)), ((4,), (2, 4, 3)), ((4, 3), (2, 3, 5)), ((0, 4), (4, 3))],
    *[
        ((3, 0), (0, 2)),
        ((2, 0, 4), (4, 3)),
        ((1, 3, 4), (2, 4, 5)),
        ((2, 5, 3, 4), (4, 2)),
        ((0,), (0,)),
        ((0,), (0, 2)),
    ],
    *[
        ((4,), (1, 4, 1)),
        ((1, 1, 4), (4,)),
        ((4,), (3, 1, 4, 2)),
        ((3, 2, 1, 4), (4,)),
        ((0, 3, 4), (4,)),
        ((1,), (1,)),
    ],
]


@pytest.mark.parametrize("dtype", [F64, F32])
@pytest.mark.parametrize("shapes", PRODUCTS)
def test_matmul(shapes: tuple, dtype: Any) -> None:
    a, b = [numbers(shape, i, dtype) for i, shape in enumerate(shapes)]
    compare(lambda m, a, b: a @ b, a, b)
    compare(lambda m, a, b: (a @ b).sum(), a, b)
    compare(lambda m, a, b: (a @ b.detach()) * 2, a, b)
    compare(lambda m, a, b: (a.detach() @ b) * 2, a, b)


@pytest.mark.parametrize(
    ("program", "shapes"),
    [
        (lambda m, a, b: m.mm(a, b), ((3, 4), (4, 2))),
        (lambda m, a, b: m.mm(a.T, b), ((4, 3), (4, 2))),
        (lambda m, a, b: m.bmm(a, b), ((2, 3, 4), (2, 4, 5))),
        (lambda m, a, b: m.mv(a, b), ((3, 4), (4,))),
        (lambda m, a, b: m.dot(a, b), ((4,), (4,))),
        (lambda m, a, b: m.outer(a, b), ((4,), (3,))),
        (lambda m, a, b, c: m.addmm(a, b, c), ((5,), (3, 4), (4, 5))),
        (lambda m, a, b, c: m.addmm(a, b, c, beta=0.5, alpha=-2), ((3, 5), (3, 4), (4, 5))),
        (lambda m, a, b, c: m.addmm(a, b, c, beta=0), ((3, 1), (3, 4), (4, 5))),
    ],
)
def test_products_by_name(program: Callable, shapes: tuple) -> None:
    compare(program, *[numbers(shape, i) for i, shape in enumerate(shapes)])


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", ((2, 3), (3, 4))),
        ("ij,jk", ((2, 3), (3, 4))),
        ("ij->ji", ((2, 3),)),
        ("ba", ((2, 3),)),
        ("ij->", ((2, 3),)),
        ("ij->j", ((2, 3),)),
        ("ii->i", ((3, 3),)),
        ("ii", ((3, 3),)),
        ("iij,j->i", ((3, 3, 2), (2,))),
        ("i,j->ij", ((2,), (3,))),
        ("i,j->j", ((2,), (3,))),
        ("bij,bjk->bik", ((2, 3, 4), (2, 4, 5))),
        ("...ij,...jk->...ik", ((2, 3, 4), (4, 5))),
        ("...ij,jk", ((2, 3, 4), (4, 5))),
        ("...a,...a->...", ((2, 1, 4), (3, 4))),
        ("bthd,bshd->bhts", ((2, 3, 2, 4), (2, 5, 2, 4))),
        ("ij,jk,kl->il", ((2, 3), (3, 4), (4, 2))),
        ("ij,ij->", ((2, 3), (2, 3))),
        ("bi,i,bj->bij", ((2, 3), (3,), (2, 4))),
        (",i->i", ((), (3,))),
        (" i j , j -> i ", ((2, 3), (3,))),
        ("ij,j->i", ((2, 1), (3,))),
        ("ij,jk->ik", ((0, 3), (3, 2))),
    ],
)
def test_einsum(equation: str, shapes: tuple) -> None:
    compare(lambda m, *t: m.einsum(equation, *t), *[numbers(shape, i) for i, shape in enumerate(shapes)])


MOVES: dict[str, Callable] = {
    "reshape": lambda m, a: a.reshape(4, -1),
    "view": lambda m, a: a.view(-1, 2),
    "reshape after permute": lambda m, a: a.permute(2, 0, 1).reshape(4, 6),
    "heads": lambda m, a: a.reshape(2, 3, 2, 2).permute(0, 2, 1, 3).reshape(4, -1),
    "transpose": lambda m, a: m.transpose(a, 0, -1),
    "squeeze": lambda m, a: a[:1].squeeze(0).unsqueeze(-1),
    "flatten": lambda m, a: a.mT.flatten(1),
    "contiguous": lambda m, a: a.mT.contiguous().view(2, -1),
    "flip": lambda m, a: a.flip(0, -1),
    "flip none": lambda m, a: m.flip(a, ()),
    "flip tuple": lambda m, a: m.flip(a, (1,)),
    "roll": lambda m, a: a.roll(2, 1),
    "roll flat": lambda m, a: m.roll(a, -5),
    "roll both": lambda m, a: a.roll((1, -2), (0, -1)),
    "repeat": lambda m, a: a.repeat(2, 1, 3),
    "repeat in front": lambda m, a: a.repeat(2, 1, 2, 1),
    "repeat never": lambda m, a: a.repeat(1, 0, 2),
    "repeat_interleave": lambda m, a: a.repeat_interleave(3, 1),
    "repeat_interleave flat": lambda m, a: m.repeat_interleave(a.mT, 2),
    "repeat_interleave last": lambda m, a: a.repeat_interleave(2, dim=-1),
    "repeat_interleave never": lambda m, a: a.repeat_interleave(0, 1),
    "repeat_interleave each": lambda m, a: a.repeat_interleave(m.given([2, 0, 3]), 1),
    "cat": lambda m, a: m.cat([a, a * 2, a[:, :1]], 1),
    "cat last": lambda m, a: m.cat((a.mT, a.mT.exp()), dim=-1),
    "cat of nothing": lambda m, a: m.cat([a[:0], a, a[:0]]),
    "cat with shape (0,)": lambda m, a: m.cat([a[0, 0, :0], a]),
    "stack": lambda m, a: m.stack([a, a.exp()]),
    "stack last": lambda m, a: m.stack([a, a * 3, a], -1),
    "stack of numbers": lambda m, a: m.stack([a[0, 0, 0], a[1, 2, 3], a.sum()]),
    "split": lambda m, a: m.split(a, 2, 2),
    "split uneven": lambda m, a: a.split(2, dim=1),
    "split by sizes": lambda m, a: a.split([1, 0, 2], 1),
    "chunk": lambda m, a: a.chunk(3, -1),
    "chunk fewer": lambda m, a: m.chunk(a, 5, 1),
    "unbind": lambda m, a: m.unbind(a, 1),
    "unpacked": lambda m, a: [row * i for i, row in enumerate(a)],
    "tril": lambda m, a: a.tril(),
    "tril up": lambda m, a: m.tril(a, 1),
    "triu": lambda m, a: a.triu(-1),
    "triu diagonal": lambda m, a: m.triu(a, diagonal=2),
    "pad": lambda m, a: m.pad(a, (1, 2)),
    "pad three axes": lambda m, a: m.pad(a, (1, 0, 2, 1, 0, 1), value=7.0),
    "pad and cut": lambda m, a: m.pad(a, (-1, 2, 1, -2)),
    "pad cut in front": lambda m, a: m.pad(a, (-3, 0), "constant", 1.0),
    "narrow": lambda m, a: a.narrow(1, 1, 2),
}


@pytest.mark.parametrize("dtype", [F64, F32])
@pytest.mark.parametrize("name", list(MOVES))
def test_moves(name: str, dtype: Any) -> None:
    compare(MOVES[name], numbers((2, 3, 4), dtype=dtype))
    compare(lambda m, a: [x * x for x in outputs(MOVES[name](m, a))], numbers((2, 3, 4), dtype=dtype))


@pytest.mark.parametrize(
    "program",
    [
        lambda m, a: a.chunk(3),
        lambda m, a: a.split(2),
        lambda m, a: a.flip(0),
        lambda m, a: a.roll(1, 0),
        lambda m, a: m.cat([a, a]),
        lambda m, a: m.stack([a, a], 1),
        lambda m, a: a.repeat(2, 2),
        lambda m, a: a.repeat_interleave(2, 1),
        lambda m, a: a.tril(),
        lambda m, a: m.pad(a, (1, 1)),
        lambda m, a: a.cumsum(0),
    ],
)
def test_moves_of_no_elements(program: Callable) -> None:
    compare(program, np.zeros((0, 2)))


@pytest.mark.parametrize(
    "program",
    [
        lambda m, a: a.flip(0),
        lambda m, a: a.roll(1),
        lambda m, a: a.repeat(2, 3),
        lambda m, a: a.repeat_interleave(3),
        lambda m, a: a.gather(0, m.given([0, 0])),
        lambda m, a: a.index_select(0, m.given(0)),
        lambda m, a: a.sort(),
        lambda m, a: a.cumsum(-1),
        lambda m, a: a.max(0),
        lambda m, a: m.stack([a, a]),
    ],
)
def test_moves_without_axes(program: Callable) -> None:
    compare(program, numbers(()))


KEYS: dict[str, Callable] = {
    "repeats": lambda m, a: a[m.given([0, 1, 0, 0])],
    "list": lambda m, a: a[[1, 1, 0]],
    "no places": lambda m, a: a[[]],
    "negative": lambda m, a: a[:, [-1, 0, -1]],
    "two arrays": lambda m, a: a[m.given([0, 1, 1]), m.given([2, 0, 0])],
    "broadcast arrays": lambda m, a: a[m.given([[0], [1]]), m.given([2, 0, 0])],
    "apart": lambda m, a: a[[0, 1, 1], :, [2, 0, 2]],
    "number between": lambda m, a: a[0, :, [1, 2, 1]],
    "number beside": lambda m, a: a[:, 1, m.given([1, 1])],
    "slices beside": lambda m, a: a[1:, m.given([2, 2, 0]), 1:3],
    "dots": lambda m, a: a[..., m.given([3, 0, 3])],
    "new axis": lambda m, a: a[None, :, [0, 2, 0], None],
    "matrix of ids": lambda m, a: a[0][m.given([[0, 1], [2, 2]])],
    "mask": lambda m, a: a[a > 0],
    "mask of rows": lambda m, a: a[m.given([True, False])],
    "mask in the middle": lambda m, a: a[:, m.given([True, False, True])],
    "mask and places": lambda m, a: a[m.given([[True, False, True], [False, False, True]]), m.given([0, 3, 0])],
    "mask of nothing": lambda m, a: a[a > 99],
    "tensor of one number": lambda m, a: a[m.given(1), m.given(-1)],
    "permuted": lambda m, a: a.permute(2, 0, 1)[[3, 3, 1]],
    "gather": lambda m, a: a.gather(1, m.given(np.arange(16).reshape(2, 2, 4) % 3)),
    "gather smaller": lambda m, a: m.gather(a, -1, m.given([[[0, 3, 3, 0, 1]]])),
    "gather nothing": lambda m, a: a.gather(0, m.given(np.zeros((0, 3, 4), int))),
    "index_select": lambda m, a: a.index_select(1, m.given([2, 0, 2, 2])),
    "index_select last": lambda m, a: m.index_select(a, -1, m.given([3, 3])),
    "masked_select": lambda m, a: a.masked_select(a > 0.3),
    "masked_select broadcast": lambda m, a: m.masked_select(a[:1], m.given([[[True], [False], [True]], [[True]] * 3])),
    "masked_fill": lambda m, a: a.masked_fill(m.given([True, False, False, True]), 3.0),
    "masked_fill by a tensor": lambda m, a: a.masked_fill(a > 0, a.sum()),
    "sort": lambda m, a: a.sort(1),
    "sort falling": lambda m, a: m.sort(a, descending=True),
    "topk": lambda m, a: a.topk(2),
    "topk smallest": lambda m, a: m.topk(a, 2, 1, largest=False),
}


@pytest.mark.parametrize("dtype", [F64, F32])
@pytest.mark.parametrize("name", list(KEYS))
def test_keys(name: str, dtype: Any) -> None:
    compare(KEYS[name], numbers((2, 3, 4), dtype=dtype))
    compare(lambda m, a: [x * 2 for x in outputs(KEYS[name](m, a)) if x.requires_grad], numbers((2, 3, 4), dtype=dtype))


def written(key: Callable, value: Callable) -> Callable:
    def program(m: Any, a: Any, b: Any) -> Any:
        x = a * 1
        x[key(m, a)] = value(m, b)
        return x * x

    return program


@pytest.mark.parametrize(
    "program",
    [
        written(lambda m, a: a > 0, lambda m, b: -1.0),
        written(lambda m, a: a > 0, lambda m, b: b.sum()),
        written(lambda m, a: [1, 0], lambda m, b: b[:2]),
        written(lambda m, a: (slice(None), m.given([2, 0])), lambda m, b: b[0, :2]),
        written(lambda m, a: (m.given([0, 1]), m.given([2, 1])), lambda m, b: b[0, 0]),
        written(lambda m, a: (0, slice(1, 3)), lambda m, b: b[0, 0]),
    ],
)
def test_writing_by_key(program: Callable) -> None:
    compare(program, numbers((2, 3, 4)), numbers((2, 3, 4), 1))


WHOLE_NUMBERS: dict[str, Callable] = {
    "functions": lambda m, t: [t.log1p(), t.sigmoid(), t.sin(), t.rsqrt(), t.reciprocal(), t.square(), t.abs()],
    "relu": lambda m, t: [t.relu(), t.clamp(0, 2), t.clamp(min=0.5), m.maximum(t, t * 0), m.where(t > 0, t, 0)],
    "where": lambda m, t: [
        m.where(t > 0, 1.5, t),
        m.where(t > 0, 1, 2),
        m.where(t > 0, 1.0, 2.0),
        m.where(t > 0, t, 2.5),
    ],
    "reductions": lambda m, t: [t.prod(), t.prod(0), t.cumsum(0), t.amax(), t.max(), t.logsumexp(0)],
    "bool": lambda m, t: [(t > 0).prod(), (t > 0).cumsum(0), (t > 0).sum()],
    "joined": lambda m, t: [m.cat([t, t.float()]), m.stack([t.double(), t.float()]), m.cat([t, t > 0])],
    "moved": lambda m, t: [t.flip(0), t.roll(1), t.repeat(2), t.repeat_interleave(2), t.masked_fill(t > 0, 1.5)],
    "order": lambda m, t: [*t.sort(), *t.sort(descending=True), t.argsort(), *t.topk(2)],
    "one_hot": lambda m, t: [m.one_hot(t.abs()), m.one_hot(t.abs().reshape(2, 2), 5)],
    "tests": lambda m, t: [
        m.isnan(t / 0),
        m.isinf(t / 0),
        m.isfinite(t / 0),
        t == 1,
        t != 1,
        t <= 1,
        t < 1,
        t >= 1,
        t > 1,
    ],
    "made": lambda m, t: [m.full_like(t, 7), m.ones_like(t), m.zeros_like(t), m.full((2,), 1.5), m.arange(1, 7, 2)],
    "matmul": lambda m, t: [t @ t, m.outer(t, t), m.einsum("i,i->i", t, t)],
}


@pytest.mark.parametrize("name", list(WHOLE_NUMBERS))
def test_whole_numbers(name: str) -> None:
    with np.errstate(all="ignore"):
        got = WHOLE_NUMBERS[name](OURS, OURS.given([2, -1, 0, 3]))
    for mine, other in zip(got, WHOLE_NUMBERS[name](THEIRS, THEIRS.given([2, -1, 0, 3])), strict=True):
        same(mine, other, F32)


def test_comparisons_of_whole_tensors() -> None:
    for m in (OURS, THEIRS):
        a, b = m.given([1.0, nan]), m.given([1.0 + 1e-9, nan])
        assert m.equal(a[:1], a[:1]) is True
        assert m.equal(a, a) is False
        assert m.allclose(a, b) is False
        assert m.allclose(a, b, equal_nan=True) is True


def test_mixed_dtypes() -> None:
    for program in (
        lambda m, a, b: m.maximum(a, b),
        lambda m, a, b: m.where(a > 0, a, b),
        lambda m, a, b: m.cat([a, b]),
    ):
        compare(program, numbers((3,), 0, F32), numbers((3,), 1, F64))
        compare(program, numbers((3,), 0, F64), numbers((3,), 1, F32))
    compare(lambda m, a, b: m.maximum(a, b[0]), numbers((3,), 0, F32), numbers((3,), 1, F64))
