"""What a class takes off late submissions, as nbgrader would."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from nbgrader.api import Gradebook
from nbgrader.plugins import BasePlugin

from autograder.errors import BadInput
from autograder.grade import run as grading
from autograder.grade.classroom import CONFIG, COURSE_ID
from autograder.grade.gradebook import penalty
from autograder.grade.run import grade_class

from .conftest import START, Graded, Notebook, hand_in, run

DUE = datetime(2026, 3, 1, 12)
BEFORE, AFTER = "2026-03-01 11:59:59 UTC", "2026-03-01 12:00:01 UTC"
HALF = """
from nbgrader.plugins import BasePlugin

class Half(BasePlugin):
    def late_submission_penalty(self, student, score, seconds):
        return {points}

c.AssignLatePenalties.plugin_class = Half
"""
ZERO = """
from nbgrader.plugins import LateSubmissionPlugin
c.AssignLatePenalties.plugin_class = LateSubmissionPlugin
c.LateSubmissionPlugin.penalty_method = "zero"
"""


@pytest.fixture
def late(tmp_path: Path, solution: Notebook, monkeypatch: pytest.MonkeyPatch) -> Graded:
    """A class of a punctual student, one who is late, and one of whom no time is known; with a due date."""
    monkeypatch.setattr(grading, "make_pages", list)
    for student, time in {"punctual": BEFORE, "late": AFTER, "unknown": ""}.items():
        folder = hand_in(tmp_path, student, solution).parent
        if time:
            (folder / "timestamp.txt").write_text(time)
    grade_class(tmp_path, weak=True)
    with Gradebook(f"sqlite:///{tmp_path / 'gradebook.db'}", COURSE_ID) as book:
        book.update_or_create_assignment(START.folder, duedate=DUE)
    return Graded(tmp_path, "")


def configure(late: Graded, text: str) -> None:
    with open(late.root / "nbgrader_config.py", "a", encoding="utf-8") as file:
        file.write(text)


def scores(late: Graded) -> list[str]:
    return [late.row(student)[0] for student in ("punctual", "late", "unknown")]


def test_the_penalty_is_the_classs_own(late: Graded, capsys: pytest.CaptureFixture[str]) -> None:
    """It is nothing where the class says nothing, and on a second run what it was on the first."""
    for settings, score in {"": "4", HALF.format(points="score / 2"): "2", ZERO: "0", "# unchanged": "0"}.items():
        configure(late, settings + "\n")
        grade_class(late.root, weak=True)
        assert scores(late) == ["4", score, "4"]
        assert f"late  {START.folder}  {score}/4 (unchanged)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("asked", "taken"), [(None, None), (-1, 0.0), (0, 0.0), (1.5, 1.5), (4, 4.0), (100, 4.0)], ids=repr
)
def test_from_no_points_to_all(asked: float | None, taken: float | None) -> None:
    class Own(BasePlugin):
        def late_submission_penalty(self, *of_whom: Any) -> float | None:
            return asked

    assert penalty(Own(), "late", 4.0, 1.0) == taken


def test_who_hands_in_again_in_time_has_all_points(late: Graded) -> None:
    """As when a clock was wrong, and is set back."""
    configure(late, ZERO)
    grade_class(late.root, weak=True)
    (late.root / "submitted" / "late" / START.folder / "timestamp.txt").write_text(BEFORE)
    grade_class(late.root, weak=True)
    assert scores(late) == ["4", "4", "4"]


def test_nbgrader_takes_off_the_same(late: Graded) -> None:
    configure(late, HALF.format(points="score / 2") + "c.JudgeCells.allow_weak_isolation = True\n")
    done = run(["nbgrader", "autograde", START.folder, "--force"], late.root)
    assert done.returncode == 0, done.stderr
    assert run(["nbgrader", "export"], late.root).returncode == 0
    assert scores(late) == ["4", "2", "4"]


def test_a_penalty_that_cannot_be_had_is_one_sentence(late: Graded) -> None:
    reasons = {
        HALF.format(points="1 / 0"): "Half, which nbgrader_config.py names for late submissions, fails on late",
        HALF.format(points="'some'"): "fails on late",
        'c.LateSubmissionPlugin.penalty_method = "half"': "correct c.AssignLatePenalties or c.LateSubmissionPlugin",
        'c.AssignLatePenalties.plugin_class = "no.Half"': "correct c.AssignLatePenalties or c.LateSubmissionPlugin",
    }
    for settings, reason in reasons.items():
        (late.root / "nbgrader_config.py").write_text(CONFIG + settings, encoding="utf-8")
        with pytest.raises(BadInput, match=reason):
            grade_class(late.root, weak=True)
