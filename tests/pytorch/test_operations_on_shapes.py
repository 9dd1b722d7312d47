"""Chapter 03 beside PyTorch: matrix products, shapes and indexing, and what happens to whole numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from .beside import F32, F64, OURS, THEIRS, compare, numbers, outputs, same

pytestmark = pytest.mark.torch

nan, inf = math.nan, math.inf
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
        (lambda m, a, b, c: m.addmm(a, b, c, alpha=0), ((1,), (3, 4), (4, 5))),
        (lambda m, a, b, c: m.addmm(a, b, c, beta=3), ((), (3, 4), (4, 5))),
        (lambda m, a, b, c: m.addmm(a, b, c), ((3, 5), (3, 0), (0, 5))),
        (lambda m, a, b, c: m.addmm(a, b, c), ((5,), (0, 4), (4, 5))),
        (lambda m, a, b, c: m.addmm(a.T, b.T, c.T), ((5, 3), (4, 3), (5, 4))),
        (lambda m, a, b, c: m.addmm(a.detach(), b, c), ((5,), (3, 4), (4, 5))),
        (lambda m, a, b, c: m.addmm(a, b.detach(), c), ((5,), (3, 4), (4, 5))),
        (lambda m, a, b, c: m.addmm(a, b, c.detach()).sum(), ((3, 5), (3, 4), (4, 5))),
        (lambda m, a, b: m.addmm(a, a, b, beta=2), ((4, 4), (4, 4))),
    ],
)
@pytest.mark.parametrize("dtype", [F64, F32])
def test_products_by_name(program: Callable, shapes: tuple, dtype: Any) -> None:
    compare(program, *[numbers(shape, i, dtype) for i, shape in enumerate(shapes)])


@pytest.mark.parametrize("beta", [0, 1, 2])
def test_addmm_of_nan_and_inf(beta: int) -> None:
    a, b, c = numbers((5,)), numbers((3, 4), 1), numbers((4, 5), 2)
    a[0], a[1], b[0, 0], c[3, 3] = np.inf, np.nan, -np.inf, np.nan
    compare(lambda m, a, b, c: m.addmm(a, b, c, beta=beta), a, b, c)


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
