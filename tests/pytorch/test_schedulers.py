"""Chapter 07's schedulers beside PyTorch: whole curves to 1e-12, resumed at every step, chained, in sequence."""

from __future__ import annotations

import copy
import inspect
import warnings

import numpy as np
import pytest
import torch

import gradwright
from gradwright.optim import lr_scheduler

from .scheduled import CLOSE, STEPS, curve, sides

pytestmark = pytest.mark.torch

OPTIMIZERS = [("SGD", {"momentum": 0.9}), ("Adam", {})]
RATES = [(0.3,), (0.3, 0.05, 1.7)]

# Each makes a scheduler from the module that has it and an optimizer, so that both sides run the same line.
MADE = {
    "StepLR": lambda m, o: m.StepLR(o, 7, 0.5),
    "StepLR at every step": lambda m, o: m.StepLR(o, 1, 0.97),
    "MultiStepLR": lambda m, o: m.MultiStepLR(o, [30, 5, 5, 42], 0.3),
    "MultiStepLR from step 0": lambda m, o: m.MultiStepLR(o, [0, 9], 0.3),
    "ExponentialLR": lambda m, o: m.ExponentialLR(o, 0.93),
    "ExponentialLR three_phase": lambda m, o: m.ExponentialLR(o, 1.05),
    "LinearLR": lambda m, o: m.LinearLR(o),
    "LinearLR down": lambda m, o: m.LinearLR(o, 1.0, 0.0, 20),
    "LinearLR in one step": lambda m, o: m.LinearLR(o, 0.1, 0.8, 1),
    "CosineAnnealingLR": lambda m, o: m.CosineAnnealingLR(o, 60),
    "CosineAnnealingLR beyond its end": lambda m, o: m.CosineAnnealingLR(o, 13, 0.01),
    "CosineAnnealingLR with a total of 1": lambda m, o: m.CosineAnnealingLR(o, 1, 0.01),
    "CosineAnnealingWarmRestarts": lambda m, o: m.CosineAnnealingWarmRestarts(o, 7, eta_min=0.001),
    "CosineAnnealingWarmRestarts, longer and longer": lambda m, o: m.CosineAnnealingWarmRestarts(o, 5, 2),
    "CosineAnnealingWarmRestarts with a total of 1": lambda m, o: m.CosineAnnealingWarmRestarts(o, 1, 3),
    "LambdaLR": lambda m, o: m.LambdaLR(o, lambda t: 1 / (1 + t)),
    "LambdaLR for each group": lambda m, o: m.LambdaLR(
        o, [lambda t, i=i: 0.9 ** (t * i) for i in range(len(o.param_groups))]
    ),
    "OneCycleLR": lambda m, o: m.OneCycleLR(o, 0.7, total_steps=STEPS),
    "OneCycleLR from epochs": lambda m, o: m.OneCycleLR(o, 0.7, epochs=6, steps_per_epoch=10, pct_start=0.21),
    "OneCycleLR in straight lines": lambda m, o: m.OneCycleLR(o, 0.7, STEPS, anneal_strategy="linear", div_factor=3.0),
    "OneCycleLR in three phases": lambda m, o: m.OneCycleLR(o, 0.7, STEPS, three_phase=True, final_div_factor=7.0),
    "OneCycleLR for each group": lambda m, o: m.OneCycleLR(
        o,
        [0.5 + i for i in range(len(o.param_groups))],
        STEPS,
        base_momentum=[0.8 - 0.1 * i for i in range(len(o.param_groups))],
        max_momentum=[0.9 for _ in o.param_groups],
    ),
    "OneCycleLR without momentum": lambda m, o: m.OneCycleLR(o, 0.7, STEPS, cycle_momentum=False),
    "SequentialLR": lambda m, o: m.SequentialLR(
        o, [m.LinearLR(o, 0.1, total_iters=8), m.CosineAnnealingLR(o, 30), m.ExponentialLR(o, 0.9)], [8, 38]
    ),
    "SequentialLR without warm-up": lambda m, o: m.SequentialLR(
        o, [m.LinearLR(o, 0.1, total_iters=8), m.CosineAnnealingLR(o, 30, 0.01)], [0]
    ),
    "SequentialLR that is all warm-up": lambda m, o: m.SequentialLR(
        o, [m.LinearLR(o, 0.1, total_iters=STEPS), m.CosineAnnealingLR(o, 1)], [STEPS]
    ),
    "SequentialLR of restarts and a cycle": lambda m, o: m.SequentialLR(
        o, [m.CosineAnnealingWarmRestarts(o, 3, 2), m.OneCycleLR(o, 0.4, STEPS), m.StepLR(o, 2)], [17, 45]
    ),
    "SequentialLR with equal milestones": lambda m, o: m.SequentialLR(
        o, [m.StepLR(o, 2), m.ExponentialLR(o, 0.1), m.MultiStepLR(o, [0, 3], 0.5)], [10, 10]
    ),
}
each_kind = pytest.mark.parametrize("name", MADE)


