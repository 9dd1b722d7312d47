"""The number line of float16: shares to the last gradient, the scale of a run, and gradients of one's own."""

from __future__ import annotations

import re

import numpy as np
import pytest

import gradwright
from autograder.errors import BadInput
from gradwright.widgets import number_line
from gradwright.widgets.numberline import INTERVAL, OWN, Scene, numbers_of, percent
from gradwright.widgets.training import STEPS, gradients_of_run, slopes


def scene(power: int = 0, step: int = 20, weight: float = 1e-5, own: np.ndarray | None = None) -> Scene:
    return Scene(gradients_of_run() * weight, own, None, str(weight), power, step)


@pytest.mark.parametrize("power", [0, 5, 12, 22, 33, 36, 40])
def test_the_shares_are_those_of_numpys_float16(power: int) -> None:
    shown = scene(power)
    with np.errstate(over="ignore"):
        rounded = shown.scaled.astype(np.float16)
    assert shown.lost == (rounded == 0).mean()
    assert shown.infinite == np.isinf(rounded).mean()
    subnormal = (rounded > 0) & (rounded < np.finfo(np.float16).smallest_normal)
    assert abs(shown.coarse - subnormal.mean()) < 2e-3  # a few are rounded up to the smallest normal number


def test_the_gradients_are_those_of_the_loss() -> None:
    rng = np.random.default_rng(0)
    parameters = [rng.standard_normal(size) for size in [(5, 4), (4,), (4, 3), (3,)]]
    x, wanted = rng.standard_normal((6, 5)), np.eye(3)[rng.integers(0, 3, 6)]

    def loss() -> float:
        logits = np.maximum(x @ parameters[0] + parameters[1], 0) @ parameters[2] + parameters[3]
        return float((np.log(np.exp(logits).sum(1)) - (logits * wanted).sum(1)).mean())

    for p, g in zip(parameters, slopes(parameters, x, wanted), strict=True):
        for place in np.ndindex(p.shape):
            before = p[place]
            p[place] = before + 1e-6
            above = loss()
            p[place] = before - 1e-6
            numerical = (above - loss()) / 2e-6
            p[place] = before
            assert abs(numerical - g[place]) < 1e-6


def test_the_run_halves_at_an_overflow_and_doubles_after_good_steps() -> None:
    shown = scene(power=38)
    largest, power, good = np.abs(shown.run).max(1), 38.0, 0
    for step in range(STEPS):
        bad = largest[step] * 2.0**power >= 65520
        assert (step in shown.skipped) == bad
        power, good = (power - 1, 0) if bad else (power, good + 1)
        if good == INTERVAL:
            power, good = power + 1, 0
        assert shown.scales[step] == power
    assert shown.skipped[:2] == [0, 1] and len(shown.skipped) > 4


def test_a_scale_moves_the_bars_and_changes_none() -> None:
    without, scaled = scene(0).counts, scene(12).counts
    np.testing.assert_array_equal(without[:-12], scaled[12:])
    assert without.sum() == scaled.sum() == (gradients_of_run()[20] != 0).sum()


def test_presets_say_what_the_chapter_says_of_them() -> None:
    told = {name: number_line.static(preset=name).alt for name in number_line.presets}
    assert re.search(r"[34]\d\.\d % become 0, .* 0 % become inf", told["weight 0.00001"])
    assert ": 0 % become 0" in told["weight 0.00001, scaled"] and "0 % become inf" in told["weight 0.00001, scaled"]
    assert not re.search(r" 0 % become inf", told["a scale too large"])
    assert ": 0 % become 0" in told["weight 1"]


def test_gradients_of_a_model_drop_in() -> None:
    model = gradwright.nn.Linear(3, 2)
    model(gradwright.ones(4, 3)).sum().backward()
    widget = number_line(model)
    assert widget.values["weight"] == OWN
    picture = number_line.static(model)
    assert picture.alt.startswith("Your gradients, under a loss scale of 2⁰")
    assert "Over the run" not in picture.alt and picture.steps == 1
    assert "number_line(model, scales)" in picture.html()
    with_run = number_line.static(model, [8.0, 16.0, 8.0], step=2)
    assert with_run.alt.endswith("from 2³ to 2³ at step 2, with 1 step skipped so far.")
    assert with_run.steps == 3
    np.testing.assert_array_equal(numbers_of([np.ones(2), gradwright.zeros(1)]), [1, 1, 0])
    np.testing.assert_array_equal(numbers_of(np.float32([[2.0]])), [2])


def test_gradients_that_are_0_or_not_finite_are_left_out() -> None:
    own = np.array([0.0, np.inf, np.nan, 1.0, -1e-9])
    shown = scene(own=own)
    assert (shown.scaled.tolist(), shown.lost) == ([1.0, 1e-9], 0.5)
    nothing = number_line.static(np.zeros(3))
    assert nothing.alt.endswith("none of them lies on the line. Not counted: of 3, 3 are 0 already.")
    assert "Not counted: of 5, 1 is nan, 1 is inf, 1 is 0 already." in number_line.static(own).alt
    assert "Not counted" not in number_line.static(np.ones(2)).alt + number_line.static().alt


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((gradwright.nn.Linear(2, 2),), "The model has no gradients: call backward on its loss first."),
        ((np.arange(3),), "Gradients are floats, and among these are int64 numbers."),
        (([],), "There is no number among these gradients"),
        ((np.ones(2), [1.0, 0.0]), "The scales of a run are positive numbers"),
        ((np.ones(2), []), "The scales of a run are positive numbers"),
        ((np.ones(2), [None]), "The scales of a run are positive numbers"),
    ],
)
def test_what_is_no_gradient_is_one_sentence(arguments: tuple, sentence: str) -> None:
    with pytest.raises(BadInput, match=re.escape(sentence)):
        number_line(*arguments)


def test_your_gradients_without_any_is_one_sentence_and_keeps_the_picture() -> None:
    panel = number_line().panel
    picture = panel.view.value
    panel.controls["weight"].value = OWN
    assert panel.sentence.startswith("Gradients of your own are shown by number_line(model), after backward")
    assert panel.view.value == picture


def test_shares_are_rounded_to_nothing_that_is_not_true() -> None:
    shares = [0, 1e-5, 0.4567, 0.5, 0.99999, 1]
    assert [percent(s) for s in shares] == ["0 %", "under 0.1 %", "45.7 %", "50 %", "over 99.9 %", "100 %"]
