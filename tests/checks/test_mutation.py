"""Mutations of the engine itself: a check that is broken in any of these ways must not go unnoticed.

`complaints` is what notices: the author's report (`autograder mistakes`) on a small exercise, and a few assertions of
what a verdict must be. With the engine as it is there is none; with each fault there is at least one.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from importlib import import_module

import numpy as np
import pytest

from autograder.build import mistakes as report
from autograder.build.answers import Answers
from autograder.checks import compare, run, stored
from autograder.checks.exercise import raised
from autograder.checks.run import Outcome
from autograder.checks.stored import read_exercise, write_exercise
from autograder.checks.verdict import Result, Verdict
from tests.checks.small_exercise import make_exercise, make_reference

judge = import_module("autograder.checks.judge")
"""The module: the package's own `judge` is the function in it."""


def probe(target, arrays, framework):
    a, b = arrays["a"], arrays["b"]
    return {"y": target(a, b), "refuses": raised(ValueError, target, a, np.ones(9))}


def right(a, b):
    if a.shape != b.shape:
        raise ValueError(f"a is of shape {a.shape} and b of shape {b.shape}")
    return np.tanh(a) - 2 * b


class Mistakes:
    def sign(a, b):
        """The second term is added: take it away."""
        return right(a, -b)

    def slightly_off(a, b):
        """The factor is not quite 2: use 2."""
        return right(a, b) - 1e-4 * b

    def one_axis_too_many(a, b):
        """There is an axis too many in front: leave it out."""
        return right(a, b)[None]

    def single_precision(a, b):
        """It is computed in single precision: keep the dtype."""
        return right(a, b).astype(np.float32)

    def integers(a, b):
        """Halves are cut off: keep them."""
        return np.trunc(right(a, b))

    def raises_on_squares(a, b):
        """It raises where both axes have one size: let it take any shape."""
        if a.shape[0] == a.shape[1]:
            raise ValueError
        return right(a, b)

    def changes_a(a, b):
        """It changes `a`: work on a copy."""
        out = right(a, b)
        a += 1
        return out

    def returns_nothing(a, b):
        """It computes and does not return: return what it computes."""
        right(a, b)

    def never_refuses(a, b):
        """Shapes that do not fit are accepted: compare them first."""
        return right(a, b) if a.shape == b.shape else np.zeros(1)

    def last_row_only(a, b):
        """Only the last row is right: go over all of them."""
        out = right(a, b)
        out[:-1] = 0
        return out

    def wrong_on_the_last_case(a, b):
        """Tall matrices come out wrong: do not take them for wide ones."""
        return right(a, b) if a.shape != (5, 3) else right(b, a)


class Alternatives:
    def by_exponentials(a, b):
        right(a, b)
        return (np.exp(2 * a) - 1) / (np.exp(2 * a) + 1) - b - b

    def as_lists(a, b):
        return right(a, b).tolist()


EXERCISE = make_exercise(probe=probe)
ANSWERS = Answers(None, *({n: f for n, f in vars(c).items() if n[0] != "_"} for c in (Mistakes, Alternatives)))


def reference():
    """The stored values of the exercise, written and read again."""
    made = make_reference(EXERCISE, right, ANSWERS.mistakes)
    return read_exercise(*write_exercise(made))


REFERENCE = reference()
"""Made by the engine as it is: a broken one judges against true values."""


def complaints(monkeypatch):
    """What is found wrong with the engine."""
    monkeypatch.setattr(report, "read_reference", lambda exercise: REFERENCE)
    found = []
    with noting(found, "the report runs"):
        count, faults = report.examine(EXERCISE, ANSWERS)
        found += faults
        expect(found, "every mistake is counted", count.caught == count.named == len(ANSWERS.mistakes))
        expect(found, "every alternative is counted", count.accepted == len(ANSWERS.alternatives))
    for assertion in ASSERTIONS:
        with noting(found, assertion.__name__):
            expect(found, assertion.__name__, assertion())
    return found


@contextlib.contextmanager
def noting(found, what):
    try:
        yield
    except Exception as error:
        found.append(f"{what}: {type(error).__name__}: {error}")


def expect(found, what, holds):
    if not holds:
        found.append(what)


def judged(answer):
    return judge.judge(EXERCISE, answer, None, REFERENCE)


def a_right_answer_earns_its_points():
    return judged(right).points == EXERCISE.points


def a_wrong_answer_earns_nothing():
    return judged(lambda a, b: right(a, b) + 1).points == 0


def an_unwritten_answer_is_said_to_be_unwritten():
    def answer(a, b):
        raise NotImplementedError(f"Exercise {EXERCISE.number}: {EXERCISE.name}")

    return judged(answer).state == "not implemented yet" and not judged(answer).right


def an_exception_is_wrong_and_told():
    def answer(a, b):
        return 1 / 0

    return not judged(answer).right and "ZeroDivisionError" in judged(answer).text()


def one_wrong_element_is_enough():
    def answer(a, b):
        out = right(a, b)
        out[0, 0] += 1e-5
        return out

    return len(judged(answer).failing) == judged(answer).total


def nan_is_no_number():
    return not judged(lambda a, b: right(a, b) * np.nan).right


def a_general_cause_is_given():
    causes = judged(lambda a, b: 3 * right(a, b)).causes
    return [cause.text for cause in causes] == ["The right answer times 3."]


def swapped_operands_are_seen():
    return ["roles are swapped" in cause.text for cause in judged(lambda a, b: right(b, a)).causes] == [True]


