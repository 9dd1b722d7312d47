"""The flow monitor: it follows the training of a model of chapter 04, and leaves nothing on it."""

from __future__ import annotations

import math

import numpy as np
import pytest

import gradwright
from autograder.errors import BadInput
from gradwright import nn
from gradwright.chapters.autodiff import no_grad
from gradwright.chapters.layers import GradientFlow
from gradwright.widgets import flow_monitor, monitor
from gradwright.widgets.flowing import spacing
from gradwright.widgets.monitor import called, complete_steps, picture_of


@pytest.fixture
def model() -> nn.Module:
    gradwright.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))


def train(model: nn.Module, steps: int, rate: float = 0.1) -> None:
    x = gradwright.randn(16, 3)
    for _ in range(steps):
        model.zero_grad()
        model(x).square().mean().backward()
        with no_grad():
            for p in model.parameters():
                p.sub_(p.grad, alpha=rate)


def hooks_of(model: nn.Module) -> int:
    kinds = ("_forward_pre_hooks", "_forward_hooks", "_backward_hooks")
    return sum(len(vars(module)[kind]) for module in model.modules() for kind in kinds)


def test_it_draws_while_the_model_trains_and_once_more_at_the_end(
    model: nn.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitor, "PAUSE", 0)
    with GradientFlow(model) as flow:
        shown = flow_monitor(flow)
        assert (shown.drawn, shown.alt[:11]) == (1, "No step yet")
        pictures = []
        for step in range(4):
            train(model, 1)
            pictures.append(shown.view.value)
            assert shown.drawn == step + 2
            assert shown.alt.startswith(f"Step {step - 1}:" if step else "No step yet")
    assert len(set(pictures)) == 4
    assert shown.alt.startswith("Step 3: gradient norm ")
    assert shown.view.value == picture_of(flow).html()


def test_it_draws_seldom_where_steps_are_many(model: nn.Module) -> None:
    with GradientFlow(model) as flow:
        shown = flow_monitor(flow)
        shown.last = math.inf  # as if it had drawn this moment
        train(model, 5)
        assert shown.drawn == 1
    assert shown.drawn == 2
    assert "Step 4:" in shown.alt


def test_it_changes_no_number_and_leaves_no_hook(model: nn.Module) -> None:
    other = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
    other.load_state_dict(model.state_dict())
    gradwright.manual_seed(1)
    train(other, 3)
    gradwright.manual_seed(1)
    with GradientFlow(model) as flow:
        flow_monitor(flow)
        train(model, 3)
    assert hooks_of(model) == 0
    assert flow.watchers == []
    for mine, right in zip(model.parameters(), other.parameters(), strict=True):
        np.testing.assert_array_equal(mine.array, right.array)


def test_a_layer_that_puts_out_zeros_alone_is_dead_and_named(model: nn.Module) -> None:
    with no_grad():
        model[0].bias.fill_(-100.0)
    with GradientFlow(model) as flow:
        train(model, 2)
    picture = picture_of(flow)
    assert "✕ dead: layer 0" in picture.alt
    assert "Nothing but zeros comes out of layer 1." in picture.html()


def test_a_run_that_has_become_nan_says_so(model: nn.Module) -> None:
    with GradientFlow(model) as flow:
        train(model, 2)
        with no_grad():
            model[0].weight.mul_(math.nan)
        train(model, 1)
    assert "Step 2: gradient norm not finite in the first layer" in picture_of(flow).alt


def test_a_step_without_backward_is_left_out_and_many_are_thinned_to_the_last(
    model: nn.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitor, "MOST_STEPS", 3)
    with GradientFlow(model) as flow:
        train(model, 7)
        model(gradwright.randn(2, 3))
    assert list(complete_steps(flow)) == [0, 3, 6]


def test_a_name_is_as_long_as_its_column() -> None:
    assert list(map(called, ["0", "12.1", "3.module.1", "encoder.attention.query"])) == [
        "layer 0", "layer 12.1", "3.module.1", "…tention.query",
    ]  # fmt: skip


@pytest.mark.parametrize(("steps", "marks"), [(1, 1), (5, 1), (40, 10), (300, 100), (1200, 500)])
def test_marks_of_the_axis_are_round(steps: int, marks: int) -> None:
    assert spacing(steps) == marks


def test_what_is_no_recorder_is_one_sentence(model: nn.Module, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadInput, match=r"takes the recorder of a model, GradientFlow\(model\), and got a Sequential"):
        flow_monitor(model)
    monkeypatch.setattr(monitor, "MOST_LAYERS", 2)
    with pytest.raises(BadInput, match="This model has 3 layers: the picture has room for 2"):
        flow_monitor(GradientFlow(model))
