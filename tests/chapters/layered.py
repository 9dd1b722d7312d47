"""A small model with every kind of layer that hooks and states have to do with."""

from __future__ import annotations

import gradwright
from gradwright.chapters.layers import BatchNorm1d, Linear, ReLU, Residual, Sequential


def small() -> Sequential:
    gradwright.manual_seed(3)
    return Sequential(Linear(3, 4), BatchNorm1d(4), ReLU(), Residual(Linear(4, 4)), Linear(4, 2))
