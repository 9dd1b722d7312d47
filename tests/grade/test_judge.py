"""The judge: what an answer is worth, what a learner reads of it, and that honest work never loses."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from traitlets.config import Config

from autograder.build.sample import filled_in, solved
from autograder.checks.exercise import exercises_of, find
from autograder.course import ROOT, Chapter, chapter, chapters
from autograder.errors import BadInput, SetupError
from autograder.grade import budget
from autograder.grade import judge as judging
from autograder.grade import run as grading
from autograder.grade.classroom import official, open_classroom
from autograder.grade.export import row_of
from autograder.grade.gradebook import find_submission, lateness, open_gradebook, record, register
from autograder.grade.hidden import hidden_reference, secret_of, seed_of
from autograder.grade.job import Job, Judged
from autograder.grade.judge import judge, warm_sandbox
from autograder.grade.restore import restore
from autograder.grade.run import grade_class, lost
from autograder.grade.sandbox import Bare, level, weakness

from .conftest import START, Notebook, cell, hand_in, markdown, with_answer, without

FIRST, SECOND = "start-dot-loop-check", "start-dot-check"
FULL = {FIRST: 2.0, SECOND: 2.0}
SECRET = bytes(range(32))
WALLED = not weakness()
NONE_LATE = lateness(Config())


@pytest.fixture(scope="module", autouse=True)
def no_sandbox_stays() -> Iterator[None]:
    yield
    for number in (0, 1):
        warm_sandbox(number, WALLED).stop()


def job_of(notebook: Notebook, released: Notebook, seconds: float = 10, **other: object) -> Job:
    official_cells = copy.deepcopy(released)
    for each in official_cells["cells"]:
        each["source"] = "".join(each["source"])
    cells = [{**each, "source": "".join(each["source"])} for each in notebook["cells"]]
    restored = restore(cells, official_cells)
    return Job("one", START.number, START.folder, restored, SECRET, WALLED, seconds, **other)


def verdict(judged: Judged, check: str) -> str:
    outputs = cell(judged.notebook, check)["outputs"]
    return " ".join(outputs[0]["data"]["text/plain"].split())


CLEAN = """import numpy as np
def dot(a, b):
    if len(a) != len(b):
        raise ValueError
    return np.dot(a, b)"""
INNER = CLEAN.replace("def dot", "def inner")


@pytest.mark.parametrize(
    ("answer", "ruling", "said"),
    [
        ("def dot(a, b):\n    return 0.0", "wrong", "not yet"),
        ("def dot(a, b):\n    return unknown", "raised", "NameError"),
        ("def dot(a, b):\n    while True: pass", "timed out", "it was stopped after"),
        ("import os\ndef dot(a, b):\n    os._exit(3)", "killed", "it ended the Python process"),
        ("import ctypes\ndef dot(a, b):\n    ctypes.string_at(0)", "killed", "signal 11"),
        ("pass", "no answer", "no cell defines dot"),
        ("def dot(a, b:\n    return a @ b", "no answer", "its cell ended in SyntaxError: '(' was never closed"),
        ("dot = 3", "no answer", "asks for dot itself"),
        ("while True: pass", "timed out", "its cell ended in TimeIsUp"),
    ],
)
def test_rulings(answer: str, ruling: str, said: str, solution: Notebook, released: Notebook) -> None:
    judged = judge(job_of(with_answer(solution, "start-dot", answer), released, seconds=1))
    assert judged.points == {FIRST: 2.0, SECOND: 0.0}
    assert judged.rulings == {"start-dot-loop": "right", "start-dot": ruling}
    assert said in verdict(judged, SECOND)


def test_untouched(released: Notebook) -> None:
    judged = judge(job_of(released, released))
    assert (judged.points, set(judged.rulings.values())) == (dict.fromkeys(FULL, 0.0), {"no answer"})
    assert "not implemented yet" in verdict(judged, SECOND)


def test_some_cases_right_is_some_points(solution: Notebook, released: Notebook) -> None:
    forgot = "def dot(a, b):\n    if len(a) == 0: return None\n    n = min(len(a), len(b))\n    return a[:n] @ b[:n]"
    judged = judge(job_of(with_answer(solution, "start-dot", forgot), released))
    assert 1.0 <= judged.points[SECOND] < 2.0
    assert "points" in verdict(judged, SECOND)
    assert cell(judged.notebook, SECOND)["outputs"][-1]["data"] == {"text/plain": f"{judged.points[SECOND]:g}"}


def test_right_on_the_notebooks_inputs_alone_says_so(solution: Notebook, released: Notebook) -> None:
    known = [case.arrays["a"].tolist() for case in judging.shown_reference("start-dot").cases]
    text = f"KNOWN = {known!r}\ndef dot(a, b):\n    if len(a) != len(b):\n        raise ValueError\n"
    text += "    return a @ b if a.tolist() in KNOWN else (a @ b) * 2"
    said = verdict(judge(job_of(with_answer(solution, "start-dot", text), released)), SECOND)
    assert "Right on the inputs that come with the notebook, not on others" in said


def chapter_job(ch: Chapter, answers: dict[str, str]) -> Job:
    notebook = json.loads((ROOT / "course" / ch.folder / ch.notebook).read_text(encoding="utf-8"))
    for each in notebook["cells"]:
        each["source"] = "".join(each["source"])
    cells = restore(filled_in(notebook, answers)["cells"], notebook)
    return Job("one", ch.number, ch.folder, cells, SECRET, WALLED)


@pytest.mark.parametrize("ch", chapters(), ids=lambda ch: ch.folder)
def test_every_chapter_answered_and_untouched(ch: Chapter) -> None:
    most = {f"{exercise.id}-check": float(exercise.points) for exercise in exercises_of(ch.number)}
    try:
        assert judge(chapter_job(ch, solved(ch))).points == most
        assert judge(chapter_job(ch, {})).points == dict.fromkeys(most, 0.0)
    finally:
        warm_sandbox(ch.number, WALLED).stop()


def test_nobody_loses_points_twice(released: Notebook) -> None:
    """matmul of chapter 01 builds on row_major_strides: one mistake there costs that exercise alone."""
    ch = chapter("01")
    wrong = solved(ch) | {"tensor-strides": "def row_major_strides(shape):\n    return 0"}
    judged = judge(chapter_job(ch, wrong))
    lost_points = {name for name, points in judged.points.items() if points < find(name[:-6]).points}
    assert lost_points == {"tensor-strides-check"}
    assert "Tried on top of the course's own 1.1 row_major_strides" in verdict(judged, "tensor-matmul-check")


POISON = """import numpy as np
def dot_loop(a, b):
    np.matmul = np.dot = None
    return 0.0"""


def test_an_answer_that_spoils_the_process_costs_no_other(solution: Notebook, released: Notebook) -> None:
    spoilt = with_answer(with_answer(solution, "start-dot-loop", POISON), "start-dot", CLEAN)
    assert judge(job_of(spoilt, released)).points == {FIRST: 0.0, SECOND: 2.0}


def test_the_course_s_answer_comes_in_after_the_learner_s(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an exercise that is being asked, or is still to be, no run holds the course's answer."""
    asked = []

    def run(self, cells, questions, waits=False):
        asked.append([(q.id, q.texts) for q in questions] if waits else [])
        return kept(self, cells, questions, waits)

    kept = judging.Examination.run
    monkeypatch.setattr(judging.Examination, "run", run)
    ch = chapter("01")
    wrong = {e.id: f"def {e.name}(*arguments):\n    return 0.0" for e in exercises_of(1)}
    assert set(judge(chapter_job(ch, solved(ch) | wrong)).points.values()) == {0.0}
    told = [run for run in asked if run]
    assert len(told) == 1
    assert len(told[0]) > 3
    there: set[str] = set()
    for exercise, texts in told[0]:
        there |= set(texts)
        assert there == {e.id for e in exercises_of(1) if e.position < find(exercise).position}