@pytest.mark.parametrize(("kind", "settings"), OPTIMIZERS)
@pytest.mark.parametrize("rates", RATES, ids=["one group", "three groups"])
@each_kind
def test_a_whole_curve_and_the_weights_at_its_end(name, rates, kind, settings):
    ours, theirs = sides(kind, rates, **settings)
    np.testing.assert_allclose(curve(ours, MADE[name]), curve(theirs, MADE[name]), **CLOSE)
    np.testing.assert_allclose(ours.weights(), theirs.weights(), rtol=1e-9, atol=1e-9)


@each_kind
def test_attributes_are_pytorchs(name):
    ours, theirs = sides(rates=(0.3, 0.1), momentum=0.9)
    mine, other = (MADE[name](side.schedulers, side.optimizer) for side in (ours, theirs))
    for n in range(20):
        for side, scheduler in ((ours, mine), (theirs, other)):
            side.step(n)
            scheduler.step()
        assert mine.last_epoch == other.last_epoch
        for a, b in zip(ours.optimizer.param_groups, theirs.optimizer.param_groups, strict=True):
            assert a["initial_lr"] == pytest.approx(b["initial_lr"], rel=1e-15)
    shared = {"base_lrs", "last_epoch", "_step_count", "_last_lr"} & vars(other).keys()
    assert shared <= mine.state_dict().keys()


@each_kind
def test_resumed_at_every_step_it_is_the_same_curve(name):
    whole, _ = sides("Adam", (0.3, 0.05))
    make, rows, states = MADE[name], [], []
    scheduler = make(lr_scheduler, whole.optimizer)
    for n in range(STEPS):
        states.append(copy.deepcopy((whole.optimizer.state_dict(), scheduler.state_dict(), whole.weights())))
        rows.append(whole.seen())
        whole.step(n)
        scheduler.step()
    for begin in range(STEPS):
        again, _ = sides("Adam", (0.3, 0.05))
        optimizer_state, scheduler_state, weights = states[begin]
        scheduler = make(lr_scheduler, again.optimizer)
        again.optimizer.load_state_dict(optimizer_state)
        scheduler.load_state_dict(scheduler_state)
        for p, values in zip(again.params, np.split(weights, 2), strict=True):
            p.detach().copy_(gradwright.tensor(values))
        for n in range(begin, min(begin + 6, STEPS)):
            assert again.seen() == rows[n]
            again.step(n)
            scheduler.step()
        if begin + 6 >= STEPS:
            assert np.array_equal(again.weights(), whole.weights())


@pytest.mark.parametrize(
    "name", ["StepLR", "MultiStepLR", "ExponentialLR", "LinearLR", "CosineAnnealingLR", "LambdaLR", "OneCycleLR"]
)
@pytest.mark.parametrize("last", [0, 1, 6, 12, 20])
def test_resumed_by_last_epoch(name, last):
    """As PyTorch does it: groups with an initial_lr, and the number of the last step."""
    arguments = {
        "StepLR": (7, 0.5),
        "MultiStepLR": ([5, 5, 13], 0.3),
        "ExponentialLR": (0.93,),
        "LinearLR": (0.1, 0.9, 15),
        "CosineAnnealingLR": (13, 0.01),
        "LambdaLR": (lambda t: 1 / (1 + t),),
        "OneCycleLR": (0.7, STEPS),
    }[name]
    found = []
    for side in sides(rates=(0.3, 0.05), momentum=0.9):
        kind = getattr(side.schedulers, name)
        scheduler = kind(side.optimizer, *arguments)
        for n in range(last):
            side.step(n)
            scheduler.step()
        found.append(curve(side, lambda m, o, kind=kind: kind(o, *arguments, last_epoch=last), 20))
    np.testing.assert_allclose(*found, **CLOSE)


def random_arguments(rng, three_phase):
    """A scheduler of every kind with arguments drawn at random."""
    share, low = (float(rng.uniform(0.1, 1)) for _ in range(2))
    return [
        ("StepLR", {"step_size": int(rng.integers(1, 20)), "gamma": share}),
        ("MultiStepLR", {"milestones": rng.integers(0, 60, 5).tolist(), "gamma": share}),
        ("ExponentialLR", {"gamma": float(rng.uniform(0.8, 1.02))}),
        ("LinearLR", {"start_factor": share, "end_factor": low, "total_iters": int(rng.integers(1, 70))}),
        ("CosineAnnealingLR", {"T_max": int(rng.integers(1, 90)), "eta_min": 0.1 * low}),
        (
            "CosineAnnealingWarmRestarts",
            {"T_0": int(rng.integers(1, 30)), "T_mult": int(rng.integers(1, 4)), "eta_min": 0.1 * low},
        ),
        (
            "OneCycleLR",
            {
                "max_lr": 2 * share,
                "total_steps": int(rng.integers(60, 200)),
                "pct_start": float(rng.uniform(0.101, 0.449)),
                "div_factor": 1 / low,
                "three_phase": three_phase,
            },
        ),
    ]


