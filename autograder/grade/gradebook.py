"""The one writer of the gradebook: nbgrader's database, as its formgrader and its commands read it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from logging import LogRecord
from typing import Any

from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from nbformat import NotebookNode, from_dict
from nbgrader import utils
from nbgrader.api import Base, Grade, Gradebook, InvalidEntry, MissingEntry, SubmittedAssignment
from nbgrader.dbutil import ALEMBIC_DIR
from nbgrader.plugins import BasePlugin
from nbgrader.preprocessors import AssignLatePenalties, SaveCells
from sqlalchemy import Engine, create_engine, inspect
from sqlalchemy.exc import SQLAlchemyError
from tornado.log import app_log
from traitlets.config import Config

from autograder.course import Chapter
from autograder.errors import BadInput, SetupError
from autograder.grade.classroom import COURSE_ID, Classroom
from autograder.grade.intake import stamp_in
from autograder.grade.job import Judged

REMEDIES = {
    "full": "make room and grade again; what is graded stays graded",
    "locked": "close what else has it open, and grade again",
    "unable to open": "allow it; a folder of that name must be moved away, a path over 500 characters made shorter",
    "readonly": "allow it to be written, and grade again",
    "no such column": "run `nbgrader db upgrade` in the class folder",
}
"""A word of what SQLite says, and what to do then."""
COPY = "put back a copy of it; where there is none, move it away, and all but what was graded by hand is entered anew"


@contextmanager
def open_gradebook(room: Classroom) -> Iterator[Gradebook]:
    """The gradebook of a class, made when it is missing. Raises SetupError where it cannot be used."""
    app_log.addFilter(has_no_traceback)
    try:
        engine = create_engine(room.database)
        tables = inspect(engine).get_table_names()
        if tables and "student" not in tables:  # nbgrader would put its own beside them
            raise SetupError(f"{room.gradebook} is no gradebook, it has a table {tables[0]!r}: {COPY}.")
        if not tables:
            begin(engine)
        with Gradebook(room.database, COURSE_ID) as book:
            yield book
    except (SQLAlchemyError, InvalidEntry) as error:
        raise SetupError(trouble(room, error)) from error
    finally:
        app_log.removeFilter(has_no_traceback)


def begin(engine: Engine) -> None:
    """Make nbgrader's tables, all or none. It would itself, but starts a process to learn the number of their version,
    which takes seconds."""
    with engine.begin() as connection:
        connection.exec_driver_sql("BEGIN")  # SQLite's driver does not, in front of a table that is made
        Base.metadata.create_all(connection)
        MigrationContext.configure(connection).stamp(ScriptDirectory(ALEMBIC_DIR), "head")


def has_no_traceback(record: LogRecord) -> bool:
    """For the log of nbgrader, which tells there at length what it raises too."""
    return record.exc_info is None


def trouble(room: Classroom, error: Exception) -> str:
    """What the database says, with a remedy."""
    first = error.__context__ if isinstance(error, InvalidEntry) else error
    reason = " ".join(str(getattr(first, "orig", None) or error).split())
    remedy = next((remedy for word, remedy in REMEDIES.items() if word in reason), COPY)
    return f"{room.gradebook} cannot be used ({reason[:200]}): {remedy}."


def register(book: Gradebook, room: Classroom, chapter: Chapter, notebook: dict[str, Any]) -> None:
    """Enter a chapter's official cells and their points, as `nbgrader generate_assignment` does."""
    book.update_or_create_assignment(chapter.folder)
    names = {"notebook": chapter.name, "assignment": chapter.folder, "db_url": room.database}
    try:
        SaveTogether().preprocess(from_dict(notebook), {"nbgrader": names})
    except RuntimeError as error:
        raise BadInput(
            f"{room.release / chapter.folder} has other graded cells than the gradebook, which holds grades for them "
            f"already: put the notebook in source/ back as it was, and run `nbgrader generate_assignment "
            f"{chapter.folder} --force`."
        ) from error
    book.db.expire_all()


class SaveTogether(SaveCells):
    """nbgrader's, but for its commits, one a cell: each waits for the disk, and a chapter has a hundred."""

    def _create_notebook(self, nb: NotebookNode) -> None:
        with one_transaction(self.gradebook):
            super()._create_notebook(nb)


