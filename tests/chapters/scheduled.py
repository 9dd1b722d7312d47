"""Optimizers of one number a group, and the rates that a scheduler gives them."""

from __future__ import annotations

import numpy as np

import gradwright
from gradwright import optim


def optimizer_of(*lrs, kind="SGD", **settings):
    """One parameter a group, with a gradient, so that every step moves it."""
    groups = [{"params": [gradwright.tensor(np.array([1.0]), requires_grad=True)], "lr": lr} for lr in lrs or (1.0,)]
    optimizer = getattr(optim, kind)(groups, **settings)
    for group in optimizer.param_groups:
        group["params"][0].grad = gradwright.tensor(np.array([0.25]))
    return optimizer


def rates(make, steps, lr=1.0):
    optimizer = optimizer_of(lr)
    scheduler, found = make(optimizer), []
    for _ in range(steps):
        found.append(scheduler.get_last_lr()[0])
        optimizer.step()
        scheduler.step()
    return found
