"""The Jacobian view: its derivatives are right, and its pictures say where differences are not."""

from __future__ import annotations

import re

import numpy as np
import pytest

from autograder.errors import BadInput
from gradwright.widgets import jacobian_view
from gradwright.widgets.derivatives import OPERATIONS, analytic, numerical
from gradwright.widgets.jacobian import ONES, RANDOM, TIED, UNIT, Scene, decimal, inputs, look

SHAPES = [(), (1,), (4,), (2, 3), (1, 5), (2, 2, 3)]
FITTING = [(name, shape) for name in OPERATIONS for shape in SHAPES if len(shape) >= OPERATIONS[name].axes]


@pytest.mark.parametrize(("name", "shape"), FITTING)
def test_backward_and_differences_agree_away_from_kinks(name: str, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(1).normal(size=shape)
    np.testing.assert_allclose(analytic(OPERATIONS[name], x), numerical(OPERATIONS[name], x), atol=1e-8, strict=True)


@pytest.mark.parametrize(("name", "shape"), FITTING)
@pytest.mark.parametrize("seed", [UNIT, ONES, RANDOM])
def test_one_backward_is_the_seed_times_the_jacobian(name: str, shape: tuple[int, ...], seed: str) -> None:
    scene = Scene(OPERATIONS[name], np.random.default_rng(2).normal(size=shape), seed, 0)
    np.testing.assert_allclose(scene.product, scene.u @ scene.analytic, atol=1e-12)


def test_a_maximum_shares_its_gradient_evenly_and_differences_do_not() -> None:
    scene = Scene(OPERATIONS["amax"], np.array([2.0, 2.0, 0.0, 2.0]), UNIT, 0)
    np.testing.assert_allclose(scene.analytic, [[1 / 3, 1 / 3, 0, 1 / 3]])
    assert scene.apart.tolist() == [[True, True, False, True]]
    assert scene.agreement.startswith("The two Jacobians differ in 3 entries: x lies on a kink or a tie")


def test_two_tied_elements_get_a_half_either_way() -> None:
    scene = Scene(OPERATIONS["amax"], np.array([2.0, 2.0, 0.0]), UNIT, 0)
    assert scene.agreement == "The two Jacobians agree to 10⁻⁶ everywhere."


def test_the_tied_values_have_a_zero_and_a_tie() -> None:
    assert inputs((5,), TIED).tolist() == [1, 0, 1, -1, 1]
    assert "differ in 1 entry" in jacobian_view.static(preset="kink of relu").alt


def test_a_reshape_of_a_permute_is_a_permutation() -> None:
    jacobian = Scene(OPERATIONS["permute, reshape"], inputs((2, 3), TIED), UNIT, 0).analytic
    assert np.argmax(jacobian, axis=1).tolist() == [0, 3, 1, 4, 2, 5]
    assert jacobian.sum(0).tolist() == jacobian.sum(1).tolist() == [1] * 6


def test_zero_is_white_and_the_signs_have_colours_of_their_own() -> None:
    assert [look(share).fill for share in (-1, 0, 1)] == ["#56B4E9", "#FFFFFF", "#E69F00"]
    assert look(0.5).fill == "#F2CF80"


@pytest.mark.parametrize(("x", "words"), [(-0.001, "0"), (0.25, "0.25"), (1.0, "1"), (-1.5, "−1.5"), (12.0, "12")])
def test_a_derivative_is_written_with_two_decimals(x: float, words: str) -> None:
    assert decimal(x) == words


def test_only_the_seed_of_one_output_is_walked() -> None:
    panel = jacobian_view(preset="softmax").panel
    assert panel.controls["output"].max == 3
    panel.controls["seed"].value = ONES
    assert panel.controls["output"].disabled
    assert "a seed of ones, so the product is the sum of the rows of J: 0, 0, 0, 0." in panel.alt


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("shape", ["1", "8", "2, 2, 2"])
def test_the_smallest_and_the_largest_fit_on_the_sheet(operation: str, shape: str) -> None:
    picture = jacobian_view.static(operation=operation, shape=shape)
    boxes = [shape for shape in picture.shapes if hasattr(shape, "middle")]
    assert min(box.x for box in boxes) > 0
    assert max(box.x + box.width for box in boxes) <= picture.width
    assert picture.height < 800


def test_numbers_are_left_out_where_they_would_not_fit() -> None:
    numbers = [len(re.findall("<text", jacobian_view.static(shape=shape).html())) for shape in ("10", "12")]
    assert numbers[0] > 200 > 60 > numbers[1]


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"shape": "a"}, "'a' is not a shape"),
        ({"shape": "13"}, "x has shape (13,), 13 elements: the picture has room for 12"),
        ({"shape": "2, 0"}, "x has shape (2, 0) and no elements"),
        ({"shape": "1, 1, 1, 2"}, "x has shape (1, 1, 1, 2), 4 axes: the picture has room for 3"),
        ({"shape": "()"}, "x.softmax(-1) goes along the last axis, and x of shape () has none"),
        (
            {"shape": "9", "operation": "broadcast add"},
            "x + a has 18 outputs for x of shape (9,): the picture has room for 16",
        ),
        ({"shape": "999999999, 999999999, 999999999"}, "elements: the picture has room for 12"),
    ],
)
def test_what_cannot_be_drawn_is_one_sentence(values: dict[str, str], sentence: str) -> None:
    panel = jacobian_view(**values).panel
    assert sentence in panel.sentence
    with pytest.raises(BadInput) as caught:
        jacobian_view.static(**values)
    assert str(caught.value) == panel.sentence
    assert panel.sentence.endswith(".")
