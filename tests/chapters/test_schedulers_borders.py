"""Chapter 07 at its borders: no warm-up, nothing but warm-up, a total of 1, beyond the end, and what is refused."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import gradwright
from autograder.checks import find, judge
from gradwright import optim
from gradwright.optim import lr_scheduler

from .scheduled import optimizer_of, rates


def test_the_warm_up_says_what_step_0_is():
    """Fault 18."""
    curve = [lr_scheduler.warmup_cosine(step, 1.0, 4, 8) for step in range(11)]
    assert curve[:5] == [0.25, 0.5, 0.75, 1.0, 1.0]
    assert curve[6] == pytest.approx(0.5)
    assert curve[8:] == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("warmup", "total", "curve"),
    [
        (0, 4, [1.0, 0.8682, 0.55, 0.2318, 0.1, 0.1]),
        (3, 3, [1 / 3, 2 / 3, 1.0, 0.1, 0.1, 0.1]),
        (0, 1, [1.0, 0.1, 0.1]),
        (1, 1, [1.0, 0.1, 0.1]),
    ],
    ids=["no warm-up", "all of it warm-up", "a total of 1", "a total of 1, all of it warm-up"],
)
def test_the_borders_of_a_warm_up(warmup, total, curve):
    found = [lr_scheduler.warmup_cosine(step, 1.0, warmup, total, 0.1) for step in range(len(curve))]
    assert found == pytest.approx(curve, abs=5e-5)


def test_the_functions_never_leave_their_range_and_rise_only_in_the_warm_up():
    for warmup, total in ((0, 1), (1, 1), (3, 10), (10, 10), (7, 100)):
        curve = np.array([lr_scheduler.warmup_cosine(step, 0.3, warmup, total, 0.01) for step in range(2 * total + 5)])
        assert (curve > 0).all()
        assert (curve <= 0.3).all()
        assert (np.diff(curve[:warmup]) > 0).all()
        assert (np.diff(curve[max(warmup - 1, 0) :]) <= 0).all()


def test_a_linear_warm_up_of_no_steps_says_that_it_never_rises():
    optimizer = optimizer_of(1.0)
    scheduler = lr_scheduler.LinearLR(optimizer, 0.25, total_iters=0)
    optimizer.step()
    with pytest.warns(UserWarning, match=r"total_iters=0.*start_factor=0\.25"):
        scheduler.step()
    optimizer.step()
    scheduler.step()
    assert scheduler.get_last_lr() == [0.25]


def test_in_a_sequence_a_warm_up_of_no_steps_is_passed_over():
    def make(o):
        parts = [lr_scheduler.LinearLR(o, 0.25, total_iters=0), lr_scheduler.CosineAnnealingLR(o, 2)]
        return lr_scheduler.SequentialLR(o, parts, milestones=[0])

    assert rates(make, 3) == pytest.approx([1, 0.5, 0])


@pytest.mark.parametrize("total", [1, 2, 3, 10, 20])
@pytest.mark.parametrize("pct_start", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("three_phase", [False, True])
def test_a_cycle_of_any_length_has_a_rate_for_every_step(total, pct_start, three_phase):
    """PyTorch divides by zero for some of these."""
    cycle = rates(
        lambda o: lr_scheduler.OneCycleLR(
            o, 1.0, total_steps=total, pct_start=pct_start, three_phase=three_phase, cycle_momentum=False
        ),
        total,
    )
    assert len(cycle) == total
    assert all(0 < lr <= 1 for lr in cycle)


def test_beyond_a_cycle_there_is_one_step_more_and_then_an_error():
    optimizer = optimizer_of()
    scheduler = lr_scheduler.OneCycleLR(optimizer, 1.0, total_steps=5)
    for _ in range(5):
        optimizer.step()
        scheduler.step()
    with pytest.raises(ValueError, match="step 6 is beyond the 5"):
        scheduler.step()


def test_a_cycle_moves_the_momentum_the_other_way():
    for kind, name in (("SGD", "momentum"), ("AdamW", "betas")):
        optimizer = optimizer_of(kind=kind)
        scheduler = lr_scheduler.OneCycleLR(optimizer, 1.0, total_steps=11, pct_start=6 / 11)
        found = []
        for _ in range(11):
            value = optimizer.param_groups[0][name]
            found.append(value[0] if name == "betas" else value)
            optimizer.step()
            scheduler.step()
        assert (found[0], found[5], found[10]) == pytest.approx((0.95, 0.85, 0.95))
    assert optimizer.param_groups[0]["betas"][1] == 0.999


def test_resumed_by_last_epoch_the_restarts_find_their_cycle():
    """After cycles of 2 and 4 steps, step 7 is the second of the third; PyTorch's T_cur is elsewhere."""
    whole = rates(lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 2, 2), 20)
    for last in range(19):
        optimizer = optimizer_of()
        optimizer.param_groups[0]["initial_lr"] = 1.0
        scheduler = lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 2, 2, last_epoch=last)
        assert scheduler.get_last_lr()[0] == pytest.approx(whole[last + 1])


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda o: lr_scheduler.StepLR(o, 0), ValueError, "step_size=0"),
        (lambda o: lr_scheduler.CosineAnnealingLR(o, 0), ValueError, "T_max=0"),
        (lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 2.5), ValueError, "T_0=2.5"),
        (lambda o: lr_scheduler.LinearLR(o, 0.0), ValueError, "start_factor=0.0"),
        (lambda o: lr_scheduler.LinearLR(o, total_iters=-1), ValueError, "total_iters=-1"),
        (lambda o: lr_scheduler.OneCycleLR(o, 1.0), ValueError, "total_steps, or both"),
        (lambda o: lr_scheduler.OneCycleLR(o, 1.0, epochs=3), ValueError, "total_steps, or both"),
        (lambda o: lr_scheduler.OneCycleLR(o, 1.0, 5, anneal_strategy="step"), ValueError, "anneal_strategy='step'"),
        (lambda o: lr_scheduler.OneCycleLR(o, [1.0, 2.0], 5), ValueError, "max_lr has 2 entries"),
        (lambda o: lr_scheduler.LambdaLR(o, [abs, abs]), ValueError, "lr_lambda has 2 entries"),
        (lambda o: lr_scheduler.ReduceLROnPlateau(o, "low"), ValueError, "mode='low'"),
        (lambda o: lr_scheduler.ReduceLROnPlateau(o, factor=1.0), ValueError, "factor=1.0"),
        (lambda o: lr_scheduler.ReduceLROnPlateau([]), TypeError, "got a list"),
        (lambda o: lr_scheduler.StepLR([], 3), TypeError, "got a list"),
        (lambda o: lr_scheduler.StepLR(o, 3, last_epoch=4), KeyError, "initial_lr"),
        (lambda o: lr_scheduler.StepLR(o, 3, verbose=True), TypeError, "verbose"),
        (lambda o: lr_scheduler.StepLR(o, 3).step(epoch=4), TypeError, "epoch"),
        (lambda o: lr_scheduler.SequentialLR(o, [], []), ValueError, "at least one"),
        (lambda o: lr_scheduler.SequentialLR(o, [lr_scheduler.StepLR(o, 3)], [4]), ValueError, "1 milestones"),
        (
            lambda o: lr_scheduler.SequentialLR(o, [lr_scheduler.ReduceLROnPlateau(o)], []),
            ValueError,
            "needs a metric",
        ),
        (
            lambda o: lr_scheduler.SequentialLR(o, [lr_scheduler.StepLR(optimizer_of(), 3)], []),
            ValueError,
            "another optimizer",
        ),
        (lambda o: lr_scheduler.cosine(0, 1.0, 0), ValueError, "total=0"),
        (lambda o: lr_scheduler.warmup_cosine(0, 1.0, 5, 4), ValueError, "warmup=5 of total=4"),
    ],
)
def test_what_is_refused_is_named(call, error, said):
    with pytest.raises(error, match=said):
        call(optimizer_of())


