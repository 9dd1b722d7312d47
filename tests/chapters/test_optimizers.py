"""Chapter 06: steps whose values are known by hand, groups, memories, and the training on the digits."""

from __future__ import annotations

import json
import math

import digits
import numpy as np
import pytest

import gradwright
from gradwright import nn, optim
from gradwright.chapters import optimizers
from gradwright.nn import functional as F
from gradwright.nn import utils

KINDS = [
    ("SGD", {"momentum": 0.9, "weight_decay": 0.01}),
    ("Adam", {"weight_decay": 0.01}),
    ("AdamW", {}),
    ("RMSprop", {"momentum": 0.5, "centered": True}),
]
each_kind = pytest.mark.parametrize(("name", "settings"), KINDS)


def leaf(values, grad=None):
    p = gradwright.tensor(np.array(values), requires_grad=True)
    if grad is not None:
        p.grad = gradwright.tensor(np.array(grad))
    return p


def moved(optimizer_of, p=1.0, g=0.5):
    """Where one step leads from p."""
    parameter = leaf([p], [g])
    optimizer_of([parameter]).step()
    return parameter.item()


# Faults 10, 11 and 12


def test_adam_corrects_its_bias():
    assert moved(lambda p: optim.Adam(p, lr=0.1)) == pytest.approx(0.9, abs=1e-7)


def test_adamw_shrinks_first_and_leaves_the_gradient_alone():
    assert moved(lambda p: optim.AdamW(p, lr=0.1, weight_decay=0.1)) == pytest.approx(0.89, abs=1e-7)
    assert moved(lambda p: optim.Adam(p, lr=0.1, weight_decay=0.1)) == pytest.approx(0.9, abs=1e-7)


def test_l2_and_decoupled_decay_part_over_several_steps():
    ends = []
    for kind, decay in (("Adam", 0.0), ("Adam", 0.1), ("AdamW", 0.1)):
        p = leaf([1.0, 1.0])
        optimizer = getattr(optim, kind)([p], lr=0.1, weight_decay=decay)
        for g in ([1.0, 0.01], [-0.5, 0.02], [2.0, -0.01], [0.1, 0.03]):
            p.grad = gradwright.tensor(np.array(g))
            optimizer.step()
        ends.append(p.detach().numpy())
    plain, l2, decoupled = ends
    assert np.abs(l2 - plain).min() > 1e-3
    assert np.abs(decoupled - plain).min() > 1e-3
    assert np.abs(decoupled - l2).min() > 1e-3


def test_what_is_clipped_is_the_gradient_without_its_scale():
    scaled = np.array([3.0, 4.0]) * 1024
    right, wrong = leaf([0.0, 0.0], scaled), leaf([0.0, 0.0], scaled)
    right.grad.mul_(1 / 1024)
    utils.clip_grad_norm_(right, 1.0)
    utils.clip_grad_norm_(wrong, 1.0)
    wrong.grad.mul_(1 / 1024)
    optim.SGD([right, wrong], lr=1.0).step()
    assert right.tolist() == pytest.approx([-0.6, -0.8], abs=1e-6)
    assert wrong.tolist() == pytest.approx([-0.000586, -0.000781], abs=1e-6)


def test_the_first_momentum_step_is_not_dampened():
    assert moved(lambda p: optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.5)) == pytest.approx(0.95)


# The step


@each_kind
def test_a_parameter_without_a_gradient_stands_still_and_does_not_age(name, settings):
    p, q = leaf([1.0], [1.0]), leaf([1.0])
    optimizer = getattr(optim, name)([p, q], **settings)
    optimizer.step()
    assert (q.item(), q in optimizer.state) == (1.0, False)
    assert p.item() != 1.0


@each_kind
def test_maximize_mirrors_the_step(name, settings):
    settings = {**settings, "weight_decay": 0.0}
    down = moved(lambda p: getattr(optim, name)(p, lr=0.01, **settings), p=0.0)
    up = moved(lambda p: getattr(optim, name)(p, lr=0.01, maximize=True, **settings), p=0.0)
    assert down == -up != 0


@each_kind
def test_pieces_change_no_number(name, settings, monkeypatch):
    rng, ends = np.random.default_rng(0), []
    start, gradients = rng.standard_normal((30, 40)), rng.standard_normal((3, 30, 40))
    for piece in (10_000, 100, 7):
        monkeypatch.setattr(optimizers, "PIECE", piece)
        p = leaf(start)
        optimizer = getattr(optim, name)([p], lr=0.01, **settings)
        for g in gradients:
            p.grad = gradwright.tensor(g)
            optimizer.step()
        ends.append(p.detach().numpy().copy())
    assert np.array_equal(ends[0], ends[1])
    assert np.array_equal(ends[0], ends[2])


