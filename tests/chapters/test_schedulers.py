"""Chapter 07: curves whose values are known by hand, the borders, the order of steps, resuming and the range test."""

from __future__ import annotations

import copy
import json
import math

import numpy as np
import pytest

import gradwright
from gradwright import nn, optim
from gradwright.chapters import schedulers
from gradwright.nn import functional as F
from gradwright.optim import lr_scheduler

from .scheduled import optimizer_of, rates

# The functions of the step


def test_the_cosine_of_ten_steps():
    """Fault 15."""
    right = [1, 0.9755, 0.9045, 0.7939, 0.6545, 0.5, 0.3455, 0.2061, 0.0955, 0.0245, 0, 0, 0]
    assert [lr_scheduler.cosine(step, 1.0, 10) for step in range(13)] == pytest.approx(right, abs=5e-5)


def test_a_staircase():
    assert [lr_scheduler.step_decay(step, 1.0, 3, 0.5) for step in range(7)] == [1, 1, 1, 0.5, 0.5, 0.5, 0.25]


# The schedulers


@pytest.mark.parametrize(
    ("make", "curve"),
    [
        (lambda o: lr_scheduler.StepLR(o, 2, 0.5), [1, 1, 0.5, 0.5, 0.25]),
        (lambda o: lr_scheduler.MultiStepLR(o, [1, 3, 3], 0.5), [1, 0.5, 0.5, 0.125, 0.125]),
        (lambda o: lr_scheduler.ExponentialLR(o, 0.5), [1, 0.5, 0.25, 0.125, 0.0625]),
        (lambda o: lr_scheduler.LinearLR(o, 0.25, total_iters=3), [0.25, 0.5, 0.75, 1, 1]),
        (lambda o: lr_scheduler.CosineAnnealingLR(o, 2), [1, 0.5, 0, 0.5, 1]),
        (lambda o: lr_scheduler.CosineAnnealingLR(o, 1), [1, 0, 1, 0, 1]),
        (lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 2), [1, 0.5, 1, 0.5, 1]),
        (lambda o: lr_scheduler.LambdaLR(o, lambda t: t), [0, 1, 2, 3, 4]),
    ],
)
def test_a_curve_by_hand(make, curve):
    assert rates(make, len(curve)) == pytest.approx(curve, abs=1e-15)


def test_every_group_keeps_its_own_initial_rate():
    optimizer = optimizer_of(1.0, 0.5)
    scheduler = lr_scheduler.ExponentialLR(optimizer, 0.5)
    optimizer.step()
    scheduler.step()
    assert [group["lr"] for group in optimizer.param_groups] == scheduler.get_last_lr() == [0.5, 0.25]
    assert [group["initial_lr"] for group in optimizer.param_groups] == scheduler.base_lrs == [1.0, 0.5]
    assert scheduler.last_epoch == 1


def test_the_next_step_obeys():
    optimizer = optimizer_of(1.0)
    scheduler = lr_scheduler.ExponentialLR(optimizer, 0.5)
    for _ in range(3):
        optimizer.step()
        scheduler.step()
    assert optimizer.param_groups[0]["params"][0].item() == 1 - 0.25 * (1 + 0.5 + 0.25)


def test_a_schedule_of_ones_own_needs_get_lr_alone():
    class Halved(lr_scheduler.LRScheduler):
        def get_lr(self):
            return [lr / 2**self.last_epoch for lr in self.base_lrs]

    assert rates(Halved, 4) == [1, 0.5, 0.25, 0.125]
    with pytest.raises(NotImplementedError, match=r"LRScheduler has no get_lr\(\)"):
        lr_scheduler.LRScheduler(optimizer_of())


def test_two_multiply():
    optimizer = optimizer_of(1.0)
    both = lr_scheduler.ExponentialLR(optimizer, 0.5), lr_scheduler.StepLR(optimizer, 2, 0.1)
    found = []
    for _ in range(4):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        for scheduler in both:
            scheduler.step()
    assert found == pytest.approx([1, 0.5, 0.025, 0.0125])


# The order


def test_stepping_before_the_optimizer_says_what_happens_and_only_once():
    optimizer = optimizer_of(0.125)
    scheduler = lr_scheduler.ExponentialLR(optimizer, 0.5)
    with pytest.warns(
        UserWarning, match=r"the first rate of the schedule, 0\.125, is never used.*optimizer\.step\(\)"
    ) as told:
        scheduler.step()
    assert told[0].filename == __file__
    scheduler.step()
    optimizer.step()
    scheduler.step()


@pytest.mark.parametrize(
    "make",
    [
        lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 3),
        lambda o: lr_scheduler.OneCycleLR(o, 1.0, total_steps=10),
        lambda o: lr_scheduler.LambdaLR(o, lambda t: 1.0),
        lambda o: lr_scheduler.SequentialLR(
            o, [lr_scheduler.LinearLR(o), lr_scheduler.ExponentialLR(o, 0.9)], milestones=[4]
        ),
    ],
)
def test_every_kind_warns(make):
    scheduler = make(optimizer_of())
    with pytest.warns(UserWarning, match="before the optimizer's first step"):
        scheduler.step()


def test_an_optimizer_that_moved_long_ago_does_not_count():
    optimizer = optimizer_of()
    optimizer.step()
    scheduler = lr_scheduler.ExponentialLR(optimizer, 0.5)
    with pytest.warns(UserWarning, match="before the optimizer's first step"):
        scheduler.step()


