"""The sample class: it scores what it says, a regrade changes nothing, and what a human entered stays."""

from __future__ import annotations

import csv
import html
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from nbgrader.api import Gradebook

from autograder import teach
from autograder.build import sample
from autograder.build.answers import answers_to
from autograder.checks import exercises_of
from autograder.course import ROOT, Chapter, chapters
from autograder.grade import run as grading
from autograder.grade.classroom import COURSE_ID

from .conftest import START, Graded, grade, once

SEVERAL = chapters()[:2]
"""Enough for a class with several chapters. What is true of each chapter is in tests/chapters."""


@pytest.fixture(scope="session")
def sample_class(tmp_path_factory: pytest.TempPathFactory) -> Graded:
    def make(root: Path) -> None:
        # In a process of its own, since it sets the chapter that gradwright is in.
        text = "from autograder.build.sample import *; make_sample(Path('class'), chapters()[:2])"
        made = subprocess.run([sys.executable, "-c", text], cwd=root, capture_output=True, text=True, timeout=280)
        assert made.returncode == 0, made.stderr
        (root / "said.txt").write_text(grade(root / "class").said)

    root = once(tmp_path_factory, "sample", make)
    return Graded(root / "class", (root / "said.txt").read_text())


def points(chapter: Chapter, right: Callable[[int], bool] = lambda position: True) -> int:
    return sum(e.points for i, e in enumerate(exercises_of(chapter.number)) if right(i))


@pytest.mark.parametrize("chapter", SEVERAL, ids=lambda chapter: chapter.folder)
def test_scores(sample_class: Graded, chapter: Chapter) -> None:
    assert all(row["status"] == "graded" for row in sample_class.table), sample_class.said
    scores = {row["student"]: float(row["score"]) for row in sample_class.table if row["chapter"] == chapter.folder}
    most = points(chapter)
    half = len(exercises_of(chapter.number)) // 2
    assert scores["sample-1"] == most
    assert scores["sample-2"] == points(chapter, lambda position: position < half)
    assert scores["sample-3"] == 0
    worst = most - max(exercise.points for exercise in exercises_of(chapter.number))
    assert all(worst <= scores[student] < most for student in sample.MISTAKEN)  # some of its cases may be right


@pytest.mark.parametrize("chapter", SEVERAL, ids=lambda chapter: chapter.folder)
def test_feedback_names_the_three_mistakes(sample_class: Graded, chapter: Chapter) -> None:
    sentences = {s for exercise in exercises_of(chapter.number) for s in answers_to(exercise).sentences.values()}
    named = set()
    for student in sample.MISTAKEN:
        text = verdicts(sample_class.root / "autograded" / student / chapter.folder / chapter.notebook)
        named |= {sentence for sentence in sentences if sentence in text}
        page = (sample_class.root / "feedback" / student / chapter.folder / f"{chapter.name}.html").read_text("utf-8")
        assert any(sentence.replace("`", "") in html.unescape(without_tags(page)) for sentence in named)
    assert len(named) == len(sample.MISTAKEN)


def verdicts(path: Path) -> str:
    """All verdicts of a graded notebook as text, their lines joined."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    shown = [o["data"]["text/plain"] for c in notebook["cells"] for o in c.get("outputs", ()) if "data" in o]
    return " ".join(" ".join(shown).split())


def without_tags(page: str) -> str:
    return page.replace("<code>", "").replace("</code>", "")


def test_a_regrade_changes_nothing_and_keeps_what_a_human_entered(sample_class: Graded, tmp_path: Path) -> None:
    root = tmp_path / "class"
    shutil.copytree(sample_class.root, root)
    for student in (root / "submitted").iterdir():
        if student.name != "sample-2":
            shutil.rmtree(student)  # moved away: what the gradebook knows of them stays
    shutil.rmtree(root / "submitted" / "sample-2" / SEVERAL[-1].folder)
    database = f"sqlite:///{root / 'gradebook.db'}"
    with Gradebook(database, COURSE_ID) as book:
        given = book.find_grade("start-dot-check", "start", START.folder, "sample-2")
        given.manual_score, given.extra_credit = 1.5, 0.25
        book.find_comment("start-dot", "start", START.folder, "sample-2").manual_comment = "A good <b>start</b>."
        book.db.commit()
    again = grade(root)
    assert again.row("sample-2") == ("3.75", "graded")
    assert "sample-2  00_start  3.75/4 (unchanged)" in again.said
    (line,) = [line for line in again.said.splitlines() if line.startswith("Kept: ")]
    mine = ("sample-2", START.folder)
    others = [row for row in sample_class.table if (row["student"], row["chapter"]) != mine]
    gone = [f"{row['student']} {row['chapter']}" for row in others]
    assert line.startswith(f"Kept: {', '.join(gone)}: no longer in submitted/")
    assert [row for row in again.table if (row["student"], row["chapter"]) != mine] == others
    assert "A good <b>start</b>." in again.page("sample-2")
    with Gradebook(database, COURSE_ID) as book:
        given = book.find_grade("start-dot-check", "start", START.folder, "sample-2")
        assert (given.auto_score, given.manual_score, given.needs_manual_grade) == (0, 1.5, False)
        assert book.find_comment("start-dot", "start", START.folder, "sample-2").auto_comment == "No response."


def test_no_folder_named_makes_a_sample_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    done: list[Any] = []

    def make_sample(folder: Path, there: Sequence[Chapter]) -> str:
        folder.mkdir(parents=True)
        done.append(list(there))
        return "A sample class is there now."

    monkeypatch.setattr(sample, "make_sample", make_sample)
    monkeypatch.setattr(grading, "grade_class", lambda folder, weak: done.append(folder) or 0)
    for _ in range(2):
        assert teach.grade(None, root=tmp_path) == 0
    folder = tmp_path / "autograder" / "class"
    assert done == [chapters(), folder, folder]  # made once, graded twice
    assert capsys.readouterr().out == "A sample class is there now.\n"
    for chapter in chapters():
        assert [path.name for path in (folder / "source" / chapter.folder).iterdir()] == [chapter.notebook]


def test_table_has_a_row_for_everybody_in_every_chapter(sample_class: Graded) -> None:
    with open(sample_class.root / "grades.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    students = [f"sample-{n}" for n in range(1, 7)]
    assert rows[0] == ["student", "chapter", "score", "max_score", "status"]
    assert [row[:2] for row in rows[1:]] == [[s, chapter.folder] for chapter in SEVERAL for s in students]
    assert {(row[1], row[3]) for row in rows[1:]} == {(chapter.folder, str(points(chapter))) for chapter in SEVERAL}


def test_the_default_class_is_not_committed() -> None:
    assert "/autograder/class/" in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
