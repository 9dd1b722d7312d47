"""The seam: a job in, points out; what is no fault of the learner's is never a zero."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from autograder.errors import BadInput
from autograder.grade.classroom import official, open_classroom
from autograder.grade.execute import Job, Judged, judge, points_of
from autograder.grade.export import no_formula, row_of
from autograder.grade.gradebook import find_submission, open_gradebook, record, register
from autograder.grade.restore import restore
from autograder.grade.run import lost
from autograder.grade.schedule import run_all

from .conftest import START, Notebook, cell, code, markdown, with_cells, without

FIRST, SECOND = "start-dot-loop-check", "start-dot-check"


def job_of(notebook: Notebook, released: Notebook, seconds: float = 30) -> Job:
    official_cells = copy.deepcopy(released)
    for each in official_cells["cells"]:
        each["source"] = "".join(each["source"])
    cells = [{**each, "source": "".join(each["source"])} for each in notebook["cells"]]
    return Job("one", START.number, START.folder, restore(cells, official_cells), seconds_a_cell=seconds)


def judged(job: Job) -> Judged:
    ((_, result),) = run_all(judge, [job], 1, lost)
    return result


def test_a_submission_that_takes_too_long_is_no_zero(tmp_path: Path, solution: Notebook, released: Notebook) -> None:
    sleepy = with_cells(solution, code("import time\nwhile True:\n    time.sleep(0.01)"))
    result = judged(job_of(sleepy, released, seconds=0.001))
    assert result.points == {FIRST: None, SECOND: None}
    assert result.trouble.startswith("it took longer than 0 seconds: run it by hand, or raise c.Execute.timeout")
    room = open_classroom(tmp_path)
    with open_gradebook(room) as book:
        register(book, room, START, official(room, START))
        record(book, room, "one", START, result)
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
        record(book, room, "one", START, Judged(notebook, points))
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
        record(book, room, "one", START, Judged(notebook, {FIRST: 2.0, SECOND: 2.0}))
        with pytest.raises(BadInput, match="has other cells than the gradebook"):
            register(book, room, START, without(notebook, SECOND))


def test_a_job_whose_process_was_killed_is_no_zero(released: Notebook) -> None:
    result = lost(job_of(released, released))
    assert result.points == {FIRST: None, SECOND: None}
    assert result.trouble


def error(name: str) -> dict[str, Any]:
    return {"output_type": "error", "ename": name, "evalue": "", "traceback": []}


VERDICT = {"output_type": "display_data", "data": {"text/plain": "right"}, "metadata": {}}
WARNING = {"output_type": "stream", "name": "stderr", "text": "a warning"}


@pytest.mark.parametrize(
    ("outputs", "points"),
    [
        ([VERDICT], 2.0),
        ([WARNING, VERDICT], 2.0),
        ([VERDICT, error("CheckFailed")], 0.0),
        ([error("NameError")], 0.0),
        ([], 0.0),  # it raised nothing and said nothing: the check did not run
        ([error("ReferenceMissing")], None),
    ],
)
def test_points_of_a_check(released: Notebook, outputs: list[Any], points: float | None) -> None:
    check = {**cell(released, FIRST), "outputs": outputs}
    assert points_of(check, finished=True) == points
    assert points_of(check, finished=False) is None


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@sum", "\t=1", "\r=1"])
def test_a_formula_is_text(text: str) -> None:
    assert no_formula(text) == f"'{text}"


def test_other_names_stay() -> None:
    assert [no_formula(text) for text in ("sample-1", "Lee, Anna", "1=2")] == ["sample-1", "Lee, Anna", "1=2"]
