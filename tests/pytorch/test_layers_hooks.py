"""Chapter 04's hooks beside PyTorch: what each hook is given, in which order, and what becomes of what it returns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import gradwright

pytestmark = pytest.mark.torch


def numbers(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


class Two:
    """A module of two inputs and two outputs, on either side."""

    def __new__(cls, m: Any) -> Any:
        class Module(m.nn.Module):
            def forward(self, a, b, scale=1.0):
                return a * b * scale, a + b

        return Module()


def arrays(value: Any) -> Any:
    if isinstance(value, tuple):
        return [arrays(v) for v in value]
    return None if value is None else value.detach().numpy().copy()


def same_notes(ours: list, theirs: list) -> None:
    assert len(ours) == len(theirs) > 0
    for mine, other in zip(ours, theirs, strict=True):
        if isinstance(other, list):
            same_notes(mine, other)
        elif isinstance(other, np.ndarray):
            np.testing.assert_allclose(mine, other, rtol=1e-9, atol=1e-12)
        else:
            assert mine == other  # a name, a number or None


def run_two(m: Any, notes: list, wanted: tuple[bool, bool], edit: bool, used: tuple[float, float]) -> list:
    module = Two(m)
    handles = [
        module.register_forward_pre_hook(lambda mod, args: notes.append(["pre", arrays(args)])),
        module.register_forward_pre_hook(lambda mod, args: (args[0] * 2, args[1])),
        module.register_forward_hook(lambda mod, args, out: notes.append(["after", arrays(args), arrays(out)])),
        module.register_forward_hook(lambda mod, args, out: (out[0] + 1, out[1])),
    ]

    def backward_hook(mod, grad_input, grad_output):
        notes.append(["backward", arrays(grad_input), arrays(grad_output)])
        return tuple(None if g is None else g * 3 for g in grad_input) if edit else None

    handles.append(module.register_full_backward_hook(backward_hook))
    a, b = (m.tensor(numbers((2, 3), i), requires_grad=w) for i, w in enumerate(wanted))
    one, two = module(a, b, scale=0.5)
    (one * used[0] + two * used[1] if all(used) else one * used[0] if used[0] else two * used[1]).sum().backward()
    for handle in handles:
        handle.remove()
    before = len(notes)
    module(a, b)
    assert len(notes) == before
    return [arrays(a.grad), arrays(b.grad)]


@pytest.mark.parametrize("wanted", [(True, True), (True, False), (False, True)])
@pytest.mark.parametrize("edit", [False, True])
@pytest.mark.parametrize("used", [(1.5, -2.0), (1.5, 0), (0, -2.0)], ids=str)
def test_hooks_of_a_module_with_two_inputs_and_two_outputs(wanted, edit, used):
    ours, theirs = [], []
    grads = run_two(gradwright, ours, wanted, edit, used)
    same_notes(grads, run_two(torch, theirs, wanted, edit, used))
    same_notes(ours, theirs)


@pytest.mark.filterwarnings("ignore:Full backward hook is firing:UserWarning")
def test_backward_hooks_where_no_input_requires_a_gradient():
    def run(m, notes):
        module = m.nn.Linear(3, 2).double()
        for i, p in enumerate(module.parameters()):
            with m.no_grad():
                p.copy_(m.tensor(numbers(tuple(p.shape), i)))
        module.register_full_backward_hook(lambda mod, gi, go: notes.append([arrays(gi), arrays(go)]))
        out = module(m.tensor(numbers((4, 3), 5)))
        (out * out).sum().backward()
        with m.no_grad():
            module(m.tensor(numbers((4, 3), 5)))
        return [arrays(p.grad) for p in module.parameters()]

    ours, theirs = [], []
    same_notes(run(gradwright, ours), run(torch, theirs))
    same_notes(ours, theirs)


def test_backward_hooks_run_again_in_a_second_walk():
    def run(m, notes):
        module = m.nn.Sequential(m.nn.Tanh(), m.nn.Sigmoid())
        for child in module:
            child.register_full_backward_hook(lambda mod, gi, go: notes.append([arrays(gi), arrays(go)]))
        x = m.tensor(numbers((4, 3), 5), requires_grad=True)
        out = module(x).sum()
        out.backward(retain_graph=True)
        out.backward()
        return [arrays(x.grad)]

    ours, theirs = [], []
    same_notes(run(gradwright, ours), run(torch, theirs))
    same_notes(ours, theirs)
