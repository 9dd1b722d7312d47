"""The one helper that every widget of the course stands on.

A widget is a class with three things: the controls it has, presets that the prose can name, and `picture`, which turns
the controls' values into a picture. It is listed in `gradwright.widgets` under a lower-case name, and that name is used
in two ways, with the same arguments:

    stride_explorer(preset="transpose")              in a notebook, as the last line of a cell: shows the widget
    stride_explorer.static(preset="transpose")       without a kernel: the picture that stands beside it

The arguments are the preset's name and the controls' names (`stride_explorer(base="3, 4", view="x[::-1]", element=5)`).
What a call leaves out comes from the preset, and without a preset from the first one. `graph_viewer(loss)` takes a
tensor first. `static` returns a `Picture`:

    .png() -> bytes     the same bytes for the same arguments
    .alt -> str         what the picture shows, in words

A picture may have a `code`, which then stands below it in a field for copying, and a `call`, its contents in one line,
for a `Collection` among the controls to keep. Controls named by `hidden` are not on the screen.

An argument that cannot be is a BadInput; `static` raises it, while the widget says it in one sentence under its
controls and keeps the last picture that could be drawn. The controls take the keyboard: Tab goes from one to the next,
the arrow keys move a list or a slider, Enter takes a text, Space presses a button.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, ClassVar

from autograder.errors import BadInput

from .controls import ROW, UNCUT, Control, Steps
from .pictures import Picture

if TYPE_CHECKING:
    from ipywidgets import DOMWidget

__all__ = ["Frame", "Panel"]

OWN = "your own"
# Long enough for the messages of a held key that have piled up behind a redraw, too short to be seen.
PAUSE = 0.01


class Frame:
    """The base of every widget: what it declares, and its static picture.

    A subclass sets `title`, `caption` (what to do, and what is then seen), `controls` and `presets`, and writes
    `picture(**values)`, which gets the value of every control by name. It raises BadInput for what cannot be drawn.
    """

    title: ClassVar[str]
    caption: ClassVar[str]
    controls: ClassVar[tuple[Control, ...]]
    presets: ClassVar[Mapping[str, Mapping[str, object]]]

    def __init__(self, preset: str | None = None, **values: object) -> None:
        self.values = self.complete(preset) | self.accepted(values)

    def picture(self, **values: object) -> Picture:
        raise NotImplementedError

    def hidden(self, **values: object) -> Collection[str]:
        """The controls that mean nothing beside these values, and are not shown."""
        return ()

    @classmethod
    def static(cls, *arguments: object, **named: object) -> Picture:
        """The picture for the arguments of the widget, without a kernel or a control: `.png()` and `.alt`."""
        frame = cls(*arguments, **named)
        return frame.picture(**frame.values)

    @classmethod
    def complete(cls, preset: str | None = None) -> dict[str, object]:
        """The value of every control under a preset; the first preset where none is named."""
        name = next(iter(cls.presets)) if preset is None else preset
        if name not in cls.presets:
            raise BadInput(f"{cls.title} has no preset {name!r}: choose one of {', '.join(cls.presets)}.")
        return {control.name: control.default for control in cls.controls} | dict(cls.presets[name])

    @classmethod
    def accepted(cls, values: Mapping[str, object]) -> dict[str, object]:
        named = {control.name: control for control in cls.controls}
        for name in values:
            if name not in named:
                raise BadInput(f"{cls.title} has no control {name!r}: it has {', '.join(named)}.")
        return {name: named[name].accept(value) for name, value in values.items()}

    @cached_property
    def panel(self) -> Panel:
        return Panel(self)

    def _repr_mimebundle_(self, **options: object) -> dict[str, object]:
        bundle = self.panel.box._repr_mimebundle_(**options)
        return bundle | {"text/plain": self.panel.alt}


class Panel:
    """The live half: the ipywidgets of one widget on the screen.

    `controls` are the ipywidgets by name, `choice` is the list of presets, `sentence` what is said about an input that
    cannot be drawn, `drawn` how many times the picture was drawn, `code` the field with the code that makes what is
    shown, for pictures that have one. Several changes in quick succession are one redraw.
    """

    def __init__(self, frame: Frame) -> None:
        self.frame, self.sentence, self.alt, self.drawn = frame, "", "", 0
        self._waiting: asyncio.TimerHandle | None = None
        self._loading = False
        self.controls = {control.name: control.build(frame.values[control.name]) for control in frame.controls}
        self.box = self._lay_out()
        for widget in self.controls.values():
            widget.observe(self._edited, "value")
        self.choice.observe(self._chosen, "value")
        self.redraw()

    @property
    def values(self) -> dict[str, object]:
        """By name. The page returns a slider's 0.07 as 0.07000000000000001, which would be nobody's preset."""
        values = {name: widget.value for name, widget in self.controls.items()}
        return {name: round(value, 9) if isinstance(value, float) else value for name, value in values.items()}

    def _lay_out(self) -> DOMWidget:
        from ipywidgets import HTML, Dropdown, HBox, Textarea, VBox

        options = [*self.frame.presets, OWN]
        choice = {"options": options, "value": self._preset(), "description": "Preset"}
        self.choice = Dropdown(**choice, style=UNCUT, layout={"width": "auto"})
        self.note, self.view = HTML(), HTML(layout={"width": "100%"})
        self.code = Textarea(description="Code", style=UNCUT, layout={"width": "100%", "max_width": "760px"})
        caption = HTML(
            f"<p style='line-height:1.45'><strong>{escape(self.frame.title)}.</strong> {escape(self.frame.caption)}</p>"
        )
        dressed = [(control, control.dress(self.controls[control.name])) for control in self.frame.controls]
        self.dressed = {control.name: widget for control, widget in dressed}
        inputs = [widget for control, widget in dressed if not isinstance(control, Steps)]
        walks = [widget for control, widget in dressed if isinstance(control, Steps)]
        row = HBox([self.choice, *inputs], layout=ROW)
        return VBox([caption, row, *walks, self.note, self.view, self.code])

    def _preset(self) -> str:
        """The preset that the controls stand at; a walk's step belongs to none."""
        values = self.values
        for name, preset in self.frame.presets.items():
            if all(values[key] == value for key, value in preset.items()):
                return name
        return OWN

    @contextmanager
    def _quietly(self) -> Iterator[None]:
        """Set controls without taking it for something the reader did."""
        self._loading = True
        try:
            yield
        finally:
            self._loading = False

    def _chosen(self, change: Mapping[str, object]) -> None:
        if self._loading or change["new"] == OWN:
            return
        with self._quietly():
            values = self.frame.complete(str(change["new"]))
            for control in self.frame.controls:
                control.place(self.controls[control.name], values[control.name])
        self._ask()

    def _edited(self, _: object) -> None:
        if self._loading:
            return
        with self._quietly():
            self.choice.value = self._preset()
        self._ask()

    def _ask(self) -> None:
        """Draw soon, once for all changes until then; at once where no loop runs that could call back."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self.redraw()
            return
        if self._waiting is None:
            self._waiting = loop.call_later(PAUSE, self.redraw)

    def redraw(self) -> None:
        self._waiting = None
        self._hide(self.frame.hidden(**self.values))
        try:
            picture = self.frame.picture(**self.values)
        except BadInput as error:
            self._say(str(error))
            return
        self._say("")
        self._show(picture)

    def _show(self, picture: Picture) -> None:
        self.alt, self.drawn, self.view.value = picture.alt, self.drawn + 1, picture.html()
        code = getattr(picture, "code", "")
        self.code.value, self.code.rows = code, code.count("\n") + 1
        self.code.layout.display = None if code else "none"
        with self._quietly():
            for control in self.frame.controls:
                control.follow(self.controls[control.name], picture)

    def _hide(self, names: Collection[str]) -> None:
        for name, widget in self.dressed.items():
            display = "none" if name in names else None
            if widget.layout.display != display:
                widget.layout.display = display

    def _say(self, sentence: str) -> None:
        self.sentence = sentence
        kept = " The picture is still the one before." if sentence and self.drawn else ""
        look = "line-height:1.45;color:var(--jp-error-color1,#B8450A)"
        self.note.value = f'<p role="status" style="{look}">{escape(sentence + kept)}</p>' if sentence else ""