def test_a_parameter_that_is_not_in_row_major_order_moves_too():
    p = gradwright.tensor(np.ones((200, 100))).t().detach().requires_grad_()
    p.grad = gradwright.ones(100, 200).double()
    optim.SGD([p], lr=0.5).step()
    assert p.detach().numpy().tolist() == np.full((100, 200), 0.5).tolist()


def test_momentum_that_comes_later_finds_its_memory():
    p = leaf([1.0], [1.0])
    optimizer = optim.SGD([p], lr=0.1)
    optimizer.step()
    optimizer.param_groups[0]["momentum"] = 0.5
    optimizer.step()
    optimizer.step()
    assert p.item() == pytest.approx(1 - 0.1 - 0.1 - 0.15)


def test_a_closure_is_computed_with_gradients_and_its_loss_returned():
    p = leaf([3.0])
    optimizer = optim.SGD([p], lr=0.1)

    def closure():
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    with gradwright.no_grad():
        assert optimizer.step(closure).item() == 9
    assert p.item() == pytest.approx(2.4)


def test_zero_grad_forgets_or_zeroes():
    p = leaf([1.0], [2.0])
    optimizer, grad = optim.SGD([p]), p.grad
    optimizer.zero_grad(set_to_none=False)
    assert p.grad is grad
    assert grad.tolist() == [0.0]
    optimizer.zero_grad()
    assert p.grad is None


def test_a_graph_that_saved_a_parameter_notices_the_step():
    p = leaf([2.0], [1.0])
    loss = (p * p).sum()
    optim.SGD([p], lr=0.1).step()
    with pytest.raises(RuntimeError, match="changed in place"):
        loss.backward()


# Groups


def test_a_group_obeys_its_own_dictionary():
    p, q = leaf([1.0], [1.0]), leaf([1.0], [1.0])
    optimizer = optim.SGD([{"params": [p]}, {"params": q, "lr": 0.5}], lr=0.1)
    optimizer.step()
    assert (p.item(), q.item()) == (0.9, 0.5)
    optimizer.param_groups[0]["lr"] = 0.4
    optimizer.step()
    assert p.item() == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda p: optim.SGD([]), ValueError, "without parameters"),
        (lambda p: optim.SGD(p), TypeError, "put it in a list"),
        (lambda p: optim.SGD([p, p]), ValueError, "twice"),
        (lambda p: optim.SGD([{"params": [p]}, {"params": [p]}]), ValueError, "twice"),
        (lambda p: optim.SGD([p * 2]), ValueError, "not a leaf"),
        (lambda p: optim.SGD([p, 3.0]), TypeError, "a float"),
        (lambda p: optim.SGD([{"params": [p], "rate": 1.0}]), ValueError, "'rate'"),
        (lambda p: optim.SGD([p], lr=-0.1), ValueError, "lr=-0.1"),
        (lambda p: optim.SGD([{"params": [p], "lr": math.nan}]), ValueError, "lr=nan"),
        (lambda p: optim.SGD([p], nesterov=True), ValueError, "momentum above 0"),
        (lambda p: optim.Adam([p], betas=(0.9, 1.0)), ValueError, r"betas=\(0.9, 1.0\)"),
        (lambda p: optim.RMSprop([p], eps=-1.0), ValueError, "eps=-1.0"),
        (lambda p: optim.AdamW([p], amsgrad=True), TypeError, "amsgrad"),
        (lambda p: optim.SGD(3), TypeError, r"such as model.parameters\(\), and got int"),
        (lambda p: optim.SGD([p], lr="fast"), TypeError, "lr='fast'.*give a number"),
        (lambda p: optim.SGD([p], lr=p), TypeError, "give a number"),
        (lambda p: optim.Adam([p], betas=(0.9,)), TypeError, "give two numbers"),
        (lambda p: optim.Adam([p], betas=0.9), TypeError, "give two numbers"),
        (lambda p: optim.SGD([{"params": [p]}, p]), TypeError, 'a dictionary with "params"'),
        (lambda p: optim.SGD([{"lr": 1.0}]), TypeError, "this is {'lr': 1.0}"),
        (lambda p: optim.SGD([p]).load_state_dict({}), ValueError, '"state" and "param_groups"'),
        (lambda p: optim.Optimizer([leaf([1.0], [1.0])], {}).step(), NotImplementedError, "memories"),
        (lambda p: optim.Optimizer([leaf([1.0], [1.0])], {"maximize": False}).step(), NotImplementedError, "memories"),
    ],
)
def test_what_is_refused_is_named(call, error, said):
    with pytest.raises(error, match=said):
        call(leaf([1.0]))


# Memories


def model_and_batch():
    gradwright.manual_seed(3)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
    return model, gradwright.randn(6, 4), gradwright.tensor([0, 1, 2, 0, 1, 2])


def walk(model, optimizer, x, y, steps):
    for _ in range(steps):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    return [p.detach().numpy().copy() for p in model.parameters()]


