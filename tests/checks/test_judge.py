"""Verdicts: what is right, what is wrong and why, and one sentence for what cannot be an answer."""

from __future__ import annotations

import numpy as np
import pytest

from autograder.checks.exercise import raised
from autograder.checks.judge import assess
from autograder.checks.run import Outcome, Raised, run_probe
from autograder.checks.stored import Reference
from tests.checks.small_exercise import make_exercise, make_reference, verdict_on


def sum_of_both(a, b):
    return a + b


def halved(a, b):
    """It is half of what it should be."""
    return (a + b) / 2


def first_only(a, b):
    """Only `a` is in it."""
    return a * 1.0


def refuses_squares(a, b):
    """It raises where both axes have one size."""
    if a.shape[0] == a.shape[1]:
        raise ValueError
    return a + b


KNOWN = {"halved": halved, "first_only": first_only, "refuses_squares": refuses_squares}


def judged(answer, **changes):
    return verdict_on(answer, sum_of_both, make_exercise(**changes), **KNOWN)


def mistakes(verdict):
    return [cause.mistake for cause in verdict.causes]


# Right


@pytest.mark.parametrize(
    "answer",
    [
        sum_of_both,
        lambda a, b: b + a,
        lambda a, b: (a + b).tolist(),
        lambda a, b: np.asfortranarray(a + b),
        lambda a, b: np.ma.masked_array(a + b),
        lambda a, b: (a + b) * (1 + 1e-9),
    ],
)
def test_a_right_answer_is_right_whatever_its_style(answer):
    verdict = judged(answer)
    assert verdict.right
    assert verdict.points == 2
    assert verdict.state == "right: 11 of 11 cases"
    assert (verdict.causes, verdict.failing) == ((), ())


def test_a_right_answer_that_prints_and_warns_is_right_and_shows_it():
    def answer(a, b):
        print("looking at", a.shape)
        np.log(np.array(0.0))
        return a + b

    verdict = judged(answer)
    assert verdict.right
    assert "printed  looking at (3, 4)" in verdict.text()
    assert "warned   RuntimeWarning: divide by zero encountered in log" in verdict.text()


# Wrong


@pytest.mark.parametrize("name", KNOWN)
def test_a_known_mistake_is_named_by_its_sentence(name):
    verdict = judged(KNOWN[name])
    assert not verdict.right
    assert verdict.points == 0
    assert mistakes(verdict) == [name]
    assert verdict.causes[0].text == KNOWN[name].__doc__


def test_a_mistake_in_other_words_is_named_too():
    verdict = judged(lambda x, y: 0.5 * x + 0.5 * y)
    assert mistakes(verdict) == ["halved"]
    assert verdict.causes[0].seen == 11


def test_an_answer_that_is_wrong_in_some_cases_names_the_mistake_of_those():
    def answer(a, b):
        return halved(a, b) if len(a) > 2 else a + b

    verdict = judged(answer)
    failing = [r for r in verdict.results if len(r.case.arrays["a"]) > 2]
    assert 0 < len(failing) < 11
    assert list(verdict.failing) == failing
    assert verdict.state == f"not yet: {11 - len(failing)} of 11 cases right"
    assert mistakes(verdict) == ["halved"]


def test_the_case_that_is_shown_is_one_that_the_cause_explains():
    def answer(a, b):
        return np.sin(a) if a.shape == (3, 4) else halved(a, b)

    verdict = judged(answer)
    assert verdict.failing[0].case.name == "a matrix of shape (3, 4)"
    assert mistakes(verdict) == ["halved"]
    assert "case     a matrix of shape (2, 5)" in verdict.text()


def test_an_error_that_most_cases_end_in_is_shown_before_what_explains_the_others():
    def answer(a, b):
        return {2: first_only, 4: first_only}[len(a)](a, b)

    verdict = judged(answer, draw=lambda rng: (3, 4))
    assert len([r for r in verdict.failing if r.outcome.raised]) == 9
    assert [cause.seen for cause in verdict.causes] == [2]
    assert "raised   KeyError: 3" in verdict.text()
    assert "(Seen in 2 of the 11 cases that fail.)" in verdict.text()


def refuses_negative(n):
    if n < 0:
        raise ValueError
    return float(n)


def accepts_all(n):
    """Negative numbers were accepted."""
    return float(n)


