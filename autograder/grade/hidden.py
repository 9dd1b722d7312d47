"""Hidden cases: the inputs that a class is graded on, drawn from a secret, and what is right on them.

The secret is in the class folder. From it, the chapter and the exercise follow the seeds: a regrade draws the same
cases, and another class others.
"""

from __future__ import annotations

import hmac
import importlib
import math
import os
import secrets
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from typing import Any

import gradwright
from autograder.checks.compare import compare_outputs
from autograder.checks.exercise import Case, Exercise, find
from autograder.checks.run import Outcome, run_probe
from autograder.checks.stored import Print, Reference, StoredCase, read_reference
from autograder.checks.verdict import Verdict
from autograder.errors import SetupError
from autograder.grade.classroom import Classroom
from gradwright._chapters import find_chapter
from gradwright._framework import limited
from gradwright._loader import read_notebook, read_source

LENGTH = 32
LEAST = Fraction(1, 2)
"""The share of cases from which on there are points: of some cases, an empty answer is right already, and a wrong one
that happens to be right here and there has not shown what the exercise asks for."""


def secret_of(room: Classroom) -> bytes:
    """The secret of a class, made when it is missing. Raises SetupError for one that is no secret."""
    path = room.secret
    if not path.exists():
        unfinished = path.with_name(f"{path.name}-{os.getpid()}")
        unfinished.unlink(missing_ok=True)
        handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(secrets.token_hex(LENGTH) + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    try:
        secret = bytes.fromhex(path.read_text(encoding="ascii").strip())
    except ValueError:
        secret = b""
    if len(secret) != LENGTH:
        raise SetupError(f"{path} is not the secret that it was: put it back, or delete it and grade the class afresh.")
    return secret


def seed_of(secret: bytes, exercise: Exercise) -> int:
    """The seed of an exercise's hidden cases."""
    text = f"{find_chapter(exercise.chapter).folder}/{exercise.id}"
    return int.from_bytes(hmac.digest(secret, text.encode(), "sha256")[:8], "big")


@cache
def hidden_reference(exercise: str, secret: bytes) -> Reference:
    """The hidden cases of an exercise with what the reference implementation gives.

    A drawn case that the reference implementation itself refuses is left out: the secret decides what is drawn, and no
    class may be lost to the fault of a record. Raises SetupError for a named case, which is refused in every class, and
    where nothing drawn is left.
    """
    record = find(exercise)
    cases = [
        StoredCase(case.name, case.arrays, outcome.outputs)
        for case, outcome in drawn_and_run(record, secret)
        if not (refused(outcome) and case.name not in record.cases)
    ]
    if len(cases) == len(record.cases):
        raise SetupError(f"the reference implementation fails all that is drawn for {record.title}: mend its record")
    return Reference(tuple(cases), {})


def drawn_and_run(record: Exercise, secret: bytes) -> Iterator[tuple[Case, Outcome]]:
    """The hidden cases, and what the reference implementation makes of each. Raises SetupError."""
    target = right_answer(record)
    with limited(record.chapter):
        for case in record.make_cases(seed_of(secret, record)):
            outcome = run_probe(record, target, case.arrays, gradwright)
            if refused(outcome) and case.name in record.cases:
                raise SetupError(f"the reference implementation fails {record.title} on {case.name!r}: mend solutions/")
            yield case, outcome


def refused(outcome: Outcome) -> bool:
    return bool(outcome.raised or outcome.odd or outcome.changed)


@cache
def shown_reference(exercise: str) -> Reference:
    """The cases that come with the notebook."""
    return read_reference(find(exercise))


def right_answer(exercise: Exercise) -> Any:
    """What solutions/ has for an exercise."""
    chapter = find_chapter(exercise.chapter)
    if not chapter.source.is_file():
        raise SetupError(f"{chapter.source} is missing: grading needs a copy of the project with its solutions")
    with limited(exercise.chapter + 1):
        found: Any = importlib.import_module(chapter.module)
        for step in exercise.name.split("."):
            found = getattr(found, step)
        return found


@cache
def is_solved_by(exercise: str, other: str, secret: bytes) -> bool:
    """Whether what solutions/ has for another exercise is right here too: to call it is then no answer."""
    record, target = find(exercise), right_answer(find(other))
    if find(other).kind != record.kind:
        return False
    with limited(record.chapter):
        for case in hidden_reference(exercise, secret).cases:
            outcome = run_probe(record, target, case.arrays, gradwright)
            if refused(outcome) or compare_outputs(outcome, case.wanted):
                return False
    return True


@cache
def answer_texts(chapter: int) -> dict[str, str]:
    """Exercise id to the text of its cell in solutions/."""
    cells = read_source(find_chapter(chapter).source)
    return {cell.marks["exercise"]: cell.text for cell in cells if "exercise" in cell.marks}


@cache
def released_texts(chapter: int) -> dict[str, str]:
    """Exercise id to the text of its cell as it is handed out."""
    cells = read_notebook(find_chapter(chapter).release)
    return {cell.marks["exercise"]: cell.text for cell in cells if "exercise" in cell.marks}


def points_of(verdict: Verdict, worth: float) -> float:
    """Points for hidden cases: all where all are right, else a share, rounded down to a tenth of a point.

    The share is that of all cases or that of the drawn ones that no notebook has, whichever is smaller: a table of the
    values that come with the notebook is no answer. Less than half is nothing, and so is an answer that is right only
    where one and the same result is, of the drawn cases: always to give it, or always to raise, is no answer either.
    """
    if verdict.right:
        return worth
    new = fresh_cases(verdict)
    right = [result.right for result in verdict.results] + [False] * (verdict.total - len(verdict.results))
    if len({verdict.results[i].case.outputs for i in new if right[i]}) < 2:
        return 0.0
    fresh = [right[i] for i in new]
    share = min(Fraction(sum(group), len(group)) for group in (right, fresh))
    return math.floor(10 * Fraction(worth) * share) / 10 if share >= LEAST else 0.0


def fresh_cases(verdict: Verdict) -> list[int]:
    """Positions of the drawn cases whose inputs are not among those that come with the notebook."""
    known = shown_inputs(verdict.exercise.id)
    drawn = range(len(verdict.exercise.cases), len(verdict.results))
    return [i for i in drawn if verdict.results[i].case.inputs not in known]


@cache
def shown_inputs(exercise: str) -> frozenset[Print]:
    return frozenset(case.inputs for case in shown_reference(exercise).cases)
