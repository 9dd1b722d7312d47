"""Outcomes and reference values to a verdict.

`assess` is pure and never sees the learner's object; `judge` runs the probes too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from autograder.checks.causes import likely_causes
from autograder.checks.compare import Difference, compare_outputs, same_outcome
from autograder.checks.exercise import STUB, Exercise, exercises_of
from autograder.checks.run import NO_RETURN, Outcome, run_probe, words
from autograder.checks.stored import Reference, StoredCase, identical, read_reference
from autograder.checks.verdict import Cause, Result, Verdict, explains
from autograder.errors import BadInput

MOST_SWAPS = 6


def judge(exercise: Exercise, target: Any, framework: Any, reference: Reference | None = None) -> Verdict:
    """Run every stored case of the exercise on `target` and judge what comes back."""
    check_target(exercise, target)
    reference = reference or read_reference(exercise)
    outcomes = []
    for case in reference.cases:
        outcomes.append(run_probe(exercise, target, case.arrays, framework))
        if stub_of(outcomes[-1]):
            break
    verdict = assess(exercise, reference, outcomes)
    if verdict.failing and not explains(verdict.causes, verdict):
        return verdict.with_causes(swapped(exercise, target, framework, reference, verdict) or list(verdict.causes))
    return verdict


def check_target(exercise: Exercise, target: Any) -> None:
    """One sentence for an object that cannot be the answer."""
    call = f'check("{exercise.id}", {exercise.name})'
    if not callable(target):
        got = f"{shown(target)} ({type(target).__name__})"
        raise BadInput(f"{exercise.id} asks for {exercise.name} itself and got {got}: write {call}, without calling it")
    if exercise.kind == "function" and isinstance(target, type):
        raise BadInput(
            f"{exercise.id} asks for a function and got the class {target.__name__}: begin its cell with "
            f"`def {exercise.name}(...)` and run it again"
        )
    if exercise.kind == "class" and not isinstance(target, type):
        raise BadInput(
            f"{exercise.id} asks for a class and got {shown(target)}, which is none: write {call}, and begin its cell "
            f"with `class {exercise.name}`"
        )
    own_name = getattr(target, "__qualname__", "")
    for other in exercises_of(exercise.chapter):
        if other.name == own_name != exercise.name:
            raise BadInput(
                f"{exercise.id} asks for {exercise.name} and got {own_name}, which is exercise {other.number}: "
                f"write {call}"
            )


def shown(target: Any) -> str:
    """A short text for an object, whose `__repr__` may be the learner's."""
    if isinstance(target, str):
        return repr(target[:40])
    name = getattr(target, "__qualname__", "")
    return name if isinstance(name, str) and name else " ".join(words(target).split())[:40]


def stub_of(outcome: Outcome) -> str:
    """`1.2 index` where the outcome is the unwritten stub of that exercise."""
    if outcome.raised and outcome.raised.kind == "NotImplementedError":
        match = STUB.search(outcome.raised.message)
        return f"{match[1]} {match[2]}" if match else ""
    return ""


def assess(exercise: Exercise, reference: Reference, outcomes: Sequence[Outcome]) -> Verdict:
    """The verdict on the outcomes of the first `len(outcomes)` cases; a case without an outcome is not right."""
    verdict = compared(exercise, reference, outcomes)
    return verdict.with_causes(find_causes(verdict, reference))


def compared(exercise: Exercise, reference: Reference, outcomes: Sequence[Outcome]) -> Verdict:
    """The verdict without causes."""
    for outcome in outcomes:
        if missing := stub_of(outcome):
            return Verdict(exercise, (), len(reference.cases), missing=missing)
    results = tuple(
        Result(case, outcome, tuple(compare_outputs(outcome, case.wanted)))
        for case, outcome in zip(reference.cases, outcomes, strict=False)
    )
    return Verdict(exercise, results, len(reference.cases))


def find_causes(verdict: Verdict, reference: Reference) -> list[Cause]:
    """The most telling explanation first: a known mistake that agrees everywhere, then what can be seen directly,
    then a known mistake that agrees in half of what fails, then what agrees in most: a general rule or a mistake."""
    if not verdict.failing:
        return []
    whole = [name for name in reference.sentences if all(agrees(result, name) for result in verdict.results)]
    if whole:
        return [known(name, reference, verdict.failing) for name in whole[:2]]
    if seen := seen_directly(verdict.failing):
        return seen
    partly = {name: found for name in reference.sentences if (found := partial_agreement(verdict, name))}
    most = max(map(len, partly.values()), default=0)
    likely = [name for name, found in partly.items() if len(found) == most > 1 or len(verdict.failing) == 1]
    mistakes = [known(name, reference, partly[name]) for name in likely[:2]]
    if explains(mistakes, verdict):
        return mistakes
    # What refuses no bad input may do so for many reasons: a value of a wrong kind refuses nothing either.
    mistakes = [one for one in mistakes if not all(result.yes_or_no for result in partly[one.mistake])]
    return sorted(by_rule(verdict.failing) + mistakes, key=lambda cause: -cause.seen)[:1]