def judged_on_refusals(answer):
    """Five numbers and six drawn, of which three are to be refused."""

    def probe(target, arrays, framework):
        n = int(arrays["n"])
        return {"refused": raised(ValueError, target, n)} if n < 0 else {"y": target(n)}

    exercise = make_exercise(
        lambda rng, n: {"n": np.array(n)},
        probe=probe,
        cases={f"the number {n}": (n,) for n in (-1, -2, -3, 4, 5)},
        draw=lambda rng: (int(rng.integers(1, 9)),),
    )
    return verdict_on(answer, refuses_negative, exercise, accepts_all=accepts_all)


def test_what_was_not_refused_names_a_mistake_that_explains_most():
    assert mistakes(judged_on_refusals(lambda n: abs(n) * 1.0)) == ["accepts_all"]


@pytest.mark.parametrize("odd", [lambda n: "text", lambda n: (i for i in range(n)), lambda n: np.float64(n + 0.3)])
def test_what_was_not_refused_names_no_mistake_where_most_is_wrong_in_another_way(odd):
    verdict = judged_on_refusals(odd)
    assert len(verdict.failing) == 11
    assert mistakes(verdict) in ([], [""])
    assert "case     the number 4" in verdict.text()


def test_calls_that_go_round_in_a_circle_are_named_and_shown_where_they_began():
    verdict = judged(lambda a, b: sum_in_a_circle(a, b))
    assert [cause.text[:29] for cause in verdict.causes] == ["It calls itself without end: "]
    assert verdict.causes[0].seen == 11


def sum_in_a_circle(a, b):
    return sum_in_a_circle(b, a)


def test_a_circle_through_another_file_is_shown_in_the_answer_s_own():
    scope = {}
    exec(compile("def method(f, a, b):\n    return f(a, b)", "given.ipynb, cell 3", "exec"), scope)
    exec(compile("def answer(a, b):\n    return method(answer, a, b)", "mine.ipynb, cell 9", "exec"), scope)
    outcome = run_probe(make_exercise(), scope["answer"], {"a": np.ones(2), "b": np.ones(2)}, None)
    assert outcome.raised.where.startswith("mine.ipynb, cell 9, line 2")


def test_a_mistake_that_would_have_spoilt_what_is_right_is_not_named():
    def answer(a, b):
        return halved(a, b) if a.shape == (2, 5) else a + b

    verdict = judged(answer, draw=lambda rng: (3, 3))
    assert len(verdict.failing) == 1
    assert mistakes(verdict) == [""]
    assert verdict.causes[0].text == "The right answer times 0.5."


def test_a_mistake_that_is_right_in_the_case_that_fails_is_not_named():
    def squares_negated(a):
        """The sign is wrong where both axes have one size."""
        return -int(a.sum()) if a.shape == (3, 3) else int(a.sum())

    def answer(a):
        return np.float64(a.sum()) if a.shape == (2, 5) else a.sum()

    exercise = make_exercise(lambda rng, *shape: {"a": rng.integers(1, 9, shape)}, draw=lambda rng: (3, 4))
    verdict = verdict_on(answer, lambda a: int(a.sum()), exercise, squares_negated=squares_negated)
    assert [cause.text for cause in verdict.causes] == [
        "The numbers are right, the dtype is not: float64 instead of int64."
    ]


def test_what_explains_more_of_the_failing_cases_is_said():
    def answer(a, b):
        return first_only(a, b) if a.shape in [(2, 5), (4, 2)] else 3 * (a + b)

    verdict = judged(answer, draw=lambda rng: (3, 4))
    assert len(verdict.failing) == 11
    assert [(cause.text, cause.seen) for cause in verdict.causes] == [("The right answer times 3.", 9)]


def test_only_a_single_case_may_have_two_causes():
    def one(a, b):
        """It is one where the sum is small."""
        return np.where(abs(a + b) < 1e9, 1.0, 0.0)

    def also_one(a, b):
        """It is one wherever it is less than two squares."""
        return np.where(a + b < 1e9, 1.0, 0.0)

    exercise = make_exercise()
    reference = make_reference(exercise, sum_of_both, {"one": one, "also_one": also_one})
    case = reference.cases[0]
    single = Reference((case,), reference.sentences)
    assert mistakes(assess(exercise, single, [run_probe(exercise, one, case.arrays, None)])) == ["one", "also_one"]


def test_mistakes_are_told_apart_by_the_cases_that_are_right():
    """On square matrices `refuses_squares` raises and `shape_of_a` does not: neither is taken for the other."""
    assert mistakes(judged(refuses_squares)) == ["refuses_squares"]

    def refuses_everything(a, b):
        raise ValueError

    assert mistakes(judged(refuses_everything)) == []


def test_a_wrong_answer_that_is_nothing_known_gets_no_cause():
    verdict = judged(lambda a, b: np.sin(a) + np.cos(b))
    assert len(verdict.failing) == 11
    assert verdict.causes == ()


