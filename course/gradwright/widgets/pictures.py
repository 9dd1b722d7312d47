"""What a widget shows: a picture with its alternative text, as HTML for the notebook and as PNG for everywhere else.

`Drawing` is made of boxes, words and jumps; the notebook shows it as SVG in the colours of its theme, and the PNG is
painted from the same shapes. `Plot` is a Matplotlib figure, for curves, histograms and heat maps.

The PNG is the same to the byte for the same picture: fixed resolution, one style, no date and no software named in it.
"""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["STYLE", "Drawing", "Picture", "Plot", "new_figure", "styled"]

STYLE = Path(__file__).with_name("style.mplstyle")
FONT = "font-family:var(--jp-ui-font-family,'DejaVu Sans',sans-serif)"


class Picture(Protocol):
    """What `Frame.picture` returns. `steps` is how many steps a stepper may go through, 0 where there is none."""

    alt: str
    steps: int

    def html(self) -> str: ...

    def png(self) -> bytes: ...


@contextmanager
def styled() -> Iterator[None]:
    """The course's style upon Matplotlib's defaults, so that a reader's own settings do not reach a widget.

    Whatever takes its look when it is made (axes, lines, text) is made under it.
    """
    from matplotlib import style

    with style.context(["default", STYLE]):
        yield


def new_figure(width: float = 7.2, height: float = 3.6) -> Figure:
    """An Agg figure of so many inches that pyplot knows nothing of: nothing to close, nothing shown twice."""
    with styled():
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=(width, height))
        FigureCanvasAgg(figure)
        return figure


def png_of(figure: Figure) -> bytes:
    stream = io.BytesIO()
    with styled():
        figure.savefig(stream, format="png", dpi=144, metadata={"Software": None})
    return stream.getvalue()


class Plot:
    """A figure and its alternative text. A widget that keeps its figure and changes the data in it redraws faster."""

    def __init__(self, figure: Figure, alt: str, steps: int = 0) -> None:
        self.figure, self.alt, self.steps = figure, alt, steps

    def png(self) -> bytes:
        return png_of(self.figure)

    def html(self) -> str:
        source = base64.b64encode(self.png()).decode("ascii")
        width = round(96 * self.figure.get_figwidth())
        style = f"width:100%;max-width:{width}px;height:auto;background:white"
        return f'<img alt="{escape(self.alt)}" style="{style}" src="data:image/png;base64,{source}">'


class Ink(NamedTuple):
    """One colour twice: a CSS value that follows the notebook's theme, and what is painted on white paper."""

    css: str
    paper: str


INKS = {
    "strong": Ink("var(--jp-ui-font-color0,#111111)", "#111111"),
    "soft": Ink("var(--jp-ui-font-color1,#555555)", "#555555"),
    "line": Ink("var(--jp-ui-font-color2,#777777)", "#8a8a8a"),
    "warn": Ink("var(--jp-error-color1,#B8450A)", "#B8450A"),
    "black": Ink("#111111", "#111111"),
    "seam": Ink("#6F7C85", "#6F7C85"),
    "none": Ink("none", "none"),
}


class Look(NamedTuple):
    """How a box looks. Fills are the same in every theme, and the words upon them black."""

    fill: str
    edge: str
    ink: str
    width: float


LOOKS = {
    "empty": Look("none", "line", "soft", 1.0),
    "touched": Look("#CDE8F7", "seam", "black", 1.0),
    "done": Look("#56B4E9", "seam", "black", 1.0),
    "current": Look("#E69F00", "strong", "black", 2.5),
    "wrong": Look("#F2B48C", "warn", "black", 2.5),
    "label": Look("none", "none", "strong", 0.0),
}


@dataclass(frozen=True)
class Box:
    x: float
    y: float
    width: float
    height: float
    words: str
    look: Look
    size: float

    @property
    def middle(self) -> tuple[float, float]:
        return self.x + self.width / 2, self.y + self.height / 2

    def svg(self) -> str:
        edge = f'style="stroke:{INKS[self.look.edge].css}" stroke-width="{self.look.width}"'
        shape = f'<rect x="{self.x:g}" y="{self.y:g}" width="{self.width:g}" height="{self.height:g}"'
        return f'{shape} fill="{self.look.fill}" {edge}/>{self.inside().svg() if self.words else ""}'

    def inside(self) -> Words:
        x, y = self.middle
        return Words(x, y + 0.36 * self.size, self.words, INKS[self.look.ink], self.size, "middle", False)

    def paint(self, axes: Axes) -> None:
        from matplotlib.patches import Rectangle

        edge = INKS[self.look.edge].paper
        place = ((self.x, self.y), self.width, self.height)
        axes.add_patch(Rectangle(*place, facecolor=self.look.fill, edgecolor=edge, linewidth=0.75 * self.look.width))
        if self.words:
            self.inside().paint(axes)


