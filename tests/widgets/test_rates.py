"""The learning-rate curves: they are the schedulers' own, and the training below them is Adam's."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

import gradwright
from autograder.errors import BadInput
from gradwright import nn, optim
from gradwright.nn import functional as F
from gradwright.optim import lr_scheduler
from gradwright.widgets import learning_rate_curves, rates, rehearsal, schedules
from gradwright.widgets.descent import digits
from gradwright.widgets.schedules import KINDS, ROUND

ARGUMENTS = [
    ("warmup_cosine", {"warmup": 10, "total": 60, "lr_min": 0.01}),
    ("warmup_cosine", {"warmup": 0, "total": 1}),
    ("warmup_cosine", {"warmup": 80, "total": 80}),
    ("warmup_cosine", {"warmup": 30, "total": 200}),
    ("StepLR", {"step_size": 7, "gamma": 0.9}),
    ("StepLR", {"step_size": 1, "gamma": 0.95}),
    ("MultiStepLR", {"milestones": "30, 5, 30, 99, 150", "gamma": 0.5}),
    ("MultiStepLR", {"milestones": "0", "gamma": 0.5}),
    ("MultiStepLR", {"milestones": ""}),
    ("ExponentialLR", {"gamma": 0.97}),
    ("LinearLR", {"start_factor": 0.2, "end_factor": 0.7, "total_iters": 13}),
    ("LinearLR", {"start_factor": 0.2, "total_iters": 0}),
    ("LinearLR", {"total_iters": 200}),
    ("CosineAnnealingLR", {"T_max": 100}),
    ("CosineAnnealingLR", {"T_max": 23, "eta_min": 0.01}),
    ("CosineAnnealingLR", {"T_max": 1}),
    ("CosineAnnealingWarmRestarts", {"T_0": 15, "T_mult": 2, "eta_min": 0.01}),
    ("CosineAnnealingWarmRestarts", {"T_0": 1, "T_mult": 1}),
    ("SequentialLR", {"start_factor": 0.1, "total_iters": 10, "T_max": 50, "eta_min": 0.001}),
    ("SequentialLR", {"total_iters": 0, "T_max": 100}),
    ("OneCycleLR", {"total_steps": 100}),
    ("OneCycleLR", {"total_steps": 60, "pct_start": 0.45, "three_phase": "on", "div_factor": 5.0}),
    ("OneCycleLR", {"total_steps": 60, "pct_start": 0.3, "anneal_strategy": "linear", "final_div_factor": 10.0}),
    ("OneCycleLR", {"total_steps": 60, "pct_start": 0.0}),
    ("OneCycleLR", {"total_steps": 60, "pct_start": 1.0}),
    ("OneCycleLR", {"total_steps": 10, "pct_start": 0.1}),
    ("OneCycleLR", {"total_steps": 1}),
    ("OneCycleLR", {"total_steps": 4, "pct_start": 0.2, "three_phase": "on"}),
    ("OneCycleLR", {"total_steps": 60, "pct_start": 0.8, "three_phase": "on"}),
    ("ReduceLROnPlateau", {"factor": 0.5, "patience": 0}),
    ("ReduceLROnPlateau", {"factor": 0.3, "patience": 1, "cooldown": 2, "min_lr": 0.005}),
]


def sheet(schedule, steps=100, **values):
    return learning_rate_curves.static(schedule=schedule, steps=steps, **values)


def first_curve(picture):
    return picture.scene.first


def made_by(code):
    """The optimizer and the scheduler of the code that the widget shows, with the framework's own names."""
    names = {name: getattr(lr_scheduler, name) for name in dir(lr_scheduler) if not name.startswith("__")}
    model = nn.Linear(2, 2)
    for p in model.parameters():
        p.grad = gradwright.zeros(*p.shape)
    space = {"Adam": optim.Adam, "model": model, **names}
    exec(code, space)
    return space["optimizer"], space["scheduler"]