@pytest.mark.parametrize("seed", range(40))
def test_random_arguments(seed):
    rng = np.random.default_rng(seed)
    rates = tuple(rng.uniform(0.01, 2, rng.integers(1, 4)).tolist())
    for name, arguments in random_arguments(rng, three_phase=seed % 2 == 0):
        found = [
            curve(side, lambda m, o, name=name, arguments=arguments: getattr(m, name)(o, **arguments))
            for side in sides(rates=rates, momentum=0.5)
        ]
        np.testing.assert_allclose(*found, **CLOSE, err_msg=f"{name} {arguments}")


@pytest.mark.parametrize("seed", range(10))
def test_chained_schedulers_multiply(seed):
    rng = np.random.default_rng(seed)
    gammas, sizes = rng.uniform(0.5, 1, 3).tolist(), rng.integers(2, 30, 3).tolist()

    def make(m, o):
        return [
            m.StepLR(o, sizes[0], gammas[0]),
            m.ExponentialLR(o, gammas[1] ** 0.1),
            m.MultiStepLR(o, sizes, gammas[2]),
            m.CosineAnnealingLR(o, sizes[1], 0.001),
            m.LinearLR(o, 0.2, 0.9, sizes[2]),
        ]

    found = []
    for side in sides("Adam", (0.3, 1.1)):
        schedulers, rows = make(side.schedulers, side.optimizer), [side.seen()]
        for n in range(STEPS):
            side.step(n)
            for scheduler in schedulers:
                scheduler.step()
            rows.append(side.seen())
        found.append(rows)
    np.testing.assert_allclose(*found, **CLOSE)


def test_a_rate_that_was_changed_by_hand_stays_changed():
    for make in (MADE["StepLR"], MADE["CosineAnnealingLR"], MADE["LinearLR"], MADE["LambdaLR"]):
        found = []
        for side in sides():
            scheduler, rows = make(side.schedulers, side.optimizer), []
            for n in range(20):
                side.step(n)
                if n == 3:
                    side.optimizer.param_groups[0]["lr"] = 0.011
                scheduler.step()
                rows.append(side.seen())
            found.append(rows)
        np.testing.assert_allclose(*found, **CLOSE)


@pytest.mark.parametrize("order", ["sos", "oss", "os", "sss", "oosos"])
def test_the_warning_comes_when_pytorchs_does(order):
    found = []
    for side in sides():
        scheduler, warned = side.schedulers.ExponentialLR(side.optimizer, 0.5), []
        for n, letter in enumerate(order):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                side.step(n) if letter == "o" else scheduler.step()
            warned.append(len(caught))
        found.append(warned)
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("OneCycleLR", {"max_lr": 0.1}),
        ("OneCycleLR", {"max_lr": 0.1, "total_steps": 0}),
        ("OneCycleLR", {"max_lr": 0.1, "total_steps": 10, "pct_start": 1.5}),
        ("OneCycleLR", {"max_lr": 0.1, "total_steps": 10, "anneal_strategy": "steps"}),
        ("OneCycleLR", {"max_lr": [0.1, 0.2], "total_steps": 10}),
        ("CosineAnnealingWarmRestarts", {"T_0": 0}),
        ("CosineAnnealingWarmRestarts", {"T_0": 3, "T_mult": 0}),
        ("LinearLR", {"start_factor": 0.0}),
        ("LinearLR", {"end_factor": 1.5}),
        ("LambdaLR", {"lr_lambda": [abs, abs]}),
        ("ReduceLROnPlateau", {"factor": 1.0}),
        ("ReduceLROnPlateau", {"mode": "low"}),
        ("ReduceLROnPlateau", {"threshold_mode": "none"}),
        ("ReduceLROnPlateau", {"min_lr": [0.1, 0.2]}),
        ("SequentialLR", {"schedulers": [], "milestones": []}),
    ],
)
def test_what_pytorch_refuses_is_refused(name, arguments):
    for side in sides(momentum=0.9):
        with pytest.raises(ValueError, match=r"\w"):
            getattr(side.schedulers, name)(side.optimizer, **arguments)


def test_an_optimizer_without_momentum_to_cycle_is_refused():
    for side in sides("SGD"):
        side.optimizer.defaults = {"lr": 0.3}
        with pytest.raises(ValueError, match="cycle_momentum"):
            side.schedulers.OneCycleLR(side.optimizer, 0.1, total_steps=10)


def test_momentum_that_a_cycle_brings_in_later():
    ends = []
    for side in sides("SGD"):
        side.step(0)
        side.schedulers.OneCycleLR(side.optimizer, 0.1, total_steps=STEPS)
        side.step(1)
        side.step(2)
        ends.append(side.weights())
    np.testing.assert_allclose(*ends, rtol=1e-12)


def test_the_defaults_are_pytorchs():
    for name in dir(lr_scheduler):
        if not hasattr(torch.optim.lr_scheduler, name) or name.startswith("_"):
            continue
        mine = inspect.signature(getattr(lr_scheduler, name)).parameters
        other = inspect.signature(getattr(torch.optim.lr_scheduler, name)).parameters
        assert [(p.name, p.default) for p in mine.values()] == [(p.name, p.default) for p in other.values()], name