def partial_agreement(verdict: Verdict, mistake: str) -> list[Result]:
    """The failing results with the values of the mistake, unless it would have spoilt more of those that are right."""
    found = agreeing(verdict.failing, mistake, arrays_only=True)
    found = [r for r in found if not identical(r.case.mistakes[mistake].outputs, r.case.wanted)]  # it is right there
    right = [r for r in verdict.results if r.right]
    return found if len(right) - len(agreeing(right, mistake)) <= len(found) else []


def agreeing(results: Sequence[Result], mistake: str, arrays_only: bool = False) -> list[Result]:
    """The results whose outcome is what the mistake gives."""
    return [r for r in results if not (arrays_only and r.outcome.raised) and agrees(r, mistake)]


def agrees(result: Result, mistake: str) -> bool:
    return mistake in result.case.mistakes and same_outcome(result.outcome, result.case.mistakes[mistake])


def known(mistake: str, reference: Reference, found: Sequence[Result]) -> Cause:
    return cause(reference.sentences[mistake], found, mistake)


def cause(text: str, found: Sequence[Result], mistake: str = "") -> Cause:
    return Cause(text, len(found), mistake, found[0].case.name)


def seen_directly(failing: Sequence[Result]) -> list[Cause]:
    """What needs no comparison of numbers."""
    changed = [r for r in failing if r.outcome.changed]
    if changed:
        names = " and ".join(f"`{name}`" for name in changed[0].outcome.changed)
        what = f"The input {names} was" if len(changed[0].outcome.changed) == 1 else f"The inputs {names} were"
        return [cause(f"{what} changed in place: work on a copy, the caller still needs it.", changed)]
    nothing = [r for r in failing if {"None", NO_RETURN} & set(r.outcome.odd.values())]
    if len(nothing) * 2 > len(failing):
        forgot = any(NO_RETURN in r.outcome.odd.values() for r in nothing)
        printed = any(r.outcome.printed for r in nothing)
        text = "The function returns None: " + (
            "it has no `return` with a value." if forgot else "some path through it ends without a `return`."
        )
        return [cause(text + " Printing a result does not return it." * printed, nothing)]
    circles = [r for r in failing if r.outcome.raised and r.outcome.raised.kind == "RecursionError"]
    if len(circles) * 2 > len(failing):
        text = "It calls itself without end: directly, or through a method or an operator that leads back to it."
        return [cause(text, circles)]
    return []


def by_rule(failing: Sequence[Result]) -> list[Cause]:
    """The general cause that most failing cases share; among equals, the one whose rule stands first."""
    votes: dict[str, list[Result]] = {}
    evidence: dict[str, float] = defaultdict(float)
    for result in failing:
        for difference in result.differences[:1]:
            for text in dict.fromkeys(likely_causes(difference, result.case.arrays)):
                votes.setdefault(text, []).append(result)
                evidence[text] += weight(difference)
    believed = [(text, found) for text, found in votes.items() if evidence[text] > 1 or len(found) > len(failing) / 2]
    believed = [(text, found) for text, found in believed if len(found) > 1 or evidence[text] > 1]
    return [cause(*max(believed, key=lambda one: len(one[1])))] if believed else []


def weight(difference: Difference) -> float:
    """How much it says that a rule gives these numbers. Few whole numbers agree with many rules by chance."""
    wanted = difference.wanted
    if difference.kind == "dtype":
        return np.inf
    whole = wanted.dtype.kind in "iub" or bool((wanted == np.round(wanted)).all())
    return wanted.size / 10 if whole else float(wanted.size)


def swapped(exercise: Exercise, target: Any, framework: Any, reference: Reference, verdict: Verdict) -> list[Cause]:
    """Whether the answer becomes right when two inputs are exchanged."""
    result = verdict.failing[0]
    if result.outcome.raised or result.outcome.odd:
        return []
    alike = [
        (a, b)
        for a, b in combinations(result.case.arrays, 2)
        if result.case.arrays[a].dtype == result.case.arrays[b].dtype
    ]
    for a, b in alike[:MOST_SWAPS]:
        if all_right_when_exchanged(exercise, target, framework, reference.cases, a, b):
            return [cause(f"It is right when `{a}` and `{b}` are exchanged: their roles are swapped.", verdict.failing)]
    return []


def all_right_when_exchanged(
    exercise: Exercise, target: Any, framework: Any, cases: Sequence[StoredCase], a: str, b: str
) -> bool:
    """Whether every case comes out right with two inputs exchanged, in those that have both."""
    for case in cases:
        both = {a, b} <= case.arrays.keys()
        arrays = case.arrays | {a: case.arrays[b], b: case.arrays[a]} if both else case.arrays
        outcome = run_probe(exercise, target, arrays, framework)
        if outcome.raised or compare_outputs(outcome, case.wanted):
            return False
    return True
