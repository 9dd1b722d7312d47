"""An optimizer of gradwright and one of PyTorch, which get the same gradients under the same schedule."""

from __future__ import annotations

import numpy as np
import torch

import gradwright
from gradwright.optim import lr_scheduler

STEPS = 60
CLOSE = {"rtol": 1e-12, "atol": 1e-12}


class Side:
    """An optimizer and its parameters, of gradwright or of PyTorch."""

    def __init__(self, library, kind, rates, settings):
        self.schedulers = lr_scheduler if library is gradwright else torch.optim.lr_scheduler
        self.optimizers, self.library = library.optim, library
        self.params = [self.leaf(i) for i in range(len(rates))]
        self.kind, self.rates, self.settings = kind, rates, settings
        self.optimizer = self.new_optimizer()

    def leaf(self, i):
        if self.library is gradwright:
            return gradwright.tensor(np.array([1.0 + i, -2.0]), requires_grad=True)
        return torch.tensor([1.0 + i, -2.0], dtype=torch.float64, requires_grad=True)

    def new_optimizer(self):
        groups = [{"params": [p], "lr": lr} for p, lr in zip(self.params, self.rates, strict=True)]
        return getattr(self.optimizers, self.kind)(groups, **self.settings)

    def step(self, n):
        rng = np.random.default_rng(n)
        for p in self.params:
            g = rng.standard_normal(2)
            p.grad = gradwright.tensor(g) if self.library is gradwright else torch.from_numpy(g)
        self.optimizer.step()

    def seen(self):
        groups = self.optimizer.param_groups
        momenta = [group["betas"][0] if "betas" in group else group["momentum"] for group in groups]
        return [*(float(group["lr"]) for group in groups), *momenta]

    def weights(self):
        return np.concatenate([p.detach().numpy() for p in self.params])


def sides(kind="SGD", rates=(0.3,), **settings):
    return Side(gradwright, kind, rates, settings), Side(torch, kind, rates, settings)


def curve(side, make, steps=STEPS):
    """Rates and momenta before every step, and after the last."""
    scheduler, rows = make(side.schedulers, side.optimizer), [side.seen()]
    for n in range(steps):
        side.step(n)
        scheduler.step()
        rows.append(side.seen())
        assert rows[-1][: len(side.rates)] == [float(lr) for lr in scheduler.get_last_lr()]
    return np.array(rows)
