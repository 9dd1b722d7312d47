"""An array as a grid of cells: a row, rows and columns, or blocks of them for three axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .pictures import Drawing

__all__ = ["Grid"]

GAP, HEADING = 22.0, 18.0


@dataclass(frozen=True)
class Grid:
    """Where the cells of an array of up to three axes lie, within `room` pixels from left to right."""

    shape: tuple[int, ...]
    left: float
    top: float
    room: float
    largest: float

    @property
    def columns(self) -> int:
        return self.shape[-1] if self.shape else 1

    @property
    def rows(self) -> int:
        return self.shape[-2] if len(self.shape) > 1 else 1

    @property
    def blocks(self) -> int:
        return self.shape[0] if len(self.shape) > 2 else 1

    @property
    def cell(self) -> float:
        return min(self.largest, self.room / max(self.columns, 1))

    @property
    def heading(self) -> float:
        return HEADING if len(self.shape) > 2 else 0.0

    @property
    def beside(self) -> int:
        """How many blocks stand side by side."""
        return max(1, int((self.room + GAP) // (self.columns * self.cell + GAP)))

    @property
    def bottom(self) -> float:
        lines = -(-self.blocks // self.beside)
        return self.top + lines * self.line - (GAP if len(self.shape) > 2 else 0.0)

    @property
    def line(self) -> float:
        return self.heading + self.rows * self.cell + (GAP if len(self.shape) > 2 else 0.0)

    def corner(self, block: int) -> tuple[float, float]:
        down, right = divmod(block, self.beside)
        x = self.left + right * (self.columns * self.cell + GAP)
        return x, self.top + down * self.line + self.heading

    def place(self, element: int) -> tuple[float, float]:
        """The upper left corner of an element, counted in row-major order."""
        block, inside = divmod(element, self.rows * self.columns)
        row, column = divmod(inside, self.columns)
        x, y = self.corner(block)
        return x + column * self.cell, y + row * self.cell

    def draw(self, drawing: Drawing, words: Sequence[object], looks: Sequence[str]) -> None:
        """One box an element; an array without elements is the words `no elements`."""
        if not len(words):
            drawing.words(self.left, self.top + 16, "no elements", "soft")
            return
        for block in range(self.blocks if self.heading else 0):
            x, y = self.corner(block)
            drawing.words(x, y - 5, f"[{block}]", "soft", 11)
        size = max(10.0, min(13.0, 0.42 * self.cell))
        # The one with the thick edge comes last, or its neighbours would cover a part of it.
        for n in sorted(range(len(words)), key=lambda n: looks[n] == "current"):
            drawing.box(*self.place(n), self.cell, self.cell, words[n], looks[n], size)