# The plateau


def test_the_story_and_the_floor_that_would_have_helped():
    ends = []
    for settings in ({"eps": 0.0}, {"min_lr": 1e-3}):
        scheduler = lr_scheduler.ReduceLROnPlateau(optimizer_of(0.1), patience=3, **settings)
        for n in range(56):
            scheduler.step(0.4 + 0.2 * math.exp(-n / 3) + (n >= 12) * (6000 * math.exp(-1.2 * (n - 12)) + 0.3))
        ends.append(scheduler.get_last_lr()[0])
    assert ends == pytest.approx([1e-12, 1e-3])


def test_a_plateau_that_gets_better_never_falls():
    scheduler = lr_scheduler.ReduceLROnPlateau(optimizer_of(0.1), patience=0)
    for n in range(50):
        scheduler.step(gradwright.tensor(1 / (1 + n)))
    assert scheduler.get_last_lr() == [0.1]


# Sequences and states


def test_a_sequence_within_a_sequence():
    def make(o):
        inner = lr_scheduler.SequentialLR(o, [lr_scheduler.StepLR(o, 1, 0.5), lr_scheduler.LinearLR(o, 0.5)], [2])
        return lr_scheduler.SequentialLR(o, [lr_scheduler.ExponentialLR(o, 0.1), inner], [2])

    assert rates(make, 6) == pytest.approx([1, 0.1, 1, 0.5, 0.5, 0.6])


def test_a_state_of_functions_and_of_objects_that_can_be_called():
    class Slope:
        def __init__(self, by):
            self.by = by

        def __call__(self, step):
            return 1 + self.by * step

    first = lr_scheduler.LambdaLR(optimizer_of(1.0, 1.0), [Slope(2.0), lambda t: 1.0])
    state = first.state_dict()
    assert state["lr_lambdas"] == [{"by": 2.0}, None]
    json.dumps({name: value for name, value in state.items() if name != "lr_lambdas"})
    second = lr_scheduler.LambdaLR(optimizer_of(1.0, 1.0), [Slope(0.0), lambda t: 3.0])
    kept = copy.deepcopy(state)
    second.load_state_dict(state)
    second.optimizer.step()
    second.step()
    assert second.get_last_lr() == [3.0, 3.0]
    assert state == kept


def test_a_loaded_sequence_leaves_the_saved_state_alone():
    def make(o):
        return lr_scheduler.SequentialLR(o, [lr_scheduler.LinearLR(o), lr_scheduler.ExponentialLR(o, 0.5)], [3])

    first = make(optimizer_of())
    for _ in range(4):
        first.optimizer.step()
        first.step()
    state = first.state_dict()
    kept = copy.deepcopy(state)
    second = make(optimizer_of())
    second.load_state_dict(state)
    for _ in range(3):
        second.optimizer.step()
        second.step()
    assert state == kept
    assert second.last_epoch == 7
    assert "optimizer" not in state
    assert all("optimizer" not in inner for inner in state["_schedulers"])


# The range test


def small_model():
    gradwright.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.0), nn.Linear(8, 3))


def everything(optimizer, model):
    """The arrays of the parameters, and those that the optimizer keeps."""
    memories = [memory[name].array for memory in optimizer.state.values() for name in ("exp_avg", "exp_avg_sq")]
    return [p.detach().array for p in model.parameters()] + memories


def test_the_range_test_finds_where_the_loss_turns_and_puts_everything_back():
    model, rng = small_model(), np.random.default_rng(0)
    inputs = rng.standard_normal((64, 4)).astype(np.float32)
    labels = inputs[:, :3].argmax(1)

    def loss_of(rows):
        return F.cross_entropy(model(gradwright.tensor(inputs[rows])), gradwright.tensor(labels[rows]))

    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    loss_of(np.arange(64)).backward()
    optimizer.step()
    before = copy.deepcopy(everything(optimizer, model))
    rows = [rng.choice(64, 16) for _ in range(100)]
    found, losses = lr_scheduler.lr_range_test(optimizer, loss_of, rows, 1e-5, 1e3)
    assert len(found) == len(losses) < 100
    assert losses[-1] > 4 * losses.min() or math.isnan(losses[-1])
    assert losses.min() < 0.8 * losses[0]
    assert np.allclose(np.diff(np.log(found)), np.log(1e8) / 99)
    after = everything(optimizer, model)
    assert len(before) == 4 + 4 * 2
    assert all(np.array_equal(old, new) for old, new in zip(before, after, strict=True))
    assert [group["lr"] for group in optimizer.param_groups] == [1e-3]
    assert 1e-4 < schedulers.steepest(found, losses) < 10


def test_the_plot_of_a_range_test_marks_the_steepest_rate():
    from matplotlib.figure import Figure

    rates_tested = np.geomspace(1e-4, 1.0, 60)
    losses = 2 - 1.5 / (1 + np.exp(-4 * (np.log10(rates_tested) + 2)))
    axes = Figure().add_subplot()
    best = lr_scheduler.plot_range_test(rates_tested, losses, axes)
    assert 10**-2.2 < best < 10**-1.5
    assert axes.get_xscale() == "log"
    assert axes.lines[-1].get_xdata()[0] == best
    with pytest.raises(ValueError, match="the test has 2"):
        lr_scheduler.plot_range_test(rates_tested[:2], losses[:2], axes)