@dataclass(frozen=True)
class Words:
    x: float
    y: float
    words: str
    ink: Ink
    size: float
    anchor: str
    bold: bool

    def svg(self) -> str:
        weight = "600" if self.bold else "400"
        style = f"fill:{self.ink.css};font-size:{self.size:g}px;font-weight:{weight};text-anchor:{self.anchor}"
        return f'<text x="{self.x:g}" y="{self.y:g}" style="{style}">{escape(self.words)}</text>'

    def paint(self, axes: Axes) -> None:
        align = {"start": "left", "middle": "center", "end": "right"}[self.anchor]
        weight = "bold" if self.bold else "normal"
        look = {"color": self.ink.paper, "fontsize": 0.75 * self.size, "fontweight": weight, "parse_math": False}
        axes.text(self.x, self.y, self.words, ha=align, va="baseline", **look)


@dataclass(frozen=True)
class Jump:
    """An arched arrow from one point to another."""

    start: tuple[float, float]
    end: tuple[float, float]
    rise: float
    ink: Ink

    @property
    def top(self) -> tuple[float, float]:
        (x0, y0), (x1, y1) = self.start, self.end
        return (x0 + x1) / 2, min(y0, y1) - self.rise

    def head(self) -> list[tuple[float, float]]:
        (x, y), (fx, fy) = self.end, self.top
        turn = math.atan2(y - fy, x - fx)
        back = [(x - 9 * math.cos(turn + side), y - 9 * math.sin(turn + side)) for side in (0.4, -0.4)]
        return [self.end, *back]

    def svg(self) -> str:
        curve = "M{:g} {:g} Q{:g} {:g} {:g} {:g}".format(*self.start, *self.top, *self.end)
        head = " ".join(f"{x:.1f},{y:.1f}" for x, y in self.head())
        line = f'<path d="{curve}" fill="none" style="stroke:{self.ink.css}" stroke-width="2"/>'
        return f'{line}<polygon points="{head}" style="fill:{self.ink.css}"/>'

    def paint(self, axes: Axes) -> None:
        from matplotlib.patches import PathPatch, Polygon
        from matplotlib.path import Path as Curve

        curve = Curve([self.start, self.top, self.end], [Curve.MOVETO, Curve.CURVE3, Curve.CURVE3])
        axes.add_patch(PathPatch(curve, facecolor="none", edgecolor=self.ink.paper, linewidth=1.5))
        axes.add_patch(Polygon(self.head(), facecolor=self.ink.paper, linewidth=0))


class Drawing:
    """Shapes on a sheet of `width` pixels, as high as what is drawn on it; y grows downwards."""

    def __init__(self, width: float = 760) -> None:
        self.width, self.height, self.alt, self.steps = width, 0.0, "", 0
        self.shapes: list[Box | Words | Jump] = []

    def box(
        self, x: float, y: float, width: float, height: float, words: object = "", look: str = "empty", size: float = 13
    ) -> Box:
        box = Box(x, y, width, height, str(words), LOOKS[look], size)
        self.shapes.append(box)
        self.height = max(self.height, y + height + 6)
        return box

    def words(
        self,
        x: float,
        y: float,
        words: str,
        ink: str = "strong",
        size: float = 13,
        anchor: str = "start",
        bold: bool = False,
    ) -> None:
        """`y` is the line the letters stand on."""
        self.shapes.append(Words(x, y, words, INKS[ink], size, anchor, bold))
        self.height = max(self.height, y + 8)

    def jump(self, start: tuple[float, float], end: tuple[float, float], rise: float, ink: str = "strong") -> Jump:
        jump = Jump(start, end, rise, INKS[ink])
        self.shapes.append(jump)
        return jump

    def html(self) -> str:
        size = f'viewBox="0 0 {self.width:g} {self.height:g}" style="width:100%;max-width:{self.width:g}px;{FONT}"'
        shapes = "".join(shape.svg() for shape in self.shapes)
        return f'<svg role="img" aria-label="{escape(self.alt)}" {size}>{shapes}</svg>'

    def png(self) -> bytes:
        margin = 12
        figure = new_figure((self.width + 2 * margin) / 96, (self.height + 2 * margin) / 96)
        with styled():
            figure.set_layout_engine("none")
            axes = figure.add_axes((0, 0, 1, 1))
            axes.set(xlim=(-margin, self.width + margin), ylim=(self.height + margin, -margin))
            axes.set_axis_off()
            for shape in self.shapes:
                shape.paint(axes)
        return png_of(figure)
