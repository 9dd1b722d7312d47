"""The optimizer paths: the four ways, the surfaces they go on, and what is said of them."""

from __future__ import annotations

import re

import numpy as np
import pytest

from autograder.errors import BadInput
from gradwright.widgets import optimizer_paths
from gradwright.widgets.descents import METHODS, STEPS, SURFACES, contours, walked
from gradwright.widgets.paths import Map, Scene


@pytest.mark.parametrize("name", SURFACES)
def test_a_slope_is_that_of_its_surface(name: str) -> None:
    surface = SURFACES[name]
    for x, y in np.random.default_rng(3).uniform(surface.low, surface.high, size=(5, 2)):
        across = (surface.value(x + 1e-6, y) - surface.value(x - 1e-6, y)) / 2e-6
        along = (surface.value(x, y + 1e-6) - surface.value(x, y - 1e-6)) / 2e-6
        assert surface.slope(x, y) == pytest.approx((across, along), rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("name", SURFACES)
def test_a_minimum_is_flat_and_nothing_in_the_window_is_lower(name: str) -> None:
    surface = SURFACES[name]
    grid = np.meshgrid(*(np.linspace(low, high, 60) for low, high in zip(surface.low, surface.high, strict=True)))
    for x, y in surface.minima:
        assert surface.slope(x, y) == (0, 0)
        assert surface.value(x, y) == surface.bottom <= surface.value(*grid).min()


@pytest.mark.parametrize("name", SURFACES)
def test_a_contour_has_one_height(name: str) -> None:
    surface = SURFACES[name]
    for line in contours(name):
        heights = surface.value(*line.T) - surface.bottom
        assert np.abs(heights[:, None] - np.array(surface.levels)).min(1).max() < 0.02 * heights.max() + 0.01


def test_a_first_step_has_the_length_that_the_rates_say() -> None:
    start = np.array(SURFACES["valley"].start)
    g = np.array(SURFACES["valley"].slope(*start))
    first = {method: walked("valley", method, 0.5, 0.1, 0.9)[1] - start for method in METHODS}
    np.testing.assert_allclose(first["SGD"], -0.5 * g)
    np.testing.assert_allclose(first["momentum"], -0.5 * g)
    np.testing.assert_allclose(first["RMSprop"], -np.sign(g), rtol=1e-6)
    np.testing.assert_allclose(first["Adam"], -0.1 * np.sign(g), rtol=1e-6)


def test_without_momentum_momentum_is_plain_descent() -> None:
    plain, with_none = (walked("Rosenbrock", method, 0.05, 0.1, 0.0) for method in ("SGD", "momentum"))
    np.testing.assert_array_equal(plain, with_none)


def test_in_the_valley_momentum_arrives_first_and_too_high_a_rate_never() -> None:
    valley = optimizer_paths.static(preset="valley", step=STEPS)
    assert "momentum: at the minimum" in valley.alt
    assert "SGD: at the minimum" not in valley.alt
    assert "SGD: outside the picture" in optimizer_paths.static(preset="a rate too high").alt
    assert "SGD: gone for good after step" in optimizer_paths.static(surface="Rosenbrock", rate=1.2).alt


def test_momentum_leaves_the_saddle_before_plain_descent() -> None:
    heights = {}
    for method in ("SGD", "momentum"):
        points = walked("saddle", method, 0.1, 0.05, 0.9)
        heights[method] = int(np.argmax(np.abs(points[:, 1]) > 1))
    assert 0 < heights["momentum"] < heights["SGD"]


@pytest.mark.parametrize("preset", optimizer_paths.presets)
def test_no_line_leaves_the_map(preset: str) -> None:
    html = optimizer_paths.static(preset=preset, step=STEPS).html()
    paths = re.findall(r'd="M([^"]*)"', html)
    points = [tuple(map(float, point.split())) for path in paths for point in path.split("L")]
    assert all(0 <= x <= 760 and Map.top - 0.1 <= y <= Map.bottom + 0.1 for x, y in points)


def test_a_path_is_cut_at_the_edge_and_goes_on_where_it_returns() -> None:
    drawing = optimizer_paths.static(preset="a rate too high", step=0)
    path = np.array([[0.0, 0.0], [0.0, 4.4], [0.0, 0.0], [1.0, 0.0]])
    page = Map(drawing, Scene("valley", 3, {"SGD": path}))
    before = len(drawing.shapes)
    page.draw_path("SGD")
    pieces = [shape.points for shape in drawing.shapes[before:]]
    top = page.place(np.array([0.0, 2.2]))
    assert [(len(piece), top in piece) for piece in pieces] == [(2, True), (3, True)]


@pytest.mark.parametrize(
    ("name", "value", "remedy"),
    [
        ("surface", "hill", "choose one of valley, saddle, Rosenbrock"),
        ("rate", 0, "give a number from 0.01 to 1.2"),
        ("momentum", 1.0, "give a number from 0 to 0.98"),
    ],
)
def test_a_choice_that_cannot_be_is_one_sentence(name: str, value: object, remedy: str) -> None:
    with pytest.raises(BadInput, match=remedy):
        optimizer_paths.static(**{name: value})
