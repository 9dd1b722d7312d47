"""The text of a chapter to cells.

jupytext reads the text, and so does the light splitter that assembles the framework from it. Both have to see the same
cells: what a learner reads is then what runs.
"""

from __future__ import annotations

import io
import re
import tokenize
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.checks.exercise import Exercise, exercises_of, record_files
from autograder.errors import SourceError

if TYPE_CHECKING:
    from nbformat import NotebookNode

    from gradwright._loader import Cell

MARKS = ("exercise", "check", "given", "figure", "widget")
FILE_NAME = re.compile(r"(\d\d)_([a-z]+)\.py")
CELL_MARK = "# %%"
LIKE_A_MARK = re.compile(r"\s*#\s*%%")
"""What jupytext may take for a cell mark."""


@dataclass(frozen=True)
class SourceCell:
    """A cell as the author wrote it."""

    role: str
    """prose, demo (code without a mark), or the mark: exercise, check, given, figure, widget."""
    name: str
    """The mark's value; empty for prose and demo."""
    text: str
    line: int
    """Where in the file the text begins."""


@dataclass(frozen=True)
class Chapter:
    """A chapter's source: its cells and the records of its exercises."""

    path: Path
    number: int
    name: str
    cells: tuple[SourceCell, ...]
    records: tuple[Exercise, ...]

    def record(self, exercise_id: str) -> Exercise:
        """The record with this id. The rules have made sure that there is one."""
        return next(record for record in self.records if record.id == exercise_id)


def read_chapter(path: Path, records: Sequence[Exercise] | None = None) -> Chapter:
    """Read and validate a chapter's source.

    records: the chapter's exercises in order; by default those in autograder/checks/exercises/.
    Raises SourceError at the first rule that is broken.
    """
    from autograder.build.rules import validate

    named = FILE_NAME.fullmatch(path.name)
    if not named:
        raise SourceError(path, 1, f"a chapter is called NN_name.py, as in 01_tensor.py: rename {path.name!r}")
    number, name = int(named[1]), named[2]
    if records is None:
        records = exercises_of(number) if number in record_files() else ()
    numbered = tuple(replace(record, chapter=number, position=i) for i, record in enumerate(records, 1))
    chapter = Chapter(path, number, name, read_cells(path), numbered)
    validate(chapter)
    return chapter


def read_cells(path: Path) -> tuple[SourceCell, ...]:
    """The cells of a source in the order of the file."""
    from gradwright._loader import read_source

    text = read_text(path)
    refuse_broken_python(path, text)
    refuse_marks_in_strings(path, text)
    first = next((n for n, line in enumerate(text.splitlines(), 1) if line.strip()), 1)
    if not text.lstrip("\n").startswith(CELL_MARK):
        raise SourceError(path, first, "a source begins with a cell mark: put `# %% [markdown]` or `# %%` in front")
    light = read_source(path)
    cells = tuple(with_role(path, cell) for cell in light)
    compare_with_jupytext(path, text, cells)
    return cells


def read_text(path: Path) -> str:
    if not path.is_file():
        raise SourceError(path, 1, "there is no such source: chapters are solutions/NN_name.py")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        raise SourceError(path, line, "the file is not UTF-8: save it in that encoding") from error


def refuse_broken_python(path: Path, text: str, first_line: int = 1) -> None:
    """Compile without running. Doubtful syntax, such as an unknown escape in a string, counts as broken."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", SyntaxWarning)
        try:
            compile(text, str(path), "exec", dont_inherit=True)
        except SyntaxError as error:
            line = first_line + (error.lineno or 1) - 1
            raise SourceError(path, line, f"this is not valid Python ({error.msg}): correct the line") from error


def refuse_marks_in_strings(path: Path, text: str) -> None:
    """A line of a string that looks like a cell mark would cut the string in two."""
    lines = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        for number in range(token.start[0] + 1, token.end[0] + 1):
            if number <= len(lines) and LIKE_A_MARK.match(lines[number - 1]):
                message = f"a string holds a line that begins like a cell mark, `{CELL_MARK}`: join it from two pieces"
                raise SourceError(path, number, message)


def with_role(path: Path, cell: Cell) -> SourceCell:
    """Name a cell's role by its mark. (The loader has refused marks that do not exist.)"""
    mark_line = cell.line - 1
    if cell.kind == "raw":
        raise SourceError(path, mark_line, "a raw cell has no place in a chapter: make it [markdown] or code")
    if cell.marks and cell.kind == "markdown":
        raise SourceError(path, mark_line, f"a Markdown cell takes no mark: remove {', '.join(cell.marks)}")
    if len(cell.marks) > 1:
        raise SourceError(path, mark_line, f"the cell is marked {' and '.join(cell.marks)}: keep one mark")
    if cell.kind == "markdown":
        return SourceCell("prose", "", cell.text, cell.line)
    role, name = next(iter(cell.marks.items()), ("demo", ""))
    return SourceCell(role, name, cell.text, cell.line)


def compare_with_jupytext(path: Path, text: str, cells: Sequence[SourceCell]) -> None:
    """Both readers must see the same cells. They part at magics, indented marks and marks with titles."""
    import jupytext

    theirs = [as_jupytext_reads(cell) for cell in jupytext.reads(text, fmt="py:percent").cells]
    ours = [(marks_of(cell), cell.text.strip("\n")) for cell in cells]
    for cell, our, their in zip_longest(cells, ours, theirs):
        if our != their:
            line = cell.line - 1 if cell else len(text.splitlines())
            what = "marks" if our and their and our[1] == their[1] else "text"
            message = f"jupytext reads other {what} here than the loader: keep to plain marks, Python without magics"
            raise SourceError(path, line, message)


def marks_of(cell: SourceCell) -> dict[str, str]:
    if cell.role == "prose":
        return {"cell_type": "markdown"}
    return {cell.role: cell.name} if cell.role in MARKS else {}


def as_jupytext_reads(cell: NotebookNode) -> tuple[dict[str, str], str]:
    marks = {key: value for key, value in cell.metadata.items() if key != "lines_to_next_cell"}
    if cell.cell_type != "code":
        marks["cell_type"] = cell.cell_type
    return marks, cell.source.strip("\n")
