"""Hidden cases: whatever the secret of a class draws, the course's own answer and every other right one pass."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import numpy as np
import pytest

import gradwright
from autograder.build.answers import answers_to
from autograder.checks.exercise import DRAWN, exercises_of, find
from autograder.checks.judge import compared
from autograder.checks.run import run_probe
from autograder.course import Chapter, chapters
from autograder.errors import SetupError
from autograder.grade import hidden
from autograder.grade.hidden import drawn_and_run, hidden_reference, points_of, refused, seed_of
from gradwright._framework import limited

SECRETS = [hashlib.sha256(f"class {i}".encode()).digest() for i in range(24)]
each_chapter = pytest.mark.parametrize("chapter", chapters(), ids=lambda chapter: chapter.folder)


@each_chapter
def test_every_case_of_every_class_can_be_answered(chapter: Chapter) -> None:
    for exercise in exercises_of(chapter.number):
        for secret in SECRETS:
            assert not [case for case, outcome in drawn_and_run(exercise, secret) if refused(outcome)], exercise.id


@each_chapter
def test_other_right_answers_are_right_in_every_class(chapter: Chapter) -> None:
    for exercise in exercises_of(chapter.number):
        for secret in SECRETS[:4]:
            reference = hidden_reference(exercise.id, secret)
            for name, other in answers_to(exercise).alternatives.items():
                with limited(chapter.number):
                    outcomes = [run_probe(exercise, other, case.arrays, gradwright) for case in reference.cases]
                assert compared(exercise, reference, outcomes).right, (exercise.id, name)


ALWAYS = {
    "None": None, "0.0": 0.0, "1.0": 1.0, "True": True, "False": False, "()": (), "[]": [], "{}": {}, "a text": "",
    **{error.__name__: error for error in (ValueError, TypeError, IndexError, RuntimeError, KeyError, Exception)},
}  # fmt: skip


def always(what: object) -> Callable[..., object]:
    """An answer that gives this, or raises it, whatever it is called with."""

    def answer(*arguments: object, **named: object) -> object:
        if isinstance(what, type):
            raise what("always")
        return what

    return answer


@each_chapter
@pytest.mark.parametrize("what", ALWAYS)
def test_always_the_same_earns_nothing(chapter: Chapter, what: str) -> None:
    for exercise in exercises_of(chapter.number):
        answer = always(ALWAYS[what])
        target = type("Answer", (), {"__init__": answer}) if exercise.kind == "class" else answer
        reference = hidden_reference(exercise.id, SECRETS[0])
        with limited(chapter.number):
            outcomes = [run_probe(exercise, target, case.arrays, gradwright) for case in reference.cases]
        assert points_of(compared(exercise, reference, outcomes), exercise.points) == 0, exercise.id


@pytest.mark.parametrize(("place", "sentence"), [(0, "on 'small numbers, to follow by hand'"), (-1, "")])
def test_a_case_that_the_course_cannot_answer_costs_no_class(
    place: int, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A drawn one is left out. A named one is the same in every class, so somebody has to know of it."""
    exercise, right = find("start-dot"), hidden.right_answer(find("start-dot"))
    cases = exercise.make_cases(seed_of(SECRETS[0], exercise))

    def fussy(a: np.ndarray, b: np.ndarray) -> float:
        if a.tolist() == cases[place].arrays["a"].tolist():
            raise IndexError("not this one")
        return right(a, b)

    monkeypatch.setattr(hidden, "right_answer", lambda record: fussy)
    if sentence:
        with pytest.raises(SetupError, match=sentence):
            hidden_reference.__wrapped__("start-dot", SECRETS[0])
    else:
        kept = hidden_reference.__wrapped__("start-dot", SECRETS[0]).cases
        assert [case.name for case in kept] == [case.name for case in cases[:-1]]


def test_a_record_that_draws_nothing_that_can_be_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    exercise, right = find("start-dot"), hidden.right_answer(find("start-dot"))
    drawn = [case.arrays["a"].tolist() for case in exercise.make_cases(seed_of(SECRETS[0], exercise))[-DRAWN:]]

    def fussy(a: np.ndarray, b: np.ndarray) -> float:
        if a.tolist() in drawn:
            raise IndexError("not this one")
        return right(a, b)

    monkeypatch.setattr(hidden, "right_answer", lambda record: fussy)
    with pytest.raises(SetupError, match=r"fails all that is drawn for 0.2 dot: mend its record"):
        hidden_reference.__wrapped__("start-dot", SECRETS[0])