@pytest.mark.parametrize(
    "answer",
    [
        lambda a, b: None,
        lambda a, b: "text",
        lambda a, b: float("nan"),
        lambda a, b: np.full(a.shape, np.nan),
        lambda a, b: a + b + 1e-6,
        lambda a, b: (a + b).astype("f4"),
        lambda a, b: (a + b)[None],
        lambda a, b: np.zeros((0,)),
        lambda a, b: (a + b) + 0j,
        lambda a, b: (x for x in a + b),
        lambda a, b: a.__iadd__(b),
        lambda a, b: 1 / 0,
        lambda a: a,
    ],
)
def test_a_wrong_answer_is_wrong_in_every_case(answer):
    verdict = judged(answer)
    assert not verdict.right
    assert verdict.points == 0
    assert len(verdict.failing) == verdict.total == 11


def test_one_wrong_element_in_one_case_is_enough():
    def answer(a, b):
        out = a + b
        if a.shape == (5, 3):
            out[4, 2] += 1e-5
        return out

    verdict = judged(answer, draw=lambda rng: (2, 2))
    assert verdict.state == "not yet: 10 of 11 cases right"
    assert "at [4, 2]" in verdict.text()
    assert verdict.points == 0


def test_an_input_changed_in_place_is_wrong_even_where_the_values_are_right():
    def answer(a, b):
        a += b
        return a

    verdict = judged(answer)
    assert len(verdict.failing) == 11
    assert not any(result.differences for result in verdict.failing)
    assert "changed in place" in verdict.text()


def test_a_case_that_answers_is_shown_before_one_that_raises():
    def answer(a, b):
        if a.shape == (3, 4):
            raise IndexError("first")
        return np.sin(a)

    assert "raised" not in judged(answer).text()


# Not written yet


def stub(number, name):
    def answer(a, b):
        raise NotImplementedError(f"Exercise {number}: {name}")

    return answer


def test_an_untouched_exercise_is_not_implemented_yet():
    verdict = judged(stub("0.3", "small"))
    assert verdict.state == "not implemented yet"
    assert (verdict.right, verdict.points, verdict.failing) == (False, 0, ())


def test_an_exercise_that_calls_an_untouched_one_is_blocked_by_it():
    verdict = judged(stub("0.1", "dot_loop"))
    assert verdict.state == "blocked by 0.1 dot_loop"
    assert "Do 0.1 dot_loop first: small builds on it" in verdict.text()
    assert (verdict.right, verdict.points) == (False, 0)


def test_an_exercise_that_is_blocked_in_its_last_case_is_blocked():
    def answer(a, b):
        return stub("0.1", "dot_loop")(a, b) if a.shape == (5, 3) else a + b

    assert judged(answer).state == "blocked by 0.1 dot_loop"


def test_not_implemented_in_other_words_is_an_exception_like_any_other():
    def answer(a, b):
        raise NotImplementedError("later")

    verdict = judged(answer)
    assert verdict.state == "not yet: 0 of 11 cases right"
    assert "raised   NotImplementedError: later" in verdict.text()


# Outcomes that came from elsewhere


def test_a_case_without_an_outcome_is_not_right():
    exercise = make_exercise()
    reference = make_reference(exercise, sum_of_both)
    outcomes = [Outcome(case.wanted) for case in reference.cases]
    assert assess(exercise, reference, outcomes).right
    for some in (outcomes[:-1], outcomes[:1], []):
        verdict = assess(exercise, reference, some)
        assert not verdict.right
        assert verdict.state == f"not yet: {len(some)} of 11 cases right"
        assert "Some cases have not been run." in verdict.text()


def test_nothing_to_compare_with_is_not_right():
    assert not assess(make_exercise(), Reference((), {}), []).right


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome(),
        Outcome({"x": np.zeros((3, 4))}),
        Outcome({"y": np.zeros((3, 4), "i4,f8")}),
        Outcome({"y": np.zeros((3, 4), "M8[s]")}),
        Outcome({"y": np.zeros((3, 4), "S3")}),
        Outcome({"y": np.zeros((3, 4), object)}),
        Outcome({"y": np.full((3, 4), "<b>")}),
        Outcome(raised=Raised("", "", "")),
    ],
)
def test_any_outcome_at_all_is_judged_and_shown(outcome):
    exercise = make_exercise()
    reference = make_reference(exercise, sum_of_both, KNOWN)
    verdict = assess(exercise, reference, [outcome] * 11)
    assert verdict.points == 0
    assert verdict.text() and verdict.html()