@each_kind
def test_a_resumed_run_is_the_unbroken_one_to_the_bit(name, settings):
    model, x, y = model_and_batch()
    optimizer = getattr(optim, name)(model.parameters(), lr=0.01, **settings)
    walk(model, optimizer, x, y, 5)
    weights = {key: value.clone() for key, value in model.state_dict().items()}
    saved = optimizer.state_dict()
    twin, _, _ = model_and_batch()
    twin.load_state_dict(weights)
    resumed = getattr(optim, name)(twin.parameters(), lr=7.0)
    resumed.load_state_dict(saved)
    ends = walk(model, optimizer, x, y, 5), walk(twin, resumed, x, y, 5)
    assert all(np.array_equal(a, b) for a, b in zip(*ends, strict=True))


def test_what_was_loaded_is_a_copy_in_the_dtype_of_its_parameter():
    p, q = leaf([1.0], [1.0]), gradwright.tensor([1.0], requires_grad=True)
    first, second = optim.Adam([p]), optim.Adam([q])
    first.step()
    second.load_state_dict(first.state_dict())
    assert second.state[q]["exp_avg"].dtype == gradwright.float32
    second.state[q]["exp_avg"].zero_()
    assert first.state[p]["exp_avg"].item() == pytest.approx(0.1)


def test_a_state_of_another_model_is_refused_and_nothing_changes():
    first, second = optim.Adam([leaf([1.0], [1.0])]), optim.Adam([leaf([[1.0, 2.0]])], lr=0.5)
    first.step()
    with pytest.raises(ValueError, match=r"\(1,\).*\(1, 2\)"):
        second.load_state_dict(first.state_dict())
    with pytest.raises(ValueError, match=r"\[1\].*\[2\]"):
        optim.Adam([leaf([1.0]), leaf([2.0])]).load_state_dict(first.state_dict())
    assert (second.param_groups[0]["lr"], dict(second.state)) == (0.5, {})


def test_an_optimizer_shows_its_settings():
    assert (
        repr(optim.SGD([leaf([1.0])], lr=0.5)).splitlines()[1].startswith("  group 0: 1 parameters, lr=0.5, momentum")
    )


# The digits


def test_the_loss_curve_is_that_of_pytorch():
    recorded = json.loads(digits.CURVE.read_text(encoding="utf-8"))["losses"]
    assert len(recorded) == digits.STEPS
    np.testing.assert_allclose(digits.curve(gradwright), recorded, rtol=0, atol=1e-9)


def test_a_small_network_learns_to_read_digits():
    data = np.load(digits.DATA / "digits.npz")
    assert (data["images"].shape, data["images"].dtype, data["images"].max()) == ((1797, 8, 8), np.uint8, 16)
    x = gradwright.tensor(data["images"].reshape(-1, 64) / 16).float()
    y = gradwright.tensor(data["labels"].astype(np.int64))
    order = np.random.default_rng(0).permutation(1797)
    gradwright.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = optim.AdamW(model.parameters(), lr=3e-3)
    for rows in np.array_split(np.tile(order[:1437], 15), 340):
        optimizer.zero_grad()
        F.cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.step()
    with gradwright.no_grad():
        said = model(x[order[1437:]]).argmax(1)
    assert (said.numpy() == y[order[1437:]].numpy()).mean() > 0.95


@pytest.mark.parametrize("kind", [optim.SGD, optim.Adam, optim.AdamW, optim.RMSprop])
@pytest.mark.parametrize("shape", [(), (0,), (2, 0), (3,)])
def test_a_parameter_of_any_shape_moves(kind, shape):
    p = gradwright.ones(shape, requires_grad=True)
    p.grad = gradwright.ones(shape)
    kind([p], lr=0.1).step()
    assert p.shape == shape
    assert (p < 1).all().item()


@pytest.mark.parametrize(("saved", "loading"), [(optim.SGD, optim.Adam), (optim.Adam, optim.RMSprop)])
def test_the_state_of_another_kind_is_refused_and_nothing_changes(saved, loading):
    p, q = leaf([1.0], [1.0]), leaf([1.0], [1.0])
    before, after = saved([p]), loading([q])
    before.step()
    groups = after.param_groups
    with pytest.raises(ValueError, match="another kind of optimizer"):
        after.load_state_dict(before.state_dict())
    assert after.param_groups is groups
    assert not after.state


def test_the_memory_of_another_kind_with_the_same_settings_is_refused():
    p, q = leaf([1.0], [1.0]), leaf([1.0], [1.0])
    before, after = optim.SGD([p]), optim.SGD([q], momentum=0.9)
    before.step()
    state = before.state_dict()
    state["param_groups"][0]["momentum"] = 0.9
    with pytest.raises(ValueError, match="momentum_buffer is missing"):
        after.load_state_dict(state)