@pytest.mark.parametrize(("schedule", "arguments"), ARGUMENTS)
def test_the_code_that_is_shown_makes_the_curve_that_is_shown(schedule, arguments):
    curve = first_curve(sheet(schedule, lr=0.07, **arguments))
    optimizer, scheduler = made_by(curve.code)
    for step, rate in enumerate(curve.rates):
        if not np.isfinite(rate):
            assert (schedule, step) == ("OneCycleLR", arguments["total_steps"])
            break
        assert optimizer.param_groups[0]["lr"] == pytest.approx(rate, rel=1e-12, abs=1e-15)
        optimizer.step()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "LinearLR with total_iters=0")
            if schedule != "ReduceLROnPlateau":
                scheduler.step()
            elif (step + 1) % ROUND == 0:
                scheduler.step(np.mean(curve.losses[step + 1 - ROUND : step + 1]))


@pytest.mark.parametrize(("schedule", "arguments"), ARGUMENTS)
def test_a_kept_curve_is_the_curve(schedule, arguments):
    shown = sheet(schedule, lr=0.07, **arguments)
    again = sheet("StepLR", kept=shown.call).scene.curves[1].curve
    assert (again.code, again.marks) == (first_curve(shown).code, first_curve(shown).marks)
    np.testing.assert_array_equal(again.rates, first_curve(shown).rates)


def test_the_training_is_that_of_the_frameworks_adam():
    chosen = tuple(np.linspace(0.001, 0.05, 40).tolist())
    found = rehearsal.losses_under(chosen)
    start = rehearsal.Rehearsal()
    layers = []
    for w, b in start.layers:
        layer = nn.Linear(*w.shape).double()
        with gradwright.no_grad():
            layer.weight.copy_(gradwright.tensor(w.T.copy()))
            layer.bias.copy_(gradwright.tensor(b.copy()))
        layers += [layer, nn.ReLU()]
    model = nn.Sequential(*layers[:-1])
    optimizer = optim.Adam(model.parameters())
    images, wanted = rehearsal.batches()
    for step, lr in enumerate(chosen):
        optimizer.param_groups[0]["lr"] = lr
        optimizer.zero_grad()
        loss = F.cross_entropy(model(gradwright.tensor(images[step])), gradwright.tensor(wanted[step].argmax(1)))
        loss.backward()
        assert loss.item() == pytest.approx(found[step], rel=1e-7)
        optimizer.step()


def test_a_training_that_goes_on_is_the_whole_one():
    chosen = np.geomspace(0.08, 0.001, 30).tolist()
    rehearsal.RUNS.clear()
    whole = rehearsal.losses_under(chosen)
    rehearsal.RUNS.clear()
    for length in (7, 3, 20, 30):
        np.testing.assert_array_equal(rehearsal.losses_under(chosen[:length]), whole[:length])
    other = rehearsal.losses_under([*chosen[:10], 0.5, 0.5])
    np.testing.assert_array_equal(other[:11], whole[:11])
    assert other[11] != whole[11]
    assert len(rehearsal.RUNS) == 2


def test_a_warm_up_helps_the_network_of_the_widget():
    picture = learning_rate_curves.static(preset="no warm-up")
    without, with_warm_up = (named.curve.losses[-10:].mean() for named in picture.scene.curves)
    assert with_warm_up < 0.6 * without


def test_every_batch_is_of_the_digits():
    images, labels = rehearsal.batches()
    assert images.shape == (rehearsal.MOST_STEPS, rehearsal.BATCH, 64)
    assert (labels.sum(2) == 1).all()
    assert len(digits()[1]) == 1797


def test_a_curve_that_ends_ends_its_training_too():
    picture = sheet("OneCycleLR", total_steps=40, step=60)
    assert len(first_curve(picture).losses) == 40
    assert "At step 60: A, OneCycleLR: no rate any more, no loss any more." in picture.alt


