"""Pictures that stand in a notebook without a kernel: figures drawn from the source, and the still side of widgets.

The same source gives the same bytes: one style, one font that comes with Matplotlib, fixed resolution, seeded
generators, and neither date nor software named in the file.
"""

from __future__ import annotations

import ast
import io
import random
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType

import numpy as np

from autograder.build.rules import fail, widget_call
from autograder.build.source import Chapter, SourceCell
from autograder.errors import SourceError

DPI = 144
COLOURS = 256


@dataclass(frozen=True)
class Still:
    """A picture and what it shows, in words."""

    png: bytes
    alt: str


def picture(chapter: Chapter, cell: SourceCell) -> Still:
    """The picture of a figure or widget cell. Raises SourceError where it cannot be drawn."""
    return drawn(chapter, cell) if cell.role == "figure" else still_of_widget(chapter, cell)


def drawn(chapter: Chapter, cell: SourceCell) -> Still:
    """Run a figure's code with `np` and `plt` and take the one figure that it leaves."""
    from matplotlib import pyplot as plt

    tree = ast.increment_lineno(ast.parse(cell.text), cell.line - 1)
    alt = ast.get_docstring(tree) or ""
    with quiet_canvas(), pointing_at(chapter, cell):
        run(compile(tree, str(chapter.path), "exec", dont_inherit=True))
        if len(plt.get_fignums()) != 1:
            count = len(plt.get_fignums())
            fail(chapter, cell.line, f"the figure {cell.name!r} leaves {count} figures open: draw exactly one")
        stream = io.BytesIO()
        plt.gcf().savefig(stream, format="png", dpi=DPI, metadata={"Software": None})
    return Still(small(stream.getvalue()), one_line(alt))


def run(code: CodeType) -> None:
    """Execute a figure's code in a namespace of its own, with the same random numbers every time."""
    from matplotlib import pyplot as plt

    random.seed(0)
    np.random.seed(0)
    exec(code, {"__name__": "figure", "np": np, "plt": plt})


@contextmanager
def quiet_canvas() -> Iterator[None]:
    """The course's style on Matplotlib's defaults, no window, no figure left over; a warning is an error."""
    import matplotlib
    from matplotlib import pyplot as plt

    from gradwright.widgets.pictures import STYLE

    before = matplotlib.get_backend(auto_select=False)
    plt.switch_backend("agg")
    try:
        with plt.style.context(["default", STYLE]), warnings.catch_warnings():
            warnings.simplefilter("error")
            yield
    finally:
        plt.close("all")
        if before:
            plt.switch_backend(before)


@contextmanager
def pointing_at(chapter: Chapter, cell: SourceCell) -> Iterator[None]:
    """Turn whatever an author's drawing code raises into an error at its line."""
    try:
        yield
    except SourceError:
        raise
    except Exception as error:
        own = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == str(chapter.path)]
        what = f"{type(error).__name__}: {one_line(str(error))}"
        message = f"the {cell.role} {cell.name!r} cannot be drawn ({what}): correct this line"
        raise SourceError(chapter.path, (own and own[-1]) or cell.line, message) from error


def still_of_widget(chapter: Chapter, cell: SourceCell) -> Still:
    """What a widget shows for the arguments of its cell, before anybody touched it."""
    from gradwright import widgets

    name, arguments, named = widget_call(cell)
    if name not in widgets.__all__:
        known = ", ".join(widgets.__all__)
        fail(chapter, cell.line, f"there is no widget {name!r} in gradwright.widgets: there are {known}")
    with pointing_at(chapter, cell):
        shown = getattr(widgets, name).static(*arguments, **named)
        return Still(small(shown.png()), one_line(shown.alt))


def one_line(text: str) -> str:
    return " ".join(text.split())


def small(png: bytes) -> bytes:
    """The picture with a palette: a third of the size, and to the eye the same."""
    from PIL import Image

    with Image.open(io.BytesIO(png)) as image:
        flat = Image.new("RGB", image.size, "white")
        flat.paste(image, mask=image.getchannel("A") if "A" in image.getbands() else None)
    stream = io.BytesIO()
    flat.quantize(COLOURS, dither=Image.Dither.NONE).save(stream, format="PNG", optimize=True)
    return min(stream.getvalue(), png, key=len)
