"""The controls a widget can have: each says its name, its label and its first value, and builds its ipywidget."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from autograder.errors import BadInput

from .pictures import Picture

if TYPE_CHECKING:
    from ipywidgets import DOMWidget, ValueWidget

__all__ = ["Choice", "Collection", "Control", "Count", "LogSlider", "Run", "Slider", "Steps", "Text"]

# A label is never cut short, and a row of controls breaks where the window is narrow.
UNCUT = {"description_width": "initial"}
ROW = {"flex_flow": "row wrap", "grid_gap": "2px 14px"}
# Seconds between two steps of a walk that goes on by itself: long enough to see each.
TICK = 0.25


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

    def follow(self, widget: ValueWidget, picture: Picture) -> None:
        """Fit the control to what is shown now."""

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
class Collection(Text):
    """A line of text with semicolons, to which a button adds what the picture shows now: its `call`."""

    def dress(self, widget: ValueWidget) -> DOMWidget:
        from ipywidgets import Button, HBox

        keep = Button(description="Keep", tooltip="Keep what is shown now", layout={"width": "auto"})
        clear = Button(description="Clear", tooltip="Forget all that was kept", layout={"width": "auto"})
        keep.on_click(lambda _: self.keep(widget))
        clear.on_click(lambda _: self.place(widget, ""))
        return HBox([keep, clear, widget], layout=ROW)

    def follow(self, widget: ValueWidget, picture: Picture) -> None:
        widget.shown = getattr(picture, "call", "")

    def keep(self, widget: ValueWidget) -> None:
        kept = [part.strip() for part in widget.value.split(";") if part.strip()]
        if widget.shown and widget.shown not in kept:
            widget.value = "; ".join([*kept, widget.shown])


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

        layout = {"width": "auto"}
        return Dropdown(options=self.options, value=value, description=self.label, style=UNCUT, layout=layout)


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
class LogSlider(Slider):
    """A number between two others, where every tenfold is as long as the next: 1, 1.5, 2, 3, 5, 7, 10, ..."""

    def build(self, value: object) -> ValueWidget:
        from ipywidgets import SelectionSlider

        layout = {"width": "360px"}
        return SelectionSlider(
            options=self.options_with(value), value=value, description=self.label, style=UNCUT, layout=layout
        )

    def options_with(self, value: object) -> list[tuple[str, float]]:
        """The places of the slider, and this number among them."""
        tens = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        places = {float(f"{digits}e{ten}") for ten in tens for digits in (1, 1.5, 2, 3, 5, 7)}
        within = {place for place in places if self.low <= place <= self.high}
        return [(f"{place:g}", place) for place in sorted(within | {value})]

    def place(self, widget: ValueWidget, value: object) -> None:
        if value not in [place for _, place in widget.options]:
            widget.options = self.options_with(value)
        widget.value = value


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

    def follow(self, widget: ValueWidget, picture: Picture) -> None:
        """Fit the slider to the picture. A slider needs two places to stand, so with fewer steps it is switched off."""
        widget.max, widget.disabled = max(picture.steps - 1, 1), picture.steps < 2


@dataclass(frozen=True)
class Run(Steps):
    """A walk that also goes on by itself until it is paused or at its end, and begins anew on request."""

    def dress(self, widget: ValueWidget) -> DOMWidget:
        from ipywidgets import Button, HBox

        player = Player(widget)
        reset = Button(description="Reset", tooltip=f"{self.label} 0", layout={"width": "auto"})
        reset.on_click(lambda _: player.begin_anew())
        return HBox([player.button, reset, super().dress(widget)], layout=ROW)


class Player:
    """Moves a slider on while its button is down; the page stays free between two steps."""

    def __init__(self, widget: ValueWidget) -> None:
        from ipywidgets import ToggleButton

        self.widget = widget
        self.button = ToggleButton(description="Play", layout={"width": "84px"})
        self.button.observe(self._pressed, "value")
        self._next: asyncio.TimerHandle | None = None

    def begin_anew(self) -> None:
        self.button.value, self.widget.value = False, self.widget.min

    def _pressed(self, change: Mapping[str, object]) -> None:
        self.button.description = "Pause" if change["new"] else "Play"
        if self._next is not None:
            self._next.cancel()
        if not change["new"]:
            return
        if self.widget.value == self.widget.max:
            self.widget.value = self.widget.min
        self._wait()

    def _wait(self) -> None:
        self._next = asyncio.get_running_loop().call_later(TICK, self._go_on)

    def _go_on(self) -> None:
        self.widget.value = min(self.widget.value + 1, self.widget.max)
        if self.widget.value == self.widget.max:
            self.button.value = False
        else:
            self._wait()
