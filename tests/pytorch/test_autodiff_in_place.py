"""Chapters 02 and 03 beside PyTorch: random programs that write through views, retain, and go back more than once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import gradwright
from gradwright.chapters import operations

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore:the gradient of a tensor that is no leaf")]

STEPS, PARTS, EACH = 14, 10, 60


class Program:
    """What is there so far: leaves a (3, 4) and b (4,), a pool of tensors made of them, and views of these."""

    def __init__(self, seed: int, m: Any, tensor: Callable):
        rng = np.random.default_rng(seed)
        self.m, self.a, self.b = m, *(tensor(rng.uniform(0.5, 1.5, shape), requires_grad=True) for shape in ((3, 4), 4))
        self.pool, self.views, self.retained = [self.a * 1, self.a * self.b], [], []
        for _ in range(STEPS):
            x = self.pool[rng.integers(len(self.pool))]
            view = self.views[rng.integers(len(self.views))] if self.views else x[0]
            CHOICES[rng.integers(len(CHOICES))](self, x, view, int(rng.integers(3)))

    def found(self) -> list[Any]:
        """Every value, and the gradients of three walks over the same graph."""
        out = (self.a * 0).sum() + (self.b * 0).sum()
        for t in self.pool:
            out = out + (t * t).sum()
        for view in self.views:
            out = out + view.sum()
        middle = [t for t in self.pool if t.requires_grad][:2]
        found = list(self.m.autograd.grad(out, [*middle, self.a], retain_graph=True, allow_unused=True))
        out.backward(retain_graph=True)
        found += [self.a.grad.clone(), self.b.grad.clone()]
        out.backward()
        found += [self.a.grad, self.b.grad, *(t.grad for t in self.retained), *self.pool, *self.views]
        return [None if t is None else t.detach().numpy() for t in found]


def without_grad(p: Program, x: Any, view: Any, i: int) -> None:
    with p.m.no_grad():
        p.pool.append(x * 2)


def retain(p: Program, x: Any, view: Any, i: int) -> None:
    x.retain_grad()
    p.retained.append(x)


CHOICES = [
    lambda p, x, view, i: p.pool.append(x * p.b),
    lambda p, x, view, i: p.pool.append(x + p.pool[i % len(p.pool)]),
    lambda p, x, view, i: p.pool.append(view.sum() * x),
    lambda p, x, view, i: p.views.append(x[i]),
    lambda p, x, view, i: p.views.append(x[:, i]),
    lambda p, x, view, i: p.views.append(x.T[i + 1]),
    lambda p, x, view, i: p.views.append(x.reshape(12)[i : i + 4]),
    lambda p, x, view, i: p.views.append(view.unsqueeze(0).expand(2, *view.shape)[1]),
    lambda p, x, view, i: view.mul_(0.5 + 0.1 * i),
    lambda p, x, view, i: view.add_(p.b[: view.shape[0]] * 0.1),
    lambda p, x, view, i: x.mul_(p.b * 0.5),
    lambda p, x, view, i: x.add_(x.exp() * 0.01 if i else x.sum(0) * 0.1),
    lambda p, x, view, i: x.__setitem__(i, p.b * 0.3),
    lambda p, x, view, i: x.__setitem__((slice(None), i), p.a[:, i].detach() * 0.2),
    without_grad,
    retain,
]


def outcome(seed: int, m: Any, tensor: Callable) -> list[Any] | None:
    """What was found; None where a change in place was refused."""
    try:
        return Program(seed, m, tensor).found()
    except RuntimeError:
        return None


@pytest.mark.parametrize("part", range(PARTS))
def test_random_writes(part: int) -> None:
    """Where PyTorch gives an answer it is ours as well. It refuses a few in which no harm is done."""
    compared = 0
    for seed in range(part * EACH, (part + 1) * EACH):
        wanted = outcome(seed, torch, torch.tensor)
        if wanted is None:
            continue
        got, compared = outcome(seed, gradwright, operations.tensor), compared + 1
        assert got is not None, f"program {seed} is refused"
        for mine, other in zip(got, wanted, strict=True):
            assert (mine is None) == (other is None), f"program {seed}"
            if other is not None:
                np.testing.assert_allclose(mine, other, rtol=1e-9, atol=1e-9, err_msg=f"program {seed}")
    assert compared > EACH / 5
