"""The gradebook and what was handed in, as one table: grades.csv."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from nbgrader.api import Grade, Gradebook, SubmittedAssignment

from autograder.course import Chapter
from autograder.errors import NotebookError
from autograder.grade.gradebook import find_submission
from autograder.grade.intake import Intake, Submission, read_cells
from autograder.writing import write

COLUMNS = ("student", "chapter", "score", "max_score", "status")
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A text that begins like this is a formula to a spreadsheet."""

GRADED = "graded"
BY_HAND = "needs manual grade"
MISSING = "missing"
UNREADABLE = "unreadable"
ERROR = "error"


@dataclass(frozen=True)
class Row:
    """One line of the table. A score is empty where there is none yet: that is not a zero."""

    student: str
    chapter: str
    score: float | None
    max_score: float
    status: str

    @property
    def place(self) -> tuple[str, str]:
        return self.student, self.chapter

    def cells(self) -> tuple[str, ...]:
        score = "" if self.score is None else f"{self.score:g}"
        return no_formula(self.student), self.chapter, score, f"{self.max_score:g}", self.status


def no_formula(text: str) -> str:
    """The text with an apostrophe in front where a spreadsheet would compute it."""
    return f"'{text}" if text.startswith(FORMULA) else text


def write_grades(path: Path, book: Gradebook, intake: Intake, chapters: Sequence[Chapter]) -> list[Row]:
    """Write the table and return its rows."""
    rows = list(rows_of(book, intake, chapters))
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerows([COLUMNS, *(row.cells() for row in rows)])
    write(path, text.getvalue())
    return rows


def rows_of(book: Gradebook, intake: Intake, chapters: Sequence[Chapter]) -> Iterator[Row]:
    """A row for every student, of the folders and of the gradebook, in every chapter that anybody has handed in."""
    handed_in = {(each.student, each.chapter): each for each in intake.submissions}
    students = sorted({*intake.students, *(student.id for student in book.students)})
    recorded = {assignment.name: assignment for assignment in book.assignments}
    for chapter in chapters:
        assignment = recorded.get(chapter.folder)
        if assignment is None or not (assignment.submissions or any(c == chapter for _, c in handed_in)):
            continue
        for student in students:
            graded = find_submission(book, student, chapter)
            yield row_of(student, chapter, assignment.max_score, graded, handed_in.get((student, chapter)))


def row_of(
    student: str, chapter: Chapter, most: float, graded: SubmittedAssignment | None, file: Submission | None
) -> Row:
    if file is not None and unreadable(file):
        return Row(student, chapter.folder, None, most, UNREADABLE)
    if graded is None:
        return Row(student, chapter.folder, None, most, MISSING if file is None else ERROR)
    grades = [grade for notebook in graded.notebooks for grade in notebook.grades]
    if any(failed(grade) for grade in grades):
        return Row(student, chapter.folder, None, graded.max_score, ERROR)
    status = BY_HAND if graded.needs_manual_grade else GRADED
    score = max(0.0, graded.score - (graded.late_submission_penalty or 0.0))
    return Row(student, chapter.folder, score, graded.max_score, status)


def unreadable(file: Submission) -> bool:
    if file.path is None:
        return True
    try:
        read_cells(file.path)
    except NotebookError:
        return True
    return False


def failed(grade: Grade) -> bool:
    """Whether a check has no points yet, neither from the run nor by hand."""
    checked = grade.cell.cell_type == "code" and grade.name.endswith("-check")
    return checked and grade.auto_score is None and grade.manual_score is None
