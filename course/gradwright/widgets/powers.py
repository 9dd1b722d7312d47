"""Numbers of every size: written with powers of ten, and on an axis of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .pictures import Drawing

__all__ = ["Powers", "figures", "ten_to"]

RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def ten_to(power: int) -> str:
    return f"10{str(power).translate(RAISED)}" if power else "1"


def figures(norm: float, digits: int = 3) -> str:
    """A norm in so many figures; very small and large ones in two, with a power of ten."""
    if not math.isfinite(norm):
        return "not finite"
    if norm == 0 or 1e-3 <= norm < 1e4:
        return f"{norm:.{digits}g}" if norm < 10**digits else f"{norm:.0f}"
    number, _, power = f"{norm:.1e}".partition("e")
    return f"{number}·{ten_to(int(power))}"


@dataclass(frozen=True)
class Powers:
    """A vertical axis from 10 to the power of `low` up to that of `high`, with a mark at every so many powers.

    `left`, `right`, `top` and `bottom` are the frame that it stands in. What is beyond the scale is at its end: 0 is at
    the lower one.
    """

    low: int
    high: int
    every: int
    left: float
    right: float
    top: float
    bottom: float

    def y(self, x: float) -> float:
        tens = self.low if x == 0 else min(max(math.log10(x), self.low), self.high)
        return self.bottom - (self.bottom - self.top) * (tens - self.low) / (self.high - self.low)

    def draw(self, drawing: Drawing, zero: bool = False) -> None:
        """Two sides of the frame and the marks. `zero`: the lowest mark stands for 0 and says so."""
        drawing.line([(self.left, self.top), (self.left, self.bottom), (self.right, self.bottom)], "line", 1)
        for tens in range(self.low, self.high + 1, self.every):
            y = self.y(10.0**tens)
            drawing.line([(self.left - 4, y), (self.left, y)], "line", 1)
            drawing.words(self.left - 8, y + 4, "0" if zero and tens == self.low else ten_to(tens), "soft", 11, "end")

    def limit(self, drawing: Drawing, x: float) -> float:
        """A dashed line across at x; returns its y."""
        drawing.line([(self.left, self.y(x)), (self.right, self.y(x))], "warn", 1, dashed=True)
        return self.y(x)
