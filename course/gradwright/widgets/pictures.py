"""What a widget shows: a picture with its alternative text, as HTML for the notebook and as PNG for everywhere else.

`Drawing` is made of boxes, words, lines and jumps; the notebook shows it as SVG in the colours of its theme, and the
PNG is painted from the same shapes. `Plot` is a Matplotlib figure, for curves, histograms and heat maps.

The PNG is the same to the byte for the same picture: fixed resolution, one style, no date and no software named in it.
"""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patheffects import AbstractPathEffect

__all__ = ["STYLE", "Drawing", "Look", "Picture", "Plot", "new_figure", "styled"]

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
    "blue": Ink("#2A86C0", "#0072B2"),
    "orange": Ink("#D55E00", "#D55E00"),
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
    halo: bool = False

    def svg(self) -> str:
        weight = "600" if self.bold else "400"
        style = f"fill:{self.ink.css};font-size:{self.size:g}px;font-weight:{weight};text-anchor:{self.anchor}"
        if self.halo:
            style += ";paint-order:stroke;stroke:var(--jp-layout-color0,#FFFFFF);stroke-width:4px"
        return f'<text x="{self.x:g}" y="{self.y:g}" style="{style}">{escape(self.words)}</text>'

    def paint(self, axes: Axes) -> None:
        align = {"start": "left", "middle": "center", "end": "right"}[self.anchor]
        weight = "bold" if self.bold else "normal"
        look = {"color": self.ink.paper, "fontsize": 0.75 * self.size, "fontweight": weight, "parse_math": False}
        axes.text(self.x, self.y, self.words, ha=align, va="baseline", **look, path_effects=self.effects())

    def effects(self) -> list[AbstractPathEffect]:
        from matplotlib.patheffects import withStroke

        return [withStroke(linewidth=3, foreground="white")] if self.halo else []


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


@dataclass(frozen=True)
class Line:
    """A line through points: straight from one to the next, or leaving and reaching each of them from above."""

    points: tuple[tuple[float, float], ...]
    ink: Ink
    width: float
    dashed: bool
    smooth: bool
    head: bool

    def corners(self) -> Iterator[tuple[tuple[float, float], ...]]:
        """For each point after the first, where the pen goes: over two control points if the line is smooth."""
        for (x0, y0), (x1, y1) in pairwise(self.points):
            middle = (y0 + y1) / 2
            yield ((x0, middle), (x1, middle), (x1, y1)) if self.smooth else ((x1, y1),)

    def tip(self) -> list[tuple[float, float]]:
        """The three corners of an arrow head."""
        (x0, y0), (x, y) = self.points[-2:]
        turn = math.pi / 2 if self.smooth else math.atan2(y - y0, x - x0)
        return [(x, y), *((x - 8 * math.cos(turn + side), y - 8 * math.sin(turn + side)) for side in (0.42, -0.42))]

    def svg(self) -> str:
        way = "".join(
            ("C" if self.smooth else "L") + " ".join(f"{x:.1f} {y:.1f}" for x, y in corner) for corner in self.corners()
        )
        look = f'stroke-width="{self.width:g}"' + (' stroke-dasharray="4 4"' if self.dashed else "")
        start = "{:.1f} {:.1f}".format(*self.points[0])
        line = f'<path d="M{start}{way}" fill="none" style="stroke:{self.ink.css}" {look}/>'
        tip = " ".join(f"{x:.1f},{y:.1f}" for x, y in self.tip()) if self.head else ""
        return f'{line}<polygon points="{tip}" style="fill:{self.ink.css}"/>' if tip else line

    def paint(self, axes: Axes) -> None:
        from matplotlib.patches import PathPatch, Polygon
        from matplotlib.path import Path as Curve

        pen, points = [Curve.MOVETO], [self.points[0]]
        for corner in self.corners():
            points += corner
            pen += [Curve.CURVE4] * 3 if self.smooth else [Curve.LINETO]
        look = {"linewidth": 0.75 * self.width, "linestyle": (0, (4, 3)) if self.dashed else "solid"}
        axes.add_patch(PathPatch(Curve(points, pen), facecolor="none", edgecolor=self.ink.paper, **look))
        if self.head:
            axes.add_patch(Polygon(self.tip(), facecolor=self.ink.paper, linewidth=0))


class Drawing:
    """Shapes on a sheet of `width` pixels, as high as what is drawn on it; y grows downwards."""

    def __init__(self, width: float = 760) -> None:
        self.width, self.height, self.alt, self.steps = width, 0.0, "", 0
        self.shapes: list[Box | Words | Line | Jump] = []

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        words: object = "",
        look: str | Look = "empty",
        size: float = 13,
    ) -> Box:
        """`look` is a name of LOOKS, or a Look where the fill stands for a number."""
        box = Box(x, y, width, height, str(words), look if isinstance(look, Look) else LOOKS[look], size)
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
        halo: bool = False,
    ) -> None:
        """`y` is the line the letters stand on. A halo keeps words readable upon lines."""
        self.shapes.append(Words(x, y, words, INKS[ink], size, anchor, bold, halo))
        self.height = max(self.height, y + 8)

    def line(
        self,
        points: Sequence[tuple[float, float]],
        ink: str = "line",
        width: float = 1.5,
        dashed: bool = False,
        smooth: bool = False,
        head: bool = False,
    ) -> None:
        self.shapes.append(Line(tuple(points), INKS[ink], width, dashed, smooth, head))

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