def test_any_number_of_curves():
    kept = "; ".join(f"ExponentialLR(lr=0.01, gamma={1 - n / 100})" for n in range(1, 31))
    picture = sheet("StepLR", steps=20, kept=kept)
    assert len(picture.scene.curves) == 31
    letters = [named.letter for named in picture.scene.curves]
    assert letters[:3] == ["A", "B", "C"]
    assert letters[25:28] == ["Z", "A2", "B2"]
    assert "and 27 more" in picture.alt
    assert picture.height > 31 * 38


def test_the_value_at_a_step_is_read_out():
    picture = learning_rate_curves.static(preset="warm-up, then cosine", step=4)
    assert "At step 4: A, warmup_cosine: rate 0.025, loss" in picture.alt
    assert "rate 0.025, loss" in picture.html()
    assert learning_rate_curves.static(step=10_000).alt == learning_rate_curves.static(step=99).alt


def test_marks_stand_where_warm_up_restarts_and_end_are():
    assert "warm-up ends at 10, end at 100" in learning_rate_curves.static(preset="warm-up, then cosine").alt
    assert "restart at 15, restart at 45" in learning_rate_curves.static(preset="warm restarts").alt
    assert "top at 29, end at 99" in learning_rate_curves.static(preset="one cycle").alt
    assert "end at 60" in learning_rate_curves.static(preset="beyond the end").alt
    assert "Marks" not in sheet("ExponentialLR").alt


def test_both_axes_show_the_highest_rate_within_the_frame():
    for axis in (rates.LINEAR, rates.LOGARITHMIC):
        for schedule in KINDS:
            picture = sheet(schedule, axis=axis)
            heights = [picture.y_of_rate(rate) for rate in first_curve(picture).rates if np.isfinite(rate)]
            assert picture.top <= min(heights) < max(heights) <= picture.bottom or schedule == "ReduceLROnPlateau"


def test_a_function_of_ones_own_drops_in():
    def halving(step):
        return 0.08 * 0.5 ** (step / 10)

    picture = learning_rate_curves.static(halving, step=10)
    assert "A, halving: rate 0.04" in picture.alt
    assert picture.code.endswith("scheduler = LambdaLR(optimizer, halving)")
    both = learning_rate_curves.static(halving, lambda step: 0.01, kept="StepLR(lr=0.1, step_size=5)")
    assert [named.curve.title for named in both.scene.curves] == ["halving", "your_function", "StepLR"]
    optimizer = optim.SGD([gradwright.ones(1, requires_grad=True)], lr=1.0)
    scheduler = lr_scheduler.LambdaLR(optimizer, halving)
    assert scheduler.get_last_lr() == [first_curve(picture).rates[0]]


def broken(step):
    return 0.1 / (3 - step)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: learning_rate_curves.static(broken),
            "At step 3, broken raised ZeroDivisionError: float division by zero.",
        ),
        (lambda: learning_rate_curves.static(3), "a function of the step, and this is 3"),
        (lambda: sheet("your function"), "call learning_rate_curves(your_function)"),
        (lambda: sheet("warmup_cosine", warmup=30, total=20), "A warm-up of 30 steps does not fit into a total of 20"),
        (lambda: sheet("MultiStepLR", milestones="30, x"), "The milestone 'x' is not a step"),
        (lambda: sheet("StepLR", kept="StepLR(0.1)"), "'StepLR(0.1)' is not a curve"),
        (lambda: sheet("StepLR", kept="what is this"), "'what is this' is not a curve"),
        (lambda: sheet("StepLR", kept="PolyLR(lr=0.1)"), "There is no schedule 'PolyLR'"),
        (lambda: sheet("StepLR", kept="StepLR(lr=0.1, T_max=3)"), "StepLR has no T_max: it has lr, step_size, gamma."),
        (lambda: sheet("StepLR", kept="StepLR(lr=5.0)"), "lr=5.0 is not a value of this widget"),
        (lambda: sheet("StepLR", lr=0.0), "give a number from 0.0001 to 1"),
        (lambda: sheet("PolyLR"), "choose one of"),
    ],
)
def test_what_cannot_be_drawn_is_one_sentence(call, sentence):
    with pytest.raises(BadInput) as error:
        call()
    assert sentence in str(error.value)


