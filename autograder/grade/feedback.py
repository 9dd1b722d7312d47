"""A graded notebook to the page that goes back to its learner, through nbgrader's own template."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from html import escape
from pathlib import Path
from typing import Any

import nbformat
from jinja2 import pass_context
from nbconvert.exporters import HTMLExporter
from nbconvert.filters import Highlight2HTML
from nbconvert.filters.markdown_mistune import InvalidNotebook, IPythonRenderer, MarkdownWithMath
from nbgrader.converters import GenerateFeedback
from traitlets.config import Config

from autograder.grade.classroom import Classroom, is_check
from autograder.grade.intake import notes_in
from autograder.grade.outputs import MATHJAX_COMMANDS, safe_html
from autograder.writing import write

LONGEST_CELL = 20_000
"""Characters of a cell that is coloured or read as Markdown: both can take time that grows as the square of its length.
The longest of the course has 8,000."""
SECONDS = 60.0
"""Of CPU time for one page; the slowest of the course takes less than one."""


class TooSlow(BaseException):
    """Raised where a page takes too long. No library takes it for an error of its own."""


@dataclass(frozen=True)
class Page:
    """A feedback page to be made."""

    root: Path
    """The class folder."""
    student: str
    chapter: str
    name: str
    """The notebook's name, without `.ipynb`."""
    trouble: str = ""
    """Why there is no graded notebook to show, in place of it."""

    @property
    def place(self) -> Path:
        return Path(self.student) / self.chapter


def write_page(page: Page) -> str:
    """Write one page. Returns a sentence if it could not be made, else nothing."""
    room = Classroom(page.root)
    folder = room.feedback / page.place
    try:
        write(folder / f"{page.name}.html", short_page(page) if page.trouble else graded_page(room, page))
        for note, text in notes_in(room.submitted / page.place).items():
            write(folder / note, text)
    except Exception as error:  # one page never costs the others theirs
        return f"the feedback page could not be made ({type(error).__name__}: {error}): grade again."
    return ""


def graded_page(room: Classroom, page: Page) -> str:
    """The page of a graded notebook, with the scores and comments that the gradebook has now; its checks alone, where
    what the learner wrote takes too long to show."""
    place = room.autograded / page.place / f"{page.name}.ipynb"
    names = {"student": page.student, "assignment": page.chapter, "notebook": page.name, "db_url": room.database}
    try:
        with time_limit(SECONDS):
            return exporter().from_filename(str(place), {"nbgrader": names})[0]
    except TooSlow:
        exporter.cache_clear()
    notebook = nbformat.read(place, nbformat.NO_CONVERT)
    notebook.cells = [cell for cell in notebook.cells if is_check(cell)]
    return exporter().from_notebook_node(notebook, {"nbgrader": names})[0]


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TooSlow inside after so many seconds of CPU time, where the system has an alarm."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def ring(number: int, frame: Any) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@cache
def exporter() -> HTMLExporter:
    """What `nbgrader generate_feedback` uses, with the settings of `safe_pages`.

    One for all pages of a process: reading the templates takes longer than filling them.
    """
    config = Config()
    safe_pages(config)
    converter = GenerateFeedback(config=config)
    made = PageExporter(config=converter.config)
    for step in converter.preprocessors:
        made.register_preprocessor(step, enabled=True)
    return made


class PageExporter(HTMLExporter):
    """nbconvert's, but for its last step: it reads the whole page once more to describe pictures that lack words, which
    takes four times as long as making it. Here the pictures are found by their tags, which `safe_html` has cleaned."""

    def from_notebook_node(self, nb: Any, resources: Any = None, **options: Any) -> tuple[str, Any]:
        self.register_filter("highlight_code", highlighted)
        html, resources = super(HTMLExporter, self).from_notebook_node(nb, resources, **options)
        return PICTURE_WITHOUT_WORDS.sub('<img alt="A picture that the notebook made"', html), resources


PICTURE_WITHOUT_WORDS = re.compile(r"<img(?=\s)(?![^>]*\salt=)")


def highlighted(source: str, language: str | None = None, metadata: Any = None) -> str:
    """Jinja's filter for code. The course's own cells are the same on every page of a chapter."""
    return coloured(source, language or "python")


@lru_cache(maxsize=256)
def coloured(source: str, language: str) -> str:
    if len(source) > LONGEST_CELL:
        return f'<div class="highlight"><pre>{escape(source)}</pre></div>'
    return Highlight2HTML(pygments_lexer="python")(source, language)


def safe_pages(config: Any) -> None:
    """Settings under which no page, here or in the formgrader, runs what a learner wrote: every piece of HTML and of
    Markdown goes through `safe_html`."""
    config.HTMLExporter.sanitize_html = True
    config.HTMLExporter.filters = {
        "clean_html": "autograder.grade.outputs.safe_html",
        "markdown2html": "autograder.grade.feedback.safe_markdown",
    }


@pass_context
def safe_markdown(context: Any, text: str) -> str:
    """Jinja's filter for Markdown cells and comments: nbconvert's own, then `safe_html`."""
    return rendered(text, json.dumps(context.get("cell", {}).get("attachments", {})))


@lru_cache(maxsize=256)
def rendered(text: str, attachments: str) -> str:
    """A text with the attachments of its cell, as JSON. The course's own are the same on every page of a chapter, and
    to clean a picture takes longer than all else."""
    if len(text) > LONGEST_CELL:
        return MATHJAX_COMMANDS.sub(r"\\ ", f"<pre>{escape(text)}</pre>")
    renderer = Renderer(escape=False, attachments=json.loads(attachments))
    return safe_html(MarkdownWithMath(renderer=renderer).render(text))


class Renderer(IPythonRenderer):
    """nbconvert's gives up the whole page where a picture was not handed in, and puts one in as often as it is named:
    a large one, named a thousand times, would fill the memory. Here it is there once."""

    def _embed_image_or_attachment(self, src: str) -> str:
        try:
            found = super()._embed_image_or_attachment(src)
        except InvalidNotebook:
            return ""
        self.attachments.pop(src.removeprefix("attachment:"), None)
        return found


def short_page(page: Page) -> str:
    """The page for a submission that could not be graded."""
    title = escape(f"{page.chapter}: not graded")
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>\n'
        f'<body style="font-family:sans-serif;max-width:40em;margin:3em auto;line-height:1.5">\n'
        f"<h1>{title}</h1>\n<p>There is no score yet, and this is not a zero.</p>\n"
        f"<p>{escape(page.trouble)}</p>\n</body></html>\n"
    )
