"""The softmax explorer: its numbers, what a format holds, and the logits that are typed."""

from __future__ import annotations

import re

import numpy as np
import pytest

from autograder.errors import BadInput
from gradwright.widgets import softmax_temperature
from gradwright.widgets.temperature import FORMATS, MOST, Scene, read_logits


def scene(logits: str = "3, 2, 1, 0", temperature: float = 1.0, shift: float = 0.0, dtype: str = "float32") -> Scene:
    return Scene(read_logits(logits), temperature, shift, dtype)


def test_temperature_sharpens_and_flattens_and_a_shift_changes_nothing() -> None:
    sharp, plain, flat = (scene(temperature=t).exact for t in (0.1, 1.0, 10.0))
    assert sharp[0] > 0.9999 > plain[0] > flat[0] > 0.25
    np.testing.assert_array_equal(scene(shift=100.0).exact, plain)
    np.testing.assert_allclose(plain, np.exp([3, 2, 1, 0]) / np.exp([3, 2, 1, 0]).sum(), rtol=1e-14)


@pytest.mark.parametrize(
    ("given", "naive"),
    [
        ({}, "right"),
        ({"shift": 85.0}, "right"),
        ({"shift": 90.0}, "inf / inf is nan"),
        ({"shift": 88.0, "logits": "0, 0, 0"}, "the sum is inf, so every p is 0"),
        ({"shift": -100.0}, "few digits are left"),
        ({"shift": -110.0}, "0 / 0 is nan"),
        ({"dtype": "float16"}, "right"),
        ({"shift": 9.0, "dtype": "float16"}, "inf / inf is nan"),
        ({"temperature": 0.1, "logits": "9, 0"}, "inf / inf is nan"),
    ],
)
def test_the_naive_formula_breaks_and_the_stable_one_does_not(given: dict, naive: str) -> None:
    shown = scene(**given)
    assert shown.verdict(shown.naive) == naive
    assert shown.verdict(shown.stable) == "right"


@pytest.mark.parametrize("name", FORMATS)
def test_the_range_is_where_exp_is_neither_0_nor_inf(name: str) -> None:
    low, high = scene(dtype=name).range
    kind = FORMATS[name]
    with np.errstate(all="ignore"):
        assert [np.exp(kind(x)) > 0 for x in (low + 0.1, low - 0.1)] == [True, False]
        assert [np.isfinite(np.exp(kind(x))) for x in (high - 0.1, high + 0.1)] == [True, False]


def test_every_number_in_the_table_is_one_of_the_format() -> None:
    computed = scene(dtype="float16").naive
    assert {array.dtype for array in (computed.exponents, computed.powers, computed.p)} == {np.dtype(np.float16)}


def test_what_is_lost_is_framed_and_a_harmless_zero_is_not() -> None:
    broken = softmax_temperature.static(preset="overflow in float32").html()
    harmless = softmax_temperature.static(logits="9, 0", temperature=0.1, dtype="float16", shift=-9).html()
    assert "inf / inf is nan" in broken
    table = harmless.partition("stable: ")[2]
    assert ">0</text>" in table
    assert "--jp-error-color1" not in table.partition("Exponents")[0]
    assert "--jp-error-color1" in broken.partition("stable: ")[0]


def test_as_many_logits_as_there_is_room_for_stay_on_the_sheet() -> None:
    picture = softmax_temperature.static(logits="10000, -10000, 0.123456, 1e-9, 5, 6", temperature=0.1)
    places = [float(x) for x in re.findall(r'<rect x="([^"]*)"', picture.html())]
    assert max(places) < picture.width
    assert "logits 10000, −10000, 0.123456, 1e−09, 5, 6 plus" in picture.alt
    assert "nan" not in picture.alt.partition("In float32")[0]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "'' is not a number: type logits with commas between them"),
        ("3; 2", "'3; 2' is not a number"),
        ("1, two", "'two' is not a number"),
        ("1, nan", "The logit nan is out of range: use numbers from −10,000 to 10,000"),
        ("1, inf", "The logit inf is out of range"),
        ("1, 10001", "The logit 10001 is out of range"),
        ("1", f"'1' has 1 logit: type 2 to {MOST}"),
        ("1, 2, 3, 4, 5, 6, 7", f"'1, 2, 3, 4, 5, 6, 7' has 7 logits: type 2 to {MOST}"),
    ],
)
def test_logits_that_cannot_be_read_are_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(BadInput, match=re.escape(sentence)):
        read_logits(text)
    panel = softmax_temperature().panel
    picture = panel.view.value
    panel.controls["logits"].value = text
    assert sentence in panel.sentence
    assert panel.view.value == picture
