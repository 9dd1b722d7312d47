"""The controls a widget can have: each says its name, its label and its first value, and builds its ipywidget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from autograder.errors import BadInput

if TYPE_CHECKING:
    from ipywidgets import DOMWidget, ValueWidget

__all__ = ["Choice", "Control", "Count", "Slider", "Steps", "Text"]

# A label is never cut short, and a row of controls breaks where the window is narrow.
UNCUT = {"description_width": "initial"}
ROW = {"flex_flow": "row wrap", "grid_gap": "2px 14px"}


@dataclass(frozen=True)
class Control:
    """`name` is the argument of the call and of `picture`; `label` is what stands beside the control."""

    name: str
    label: str
    default: object

    def accept(self, value: object) -> object:
        """The value as the control holds it, or a BadInput that says what it may be."""
        raise NotImplementedError

    def build(self, value: object) -> ValueWidget:
        raise NotImplementedError

    def dress(self, widget: ValueWidget) -> DOMWidget:
        """The ipywidget with whatever else belongs to it on the screen."""
        return widget

    def place(self, widget: ValueWidget, value: object) -> None:
        widget.value = value

    def refuse(self, value: object, remedy: str) -> BadInput:
        return BadInput(f"{self.name}={value!r} is not a value of this widget: {remedy}.")


@dataclass(frozen=True)
class Text(Control):
    """A line of text, taken when Enter is pressed or the field is left."""

    width: str = "240px"

    def accept(self, value: object) -> str:
        if not isinstance(value, str):
            raise self.refuse(value, "give it as text, in quotes")
        return value

    def build(self, value: object) -> ValueWidget:
        from ipywidgets import Text as Field

        layout = {"width": self.width}
        return Field(value, description=self.label, continuous_update=False, style=UNCUT, layout=layout)


@dataclass(frozen=True)
class Choice(Control):
    """One of a few named values."""

    options: tuple[str, ...] = ()

    def accept(self, value: object) -> str:
        if value not in self.options:
            raise self.refuse(value, f"choose one of {', '.join(self.options)}")
        return str(value)

    def build(self, value: object) -> ValueWidget:
        from ipywidgets import Dropdown

        return Dropdown(options=self.options, value=value, description=self.label, style=UNCUT)


@dataclass(frozen=True)
class Slider(Control):
    """A number between two others."""

    low: float = 0.0
    high: float = 1.0
    step: float = 0.01

    def accept(self, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not self.low <= value <= self.high:
            raise self.refuse(value, f"give a number from {self.low:g} to {self.high:g}")
        return float(value)

    def build(self, value: object) -> ValueWidget:
        from ipywidgets import FloatSlider

        span = {"min": self.low, "max": self.high, "step": self.step}
        return FloatSlider(value, **span, description=self.label, style=UNCUT, layout={"width": "360px"})


@dataclass(frozen=True)
class Count(Control):
    """A whole number between two others."""

    low: int = 0
    high: int = 1

    def accept(self, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not self.low <= value <= self.high:
            raise self.refuse(value, f"give a whole number from {self.low} to {self.high}")
        return value

    def build(self, value: object) -> ValueWidget:
        from ipywidgets import IntSlider

        span = {"min": self.low, "max": self.high}
        return IntSlider(value, **span, description=self.label, style=UNCUT, layout={"width": "300px"})


@dataclass(frozen=True)
class Steps(Control):
    """A walk from step 0 to the last one of the picture, by slider or by the buttons beside it."""

    def accept(self, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self.refuse(value, "count steps from 0")
        return value

    def build(self, value: object) -> ValueWidget:
        from ipywidgets import IntSlider

        layout = {"width": "360px"}
        return IntSlider(value, min=0, max=max(value, 1), description=self.label, style=UNCUT, layout=layout)

    def dress(self, widget: ValueWidget) -> DOMWidget:
        from ipywidgets import Button, HBox

        what = self.label.lower()
        back = Button(description="Back", tooltip=f"Previous {what}", layout={"width": "auto"})
        on = Button(description=f"Next {what}", tooltip=f"Next {what}", layout={"width": "auto"})
        back.on_click(lambda _: self.move(widget, -1))
        on.on_click(lambda _: self.move(widget, 1))
        return HBox([back, on, widget], layout=ROW)

    def place(self, widget: ValueWidget, value: object) -> None:
        """Also where the picture so far has fewer steps."""
        widget.max = max(widget.max, value)
        widget.value = value

    def move(self, widget: ValueWidget, by: int) -> None:
        widget.value = min(max(widget.value + by, widget.min), widget.max)

    def follow(self, widget: ValueWidget, steps: int) -> None:
        """Fit the slider to the picture. A slider needs two places to stand, so with fewer steps it is switched off."""
        widget.max, widget.disabled = max(steps - 1, 1), steps < 2
