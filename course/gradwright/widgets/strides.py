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

LETTERS = "ijk"
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
        Steps("element", "Element", 5),
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
        indices = np.indices(self.shape).reshape(len(self.shape), -1)
        return (self.view.offset + np.array(self.view.strides, dtype=int) @ indices).tolist() if self.size else []

    @property
    def names(self) -> str:
        return written_names(LETTERS[: len(self.shape)])

    @property
    def formula(self) -> str:
        return " + ".join(["offset", *(f"{LETTERS[n]}·stride[{n}]" for n in range(len(self.shape)))])

    @property
    def arithmetic(self) -> str:
        terms = [str(self.view.offset)]
        for i, stride in zip(self.index, self.view.strides, strict=True):
            terms.append(f"{i}·{minus(stride)}" if stride >= 0 else f"{i}·({minus(stride)})")
        return f"{' + '.join(terms)} = {self.visits[self.element]}"

    @property
    def sharing(self) -> str:
        return "a copy, with a storage of its own" if self.view.copied else "a view, it shares the storage of x"

    @property
    def order(self) -> str:
        return "contiguous" if self.view.array.flags.c_contiguous else "not contiguous"

    @property
    def look(self) -> list[str]:
        """How each element is drawn: visited before, now, or still to come."""
        return ["done" if n < self.element else "touched" if n > self.element else "current" for n in range(self.size)]


def written_names(letters: str) -> str:
    return f"({', '.join(letters)})" if len(letters) != 1 else f"({letters},)"


def describe(scene: Scene) -> str:
    view = scene.view
    reason = f" because no strides fit {view.copied}" if view.copied else ""
    facts = f"shape {written(scene.shape)}, strides {written(view.strides)}, offset {view.offset}"
    says = f"{scene.expression}, for x of shape {written(scene.base)}, has {facts}. It is {scene.sharing}{reason}"
    says += f", and {scene.order}."
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
    drawing.words(left, top, scene.expression, bold=True)
    grid = Grid(scene.shape, left, top + 12, drawing.width - left)
    grid.draw(drawing, scene.view.array.reshape(-1).tolist(), scene.look)
    draw_storage(drawing, scene, max(grid.bottom, below - 24) + 32)
    return drawing


def draw_lines(drawing: Drawing, lines: list[tuple[str, str]], left: float, top: float) -> float:
    """Names and values in two columns; returns where the last line ends."""
    for n, (name, value) in enumerate(lines):
        drawing.words(left, top + 20 * n, name, "soft")
        drawing.words(left + 68, top + 20 * n, value)
    return top + 20 * len(lines) - 12


def draw_facts(drawing: Drawing, scene: Scene) -> float:
    view = scene.view
    lines = [("shape", written(scene.shape)), ("strides", written(view.strides)), ("offset", str(view.offset))]
    lines += [("order", scene.order), ("memory", scene.sharing)]
    if view.copied:
        lines.append(("", f"no strides fit {view.copied}"))
    return draw_lines(drawing, lines, 0, 18)


def draw_walk(drawing: Drawing, scene: Scene, left: float, top: float) -> float:
    if not scene.size:
        return top
    count = f"{scene.element}, of 0 to {scene.size - 1}"
    lines = [("element", count), ("index", f"{scene.names} = {written(scene.index)}")]
    lines += [("cell", scene.formula), ("", scene.arithmetic)]
    return draw_lines(drawing, lines, left, top + (0 if left else 10))


def draw_storage(drawing: Drawing, scene: Scene, top: float) -> None:
    values = scene.view.storage.tolist()
    drawing.words(0, top, f"Storage of {'the copy' if scene.view.copied else 'x'}", bold=True)
    drawing.words(150, top, "below each cell: when it is visited, or ×n if n times", "soft", 12)
    times = Counter(scene.visits)
    first = {cell: n for n, cell in reversed(list(enumerate(scene.visits)))}
    past = set(scene.visits[: scene.element])
    size = min(36.0, drawing.width / min(max(len(values), 1), STRIP))
    for cell, value in enumerate(values):
        x, y = strip_corner(cell, size, top)
        here = bool(scene.size) and cell == scene.visits[scene.element]
        look = "current" if here else "done" if cell in past else "touched" if cell in times else "empty"
        drawing.box(x, y, size, size, value, look)
        when = "" if cell not in times else str(first[cell]) if times[cell] == 1 else f"×{times[cell]}"
        drawing.words(x + size / 2, y + size + 16, when, "soft", 11, "middle")
    if scene.size:
        draw_jump(drawing, scene, size, top)
    draw_legend(drawing, drawing.height + 18)


def strip_corner(cell: int, size: float, top: float) -> tuple[float, float]:
    line, column = divmod(cell, STRIP)
    return column * size, top + 42 + line * (size + 62)


def draw_jump(drawing: Drawing, scene: Scene, size: float, top: float) -> None:
    """The arrow from the cell before, and above it how far that was."""
    x, y = strip_corner(scene.visits[scene.element], size, top)
    end = (x + size / 2, y - 3)
    if not scene.element:
        drawing.words(max(end[0], 26), y - 8, f"offset {scene.view.offset}", "strong", 12, "middle")
        return
    before, now = scene.visits[scene.element - 1 : scene.element + 1]
    x, y = strip_corner(before, size, top)
    middle, peak = end[0], end[1] - 5
    if before != now:
        jump = drawing.jump((x + size / 2, y - 3), end, 34)
        middle, peak = jump.top[0], jump.top[1] + 12
    drawing.words(middle, peak, minus(now - before) if now < before else f"+{now - before}", "strong", 12, "middle")


def draw_legend(drawing: Drawing, top: float) -> None:
    entries = [("current", "this element"), ("done", "visited"), ("touched", "still to come"), ("empty", "not touched")]
    for n, (look, words) in enumerate(entries):
        drawing.box(130 * n + 2, top - 11, 14, 14, "", look)
        drawing.words(130 * n + 24, top, words, "soft", 12)