@pytest.mark.parametrize(("answer", "runs"), [("", 1), ("released", 1), ("def {name}(*arguments):\n    return 0.0", 3)])
def test_how_many_runs_a_submission_takes(answer: str, runs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What most of its time goes into: one where all is right or untouched, three where all is wrong."""
    ch, asked = chapter("01"), []
    kept = type(warm_sandbox(1, WALLED)).run
    monkeypatch.setattr(type(warm_sandbox(1, WALLED)), "run", lambda self, talk: asked.append(talk) or kept(self, talk))
    wrong = {e.id: answer.format(name=e.name) for e in exercises_of(1)} if runs > 1 else {}
    judge(chapter_job(ch, {} if answer == "released" else solved(ch) | wrong))
    assert len(asked) == runs


def test_the_same_class_has_the_same_cases_and_another_has_others() -> None:
    exercise = find("start-dot")
    assert seed_of(SECRET, exercise) == seed_of(SECRET, exercise) != seed_of(SECRET[::-1], exercise)
    assert seed_of(SECRET, exercise) != seed_of(SECRET, find("start-dot-loop"))
    first, second = (hidden_reference("start-dot", s).cases[-1].arrays["a"] for s in (SECRET, SECRET[::-1]))
    assert first.tolist() != second.tolist()


def test_the_secret_is_made_once_and_for_nobody_else(tmp_path: Path) -> None:
    room = open_classroom(tmp_path)
    secret = secret_of(room)
    assert secret == secret_of(room)
    assert room.secret.stat().st_mode & 0o077 == 0
    room.secret.write_text("no secret")
    with pytest.raises(SetupError, match="is not the secret that it was"):
        secret_of(room)


def test_without_isolation_points_are_the_same(solution: Notebook, released: Notebook) -> None:
    half = with_answer(solution, "start-dot", "def dot(a, b):\n    return 0.0")
    judged = judge(replace(job_of(half, released), walled=False))
    assert (judged.points, judged.trouble) == ({FIRST: 2.0, SECOND: 0.0}, "")


def test_strangers_are_refused_without_isolation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autograder.grade.sandbox.weakness", lambda: "bubblewrap is not installed")
    with pytest.raises(SetupError, match=r"bubblewrap is not installed.*--allow-weak-isolation"):
        level(weak=False)
    assert level(weak=True) == (
        False,
        "Isolation: none (bubblewrap is not installed). Submissions run as programs of yours, with your rights.",
    )


class Broken(Bare):
    """A sandbox that fails so many times, and then works."""

    def __init__(self, failures: int) -> None:
        super().__init__(0)
        self.failures = failures

    def run(self, talk):
        self.failures -= 1
        if self.failures >= 0:
            raise SetupError("the sandbox was lost")
        return super().run(talk)


@pytest.mark.parametrize(("failures", "points"), [(2, FULL), (3, dict.fromkeys(FULL))])
def test_a_fault_of_ours_is_tried_again_and_is_never_a_zero(
    failures: int, points: dict, monkeypatch: pytest.MonkeyPatch, solution: Notebook, released: Notebook
) -> None:
    broken = Broken(failures)
    monkeypatch.setattr(judging, "sandbox_of", lambda job: broken)
    judged = judge(job_of(solution, released))
    assert judged.points == points
    assert bool(judged.trouble) == (failures == 3)
    assert set(judged.rulings.values()) == ({"right"} if failures == 2 else {"grader error"})


def test_a_submission_that_takes_too_long_is_no_zero(
    tmp_path: Path, solution: Notebook, released: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "LONGER", 0)  # by the clock on the wall, which others may be the reason for
    result = judge(job_of(solution, released))
    assert result.points == dict.fromkeys(FULL)
    assert result.trouble.startswith("it took longer than any honest work: run it by hand, or raise c.Execute.timeout")
    room = open_classroom(tmp_path)
    with open_gradebook(room) as book:
        register(book, room, START, official(room, START))
        record(book, room, "one", START, result, NONE_LATE)
        row = row_of("one", START, 4, find_submission(book, "one", START), None)
        assert row.cells() == ("one", "00_start", "", "4", "error")


ESSAY = {"grade": True, "grade_id": "essay", "locked": False, "points": 3, "schema_version": 3, "solution": True}


def test_a_question_that_waits_for_a_human(tmp_path: Path) -> None:
    """An instructor's own, in a released notebook. Once it is graded by hand, only new points ask for it again."""
    room = open_classroom(tmp_path)
    notebook = official(room, START)
    notebook["cells"].append(markdown("Your answer.") | {"metadata": {"nbgrader": ESSAY | {"task": False}}})

    def graded(essay: float | None, check: float) -> tuple[str, ...]:
        points = {"essay": essay, FIRST: check, SECOND: 2.0}
        record(book, room, "one", START, Judged(notebook, points), NONE_LATE)
        return row_of("one", START, 7, find_submission(book, "one", START), None).cells()

    def by_hand(cell_id: str, points: float) -> None:
        grade = book.find_grade(cell_id, START.name, START.folder, "one")
        grade.manual_score, grade.needs_manual_grade = points, False
        book.db.commit()

    with open_gradebook(room) as book:
        register(book, room, START, notebook)
        assert graded(None, 2.0) == ("one", "00_start", "4", "7", "needs manual grade")
        by_hand("essay", 2.5)
        assert graded(None, 2.0) == ("one", "00_start", "6.5", "7", "graded")
        by_hand(FIRST, 1.0)
        assert graded(None, 2.0) == ("one", "00_start", "5.5", "7", "graded")
        assert graded(None, 0.0) == ("one", "00_start", "5.5", "7", "needs manual grade")


def test_cells_that_change_under_grades_are_refused(tmp_path: Path) -> None:
    room = open_classroom(tmp_path)
    notebook = official(room, START)
    with open_gradebook(room) as book:
        register(book, room, START, notebook)
        record(book, room, "one", START, Judged(notebook, {FIRST: 2.0, SECOND: 2.0}), NONE_LATE)
        with pytest.raises(BadInput, match="has other graded cells than the gradebook"):
            register(book, room, START, without(notebook, SECOND))


def test_a_job_whose_process_was_killed_is_no_zero(released: Notebook) -> None:
    result = lost(job_of(released, released))
    assert result.points == dict.fromkeys(FULL)
    assert result.trouble


@pytest.mark.parametrize("ours", [False, True], ids=["a broken file", "a fault of the grader's"])
def test_a_submission_that_cannot_be_read_any_more_has_no_old_points(
    ours: bool, tmp_path: Path, solution: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not in the formgrader either; what was entered by hand stays, and the old one, handed in again, has its own."""
    path = hand_in(tmp_path, "one", solution)
    monkeypatch.setattr(grading, "make_pages", list)
    room = open_classroom(tmp_path)

    def graded() -> tuple[float, bool, set[str | None]]:
        grade_class(tmp_path, weak=True)
        with open_gradebook(room) as book:
            found = find_submission(book, "one", START)
            comments = {comment.auto_comment for notebook in found.notebooks for comment in notebook.comments}
            return found.score, found.needs_manual_grade, comments

    def by_hand() -> tuple[float | None, float | None, set[str | None]]:
        with open_gradebook(room) as book:
            grade = book.find_grade(FIRST, START.name, START.folder, "one")
            return grade.manual_score, grade.extra_credit, {c.manual_comment for c in grade.notebook.comments}

    assert graded() == (4.0, False, {None})
    with open_gradebook(room) as book:
        grade = book.find_grade(FIRST, START.name, START.folder, "one")
        grade.manual_score, grade.extra_credit = 1.5, 0.25
        for comment in grade.notebook.comments:
            comment.manual_comment = "Well explained."
        book.db.commit()
    entered = by_hand()
    said = "the grader cannot read it (ZeroDivisionError)" if ours else "start.ipynb is not valid JSON"
    with monkeypatch.context() as patch:
        if ours:
            patch.setattr(grading, "restore", lambda *_: 1 // 0)
        path.write_bytes(json.dumps(solution).encode() if ours else b"{")
        score, waits, comments = graded()
    assert (score, waits) == (1.75, True)
    assert all(f"Of an earlier submission. Now: {said}" in comment for comment in comments)
    assert by_hand() == entered
    path.write_text(json.dumps(solution))
    assert graded() == (3.75, True, {None})
    assert by_hand() == entered
