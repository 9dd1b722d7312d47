"""The stride explorer: which cells of the flat storage a view touches, and in which order."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from .controls import Steps, Text
from .expression import View, evaluate
from .frame import Frame
from .grid import Grid
from .pictures import Drawing
from .shapes import hold_to_limits, minus, read_shape, written

__all__ = ["StrideExplorer"]

LETTERS, STRIDES = ("i", "j", "k"), ("s₀", "s₁", "s₂")
STRIP = 24
COLUMN = 340.0


class StrideExplorer(Frame):
    """Type a view of x and walk through it: index, offset and strides give the cell of the storage."""

    title = "Stride explorer"
    caption = (
        "Choose a preset or type a view of x, then go through its elements with the slider or the buttons. "
        "Each one is found by arithmetic alone: the offset, plus index times stride for every axis. "
        "Watch the arrow: it shows how far the last step jumped in the storage."
    )
    controls = (
        Text("base", "Shape of x", "3, 4", width="180px"),
        Text("view", "View", "x", width="260px"),
        Steps("element", "Element", 2),
    )
    presets: ClassVar = {
        "row": {"base": "3, 4", "view": "x[1]"},
        "column": {"base": "3, 4", "view": "x[:, 1]"},
        "transpose": {"base": "3, 4", "view": "x.T"},
        "every second, backwards": {"base": "12", "view": "x[::-2]"},
        "repeat without memory": {"base": "3, 1", "view": "x.expand(3, 4)"},
        "needs a copy": {"base": "3, 4", "view": "x.T.reshape(2, 6)"},
    }

    def picture(self, *, base: str, view: str, element: int) -> Drawing:
        """`base` is the shape of x, `view` an expression of x; an `element` past the end is the last one.

        Raises BadInput for a shape or an expression that cannot be read, does not fit, or is too large to draw.
        """
        shape = read_shape(base)
        hold_to_limits("x", shape)
        seen = evaluate(view, shape)
        return draw(Scene(view.strip(), shape, seen, max(min(element, seen.array.size - 1), 0)))


@dataclass(frozen=True)
class Scene:
    """A view at one element: every number that the drawing and the alternative text give."""

    expression: str
    base: tuple[int, ...]
    view: View
    element: int

    @property
    def shape(self) -> tuple[int, ...]:
        return self.view.array.shape

    @property
    def size(self) -> int:
        return self.view.array.size

    @cached_property
    def index(self) -> tuple[int, ...]:
        return tuple(int(i) for i in np.unravel_index(self.element, self.shape))

    @cached_property
    def visits(self) -> list[int]:
        """The storage cell of every element, in row-major order."""
        indices = np.indices(self.shape).reshape(len(self.shape), self.size)
        return (self.view.offset + np.array(self.view.strides, dtype=int) @ indices).tolist() if self.size else []

    @property
    def formula(self) -> str:
        return " + ".join(["offset", *(f"{i}·{s}" for i, s in zip(LETTERS, STRIDES[: len(self.shape)], strict=False))])

    @property
    def arithmetic(self) -> str:
        terms = [str(self.view.offset)]
        if not self.shape:
            return terms[0]
        for i, stride in zip(self.index, self.view.strides, strict=True):
            terms.append(f"{i}·{minus(stride)}" if stride >= 0 else f"{i}·({minus(stride)})")
        return f"{' + '.join(terms)} = {self.visits[self.element]}"

    @property
    def sharing(self) -> str:
        return "a copy with a storage of its own" if self.view.copied else "a view, sharing the storage of x"

    @property
    def order(self) -> str:
        return "contiguous" if self.view.array.flags.c_contiguous else "not contiguous"

    @property
    def look(self) -> list[str]:
        """How each element is drawn: visited before, now, or still to come."""
        return ["done" if n < self.element else "touched" if n > self.element else "current" for n in range(self.size)]


def describe(scene: Scene) -> str:
    view = scene.view
    reason = f" because no strides fit {view.copied}" if view.copied else ""
    facts = f"shape {written(scene.shape)}, strides {written(view.strides)}, offset {view.offset}"
    says = f"{scene.expression}, for x of shape {written(scene.base)}, has {facts}. It is {scene.order}. "
    says += f"It is {scene.sharing}{reason}."
    if not scene.size:
        return f"{says} It has no elements."
    order = ", ".join(map(str, scene.visits))
    here = f"Element {scene.element}, index {written(scene.index)}, lies at {scene.arithmetic}."
    return f"{says} Its elements visit the storage cells in the order {order}. {here}"


def draw(scene: Scene) -> Drawing:
    drawing = Drawing()
    drawing.alt, drawing.steps = describe(scene), scene.size
    facts = draw_facts(drawing, scene)
    wide = bool(scene.shape) and scene.shape[-1] > 11
    walk = draw_walk(drawing, scene, COLUMN if wide else 0.0, 18 if wide else facts + 18)
    below = max(facts, walk) + 24
    left, top = (0.0, below) if wide else (COLUMN, 18.0)
    drawing.words(left, top, shortened(scene.expression, 80 if wide else 44), bold=True)
    rows = scene.shape[-2] if len(scene.shape) > 1 else 1
    grid = Grid(scene.shape, left, top + 12, drawing.width - left, min(38.0, 600 / max(rows, 1)))
    grid.draw(drawing, scene.view.array.reshape(-1).tolist(), scene.look)
    draw_storage(drawing, scene, max(grid.bottom, below - 24) + 32)
    return drawing


def shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def equation(names: tuple[str, ...], numbers: tuple[int, ...]) -> str:
    """`(i, j) = (1, 2)`, with as many names as there are numbers."""
    return f"{written(names[: len(numbers)])} = {written(numbers)}" if numbers else "()"


def draw_lines(drawing: Drawing, lines: list[tuple[str, str]], left: float, top: float) -> float:
    """Names and values in two columns; returns where the last line ends."""
    for n, (name, value) in enumerate(lines):
        drawing.words(left, top + 20 * n, name, "soft")
        drawing.words(left + 68, top + 20 * n, value)
    return top + 20 * len(lines) - 12


def draw_facts(drawing: Drawing, scene: Scene) -> float:
    view = scene.view
    lines = [
        ("shape", written(scene.shape)),
        ("strides", equation(STRIDES, view.strides)),
        ("offset", str(view.offset)),
    ]
    lines += [("order", scene.order), ("memory", scene.sharing)]
    if view.copied:
        lines.append(("", f"no strides fit {view.copied}"))
    return draw_lines(drawing, lines, 0, 18)


def draw_walk(drawing: Drawing, scene: Scene, left: float, top: float) -> float:
    if not scene.size:
        return top
    count = f"{scene.element}, of 0 to {scene.size - 1}"
    lines = [("element", count), ("index", equation(LETTERS, scene.index))]
    lines += [("cell", scene.formula), ("", scene.arithmetic)]
    return draw_lines(drawing, lines, left, top + (0 if left else 10))


def draw_storage(drawing: Drawing, scene: Scene, top: float) -> None:
    copied = bool(scene.view.copied)
    drawing.words(0, top, f"Storage of {'the copy' if copied else 'x'}", bold=True)
    strip = Strip(len(scene.view.storage), top + 42, 16.0 * (1 + copied))
    strip.label(drawing, [*(["element"] if copied else []), "cell", "visited"])
    strip.fill(drawing, scene)
    for cell, when in visiting_times(scene.visits).items():
        strip.below(drawing, cell, 1 + copied, when)
    for cell in range(strip.cells if copied else 0):
        strip.below(drawing, cell, 1, str(cell))
    if scene.size:
        draw_jump(drawing, scene, strip)
    draw_legend(drawing, drawing.height + 18)


def visiting_times(visits: list[int]) -> dict[int, str]:
    """For each cell when it is visited, or how often where that is more than once."""
    times = Counter(visits)
    return {cell: str(n) if times[cell] == 1 else f"×{times[cell]}" for n, cell in enumerate(visits)}


@dataclass(frozen=True)
class Strip:
    """The storage in lines of up to 24 cells, with room above for an arrow and `under` pixels below for numbers."""

    cells: int
    top: float
    under: float
    left: float = 56.0

    @property
    def size(self) -> float:
        return min(36.0, (760 - self.left) / min(max(self.cells, 1), STRIP))

    def corner(self, cell: int) -> tuple[float, float]:
        line, column = divmod(cell, STRIP)
        return self.left + column * self.size, self.top + line * (self.size + self.under + 44)

    def head(self, cell: int) -> tuple[float, float]:
        """Where an arrow starts and ends."""
        x, y = self.corner(cell)
        return x + self.size / 2, y - 3

    def label(self, drawing: Drawing, names: list[str]) -> None:
        for start in range(0, max(self.cells, 1), STRIP):
            _, y = self.corner(start)
            drawing.words(0, y + self.size / 2 + 4, names[0], "soft", 11)
            for n, name in enumerate(names[1:]):
                drawing.words(0, y + self.size + 16 * (n + 1), name, "soft", 11)

    def fill(self, drawing: Drawing, scene: Scene) -> None:
        looks = dict.fromkeys(scene.visits, "touched") | dict.fromkeys(scene.visits[: scene.element], "done")
        now = scene.visits[scene.element] if scene.size else None
        values = scene.view.storage.tolist()
        # The one with the thick edge comes last, or its neighbour would cover a part of it.
        for cell in sorted(range(self.cells), key=lambda cell: cell == now):
            look = "current" if cell == now else looks.get(cell, "empty")
            drawing.box(*self.corner(cell), self.size, self.size, values[cell], look)

    def below(self, drawing: Drawing, cell: int, line: int, words: str) -> None:
        x, y = self.corner(cell)
        drawing.words(x + self.size / 2, y + self.size + 16 * line, words, "soft", 11, "middle")


def draw_jump(drawing: Drawing, scene: Scene, strip: Strip) -> None:
    """The arrow from the cell before, and above it how far that was."""
    x, y = end = strip.head(scene.visits[scene.element])
    if not scene.element:
        drawing.words(x, y - 5, f"offset {scene.view.offset}", "strong", 12, "middle")
        return
    before, now = scene.visits[scene.element - 1 : scene.element + 1]
    far = f"+{now - before}" if now >= before else minus(now - before)
    if before == now:
        drawing.words(x, y - 5, far, "strong", 12, "middle")
        return
    top = drawing.jump(strip.head(before), end, 34).top
    drawing.words(top[0], top[1] + 12, far, "strong", 12, "middle")


def draw_legend(drawing: Drawing, top: float) -> None:
    entries = [("current", "this element"), ("done", "visited"), ("touched", "still to come"), ("empty", "not touched")]
    for n, (look, words) in enumerate(entries):
        drawing.box(130 * n + 2, top - 11, 14, 14, "", look)
        drawing.words(130 * n + 24, top, words, "soft", 12)
