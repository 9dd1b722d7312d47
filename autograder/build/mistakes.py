"""`autograder mistakes`: is every known mistake caught and named, every alternative accepted, and all told apart?"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np

import gradwright
from autograder.build.answers import Answers, answers_to
from autograder.checks.compare import apart, same_dtype
from autograder.checks.exercise import Exercise, exercises_of, record_files
from autograder.checks.judge import judge
from autograder.checks.run import Outcome
from autograder.checks.stored import Reference, read_reference
from autograder.checks.verdict import Verdict

TOLERANCES_APART = 100
FEWEST = {"mistakes": 4, "alternatives": 1}


@dataclass(frozen=True)
class Count:
    """One row of the table."""

    id: str
    mistakes: int
    caught: int
    named: int
    alternatives: int
    accepted: int


def report(as_json: bool = False) -> int:
    """Print the table, or JSON. Returns 0 if all is well, else 1, with a line on stderr for each thing that is not."""
    counts, faults = [], []
    for chapter in record_files():
        gradwright.chapter(chapter)
        for exercise in exercises_of(chapter):
            count, own = examine(exercise, answers_to(exercise))
            counts.append(count)
            faults += own
    totals = {key: sum(getattr(c, key) for c in counts) for key in asdict(counts[0]) if key != "id"}
    if as_json:
        print(json.dumps({"exercises": [asdict(c) for c in counts], "totals": totals}, indent=1))
    else:
        print(table(counts, totals))
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


def table(counts: list[Count], totals: dict[str, int]) -> str:
    keys = list(totals)
    width = max(len(c.id) for c in counts)
    lines = [f"{'exercise':<{width}}  " + "  ".join(keys)]
    for row in [*map(asdict, counts), {"id": "all", **totals}]:
        lines.append(f"{row['id']:<{width}}  " + "  ".join(f"{row[key]:>{len(key)}}" for key in keys))
    return "\n".join(lines)


def examine(exercise: Exercise, answers: Answers) -> tuple[Count, list[str]]:
    """The row of an exercise, and a sentence for each thing that is wrong with it."""
    reference = read_reference(exercise)
    faults = [f"{exercise.id}: {sentence}" for sentence in standing(exercise, answers, reference)]
    caught = named = accepted = 0
    for name, wrong in answers.mistakes.items():
        verdict = judge(exercise, wrong, gradwright, reference)
        caught += not verdict.right
        found = [cause.mistake for cause in verdict.causes]
        named += found == [name]
        if verdict.right:
            faults.append(f"{exercise.id}: the mistake {name} passes: add a case that catches it")
        elif found != [name]:
            said = "; ".join(cause.text for cause in verdict.causes) or "nothing"
            faults.append(f"{exercise.id}: the mistake {name} is not named, the check says {said!r}")
    for name, other in answers.alternatives.items():
        verdict = judge(exercise, other, gradwright, reference)
        accepted += verdict.right
        if not verdict.right:
            faults.append(f"{exercise.id}: the alternative {name} is refused:\n{verdict.text()}")
        if unknown := outputs_unknown(verdict):
            faults.append(f"{exercise.id}: the probe gives {unknown} and the oracle does not: nothing compares it")
    count = Count(exercise.id, len(answers.mistakes), caught, named, len(answers.alternatives), accepted)
    return count, faults


def outputs_unknown(verdict: Verdict) -> str:
    """Names that the probe returns and the oracle does not."""
    pairs = [(r.outcome.outputs.keys() | r.outcome.odd.keys(), r.case.wanted.keys()) for r in verdict.results]
    return ", ".join(sorted({repr(name) for given, wanted in pairs for name in given - wanted}))


def standing(exercise: Exercise, answers: Answers, reference: Reference) -> list[str]:
    """What holds before anything is run: enough of each, stored as they are today, told apart."""
    found = [
        f"{len(getattr(answers, what))} {what}, and at least {fewest} are asked for"
        for what, fewest in FEWEST.items()
        if len(getattr(answers, what)) < fewest
    ]
    if answers.sentences != reference.sentences:
        found.append("the stored mistakes are not those of solutions/mistakes: run make references")
        return found
    right = [Outcome(case.wanted) for case in reference.cases]
    signatures = {name: [case.mistakes[name] for case in reference.cases] for name in reference.sentences}
    for a, b in combinations(["the right answer", *signatures], 2):
        distance = told_apart(signatures.get(a, right), signatures[b])
        if distance <= TOLERANCES_APART:
            found.append(f"{a} and {b} are only {distance:.3g} tolerances apart: add a case that tells them apart")
    return found


def told_apart(first: list[Outcome], second: list[Outcome]) -> float:
    """By how many tolerances two answers differ where they differ most."""
    return max(outcomes_apart(a, b) for a, b in zip(first, second, strict=True))


def outcomes_apart(a: Outcome, b: Outcome) -> float:
    kinds: list[Any] = [(o.raised and o.raised.kind, o.odd, o.changed) for o in (a, b)]
    if kinds[0] != kinds[1] or set(a.outputs) != set(b.outputs):
        return np.inf
    weak = a.weak | b.weak
    gaps = [0.0]
    for name, array in a.outputs.items():
        other = b.outputs[name]
        if name in weak and array.shape == other.shape and not same_dtype(array, other, weak=False):
            array, other = array.astype(np.float64), other.astype(np.float64)
        gaps.append(apart(array, other))
    return max(gaps)
