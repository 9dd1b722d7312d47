"""The activation statistics: the stack's gradient, its marks, and what the presets are there to show."""

from __future__ import annotations

import numpy as np
import pytest

from autograder.errors import BadInput
from gradwright.widgets import activation_statistics, stack
from gradwright.widgets.activations import values_counted
from gradwright.widgets.stack import BATCH_NORM, INITIALISATIONS, KINDS, LAYER_NORM, NONE, Stack, stack_of

PLAIN = Stack(3, "tanh", "Xavier", 1.0, NONE)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("normalisation", [NONE, LAYER_NORM, BATCH_NORM])
def test_the_gradient_is_the_one_of_differences(kind: str, normalisation: str) -> None:
    """Of the output of layer 2, whose weights lead to the output of layer 3 that the random gradient is of."""
    rng = np.random.default_rng(3)
    axis, (act, slope) = stack.AXES.get(normalisation), KINDS[kind]
    h, w, g = rng.normal(size=(4, 5)), rng.normal(size=(5, 5)), rng.normal(size=(4, 5))

    def out(x: np.ndarray) -> float:
        return float((act(stack.normalised(x @ w, axis)[0]) * g).sum())

    z, spread = stack.normalised(h @ w, axis)
    gradient = stack.back_through(g * slope(z), z, spread, axis) @ w.T
    for place in np.ndindex(h.shape):
        nudge = np.zeros_like(h)
        nudge[place] = 1e-6
        assert gradient[place] == pytest.approx((out(h + nudge) - out(h - nudge)) / 2e-6, rel=1e-4, abs=1e-6)


def test_every_layer_has_what_comes_out_and_what_arrives_there() -> None:
    layers = stack_of(PLAIN)
    assert {(layer.output.shape, layer.gradient.shape) for layer in layers} == {((stack.BATCH, stack.WIDTH),) * 2}
    assert layers[-1].gradient.std() == pytest.approx(1, abs=0.02)


def test_the_right_factor_is_the_one_that_the_gain_promises() -> None:
    """The default is the root of 6 too small in front of a relu."""

    def last(factor: float) -> float:
        stack = Stack(20, "relu", "PyTorch's default", factor, NONE)
        return float(np.sqrt((stack_of(stack)[-1].output ** 2).mean()))

    assert last(2.0) < 0.05 < last(6**0.5) < 20 < last(3.0)
    assert INITIALISATIONS["Kaiming"](64) / INITIALISATIONS["PyTorch's default"](64) == pytest.approx(6**0.5)


@pytest.mark.parametrize(
    ("preset", "says"),
    [
        (
            "relu, PyTorch's default",
            "Activations: ▼ vanishing in layer 4 to layer 20. Gradients: ▼ vanishing",
        ),
        ("relu, Kaiming", "Activations: ● level through all layers. Gradients: ● level through all layers."),
        ("relu, twice Kaiming", "Activations: ▲ exploding in layer "),
        ("tanh, saturated", "Activations: ■ saturated in layer 1 to layer 20."),
        ("sigmoid, Xavier", "Activations: ● level through all layers. Gradients: ▼ vanishing in layer 1 to layer "),
        ("relu, rescued by layer norm", "Activations: ● level through all layers. Gradients: ● level"),
    ],
)
def test_a_preset_shows_what_it_is_named_for(preset: str, says: str) -> None:
    assert says in activation_statistics.static(preset=preset).alt


def test_the_rows_show_activations_or_gradients() -> None:
    forward, back = (activation_statistics.static(shown=shown).html() for shown in ("activations", "gradients"))
    assert ">mean</text>" in forward and ">values</text>" in forward
    assert ">mean</text>" not in back and ">magnitudes</text>" in back


def test_every_number_is_counted_once_and_those_outside_at_the_ends() -> None:
    counts = values_counted(np.array([-7.0, -3.0, 0.01, 2.99, 3.0, 100.0, np.nan, np.inf]))
    assert (counts[0], counts[-1], counts.sum()) == (2, 3, 6)


def test_a_stack_that_explodes_as_far_as_it_can_is_drawn() -> None:
    picture = activation_statistics.static(activation="none", initialisation="Kaiming", factor=4.0, depth=20)
    assert "▲ exploding" in picture.alt
    assert "nan" not in picture.html()


@pytest.mark.parametrize(
    ("name", "value", "remedy"),
    [("depth", 21, "a whole number from 2 to 20"), ("factor", 0.1, "from 0.2 to 4"), ("shown", "all", "activations")],
)
def test_a_choice_that_cannot_be_is_one_sentence(name: str, value: object, remedy: str) -> None:
    with pytest.raises(BadInput, match=remedy):
        activation_statistics.static(**{name: value})
