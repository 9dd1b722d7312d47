"""Three surfaces over the plane, and the ways that four optimizers take down them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from .pictures import new_figure

__all__ = ["METHODS", "STEPS", "SURFACES", "Surface", "contours", "walked"]

STEPS = 80
EPS = 1e-8
# Of a coordinate: whoever gets there does not come back.
LOST = 1e3


@dataclass(frozen=True)
class Surface:
    """`value` and `slope` take x and y. The window goes from `low` to `high`; `bottom` is the value at a minimum."""

    written: str
    value: Callable[[np.ndarray, np.ndarray], np.ndarray]
    slope: Callable[[float, float], tuple[float, float]]
    low: tuple[float, float]
    high: tuple[float, float]
    start: tuple[float, float]
    minima: tuple[tuple[float, float], ...]
    bottom: float
    levels: tuple[float, ...]


SURFACES = {
    "valley": Surface(
        "f = x²/40 + y²",
        lambda x, y: x**2 / 40 + y**2,
        lambda x, y: (x / 20, 2 * y),
        (-10.0, -2.2),
        (4.0, 2.2),
        (-9.0, 1.2),
        ((0.0, 0.0),),
        0.0,
        (0.02, 0.15, 0.5, 1.1, 2.0, 3.2, 4.6),
    ),
    "saddle": Surface(
        "f = x²/2 − y²/2 + y⁴/16",
        lambda x, y: x**2 / 2 - y**2 / 2 + y**4 / 16,
        lambda x, y: (x, y**3 / 4 - y),
        (-3.2, -3.0),
        (3.2, 3.0),
        (-2.6, 0.001),
        ((0.0, 2.0), (0.0, -2.0)),
        -1.0,
        (0.1, 0.35, 0.7, 0.995, 1.4, 2.2, 3.4, 5.0),
    ),
    "Rosenbrock": Surface(
        "f = (1 − x)²/10 + (y − x²)²",
        lambda x, y: (1 - x) ** 2 / 10 + (y - x**2) ** 2,
        lambda x, y: ((x - 1) / 5 - 4 * x * (y - x**2), 2 * (y - x**2)),
        (-2.0, -0.8),
        (2.0, 2.8),
        (-1.2, 2.2),
        ((1.0, 1.0),),
        0.0,
        (0.01, 0.06, 0.2, 0.6, 1.5, 4.0, 9.0),
    ),
}


@dataclass(frozen=True)
class Rates:
    """The numbers that the reader sets: the step sizes of the first two and the last two, and how much is kept."""

    plain: float
    adaptive: float
    momentum: float


Slope = Callable[[np.ndarray], np.ndarray]


def sgd(p: np.ndarray, slope: Slope, rates: Rates) -> Iterator[np.ndarray]:
    while True:
        p = p - rates.plain * slope(p)
        yield p


def momentum(p: np.ndarray, slope: Slope, rates: Rates) -> Iterator[np.ndarray]:
    velocity = np.zeros(2)
    while True:
        velocity = rates.momentum * velocity + slope(p)
        p = p - rates.plain * velocity
        yield p


def rmsprop(p: np.ndarray, slope: Slope, rates: Rates) -> Iterator[np.ndarray]:
    squares = np.zeros(2)
    while True:
        g = slope(p)
        squares = 0.99 * squares + 0.01 * g * g
        p = p - rates.adaptive * g / (np.sqrt(squares) + EPS)
        yield p


def adam(p: np.ndarray, slope: Slope, rates: Rates) -> Iterator[np.ndarray]:
    mean, squares, kept, kept_squares = np.zeros(2), np.zeros(2), 1.0, 1.0
    while True:
        g = slope(p)
        mean = rates.momentum * mean + (1 - rates.momentum) * g
        squares = 0.999 * squares + 0.001 * g * g
        kept, kept_squares = kept * rates.momentum, kept_squares * 0.999
        p = p - rates.adaptive * mean / (1 - kept) / (np.sqrt(squares / (1 - kept_squares)) + EPS)
        yield p


METHODS = {"SGD": sgd, "momentum": momentum, "RMSprop": rmsprop, "Adam": adam}


@lru_cache(maxsize=256)
def walked(surface: str, method: str, plain: float, adaptive: float, momentum: float) -> np.ndarray:
    """The points from the start on, (steps + 1, 2); fewer where the way leads off for good."""
    ground = SURFACES[surface]
    points = [np.array(ground.start)]
    walk = METHODS[method](points[0], lambda p: np.array(ground.slope(*p)), Rates(plain, adaptive, momentum))
    while len(points) < STEPS and np.abs(points[-1]).max() < LOST:
        points.append(next(walk))
    return np.array(points)


@lru_cache(maxsize=8)
def contours(surface: str) -> Sequence[np.ndarray]:
    """Lines of equal height within the window, each (points, 2)."""
    ground = SURFACES[surface]
    x, y = (np.linspace(low, high, 121) for low, high in zip(ground.low, ground.high, strict=True))
    heights = ground.value(*np.meshgrid(x, y)) - ground.bottom
    found = new_figure().add_subplot().contour(x, y, heights, levels=ground.levels)
    return [line for lines in found.allsegs for line in lines if len(line)]
