"""A clock that only fake calculations advance, so that every measured time is known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from autograder.bench.harness import Comparison


class Workshop:
    """Makes comparisons whose sides take a given time by the workshop's clock, and writes down who was called."""

    def __init__(self) -> None:
        self.now = 0.0
        self.log: list[tuple[str, str]] = []

    def clock(self) -> float:
        return self.now

    def comparison(self, name: str = "x + y", group: str = "sums", size: int = 1, **seconds: float) -> Comparison:
        return Comparison(name, group, size, {side: self.side(name, side, time) for side, time in seconds.items()})

    def side(self, name: str, side: str, seconds: float) -> Callable[[], np.ndarray]:
        def calculate() -> np.ndarray:
            self.now += seconds
            self.log.append((name, side))
            return np.arange(3.0)

        return calculate


@pytest.fixture
def workshop() -> Workshop:
    return Workshop()
