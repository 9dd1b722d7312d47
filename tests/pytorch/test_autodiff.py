"""Chapter 02's engine beside PyTorch: values, every gradient and the in-place rules, in float64 to 1e-9."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from gradwright.chapters import operations

pytestmark = pytest.mark.torch

UNARY = {
    "neg": lambda m, a: -a,
    "exp": lambda m, a: a.exp(),
    "log": lambda m, a: (a * a + 0.5).log(),
    "pow": lambda m, a: a**3 + (a * a) ** 0.5 + a**0 + a**1,
    "rpow": lambda m, a: 2.0**a,
    "number beside": lambda m, a: 2 - a * 3 + 1 / (a * a + 1) - (a / 2) + (3 + a),
    "sum": lambda m, a: a.sum(),
    "mean": lambda m, a: a.mean() if a.numel() else a.sum(),
    "reused": lambda m, a: a * a + a - a * a * a,
    "clone": lambda m, a: a.clone() * a,
    "contiguous": lambda m, a: a.T.contiguous() * 2 if a.ndim == 2 else a.contiguous(),
    "flatten": lambda m, a: a.flatten() * 2,
    "unsqueeze": lambda m, a: a.unsqueeze(0).unsqueeze(-1) * a.sum(),
    "double": lambda m, a: a.float().double() * a,
    "expand": lambda m, a: a.expand(3, *a.shape) * a,
}
AXES = {
    "sum over": lambda a, dim, keepdim: a.sum(dim, keepdim) * 2,
    "mean over": lambda a, dim, keepdim: a.mean(dim, keepdim),
    "centred": lambda a, dim, keepdim: a * (a - a.mean(dim, True)).sum(dim, keepdim=True),
}
BINARY = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / (b * b + 0.5),
    "pow": lambda a, b: (a * a + 0.1) ** b,
    "both": lambda a, b: a * b - b * a * a + b,
}
SHAPES = [(), (1,), (5,), (3, 4), (2, 3, 4), (0,), (3, 0), (1, 1)]
PAIRS = [
    *[((), ()), ((), (2, 3)), ((2, 3), ()), ((3, 4), (3, 4)), ((2, 3, 4), (4,)), ((4,), (2, 3, 4))],
    *[((3, 1), (1, 4)), ((2, 1, 4), (3, 1)), ((0, 3), (3,)), ((0, 3), (1, 3)), ((1,), (1, 1)), ((1, 0), (4, 1))],
]
PRODUCTS = [
    *[((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)), ((2, 1, 3, 4), (5, 4, 6)), ((4,), (4,))],
    *[((3, 4), (4,)), ((4,), (4, 3)), ((2, 3, 4), (4,)), ((4,), (2, 4, 3)), ((4, 3), (2, 3, 5)), ((0, 4), (4, 3))],
    *[((3, 0), (0, 2)), ((2, 0, 4), (4, 3)), ((1, 3, 4), (2, 4, 5)), ((2, 5, 3, 4), (4, 2))],
]
VIEWS = {
    "permute": lambda a: a.permute(2, 0, 1) * a.permute(2, 0, 1).exp(),
    "permute from the end": lambda a: a.permute(-1, 0, -2) * 2,
    "reshape after permute": lambda a: a.permute(2, 0, 1).reshape(4, 6) ** 2,
    "view": lambda a: a.view(-1, 2).exp(),
    "index": lambda a: a[1:, None, ..., 0] * a[0, 1, 2] + a[:-1, None, ..., -1],
    "slices overlap": lambda a: a[:, :-1] * a[:, 1:],
    "row": lambda a: a[1] * a[-1],
    "transposes": lambda a: a.transpose(-1, -2).mT * a,
    "squeeze": lambda a: a.unsqueeze(1).squeeze(1) * a,
    "nothing": lambda a: a[2:] * 3,
}


def same(ours: Any, theirs: torch.Tensor) -> None:
    array, wanted = ours.detach().numpy(), theirs.detach().numpy()
    assert array.shape == wanted.shape
    assert array.dtype == wanted.dtype
    np.testing.assert_allclose(array, wanted, rtol=1e-9, atol=1e-11)


def compare(program: Callable, *shapes: tuple[int, ...], seed: int = 0, dtype: Any = np.float64) -> None:
    rng = np.random.default_rng(seed)
    arrays = [rng.standard_normal(shape).astype(dtype) for shape in shapes]
    ours = [operations.tensor(array, requires_grad=True) for array in arrays]
    theirs = [torch.from_numpy(array.copy()).requires_grad_() for array in arrays]
    out, wanted = program(*ours), program(*theirs)
    same(out, wanted)
    begin = rng.standard_normal(tuple(wanted.shape)).astype(wanted.detach().numpy().dtype)
    out.backward(operations.tensor(begin))
    wanted.backward(torch.from_numpy(np.asarray(begin)))
    for a, b in zip(ours, theirs, strict=True):
        same(a.grad, b.grad)


@pytest.mark.parametrize(("name", "shape"), list(itertools.product(UNARY, SHAPES)))
def test_one_input(name: str, shape: tuple[int, ...]) -> None:
    compare(lambda a: UNARY[name](None, a), shape)


@pytest.mark.parametrize(("name", "shapes"), list(itertools.product(BINARY, PAIRS)))
def test_broadcasting(name: str, shapes: tuple) -> None:
    compare(BINARY[name], *shapes)


@pytest.mark.parametrize("shapes", PRODUCTS)
def test_products(shapes: tuple) -> None:
    compare(lambda a, b: a @ b, *shapes)
    compare(lambda a, b: (a @ b).sum(), *shapes)
    compare(lambda a, b: (a * 2).T.contiguous().T @ b if a.ndim == 2 else a @ b, *shapes)


@pytest.mark.parametrize("name", list(VIEWS))
def test_views(name: str) -> None:
    compare(VIEWS[name], (2, 3, 4))


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dim", [0, -1, 1, (0, 2), (-1, 0), (0, 1, 2)])
@pytest.mark.parametrize("name", list(AXES))
def test_axes(name: str, dim: Any, keepdim: bool) -> None:
    compare(lambda a: AXES[name](a, dim, keepdim), (2, 3, 4))


def test_a_gradient_has_the_dtype_of_its_input() -> None:
    """float32 beside float64, in either order, with and without axes."""
    rng = np.random.default_rng(1)
    for shapes in (((3,), (3,)), ((3,), ()), ((), (3,)), ((2, 3), (3,))):
        for kinds in ((np.float32, np.float64), (np.float64, np.float32)):
            arrays = [rng.standard_normal(shape).astype(kind) for shape, kind in zip(shapes, kinds, strict=True)]
            ours = [operations.tensor(array, requires_grad=True) for array in arrays]
            theirs = [torch.tensor(array, requires_grad=True) for array in arrays]
            out, wanted = (ours[0] * ours[1]).sum(), (theirs[0] * theirs[1]).sum()
            assert str(out.dtype) == str(wanted.dtype).removeprefix("torch.")
            out.backward()
            wanted.backward()
            for a, b in zip(ours, theirs, strict=True):
                assert a.grad.dtype == b.grad.numpy().dtype
                np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-5)


def in_place(m: Any, w: Any, x: Any) -> dict[str, Callable[[], Any]]:
    """Programs of in-place changes; w and x are leaves of shape (3, 4) that require gradients."""

    def through_a_view() -> Any:
        y = w * 1
        y[1].mul_(3)
        y[:, 2].add_(x[:, 0])
        return y * x

    def by_key() -> Any:
        y = w * 2
        y[0] = x[1]
        y[1, 2] = 5.0
        y[:, 1:3] = w[:, :2]
        return y * y

    def into_fresh_memory() -> Any:
        y = m.zeros(3, 4, dtype=w.dtype)
        for i in range(3):
            y[i] = w[i] * x[2 - i]
        return y.exp()

    def augmented() -> Any:
        y = w + 0
        y += x
        y -= 2
        y *= 3
        y /= x * x + 1
        return y

    def item_augmented() -> Any:
        y = w * 1
        y[0] += x[1]
        y[:, 0] *= 2
        return y

    def view_taken_before() -> Any:
        y = w * 1
        row, column, turned = y[0], y[:, 1], y.T
        y.mul_(2)
        row.add_(x[0])
        return row.sum() + (column * x[:, 0]).sum() + (turned @ w).sum() + y.sum()

    def broadcast_view_taken_before() -> Any:
        y = w[:1] * 1
        wide = y.expand(3, 4)
        y.mul_(x[1:2])
        return wide * w

    def flattened() -> Any:
        y = w * 1
        y.view(12)[2:9].copy_(x.reshape(12)[3:10])
        return y * w

    def overwritten() -> Any:
        y = w * 1
        y.copy_(x[0])
        y.add_(w, alpha=3)
        return y

    def zeroed() -> Any:
        y = w * x
        y[1].zero_()
        y[2].fill_(7.0)
        return y * y

    def all_zeroed() -> Any:
        y = w * x
        y.zero_()
        return y + x * 0 + w

    def switched_off() -> Any:
        y = w * 1
        with m.no_grad():
            y[0] = 0.0
        return y * 1 + x * 0

    def detached() -> Any:
        y = w + 0
        z = y.detach()
        z.mul_(2)
        return y + x

    return {name: program for name, program in locals().items() if callable(program) and name not in ("w", "x", "m")}


class Ours:
    zeros = staticmethod(operations.zeros)
    no_grad = operations.no_grad


NAMES = list(in_place(None, None, None))


@pytest.mark.parametrize("name", NAMES)
def test_in_place(name: str) -> None:
    rng = np.random.default_rng(NAMES.index(name))
    arrays = [rng.standard_normal((3, 4)) for _ in range(2)]
    ours = [operations.tensor(array, requires_grad=True) for array in arrays]
    theirs = [torch.from_numpy(array.copy()).requires_grad_() for array in arrays]
    out, wanted = in_place(Ours, *ours)[name](), in_place(torch, *theirs)[name]()
    same(out, wanted)
    begin = rng.standard_normal(tuple(wanted.shape))
    out.backward(operations.tensor(begin))
    wanted.backward(torch.from_numpy(np.asarray(begin)))
    for a, b in zip(ours, theirs, strict=True):
        same(a.grad, b.grad)


def test_gradients_kept_on_the_way() -> None:
    """retain_grad, before and after a change in place, and autograd.grad of something in between."""

    def program(make: Callable, grad: Callable) -> list[Any]:
        x = make([1.0, 2.0], requires_grad=True)
        y = x * 3
        y.retain_grad()
        y.mul_(2)
        z = y * y
        z.retain_grad()
        (g,) = grad(z.sum(), [y], retain_graph=True)
        z.sum().backward()
        return [t.tolist() for t in (x.grad, y.grad, z.grad, g)]

    assert program(operations.tensor, operations.grad) == program(torch.tensor, torch.autograd.grad)


@pytest.mark.parametrize("seed", range(40))
def test_random_programs(seed: int) -> None:
    """Programs of twelve steps on a pool of tensors, with writes and views among them."""

    def program(*leaves: Any) -> Any:
        rng = np.random.default_rng(seed)
        pool = list(leaves)
        for _ in range(12):
            a, b = pool[rng.integers(len(pool))], pool[rng.integers(len(pool))]
            pool.append(STEPS[rng.integers(len(STEPS))](a, b))
        total = pool[-1].sum()
        for t in pool[:-1]:
            total = total + (t * t).mean()
        return total

    compare(program, (3, 3), (3, 3), (1, 3), seed=seed)


def written(a: Any, b: Any) -> Any:
    c = a * 1
    c[: len(b)] *= 0.5
    c[0] = b[0]
    return c


def square(a: Any) -> Any:
    return a.expand(3, 3) * 0.5


STEPS = [
    lambda a, b: a + b,
    lambda a, b: a * b * 0.5,
    lambda a, b: a - b.T.contiguous().T,
    lambda a, b: a / (b * b + 1),
    lambda a, b: (square(a) @ square(b)) * 0.3,
    lambda a, b: square(a).T * b,
    lambda a, b: a.sum(0, keepdim=True) * 0.3 - b,
    lambda a, b: a - a.mean(-1, keepdim=True),
    lambda a, b: (a * 0.1).exp(),
    lambda a, b: (a * a + 1).log() + b,
    lambda a, b: written(square(a), b),
    lambda a, b: square(a).reshape(9)[:3] + b,
    lambda a, b: a.detach() * b,
]
