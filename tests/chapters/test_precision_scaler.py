"""Chapter 10: a scaler whose skipped steps move nothing, and the three trainings of the digits."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import gradwright
from gradwright import nn, optim
from gradwright.amp import GradScaler, autocast
from gradwright.chapters import precision
from gradwright.nn import functional as F

F16, F32 = np.float16, np.float32
INF, NAN = float("inf"), float("nan")


def with_gradient(value, size=3):
    p = gradwright.ones(size, requires_grad=True)
    p.grad = gradwright.tensor(np.full(size, value, F32))
    return p


def used(**options):
    """A scaler that has scaled a loss."""
    scaler = GradScaler(**options)
    scaler.scale(gradwright.ones(1))
    return scaler


def frozen(optimizer):
    """Everything that an optimizer can move."""
    memory = [
        [value.numpy().copy() if isinstance(value, gradwright.Tensor) else value for value in kept.values()]
        for kept in optimizer.state.values()
    ]
    return [p.detach().numpy().copy() for group in optimizer.param_groups for p in group["params"]], memory


@pytest.mark.parametrize("bad", [INF, -INF, NAN])
@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW", "RMSprop"])
def test_a_skipped_step_moves_neither_parameters_nor_moments_nor_counters(kind, bad):
    p = with_gradient(8.0)
    optimizer = getattr(optim, kind)([p], lr=0.1, **({"momentum": 0.9} if kind == "SGD" else {}))
    scaler = used(init_scale=8.0)
    scaler.step(optimizer)
    scaler.update()
    before = frozen(optimizer)
    p.grad[1] = bad
    scaler.step(optimizer)
    scaler.update()
    after = frozen(optimizer)
    np.testing.assert_equal(after, before)
    assert scaler.get_scale() == 4.0
    p.grad = gradwright.full((3,), 4.0)
    scaler.step(optimizer)
    assert optimizer.state[p]["step"] == 2


def test_clipping_sees_the_true_gradient():
    p = with_gradient(0.0, 2)
    p.grad = gradwright.tensor([3.0, 4.0]) * 1024
    optimizer, scaler = optim.SGD([p], lr=1.0), used(init_scale=1024.0)
    scaler.unscale_(optimizer)
    assert nn.utils.clip_grad_norm_([p], 1.0).item() == 5.0
    scaler.step(optimizer)
    np.testing.assert_allclose(p.detach().numpy(), [0.4, 0.2], rtol=1e-6)


@pytest.mark.parametrize(("calls", "sentence"), [
    (["unscale_", "unscale_"], "unscale_() was called twice for this optimizer"),
    (["step", "unscale_"], "unscale_() after step()"),
    (["step", "step"], "step() was called twice"),
    (["update"], "update() before any step()"),
    (["step", "update", "update"], "update() before any step()"),
])  # fmt: skip
def test_calls_at_the_wrong_moment_say_what_to_do(calls, sentence):
    scaler, optimizer = used(), optim.SGD([with_gradient(1.0)], lr=0.1)
    do = {
        "unscale_": lambda: scaler.unscale_(optimizer),
        "step": lambda: scaler.step(optimizer),
        "update": scaler.update,
    }
    for call in calls[:-1]:
        do[call]()
    with pytest.raises(RuntimeError) as met:
        do[calls[-1]]()
    assert sentence in str(met.value)


@pytest.mark.parametrize("call", ["unscale_", "step", "update"])
def test_nothing_works_before_a_loss_was_scaled(call):
    arguments = [] if call == "update" else [optim.SGD([with_gradient(1.0)], lr=0.1)]
    with pytest.raises(RuntimeError, match=rf"{call}\(\) before scale\(\)"):
        getattr(GradScaler(), call)(*arguments)


def test_no_gradient_a_closure_a_half_gradient_and_a_wrong_device():
    p, scaler = gradwright.ones(2, requires_grad=True), used()
    optimizer = optim.SGD([p], lr=0.1)
    with pytest.raises(RuntimeError, match="found no gradient to look at"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="takes no closure"):
        scaler.step(optimizer, closure=lambda: 0)
    half = gradwright.ones(2, dtype=F16, requires_grad=True)
    half.sum().backward()
    with pytest.raises(ValueError, match="keep the weights in float32"):
        scaler.step(optim.SGD([half], lr=0.1))
    with pytest.raises(ValueError, match="device 'cuda'"):
        GradScaler("cuda")
    with pytest.raises(ValueError, match="does not grow"):
        GradScaler(growth_factor=1.0)
    with pytest.raises(ValueError, match="does not back off"):
        GradScaler(backoff_factor=1.0)


def test_lists_and_tuples_keep_their_kind_and_float16_its_range():
    scaler, one = GradScaler(init_scale=4.0), gradwright.ones(2)
    a, (b, c) = scaler.scale([one, (one, one)])
    assert [a.tolist(), b.tolist(), c.tolist()] == [[4.0, 4.0]] * 3
    assert type(scaler.scale((one,))) is tuple
    assert [t.tolist() for t in scaler.scale(t for t in [one])] == [[4.0, 4.0]]
    loss = gradwright.tensor([0.5], dtype=F16)
    assert GradScaler().scale(loss).tolist() == [32768.0]  # the scale itself, 65536, is inf in float16
    with pytest.raises(ValueError, match="takes a tensor or tensors in a list, and got a float"):
        scaler.scale(1.0)


def test_a_disabled_scaler_is_not_there():
    scaler, p = GradScaler(enabled=False), with_gradient(INF)
    optimizer, loss = optim.SGD([p], lr=1.0), gradwright.ones(1)
    assert scaler.scale(loss) is loss
    scaler.unscale_(optimizer)
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    scaler.load_state_dict({})
    assert p.detach().tolist() == [-INF] * 3
    assert (scaler.get_scale(), scaler.state_dict(), scaler.is_enabled()) == (1.0, {}, False)


def test_a_resumed_scaler_goes_on_where_the_other_stopped():
    def go(scaler, values):
        found = []
        for value in values:
            optimizer = optim.SGD([with_gradient(value)], lr=0.1)
            scaler.scale(gradwright.ones(1))
            scaler.step(optimizer)
            scaler.update()
            found.append(scaler.get_scale())
        return found

    values = [1, 1, INF, 1, 1, 1, 1, NAN, 1, 1, 1]
    whole = go(GradScaler(growth_interval=3), values)
    for stop in range(len(values)):
        first, second = GradScaler(growth_interval=3), GradScaler(init_scale=2.0)
        before = go(first, values[:stop])
        second.load_state_dict(first.state_dict())
        assert before + go(second, values[stop:]) == whole
    with pytest.raises(RuntimeError, match="the state is empty"):
        second.load_state_dict({})


def test_update_takes_a_scale_that_is_given():
    scaler, optimizer = used(), optim.SGD([with_gradient(1.0)], lr=0.1)
    scaler.unscale_(optimizer)
    scaler.update(gradwright.tensor(128.0))
    assert scaler.get_scale() == 128.0
    scaler.unscale_(optimizer)
    scaler.update(64)
    assert scaler.get_scale() == 64.0


# The three trainings

DATA = np.load(Path(gradwright.__file__).parents[1] / "data" / "digits.npz")
IMAGES, LABELS = (DATA["images"].reshape(-1, 64) / 16).astype(F32), DATA["labels"].astype(np.int64)
TRAINING, TESTING = np.split(np.random.default_rng(0).permutation(1797), [897])


class Schedule:
    taken = 0

    def step(self):
        self.taken += 1


def trained(half, scaled, weight=1e-5, init_scale=2.0**36, steps=210):
    gradwright.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = optim.AdamW(model.parameters(), lr=3e-3, eps=1e-12)
    scaler, schedule = GradScaler(init_scale=init_scale, growth_interval=25, enabled=scaled), Schedule()
    rng, skipped, zeros = np.random.default_rng(1), 0, []

    def loss_of():
        with autocast(dtype=F16, enabled=half):
            return weight * F.cross_entropy(model(gradwright.tensor(IMAGES[rows])), gradwright.tensor(LABELS[rows]))

    for _ in range(steps):
        rows = rng.choice(TRAINING, 64, replace=False)
        with np.errstate(over="ignore", invalid="ignore"):
            loss, taken = precision.scaled_step(loss_of, optimizer, scaler, list(model.parameters()), 1e-4, schedule)
        skipped += not taken
        zeros.append(float((model[0].weight.grad.numpy() == 0).mean()))
    with gradwright.no_grad():
        right = (model(gradwright.tensor(IMAGES[TESTING])).argmax(1).numpy() == LABELS[TESTING]).mean()
    assert schedule.taken == steps - skipped
    assert optimizer.state[model[0].weight]["step"] == steps - skipped
    return Counter(right=right, loss=loss / weight, skipped=skipped, first=zeros[0])


def test_float16_stalls_without_a_scale_and_matches_float32_with_one():
    wide, unscaled, scaled = trained(False, False), trained(True, False), trained(True, True)
    assert wide["right"] > 0.93
    assert abs(scaled["right"] - wide["right"]) <= 0.005
    assert unscaled["right"] < 0.5 and unscaled["loss"] > 1.5
    assert unscaled["first"] == 1.0 > 0.5 > scaled["first"]
    assert (wide["skipped"], unscaled["skipped"]) == (0, 0) and scaled["skipped"] > 3


def test_the_same_training_twice_gives_the_same_bits():
    assert trained(True, True, steps=30) == trained(True, True, steps=30)
