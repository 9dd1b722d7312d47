"""The gradient-flow widget: its gradients, its marks, and the training that goes on by itself."""

from __future__ import annotations

import asyncio
import math
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from autograder.errors import BadInput
from gradwright.widgets import controls, descent, gradient_flow
from gradwright.widgets.descent import ACTIVATIONS, EDGES, STEPS, Run, Setting
from gradwright.widgets.flow import LIMITS
from gradwright.widgets.flowing import Flow, listed
from gradwright.widgets.powers import figures

PLAIN = Setting(3, "tanh", "Xavier", False, False, 0.1)


def loss_of(run: Run, images: np.ndarray, labels: np.ndarray) -> float:
    logits = run.forward(images)[-1].output @ run.weights[-1] + run.biases[-1]
    log_p = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    return float(-log_p[np.arange(len(labels)), labels].mean())


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize(("normalised", "residual"), [(False, False), (True, False), (False, True), (True, True)])
def test_the_gradient_is_the_one_of_differences(activation: str, normalised: bool, residual: bool) -> None:
    run = Run(replace(PLAIN, activation=activation, normalised=normalised, residual=residual))
    rng = np.random.default_rng(7)
    images, labels = rng.normal(size=(5, 64)), rng.integers(10, size=5)
    hidden = run.forward(images)
    logits = hidden[-1].output @ run.weights[-1] + run.biases[-1]
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    gradients = run.backward(hidden, (p - np.eye(10)[labels]) / 5)
    for layer, (w, b) in enumerate(gradients):
        for values, gradient in ((run.weights[layer], w), (run.biases[layer], b)):
            place = tuple(rng.integers(values.shape))
            before, sides = values[place], []
            for step in (1e-6, -1e-6):
                values[place] = before + step
                sides.append(loss_of(run, images, labels))
            values[place] = before
            assert gradient[place] == pytest.approx((sides[0] - sides[1]) / 2e-6, abs=1e-8)


def test_training_goes_downhill_and_the_same_way_every_time() -> None:
    setting = replace(PLAIN, activation="relu", initialisation="Kaiming")
    first, second = Run(setting).upto(STEPS - 1), Run(setting).upto(STEPS - 1)
    assert [record.loss for record in first] == [record.loss for record in second]
    assert np.mean([record.loss for record in first[-5:]]) < 0.7 * first[0].loss


def test_a_step_further_leaves_those_before_it_as_they_were() -> None:
    run = Run(PLAIN)
    early = list(run.upto(3))
    assert run.upto(9)[:4] == early
    assert len(run.upto(5)) == 6


def test_every_gradient_other_than_zero_is_counted_once() -> None:
    record = Run(replace(PLAIN, activation="silu")).upto(0)[0]
    assert record.histograms.sum(1).tolist() == [65 * 32, 33 * 32, 33 * 32, 33 * 10]
    counts = descent.counted(np.array([0.0, 1e-30, 1e30, 1.5, np.nan, np.inf]))
    assert (counts[0], counts[-1], counts.sum()) == (1, 1, 3)
    assert counts[np.searchsorted(EDGES, np.log10(1.5)) - 1] == 1


@pytest.mark.parametrize(
    ("norm", "word"),
    [
        (0.0, "dead"),
        (1e-300, "vanishing"),
        (9e-4, "vanishing"),
        (1e-3, "flowing"),
        (10.0, "flowing"),
        (10.1, "exploding"),
        (math.inf, "exploding"),
        (math.nan, "exploding"),
    ],
)
def test_a_norm_is_marked(norm: float, word: str) -> None:
    assert Flow(["output"], [0], 1, [[norm]], [], (-12, 4), LIMITS).states == [word]


def test_a_norm_is_written_in_few_figures() -> None:
    assert list(map(figures, (0.0, 0.001234, 12.345, 1234.5, 6.84e-6, 2.5e12, math.inf))) == [
        "0", "0.00123", "12.3", "1234", "6.8·10⁻⁶", "2.5·10¹²", "not finite",
    ]  # fmt: skip