# What the checks say


def told(name, target):
    return judge(find(f"schedulers-{name}"), target, gradwright).text()


@pytest.mark.parametrize("name", ["step-decay", "cosine", "warmup", "anneal", "epoch", "plateau", "sequence"])
def test_an_answer_that_returns_nothing_is_told_so(name):
    assert "returns None" in told(name, lambda *arguments, **settings: None)


def test_a_forgotten_attribute_is_not_taken_for_a_wrong_way_of_loading():
    class Forgetful(lr_scheduler.LRScheduler):
        def set_rates(self, rates):
            for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
                group["lr"] = rate

    said = told("scheduler", Forgetful)
    assert "no attribute '_last_lr'" in said
    assert "Loading" not in said


def test_the_range_test_leaves_buffers_to_who_has_the_model():
    model = gradwright.nn.Sequential(gradwright.nn.BatchNorm1d(3), gradwright.nn.Linear(3, 1))
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    before = copy.deepcopy(model.state_dict())
    batches = [gradwright.tensor(np.random.default_rng(n).standard_normal((4, 3))).float() for n in range(3)]
    lr_scheduler.lr_range_test(optimizer, lambda x: (model(x) ** 2).mean() + 1, batches, 1e-3, 1e-2)
    after = model.state_dict()
    moved = {name for name in before if not np.array_equal(before[name].numpy(), after[name].numpy())}
    assert moved == {"0.running_mean", "0.running_var", "0.num_batches_tracked"}
    model.load_state_dict(before)
    assert all(np.array_equal(before[name].numpy(), now.numpy()) for name, now in model.state_dict().items())
