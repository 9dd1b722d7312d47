"""The gradebook is nbgrader's own, however quickly it is made."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from alembic.migration import MigrationContext
from nbgrader.api import Gradebook
from sqlalchemy import Connection, Engine, event
from sqlalchemy.exc import OperationalError

from autograder.course import chapter
from autograder.errors import SetupError
from autograder.grade.classroom import COURSE_ID, Classroom, official, open_classroom
from autograder.grade.gradebook import open_gradebook, register


@pytest.fixture
def room(tmp_path: Path) -> Classroom:
    (tmp_path / "class").mkdir()
    return open_classroom(tmp_path / "class")


def tables(file: Path) -> dict[str, str]:
    with closing(sqlite3.connect(file)) as book:
        found = dict(book.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'"))
        found["alembic_version"] = book.execute("SELECT * FROM alembic_version").fetchall()
        return found


def test_a_new_one_has_nbgraders_tables_and_their_version(room: Classroom, tmp_path: Path) -> None:
    with open_gradebook(room):
        pass
    Gradebook(f"sqlite:///{tmp_path / 'theirs.db'}", COURSE_ID).close()
    assert tables(room.gradebook) == tables(tmp_path / "theirs.db")


def test_one_that_cannot_be_begun_is_not_left_half_made(room: Classroom, monkeypatch: pytest.MonkeyPatch) -> None:
    """nbgrader takes a file with a table in it for one that is whole."""

    def fails(*arguments: object) -> None:
        raise OperationalError("a statement", {}, Exception("database or disk is full"))

    with monkeypatch.context() as patched:
        patched.setattr(MigrationContext, "stamp", fails)
        with pytest.raises(SetupError, match="make room and grade again"), open_gradebook(room):
            pass
    with closing(sqlite3.connect(room.gradebook)) as book:
        assert not book.execute("SELECT name FROM sqlite_master").fetchall()
    with open_gradebook(room):
        pass


def test_a_chapter_is_registered_in_a_few_transactions(room: Classroom) -> None:
    """Each waits for the disk, and this chapter has a hundred cells to register."""
    commits: list[Connection] = []
    count = commits.append
    with open_gradebook(room) as book:
        event.listen(Engine, "commit", count)
        try:
            register(book, room, chapter("02"), official(room, chapter("02")))
        finally:
            event.remove(Engine, "commit", count)
        notebook = book.find_notebook("autodiff", "02_autodiff")
        assert 0 < len(commits) < 5 < len(notebook.source_cells)
