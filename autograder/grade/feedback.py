"""A graded notebook to the page that goes back to its learner, through nbgrader's own template."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from jinja2 import pass_context
from nbconvert.exporters import HTMLExporter
from nbconvert.filters.markdown_mistune import InvalidNotebook, IPythonRenderer, MarkdownWithMath
from nbgrader.converters import GenerateFeedback
from traitlets.config import Config

from autograder.grade.classroom import Classroom
from autograder.grade.intake import STAMP, stamp_in
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
        if stamp := stamp_in(room.submitted / page.place):
            write(folder / STAMP, stamp)  # by which `nbgrader release_feedback` knows the version
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
    made = HTMLExporter(config=converter.config)
    for step in converter.preprocessors:
        made.register_preprocessor(step, enabled=True)
    return made


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
    attachments = context.get("cell", {}).get("attachments", {})
    return safe_html(MarkdownWithMath(renderer=Renderer(escape=False, attachments=attachments)).render(text))


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
