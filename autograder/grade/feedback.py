"""A graded notebook to the page that goes back to its learner, through nbgrader's own template."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache, lru_cache
from html import escape
from pathlib import Path
from typing import Any

from jinja2 import pass_context
from nbconvert.exporters import HTMLExporter
from nbconvert.filters import Highlight2HTML
from nbconvert.filters.markdown_mistune import InvalidNotebook, IPythonRenderer, MarkdownWithMath
from nbgrader.converters import GenerateFeedback
from traitlets.config import Config

from autograder.grade.classroom import Classroom
from autograder.grade.intake import notes_in
from autograder.grade.outputs import safe_html
from autograder.writing import write


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
    """The page of a graded notebook, with the scores and comments that the gradebook has now."""
    notebook = room.autograded / page.place / f"{page.name}.ipynb"
    names = {"student": page.student, "assignment": page.chapter, "notebook": page.name, "db_url": room.database}
    html, _ = exporter().from_filename(str(notebook), {"nbgrader": names})
    return html


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
    renderer = Renderer(escape=False, attachments=json.loads(attachments))
    return safe_html(MarkdownWithMath(renderer=renderer).render(text))


class Renderer(IPythonRenderer):
    """nbconvert's gives up the whole page where a picture was not handed in."""

    def _embed_image_or_attachment(self, src: str) -> str:
        try:
            return super()._embed_image_or_attachment(src)
        except InvalidNotebook:
            return ""


def short_page(page: Page) -> str:
    """The page for a submission that could not be graded."""
    title = escape(f"{page.chapter}: not graded")
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>\n'
        f'<body style="font-family:sans-serif;max-width:40em;margin:3em auto;line-height:1.5">\n'
        f"<h1>{title}</h1>\n<p>There is no score yet, and this is not a zero.</p>\n"
        f"<p>{escape(page.trouble)}</p>\n</body></html>\n"
    )
