"""Chapter 06's optimizers beside PyTorch: fifty steps in float64 to 1e-9, and the recorded curve of the digits."""

from __future__ import annotations

import itertools
import json

import digits
import numpy as np
import pytest
import torch

import gradwright
from gradwright import optim

pytestmark = pytest.mark.torch

SETTINGS = [
    ("SGD", {"lr": 0.05}),
    ("SGD", {"lr": 0.05, "momentum": 0.9}),
    ("SGD", {"lr": 0.05, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.05, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.01, "momentum": 0.5, "maximize": True}),
    ("Adam", {}),
    ("Adam", {"lr": 0.1, "betas": (0.8, 0.95), "eps": 1e-3, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.01, "maximize": True}),
    ("AdamW", {}),
    ("AdamW", {"lr": 0.1, "betas": (0.8, 0.95), "eps": 1e-3, "weight_decay": 0.3}),
    ("AdamW", {"lr": 0.01, "maximize": True, "weight_decay": 0.0}),
    ("RMSprop", {}),
    ("RMSprop", {"lr": 0.02, "alpha": 0.9, "momentum": 0.7, "weight_decay": 0.1}),
    ("RMSprop", {"lr": 0.02, "alpha": 0.9, "centered": True, "eps": 1e-4}),
    ("RMSprop", {"lr": 0.02, "momentum": 0.5, "centered": True, "maximize": True, "eps": 1e-4}),
]
SHAPES = [(3, 4), (4,), (), (300, 301)]  # the last is longer than one piece


def leaves(dtype=np.float64):
    rng = np.random.default_rng(0)
    arrays = [np.asarray(rng.standard_normal(shape), dtype) for shape in SHAPES]
    ours = [gradwright.tensor(array.copy(), requires_grad=True) for array in arrays]
    return ours, [torch.from_numpy(array.copy()).requires_grad_() for array in arrays]


def set_gradients(ours, theirs, step):
    """Uneven gradients, of which some are missing at some steps."""
    rng = np.random.default_rng(100 + step)
    for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        array = np.asarray(10.0**-i * rng.standard_normal(a.shape) + 0.1, a.dtype)
        missing = (step + i) % 5 == 0
        a.grad = None if missing else gradwright.tensor(array)
        b.grad = None if missing else torch.from_numpy(array)


def agree(ours, theirs, tolerance=1e-9):
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("name", "settings"), SETTINGS)
def test_fifty_steps(name, settings):
    ours, theirs = leaves()
    mine, other = getattr(optim, name)(ours, **settings), getattr(torch.optim, name)(theirs, **settings)
    for step in range(50):
        set_gradients(ours, theirs, step)
        mine.step()
        other.step()
        agree(ours, theirs)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop"])
def test_fifty_steps_in_float32(name):
    ours, theirs = leaves(np.float32)
    mine, other = getattr(optim, name)(ours, lr=0.01), getattr(torch.optim, name)(theirs, lr=0.01)
    for step in range(50):
        set_gradients(ours, theirs, step)
        mine.step()
        other.step()
    agree(ours, theirs, 2e-5)
    assert all(p.dtype == np.float32 for p in ours)
    assert all(t.dtype == np.float32 for m in mine.state.values() for n, t in m.items() if n != "step")


def test_groups_with_settings_of_their_own_and_one_that_is_added():
    ours, theirs = leaves()
    made = []
    for module, p in ((optim, ours), (torch.optim, theirs)):
        optimizer = module.AdamW([{"params": p[:1]}, {"params": p[1:2], "weight_decay": 0.0, "lr": 0.5}], lr=0.01)
        optimizer.add_param_group({"params": p[2], "betas": (0.5, 0.6)})
        made.append(optimizer)
    for step, optimizer in itertools.product(range(20), made):
        set_gradients(ours, theirs, step)
        optimizer.step()
        optimizer.param_groups[0]["lr"] *= 0.9
    agree(ours, theirs)


@pytest.mark.parametrize(("name", "settings"), SETTINGS)
def test_settings_and_defaults_have_pytorchs_names_and_values(name, settings):
    ours, theirs = leaves()
    mine = getattr(optim, name)(ours, **settings).param_groups[0]
    other = getattr(torch.optim, name)(theirs, **settings).param_groups[0]
    assert {key: value for key, value in mine.items() if key != "params"} == {
        key: other[key] for key in mine if key != "params"
    }


@pytest.mark.parametrize("name", ["Adam", "AdamW"])
def test_memories_have_pytorchs_names(name):
    ours, theirs = leaves()
    mine, other = getattr(optim, name)(ours), getattr(torch.optim, name)(theirs)
    set_gradients(ours, theirs, 3)
    mine.step()
    other.step()
    a, b = mine.state_dict(), other.state_dict()
    assert list(a["state"]) == list(b["state"])
    assert {number: set(memory) for number, memory in a["state"].items()} == {
        number: set(memory) for number, memory in b["state"].items()
    }
    agree([a["state"][0]["exp_avg_sq"]], [b["state"][0]["exp_avg_sq"]])


def test_the_recorded_curve_is_pytorchs():
    recorded = json.loads(digits.CURVE.read_text(encoding="utf-8"))
    np.testing.assert_allclose(digits.curve(torch), recorded["losses"], rtol=0, atol=1e-9)
