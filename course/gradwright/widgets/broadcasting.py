"""The broadcasting explorer: two shapes lined up on the right, and which element of each input is read when."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import ClassVar

import numpy as np

from .controls import Steps, Text
from .frame import Frame
from .grid import Grid
from .pictures import Drawing
from .shapes import hold_to_limits, minus, read_shape, written

__all__ = ["BroadcastingExplorer"]


class BroadcastingExplorer(Frame):
    """Type two shapes: how each axis fares, the result's shape, and how often every input element is read."""

    title = "Broadcasting explorer"
    caption = (
        "Choose a preset or type two shapes, then go through the elements of the result with the slider or the "
        "buttons. The shapes are lined up on the right; an axis that is missing or 1 gives way to the other input. "
        "Watch the numbers in a and b: they count how often each element has been read so far."
    )
    controls = (
        Text("a", "Shape of a", "2, 3, 4", width="200px"),
        Text("b", "Shape of b", "4", width="200px"),
        Steps("element", "Element", 5),
    )
    presets: ClassVar = {
        "bias": {"a": "3, 4", "b": "4"},
        "outer": {"a": "3, 1", "b": "1, 4"},
        "scalar": {"a": "3, 4", "b": "()"},
        "added and stretched": {"a": "2, 3, 4", "b": "3, 1"},
        "does not broadcast": {"a": "3, 4", "b": "3"},
        "the K trap": {"a": "2, 3, 4", "b": "2, 1, 4"},
    }

    def picture(self, *, a: str, b: str, element: int) -> Drawing:
        """`a` and `b` are shapes; an `element` past the end of the result is the last one.

        Shapes that do not broadcast are a picture too. Raises BadInput for what is no shape or too large to draw.
        """
        shapes = read_shape(a), read_shape(b)
        for name, shape in zip("ab", shapes, strict=True):
            hold_to_limits(name, shape)
        meeting = Meeting(*shapes)
        if meeting.shape is None:
            return draw_mismatch(meeting)
        hold_to_limits("The result", meeting.shape)
        return draw(meeting, max(min(element, prod(meeting.shape) - 1), 0))


@dataclass(frozen=True)
class Axis:
    """One column of the two shapes: the sizes, None where an input has no such axis, and what becomes of them."""

    number: int
    a: int | None
    b: int | None

    @property
    def size(self) -> int | None:
        """Of the result; None where the two do not go together."""
        a, b = (1 if size is None else size for size in (self.a, self.b))
        return a if b in (1, a) else b if a == 1 else None

    @property
    def verdict(self) -> str:
        if self.a is None or self.b is None:
            return f"added to {'a' if self.a is None else 'b'}"
        if self.size is None:
            return "mismatch"
        return "same" if self.a == self.b else f"{'a' if self.a == 1 else 'b'} stretched"

    @property
    def repeats(self) -> str:
        """How often the input that gives way is gone through along this axis."""
        if self.size is None or self.a == self.b or self.size == 1:
            return ""
        return f"repeated {times(self.size)}"

    @property
    def name(self) -> str:
        return f"axis {minus(self.number)}"


@dataclass(frozen=True)
class Meeting:
    """Two shapes, axis by axis from the left of the longer one."""

    a: tuple[int, ...]
    b: tuple[int, ...]

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        most = max(len(self.a), len(self.b))
        padded = [(None,) * (most - len(shape)) + shape for shape in (self.a, self.b)]
        return tuple(Axis(n - most, *sizes) for n, sizes in enumerate(zip(*padded, strict=True)))

    @property
    def shape(self) -> tuple[int, ...] | None:
        sizes = tuple(axis.size for axis in self.axes)
        return None if None in sizes else sizes

    @property
    def mismatch(self) -> str:
        """The sentence for the first axis, counted from the right as the rule is, that does not fit."""
        axis = next(axis for axis in reversed(self.axes) if axis.size is None)
        return (
            f"Shapes {written(self.a)} and {written(self.b)} do not broadcast: "
            f"{axis.name} is {axis.a} in a and {axis.b} in b, and neither is 1."
        )

    def sources(self, shape: tuple[int, ...]) -> list[int]:
        """For every element of the result the number of the element of an input of this shape that it reads."""
        return np.broadcast_to(np.arange(prod(shape)).reshape(shape), self.shape).reshape(-1).tolist()


def times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def reads(meeting: Meeting, shape: tuple[int, ...]) -> int:
    """How often each element of an input is read over the whole result."""
    return prod(meeting.shape) // prod(shape) if prod(shape) else 0


