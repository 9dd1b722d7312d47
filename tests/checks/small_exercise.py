"""Small exercises for the tests of the checks, with reference values made on the spot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from autograder.checks.exercise import Arrays, Exercise
from autograder.checks.judge import judge
from autograder.checks.run import run_probe
from autograder.checks.stored import Reference, StoredCase
from autograder.checks.verdict import Verdict

SHAPES = ((3, 4), (2, 5), (4, 2), (3, 3), (5, 3))


def call_with_all(target: Any, arrays: Arrays, framework: Any) -> dict[str, Any]:
    return {"y": target(*arrays.values())}


def one_matrix(rng: np.random.Generator, *shape: int) -> Arrays:
    return {"a": rng.standard_normal(shape)}


def two_matrices(rng: np.random.Generator, *shape: int) -> Arrays:
    return {"a": rng.standard_normal(shape), "b": rng.standard_normal(shape)}


def make_exercise(inputs: Callable[..., Arrays] = two_matrices, **changes: Any) -> Exercise:
    """An exercise of chapter 00 that stands in no file of records."""
    record: dict[str, Any] = {
        "id": "start-small",
        "name": "small",
        "difficulty": "Easy",
        "minutes": 5,
        "points": 2,
        "probe": call_with_all,
        "cases": {f"a matrix of shape {shape}": shape for shape in SHAPES},
        "inputs": inputs,
        "draw": lambda rng: SHAPES[rng.integers(len(SHAPES))],
        "see": "the formula above the exercise",
        "chapter": 0,
        "position": 3,
    }
    return Exercise(**record | changes)


def make_reference(exercise: Exercise, right: Any, mistakes: dict[str, Any] | None = None) -> Reference:
    """The reference values of an exercise: `right` is its answer, the docstrings of mistakes are their sentences."""
    mistakes = mistakes or {}
    cases = tuple(
        StoredCase(
            case.name,
            case.arrays,
            run_probe(exercise, right, case.arrays, None).outputs,
            {name: run_probe(exercise, wrong, case.arrays, None) for name, wrong in mistakes.items()},
        )
        for case in exercise.make_cases(0)
    )
    return Reference(cases, {name: wrong.__doc__ for name, wrong in mistakes.items()})


def verdict_on(answer: Any, right: Any, exercise: Exercise | None = None, **mistakes: Any) -> Verdict:
    """The verdict on an answer, where `right` gives the right values."""
    exercise = exercise or make_exercise()
    return judge(exercise, answer, None, make_reference(exercise, right, mistakes))