def test_only_the_arguments_of_the_schedule_are_on_the_screen():
    panel = learning_rate_curves(preset="staircase").panel
    shown = {name for name, widget in panel.dressed.items() if widget.layout.display != "none"}
    assert shown == {"schedule", "lr", "steps", "step_size", "gamma", "axis", "kept", "step"}
    panel.controls["schedule"].value = "CosineAnnealingLR"
    shown = {name for name, widget in panel.dressed.items() if widget.layout.display != "none"}
    assert shown == {"schedule", "lr", "steps", "T_max", "eta_min", "axis", "kept", "step"}


def test_keep_adds_the_curve_once_and_clear_forgets():
    panel = learning_rate_curves(preset="staircase").panel
    keep, clear = panel.dressed["kept"].children[:2]
    keep.click()
    keep.click()
    assert panel.controls["kept"].value == "StepLR(lr=0.05, step_size=30, gamma=0.3)"
    panel.controls["gamma"].value = 0.5
    keep.click()
    assert panel.controls["kept"].value.count("StepLR") == 2
    assert "B, StepLR" in panel.alt
    clear.click()
    assert panel.controls["kept"].value == ""
    assert "B, StepLR" not in panel.alt


@pytest.mark.parametrize("preset", learning_rate_curves.presets)
def test_every_value_of_a_preset_is_a_place_on_its_slider(preset):
    """A page moves a value that is not: the preset would become somebody's own at once."""
    panel = learning_rate_curves(preset=preset).panel
    for name in ("lr", "final_div_factor"):
        widget = panel.controls[name]
        assert widget.value in [place for _, place in widget.options]


def test_a_rate_between_two_places_gets_one_of_its_own():
    panel = learning_rate_curves(lr=0.0123).panel
    assert panel.controls["lr"].value == 0.0123
    panel.choice.value = "staircase"
    assert panel.controls["lr"].value == 0.05
    assert panel.choice.value == "staircase"


def test_the_code_stands_beside_the_picture_and_in_the_still_one():
    panel = learning_rate_curves(preset="one cycle").panel
    assert panel.code.value == learning_rate_curves.static(preset="one cycle").code
    assert panel.code.layout.display is None
    picture = learning_rate_curves.static(preset="one cycle")
    height = picture.height
    assert picture.png() == picture.png()
    assert picture.height == height


def test_a_widget_without_code_has_no_field_for_it():
    panel = gradwright.widgets.stride_explorer().panel
    assert panel.code.layout.display == "none"


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (None, "At step 0, your_function returned None: a rate is a number."),
        (-0.05, "At step 0, your_function returned -0.05: a rate is finite, and 0 or more."),
        (float("nan"), "At step 0, your_function returned nan: a rate is finite, and 0 or more."),
    ],
)
def test_what_is_no_rate_is_one_sentence(value, sentence):
    with pytest.raises(BadInput, match=re.escape(sentence)):
        learning_rate_curves.static(lambda step: value)


def test_one_cycle_shows_the_training_that_its_code_makes():
    """The small network keeps its betas, so the code does not cycle them."""
    optimizer, scheduler = made_by(learning_rate_curves.static(preset="one cycle").code)
    for _ in range(3):
        optimizer.step()
        scheduler.step()
    assert optimizer.param_groups[0]["betas"] == (rehearsal.FADING, rehearsal.FADING_SQUARES)
    assert optimizer.param_groups[0]["weight_decay"] == 0


def test_the_formulas_of_the_answers_are_not_in_the_widget():
    """The widget draws arrays; the functions of one step that the chapter asks for are not to be copied out of it."""
    source = (schedules.__file__, rates.__file__)
    for path in source:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        assert "cos(" not in text
        assert "bisect" not in text
