"""The broadcasting explorer: verdicts, result and readings agree with NumPy for every pair of small shapes."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
import pytest

from gradwright.widgets import broadcasting_explorer
from gradwright.widgets.broadcasting import Meeting, reads

SHAPES = [shape for axes in range(4) for shape in product((0, 1, 2, 3), repeat=axes)]


def numpy_shape(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...] | None:
    try:
        return np.broadcast_shapes(a, b)
    except ValueError:
        return None


def test_the_result_is_that_of_numpy_for_every_pair_of_small_shapes() -> None:
    assert [(a, b) for a, b in product(SHAPES, SHAPES) if Meeting(a, b).shape != numpy_shape(a, b)] == []


@pytest.mark.parametrize(
    ("a", "b"), [((3, 4), (4,)), ((2, 3, 1), (3, 4)), ((2, 1, 3), ()), ((1,), (1, 1)), ((2, 0), (1,))]
)
def test_every_reading_is_the_one_that_numpy_makes(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    meeting = Meeting(a, b)
    for shape in (a, b):
        numbers = np.broadcast_to(np.arange(prod(shape)).reshape(shape), meeting.shape).reshape(-1)
        assert meeting.sources(shape) == numbers.tolist()
        assert np.bincount(numbers, minlength=prod(shape)).tolist() == [reads(meeting, shape)] * prod(shape)


@pytest.mark.parametrize(
    ("a", "b", "verdicts"),
    [
        ((3, 4), (4,), ["added to b", "same"]),
        ((3, 1), (1, 4), ["b stretched", "a stretched"]),
        ((4,), (2, 3, 1), ["added to a", "added to a", "b stretched"]),
        ((1, 2), (1, 2), ["same", "same"]),
        ((2, 3), (2,), ["added to b", "mismatch"]),
        ((2, 1), (2, 0), ["same", "a stretched"]),
        ((2, 3), (2, 0), ["same", "mismatch"]),
    ],
)
def test_every_axis_has_its_verdict(a: tuple[int, ...], b: tuple[int, ...], verdicts: list[str]) -> None:
    assert [axis.verdict for axis in Meeting(a, b).axes] == verdicts


def test_a_mismatch_names_both_shapes_and_the_axis() -> None:
    picture = broadcasting_explorer.static(preset="does not broadcast")
    sentence = "Shapes (3, 4) and (3,) do not broadcast: axis −1 is 4 in a and 3 in b, and neither is 1."
    assert picture.alt.endswith(sentence)
    assert sentence in picture.html()
    assert picture.steps == 0


def test_the_first_mismatch_from_the_right_is_named() -> None:
    assert "axis −2 is 3 in a and 2 in b" in Meeting((5, 3, 4), (6, 2, 4)).mismatch


def test_the_alternative_text_tells_the_whole_picture() -> None:
    assert broadcasting_explorer.static(preset="the K trap", element=17).alt == (
        "Shapes (2, 3, 4) for a and (2, 1, 4) for b. "
        "From the right, axis −1: same; axis −2: b stretched; axis −3: same. "
        "The result has shape (2, 3, 4). Each element of a is read once, of b 3 times. "
        "Element 17, of 0 to 23: result[1, 1, 1] reads a[1, 1, 1] and b[1, 0, 1]."
    )


@pytest.mark.parametrize(
    ("a", "b"), [("()", "()"), ("2, 1, 4", "2, 0, 4"), ("2, 24", "24"), ("24, 1", "2"), ("12, 2, 2", "2")]
)
def test_the_largest_and_the_smallest_fit_on_the_sheet(a: str, b: str) -> None:
    picture = broadcasting_explorer.static(a=a, b=b, element=3)
    boxes = [shape for shape in picture.shapes if hasattr(shape, "middle")]
    assert max((box.x + box.width for box in boxes), default=0) <= picture.width
    assert picture.png().startswith(b"\x89PNG")


def test_a_result_that_is_too_large_is_refused() -> None:
    panel = broadcasting_explorer(preset="outer").panel
    panel.controls["a"].value = "24, 1"
    assert panel.sentence == "The result has shape (24, 4), 96 elements: the picture has room for 48."
