"""Finding an exercise, what cannot be an answer to it, and its cases."""

from __future__ import annotations

import re

import numpy as np
import pytest

from autograder.checks.exercise import exercises_of, find, record_files
from autograder.checks.judge import judge
from autograder.checks.notebook import check
from autograder.checks.stored import read_reference
from autograder.errors import BadInput
from tests.checks.small_exercise import make_exercise


def sum_of_both(a, b):
    return a + b


# What cannot be an answer


def message(call):
    with pytest.raises(BadInput) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 300
    return text


def judge_real(exercise_id, target):
    return lambda: judge(find(exercise_id), target, None)


def test_the_result_of_a_call_is_refused():
    text = message(judge_real("start-dot", np.float64(31.0)))
    assert text == (
        'start-dot asks for dot itself and got 31.0 (float64): write check("start-dot", dot), without calling it'
    )


@pytest.mark.parametrize("target", ["dot", None, [1, 2], np.zeros((50, 50)), "x" * 10**6, Ellipsis])
def test_what_cannot_be_called_is_refused_in_a_short_sentence(target):
    assert message(judge_real("start-dot", target)).endswith('write check("start-dot", dot), without calling it')


def test_what_cannot_even_be_shown_is_refused():
    class Hostile:
        def __repr__(self):
            raise ZeroDivisionError

    assert "without calling it" in message(judge_real("start-dot", Hostile()))


def test_a_class_is_refused_where_a_function_is_asked_for():
    class Dot:
        pass

    text = message(judge_real("start-dot", Dot))
    assert text == (
        "start-dot asks for a function and got the class Dot: begin its cell with `def dot(...)` and run it again"
    )


def test_a_function_is_refused_where_a_class_is_asked_for():
    exercise = make_exercise(kind="class", name="Small")
    text = message(lambda: judge(exercise, sum_of_both, None))
    assert text == (
        'start-small asks for a class and got sum_of_both, which is none: write check("start-small", Small), '
        "and begin its cell with `class Small`"
    )


def test_the_answer_to_another_exercise_is_refused():
    def dot_loop(a, b):
        return 0.0

    dot_loop.__qualname__ = "dot_loop"
    text = message(judge_real("start-dot", dot_loop))
    assert text == ('start-dot asks for dot and got dot_loop, which is exercise 0.1: write check("start-dot", dot)')


@pytest.mark.parametrize(
    "wanted, hint",
    [
        ("start-dots", "did you mean 'start-dot'?"),
        ("dot_loop", "did you mean 'start-dot-loop'?"),
        ("Start-Dot", "did you mean 'start-dot'?"),
    ],
)
def test_an_unknown_exercise_gets_a_suggestion(wanted, hint):
    assert message(lambda: find(wanted)) == f"there is no exercise {wanted!r}: {hint}"


def test_a_name_like_none_of_its_chapter_gets_all_of_them():
    wanted = "start-qqqqqqqqqqqqqqqqqqqqqqq"
    every = ", ".join(exercise.id for exercise in exercises_of(0))
    assert message(lambda: find(wanted)) == f"there is no exercise {wanted!r}: there are {every}"


@pytest.mark.parametrize("wanted", ["", "漢字", "no such exercise anywhere at all", "../start-dot", "start-dot\n"])
def test_any_other_text_is_refused_with_what_there_is(wanted):
    assert message(lambda: find(wanted)).startswith(f"there is no exercise {wanted!r}: ")


@pytest.mark.parametrize("wanted", [3, None, sum_of_both, ["start-dot"], b"start-dot"])
def test_a_name_that_is_no_text_is_refused(wanted):
    assert message(lambda: find(wanted)).endswith('write it in quotes, as in check("start-dot", dot)')


@pytest.mark.parametrize("given", [("start-dot-loop",), (sum_of_both, "start-dot-loop"), (None, "start-dot-loop")])
def test_a_check_without_its_answer_or_the_wrong_way_round_is_told_how_it_is_written(given):
    assert message(lambda: check(*given)) == (
        'check takes the exercise\'s name, as text, and then the answer: write check("start-dot-loop", dot_loop)'
    )


@pytest.mark.parametrize("chapter", [99, -1, "start", None])
def test_a_chapter_without_exercises_is_refused_with_those_that_have_some(chapter):
    assert message(lambda: exercises_of(chapter)).startswith(f"chapter {chapter!r} has no exercises here: those with ")


# Records


def test_every_record_is_found_by_its_id_and_numbered_in_order():
    for chapter in record_files():
        for position, exercise in enumerate(exercises_of(chapter), 1):
            assert find(exercise.id) is exercise
            assert exercise.number == f"{chapter}.{position}"
            assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", exercise.id)
            assert all(needed in {e.id for e in exercises_of(chapter)} for needed in exercise.needs)


def test_cases_are_the_same_on_every_call_and_other_with_another_seed():
    exercise = make_exercise()
    first, again, other = (exercise.make_cases(seed) for seed in (0, 0, 1))
    for one, two in zip(first, again, strict=True):
        assert one.name == two.name
        assert all(np.array_equal(one.arrays[n], two.arrays[n]) for n in one.arrays)
    assert not any(np.array_equal(a.arrays["a"], b.arrays["a"]) for a, b in zip(first, other, strict=True))


def test_a_new_case_changes_no_other():
    exercise = make_exercise()
    more = make_exercise(cases={"a new one": (2, 2), **exercise.cases})
    before = {case.name: case.arrays for case in exercise.make_cases(0)}
    for case in more.make_cases(0):
        if case.name != "a new one":
            assert all(np.array_equal(case.arrays[n], before[case.name][n]) for n in case.arrays)


def test_stored_cases_are_read_once_and_never_changed_by_an_answer():
    exercise = find("start-dot")
    reference = read_reference(exercise)

    def answer(a, b):
        a[...] = 0
        b[...] = 0
        return 0.0

    before = [case.arrays["a"].copy() for case in reference.cases]
    assert not judge(exercise, answer, None, reference).right
    assert all(np.array_equal(case.arrays["a"], a) for case, a in zip(reference.cases, before, strict=True))