def what_is_nothing_known_has_no_cause():
    return judged(lambda a, b: np.cos(a * b + a)).causes == ()


def what_is_printed_is_shown():
    return "printed  so" in judged(lambda a, b: print("so") or right(a, b)).text()


def mistakes_that_cannot_be_told_apart_are_reported():
    twins = replace(ANSWERS, mistakes={"one": Mistakes.sign, "two": Mistakes.sign})
    same = make_reference(EXERCISE, right, twins.mistakes)
    return any("tell" in sentence for sentence in report.standing(EXERCISE, twins, same))


ASSERTIONS = (
    a_right_answer_earns_its_points,
    a_wrong_answer_earns_nothing,
    an_unwritten_answer_is_said_to_be_unwritten,
    an_exception_is_wrong_and_told,
    one_wrong_element_is_enough,
    nan_is_no_number,
    a_general_cause_is_given,
    swapped_operands_are_seen,
    what_is_nothing_known_has_no_cause,
    what_is_printed_is_shown,
    mistakes_that_cannot_be_told_apart_are_reported,
)


@dataclass(frozen=True)
class Fault:
    """A name of a module, or of a class in it, and what it is replaced by: a function of what was there."""

    what: str
    owner: object
    name: str
    broken: object


def keep(kinds):
    """compare_outputs without the differences of other kinds."""
    return lambda true: lambda outcome, wanted: [d for d in true(outcome, wanted) if d.kind in kinds]


def outcome_with(**fields):
    """run_probe with fields of its outcome overwritten."""
    return lambda true: lambda *given: replace(true(*given), **fields)


def swallowing(true):
    """An exception passes for the right values."""

    def run_probe(exercise, target, arrays, framework):
        outcome = true(exercise, target, arrays, framework)
        case = next(c for c in REFERENCE.cases if all(np.array_equal(c.arrays[n], arrays[n]) for n in arrays))
        return Outcome(case.wanted) if outcome.raised else outcome

    return run_probe


def first_case_only(true):
    return lambda exercise, reference, outcomes: true(
        exercise, replace(reference, cases=reference.cases[:1]), outcomes[:1]
    )


def first_output_only(true):
    return lambda outcome, wanted: true(outcome, dict(list(wanted.items())[:1]))


def finite_only(true):
    return lambda got, wanted: np.nan_to_num(true(got, wanted), posinf=0)


def constant(value):
    return lambda true: lambda *given, **named: value


EVERY_KIND = {"missing", "odd", "shape", "dtype", "values"}

FAULTS = [
    Fault("compare finds nothing", compare, "compare", constant(None)),
    Fault("tolerance times a million", compare, "allowed", lambda true: lambda wanted: 1e6 * true(wanted)),
    Fault("tolerance of zero", compare, "allowed", lambda true: lambda wanted: 0 * true(wanted)),
    Fault(
        "nan differs from nothing", compare, "distance", lambda true: lambda a, b: np.nan_to_num(true(a, b), posinf=0)
    ),
    Fault("any dtype will do", compare, "same_dtype", constant(True)),
    Fault("no dtype will do", compare, "same_dtype", constant(False)),
    *(
        Fault(f"differences of {kind} are dropped", judge, "compare_outputs", keep(EVERY_KIND - {kind}))
        for kind in ("odd", "shape", "dtype", "values")
    ),
    Fault("only the first output is compared", judge, "compare_outputs", first_output_only),
    Fault("only the first case is judged", judge, "assess", first_case_only),
    Fault("changed inputs are ignored", run, "unchanged", constant(True)),
    Fault("every input counts as changed", run, "unchanged", constant(False)),
    Fault("exceptions are swallowed", judge, "run_probe", swallowing),
    Fault("exceptions are dropped", judge, "run_probe", outcome_with(raised=None)),
    Fault("None is not noticed", judge, "run_probe", outcome_with(odd={})),
    Fault("output is dropped", judge, "run_probe", outcome_with(printed="")),
    Fault("an unwritten stub is an exception", judge, "stub_of", constant("")),
    Fault("everything is unwritten", judge, "stub_of", constant("0.3 small")),
    Fault("no two outcomes are the same", judge, "same_outcome", constant(False)),
    Fault("all outcomes are the same", judge, "same_outcome", constant(True)),
    Fault("causes are dropped", judge, "find_causes", constant([])),
    Fault("rules say nothing", judge, "likely_causes", constant([])),
    Fault("rules always say the same", judge, "likely_causes", constant(["It is wrong."])),
    Fault("swapped operands are not tried", judge, "swapped", constant([])),
    Fault("every verdict is right", Verdict, "right", lambda true: property(lambda self: True)),
    Fault("no verdict is right", Verdict, "right", lambda true: property(lambda self: False)),
    Fault("every result is right", Result, "right", lambda true: property(lambda self: True)),
    Fault("points are given to everybody", Verdict, "points", lambda true: property(lambda self: 2)),
    Fault("the report tells all mistakes apart", report, "apart", constant(np.inf)),
    Fault("mistakes are stored as right", stored, "identical", constant(True)),
]


def test_the_engine_as_it_is_has_no_complaints(monkeypatch):
    assert complaints(monkeypatch) == []


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.what)
def test_a_fault_of_the_engine_is_noticed(fault, monkeypatch):
    true = vars(fault.owner)[fault.name]
    monkeypatch.setattr(fault.owner, fault.name, fault.broken(true))
    if fault.owner is stored:
        monkeypatch.setitem(globals(), "REFERENCE", reference())
    assert complaints(monkeypatch) != []