def record(
    book: Gradebook, room: Classroom, student: str, chapter: Chapter, judged: Judged, late: BasePlugin
) -> tuple[float, int]:
    """Enter the points of one submission, in one transaction, and what the class takes off one that came late. Returns
    its score, and how many cells wait for a human.

    Manual grades, extra credit and comments stay. A cell graded by hand asks to be looked at again only where its
    automatic points have changed.
    """
    with one_transaction(book):
        book.update_or_create_student(student)
        stamp = stamp_in(room.submitted / student / chapter.folder)
        with book.db.no_autoflush:  # nbgrader builds a new submission piece by piece, and SQLAlchemy would warn of each
            book.update_or_create_submission(chapter.folder, student, **({"timestamp": stamp} if stamp else {}))
        submission = book.find_submission_notebook(chapter.name, chapter.folder, student)
        for grade in submission.grades:
            points = judged.points.get(grade.name)
            if grade.manual_score is None:
                grade.needs_manual_grade = points is None
            elif points != grade.auto_score:
                grade.needs_manual_grade = True
            grade.auto_score = points
        blank = unanswered(judged.notebook)
        for comment in submission.comments:
            comment.auto_comment = "No response." if comment.name in blank else None
        score = sum(map(points_so_far, submission.grades))
        seconds = submission.assignment.total_seconds_late
        submission.late_submission_penalty = penalty(late, student, score, seconds) if seconds > 0 else None
        by_hand = sum(bool(grade.needs_manual_grade) for grade in submission.grades)
        return score - (submission.late_submission_penalty or 0.0), by_hand


def lateness(config: Config) -> BasePlugin:
    """What takes points off late submissions, as the class has told nbgrader. Raises BadInput where there is none."""
    try:
        step = AssignLatePenalties(config=config)
        step.init_plugin()
    except Exception as error:  # it may be a class of the instructor's
        raise BadInput(
            f"what nbgrader_config.py says of late submissions cannot be used ({type(error).__name__}: {error}): "
            f"correct c.AssignLatePenalties or c.LateSubmissionPlugin."
        ) from error
    return step.plugin_inst


def penalty(late: BasePlugin, student: str, score: float, seconds: float) -> float | None:
    """The points to take off, from none to all. Raises BadInput where the instructor's own class gives no number."""
    try:
        points = late.late_submission_penalty(student, score, seconds)
        return None if points is None else max(0.0, min(float(points), score))
    except Exception as error:  # it may do anything
        raise BadInput(
            f"{type(late).__name__}, which nbgrader_config.py names for late submissions, fails on {student} "
            f"({type(error).__name__}: {error}): correct it, and grade again; what is graded stays graded."
        ) from error


def withdraw(book: Gradebook, student: str, chapter: Chapter, trouble: str) -> None:
    """Where an earlier submission has been graded, and what is handed in now cannot be: its points are not those of the
    new one. What was entered by hand stays, and a human is asked to look."""
    submission = find_submission(book, student, chapter)
    with one_transaction(book):
        for notebook in submission.notebooks if submission else ():
            for grade in notebook.grades:
                grade.auto_score, grade.needs_manual_grade = None, True
            for comment in notebook.comments:
                comment.auto_comment = f"Of an earlier submission. Now: {trouble}"


def points_so_far(grade: Grade) -> float:
    """As nbgrader adds them up."""
    counts = grade.auto_score if grade.manual_score is None else grade.manual_score
    return (counts or 0.0) + (grade.extra_credit or 0.0)


@contextmanager
def one_transaction(book: Gradebook) -> Iterator[None]:
    """What nbgrader's methods would commit one by one is committed together at the end, or not at all."""
    commit = book.db.commit
    book.db.commit = book.db.flush
    try:
        yield
    except BaseException:
        book.db.rollback()
        raise
    finally:
        book.db.commit = commit
    commit()


def unanswered(notebook: dict[str, Any]) -> set[str]:
    """The answers that are still as they were released."""
    cells = [cell for cell in from_dict(notebook).cells if utils.is_solution(cell)]
    return {
        cell.metadata.nbgrader["grade_id"]
        for cell in cells
        if cell.metadata.nbgrader.get("checksum") == utils.compute_checksum(cell)
    }


def find_submission(book: Gradebook, student: str, chapter: Chapter) -> SubmittedAssignment | None:
    """The record of a submission, or None where none was ever graded."""
    try:
        return book.find_submission(chapter.folder, student)
    except MissingEntry:
        return None