def summary(meeting: Meeting) -> str:
    if not prod(meeting.shape):
        return f"The result has shape {written(meeting.shape)}: no elements, and nothing is read."
    a, b = (times(reads(meeting, shape)) for shape in (meeting.a, meeting.b))
    return f"The result has shape {written(meeting.shape)}. Each element of a is read {a}, of b {b}."


def describe(meeting: Meeting) -> str:
    axes = "; ".join(f"{axis.name}: {axis.verdict}" for axis in reversed(meeting.axes))
    return f"Shapes {written(meeting.a)} for a and {written(meeting.b)} for b. From the right, {axes or 'no axis'}."


def reading(meeting: Meeting, element: int) -> str:
    inputs = [
        indexed(name, shape, meeting.sources(shape)[element]) for name, shape in (("a", meeting.a), ("b", meeting.b))
    ]
    return f"{indexed('result', meeting.shape, element)} reads {inputs[0]} and {inputs[1]}"


def indexed(name: str, shape: tuple[int, ...], element: int) -> str:
    index = ", ".join(str(i) for i in np.unravel_index(element, shape))
    return f"{name}[{index or '()'}]"


def draw_mismatch(meeting: Meeting) -> Drawing:
    drawing = Drawing()
    drawing.alt = f"{describe(meeting)} {meeting.mismatch}"
    bottom = draw_table(drawing, meeting)
    drawing.words(0, bottom + 28, meeting.mismatch, "warn", bold=True)
    return drawing


def draw(meeting: Meeting, element: int) -> Drawing:
    drawing = Drawing()
    drawing.alt, drawing.steps = f"{describe(meeting)} {summary(meeting)}", prod(meeting.shape)
    top = draw_table(drawing, meeting) + 28
    drawing.words(0, top, summary(meeting))
    if drawing.steps:
        sentence = f"Element {element}, of 0 to {drawing.steps - 1}: {reading(meeting, element)}."
        drawing.alt += f" {sentence}"
        drawing.words(0, top + 22, sentence, bold=True)
    draw_grids(drawing, meeting, element, top + 60)
    return drawing


def draw_table(drawing: Drawing, meeting: Meeting) -> float:
    """The shapes lined up on the right, and the verdict on each axis; returns where it ends."""
    if not meeting.axes:
        drawing.words(0, 18, "a and b are single numbers: there is no axis to line up.", "soft")
        return 18
    for row, name in enumerate(("a", "b", "result")):
        drawing.words(0, 47 + 32 * row, name, bold=True)
    for column, axis in enumerate(meeting.axes):
        left = 60 + 120 * column
        drawing.words(left + 54, 18, axis.name, "soft", 12, "middle")
        for row, size in enumerate((axis.a, axis.b, axis.size)):
            drawing.box(left, 28 + 32 * row, 108, 28, *entry(axis, size, row))
        wrong = axis.size is None
        drawing.words(left + 54, 142, axis.verdict, "warn" if wrong else "soft", 12, "middle", bold=wrong)
        drawing.words(left + 54, 158, axis.repeats, "soft", 12, "middle")
    return 158


def entry(axis: Axis, size: int | None, row: int) -> tuple[str, str]:
    """Words and look of one size in the table; what gives way stands out, and so does what does not fit."""
    if axis.size is None:
        return ("no size", "label") if row == 2 else (str(size), "wrong")
    if row == 2:
        return str(size), "empty"
    if size is None:
        return "1, added", "touched"
    return str(size), "touched" if size != axis.size else "empty"


def draw_grids(drawing: Drawing, meeting: Meeting, element: int, top: float) -> None:
    """a, b and the result, side by side, or one below the other where the rows are long."""
    stacked = bool(meeting.shape) and meeting.shape[-1] > 9
    left = 0.0
    for name, shape in (("a", meeting.a), ("b", meeting.b), ("result", meeting.shape)):
        result = name == "result"
        drawing.words(left, top, name, bold=True)
        title = written(shape) if result else f"{written(shape)}, reads so far"
        drawing.words(left + (52 if result else 18), top, title, "soft", 12)
        grid = Grid(shape, left, top + 12, drawing.width if stacked else 230, 28 if stacked else 26)
        counts, looks = reading_counts(meeting.sources(shape)[: element + 1], prod(shape))
        grid.draw(drawing, range(prod(shape)) if result else counts, looks)
        left, top = (0.0, grid.bottom + 32) if stacked else (left + 262, top)


def reading_counts(read: list[int], size: int) -> tuple[list[int], list[str]]:
    """How often each of `size` elements was read so far, and how it is drawn."""
    counts = np.bincount(read, minlength=size).tolist()
    looks = ["done" if count else "touched" for count in counts]
    if read:
        looks[read[-1]] = "current"
    return counts, looks
