"""Which exercises an answer leans on: all that could break it are found, so that none of them costs points twice."""

from __future__ import annotations

from types import ModuleType

import pytest

import gradwright
from autograder.build.sample import filled_in, released_notebook, solved
from autograder.checks.exercise import Exercise, exercises_of
from autograder.checks.judge import check_target, compared
from autograder.checks.run import run_probe
from autograder.course import Chapter, chapters
from autograder.errors import BadInput
from autograder.grade.hidden import shown_reference
from autograder.grade.job import Job
from autograder.grade.judge import cells_of
from autograder.grade.leaning import leaning_on, names_given
from autograder.grade.worker import nobody, run_cells
from gradwright._cells import Cell
from gradwright._framework import limited

BROKEN = {
    "function": "def {name}(*arguments, **named):\n    raise RuntimeError('broken')",
    "class": "class {name}:\n    def __init__(self, *arguments, **named):\n        raise RuntimeError('broken')",
}


def with_answers(chapter: Chapter, answers: dict[str, str]) -> list[Cell]:
    notebook = filled_in(released_notebook(chapter), answers)
    for each in notebook["cells"]:
        each["source"] = "".join(each["source"])
    return cells_of(Job("one", chapter.number, chapter.folder, notebook, b""))


def is_right(exercise: Exercise, module: ModuleType) -> bool:
    reference = shown_reference(exercise.id)
    try:
        target = getattr(module, exercise.name)
        check_target(exercise, target)
    except (AttributeError, BadInput):
        return False
    outcomes = [run_probe(exercise, target, case.arrays, gradwright) for case in reference.cases]
    return compared(exercise, reference, outcomes).right


@pytest.mark.parametrize("chapter", chapters(), ids=lambda chapter: chapter.folder)
def test_whatever_breaks_an_answer_is_found(chapter: Chapter) -> None:
    exercises, answers = exercises_of(chapter.number), solved(chapter)
    for spoilt in exercises:
        cells = with_answers(chapter, answers | {spoilt.id: BROKEN[spoilt.kind].format(name=spoilt.name)})
        begin = {
            "chapter": chapter.number,
            "cells": [vars(cell) for cell in cells],
            "chosen": False,
            "late": [],
            "seconds": 60,
        }
        with limited(chapter.number):
            module = run_cells(begin, nobody)
            later = [exercise for exercise in exercises if exercise.position > spoilt.position]
            wrong = [exercise for exercise in later if not is_right(exercise, module)]
        for exercise in wrong:
            assert leaning_on(exercise, [spoilt], cells) == [spoilt], (exercise.id, spoilt.id)


def test_names_that_a_cell_gives() -> None:
    text = "import os.path as place\nfrom math import tau\nLIMIT: int = 3\na, b = 1, 2\nif a:\n    def inner(): pass\n"
    text += "class Kept(Base):\n    x = y == LIMIT\nprint(as_it_is)"
    assert names_given(text) == {
        "os",
        "path",
        "as",
        "place",
        "math",
        "tau",
        "LIMIT",
        "a",
        "b",
        "inner",
        "Kept",
        "import",
    }


def test_an_answer_leans_through_a_helper_in_another_cell() -> None:
    first, second, third = exercises_of(1)[1:4]
    cells = [
        Cell("code", f"def {first.name}(): pass\ndef beside(): pass", {"exercise": first.id}),
        Cell("code", f"def {second.name}(): pass", {"exercise": second.id}),
        Cell("code", "def helper():\n    return beside()", added=True),
        Cell("code", f"def {third.name}():\n    return helper()", {"exercise": third.id}),
    ]
    assert leaning_on(third, [first, second], cells) == [first]


def test_long_lines_are_read_in_no_time() -> None:
    for text in ("a" + " " * 10**6, "a" + ", a" * 10**6 + ":", "import" * 10**5, "def " * 10**5, "a:" * 10**6):
        names_given(text)
