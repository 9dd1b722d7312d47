"""Chapter 04's hooks and what watches through them: they change nothing and leave nothing behind."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import gradwright
from gradwright.chapters import layers
from gradwright.chapters.layers import (
    GradientFlow,
    Linear,
    Module,
    ReLU,
    Sequential,
    Tanh,
    costs,
    no_grad,
    ones,
    randn,
    tensor,
)

from .layered import small


def hooks_of(model: Module) -> int:
    kinds = ("_forward_pre_hooks", "_forward_hooks", "_backward_hooks")
    return sum(len(vars(module)[kind]) for module in model.modules() for kind in kinds)


def test_a_model_that_was_watched_is_what_it_was():
    model, x = small(), randn(6, 3)
    before = model(x)
    state = {name: t.clone().tolist() for name, t in model.state_dict().items()}
    with GradientFlow(model) as flow:
        assert hooks_of(model) > 0
    assert hooks_of(model) == 0
    with pytest.raises(RuntimeError), GradientFlow(model):
        raise RuntimeError
    assert hooks_of(model) == 0
    costs(model.eval(), x)
    with pytest.raises(ValueError):
        costs(model, ones(2, 9))
    assert hooks_of(model) == 0
    assert {name: t.tolist() for name, t in model.state_dict().items()} == state
    assert (before.shape, flow.steps) == ((6, 2), 0)


def test_watching_changes_no_number():
    found = []
    for watched in (False, True):
        model, x = small(), randn(6, 3, generator=gradwright.Generator(2), requires_grad=True)
        flow = GradientFlow(model) if watched else None
        for _ in range(2):
            model(x).square().sum().backward()
        found.append([x.grad.tolist(), *[p.grad.tolist() for p in model.parameters()]])
        if flow:
            flow.close()
    assert found[0] == found[1]


def test_what_gradient_flow_records():
    model = Sequential(Linear(2, 2, bias=False), ReLU(), Linear(2, 1, bias=False)).double()
    layers.fill(model[0].weight, tensor([[1.0, 0.0], [0.0, -1.0]], dtype=np.float64))
    layers.fill(model[2].weight, tensor([[3.0, 4.0]], dtype=np.float64))
    x = tensor([[1.0, 2.0]], dtype=np.float64)
    with GradientFlow(model) as flow:
        model(x).backward(tensor([[2.0]], dtype=np.float64))
        with no_grad():
            model(x)
        model(x)
    assert (flow.steps, flow.names) == (2, ("0", "1", "2"))
    assert [norms[0] for norms in flow.gradient_norms.values()] == [6.0, 10.0, 2.0]
    assert all(np.isnan(norms[1]) for norms in flow.gradient_norms.values())
    assert flow.activations["1"][0] == (0.5, 0.5, 0.5)
    counts = flow.histograms["1"][0]
    assert {flow.edges[i]: n for i, n in enumerate(counts) if n} == {4.0: 1, 8.0: 1}
    flow.clear()
    assert (flow.steps, flow.gradient_norms["0"]) == (0, [])


def test_the_histogram_leaves_out_what_has_no_size():
    flow = GradientFlow(Sequential(ReLU()))
    counts = flow.counted(np.array([0.0, np.inf, np.nan, 1e-300, -1.0, 1.5, 2.0, 1e300]))
    assert {flow.edges[i]: n for i, n in enumerate(counts) if n} == {2.0**-40: 1, 1.0: 2, 2.0: 1, 2.0**13: 1}
    flow.close()


def test_a_layer_that_is_called_twice_has_one_gradient_of_both():
    shared = Tanh()
    model = Sequential(shared, shared)
    with GradientFlow(model) as flow:
        model(tensor([0.0], requires_grad=True)).backward()
    assert flow.gradient_norms["0"] == [pytest.approx(2**0.5)]


def test_backward_hooks_keep_no_graph_alive():
    model, seen = Linear(2, 2), []
    model.register_full_backward_hook(lambda module, grad_input, grad_output: seen.append(grad_output[0].tolist()))
    out = model(randn(3, 2, requires_grad=True))
    gone = weakref.ref(out.grad_fn)
    out.sum().backward()
    del out
    gc.disable()
    try:
        assert gone() is None
    finally:
        gc.enable()
    assert seen == [[[1.0, 1.0]] * 3]


def test_a_backward_hook_needs_tensors_to_come_out():
    class Pair(Module):
        def forward(self, x):
            return {"x": x}

    module = Pair()
    module.register_full_backward_hook(lambda *_: None)
    with pytest.raises(TypeError, match="a tensor or a tuple of them, not a dict"):
        module(ones(2, requires_grad=True))