def test_neighbours_are_named_in_one_phrase() -> None:
    names = ["layer 1", "layer 2", "layer 3", "layer 4", "output"]
    assert listed([0, 1, 2, 4], names) == "layer 1 to layer 3, output"
    assert listed([1, 3], names) == "layer 2, layer 4"


@pytest.mark.parametrize(
    ("preset", "says"),
    [
        ("vanishing sigmoid", "▼ vanishing: layer 1 to layer "),
        ("exploding init", "▲ exploding: layer 1 to layer "),
        ("dead ReLU", "✕ dead: layer 1 to layer 5."),
        ("residual rescue", "● The gradient reaches every layer."),
    ],
)
def test_a_preset_shows_what_it_is_named_for(preset: str, says: str) -> None:
    picture = gradient_flow.static(preset=preset)
    assert says in picture.alt
    assert says.partition(":")[0] in picture.html()


def test_the_rescue_differs_from_the_vanishing_by_the_residual_alone() -> None:
    vanishing, rescue = (gradient_flow.presets[name] for name in ("vanishing sigmoid", "residual rescue"))
    assert {key for key in vanishing if vanishing[key] != rescue[key]} == {"residual"}


def test_a_run_that_explodes_says_so_without_a_warning() -> None:
    picture = gradient_flow.static(depth=12, activation="relu", initialisation="std 1", rate="2.5", step=STEPS)
    assert "the loss is no longer a finite number" in picture.alt
    assert "not finite" in picture.html()
    assert "nan" not in picture.html()


def test_the_smallest_and_the_largest_network_are_drawn() -> None:
    for depth in (1, 12):
        assert f"layer {depth}<" in gradient_flow.static(depth=depth).html()


@pytest.mark.parametrize(
    ("name", "value", "remedy"),
    [
        ("depth", 0, "a whole number from 1 to 12"),
        ("activation", "step", "choose one of sigmoid, tanh, relu, silu"),
        ("rate", 0.1, "choose one of 0.01"),
        ("step", -1, "count steps from 0"),
    ],
)
def test_a_choice_that_cannot_be_is_one_sentence(name: str, value: object, remedy: str) -> None:
    with pytest.raises(BadInput, match=remedy):
        gradient_flow.static(**{name: value})


def test_digits_that_are_gone_are_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(descent, "DATA", descent.DATA.with_name("gone.npz"))
    descent.digits.cache_clear()
    with pytest.raises(BadInput, match=r"The digits are not there: put gone\.npz back into the folder"):
        Run(PLAIN).upto(0)


def test_it_plays_pauses_and_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controls, "TICK", 0.001)
    panel = gradient_flow(step=7).panel
    slider = panel.controls["step"]
    play, reset = panel.box.children[2].children[:2]

    async def reach(step: int) -> None:
        while slider.value < step:
            await asyncio.sleep(0.001)

    async def use() -> None:
        play.value = True
        assert play.description == "Pause"
        await reach(9)
        play.value = False
        paused = slider.value
        await asyncio.sleep(0.02)
        assert (play.description, slider.value) == ("Play", paused)
        play.value = True
        await reach(STEPS - 1)
        assert not play.value
        play.value = True
        assert slider.value == 0
        await reach(2)
        reset.click()
        await asyncio.sleep(0.05)

    asyncio.run(use())
    assert (play.value, slider.value) == (False, 0)
    assert "Step 0:" in panel.alt


def test_it_works_where_chapter_4_is_out_of_reach() -> None:
    code = (
        "import gradwright; gradwright.chapter(4); from gradwright.widgets import gradient_flow as g; import sys; "
        "print(len(g.static().png()) > 0, [m for m in sys.modules if m.startswith('gradwright.chapters.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip().endswith("True []")
