"""The record of an exercise, and where records are found.

Everything about an exercise follows from its id: the cell, the check cell, the stored values, the mistakes. The records
of chapter NN are the list `exercises` in exercises/NN_name.py; an id begins with that name, as in `tensor-strides`.
"""

from __future__ import annotations

import difflib
import importlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from autograder.errors import BadInput

RECORDS = Path(__file__).parent / "exercises"
DRAWN = 6
"""How many cases are drawn at random beside the named ones."""

STUB = re.compile(r"Exercise (\d+\.\d+): (\S{1,80})")
"""What the released cell of an exercise raises until something is written there."""

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Case:
    """One set of inputs. The name states the wrong idea that the case exists for."""

    name: str
    arrays: Arrays


@dataclass(frozen=True, kw_only=True)
class Exercise:
    """What an exercise asks. It ships to learners, so no answer is in it."""

    id: str
    """Chapter name and more, lower-case letters, digits and hyphens: also the cell's id and nbgrader's grade_id."""
    name: str
    """What the notebook calls the answer: `unbroadcast`."""
    kind: str = "function"
    """`function` or `class`: what `check` asks for."""
    difficulty: str
    """Easy, Medium or Hard."""
    minutes: int
    points: int
    probe: Callable[[Any, Arrays, Any], Mapping[str, Any]]
    """probe(target, arrays, framework): calls the answer on plain arrays and returns plain arrays by name, outputs and
    gradients. The only code that touches the learner's object."""
    cases: Mapping[str, tuple]
    """Name of each edge case and its arguments for `inputs`."""
    inputs: Callable[..., Arrays]
    """inputs(rng, *arguments): the arrays of a case."""
    draw: Callable[[np.random.Generator], tuple]
    """draw(rng): arguments of one more case."""
    see: str = ""
    """Where a learner whose answer is wrong should look next."""
    needs: tuple[str, ...] = ()
    """Ids of the exercises of the same notebook that the answer builds on."""
    chapter: int = -1
    """Set when the record is read, as is the position in its chapter."""
    position: int = 0

    @property
    def number(self) -> str:
        """As the notebook writes it: `2.3`."""
        return f"{self.chapter}.{self.position}"

    @property
    def title(self) -> str:
        return f"{self.number} {self.name}"

    @property
    def case_names(self) -> list[str]:
        return [*self.cases, *(f"drawn at random, number {i + 1}" for i in range(DRAWN))]

    def make_cases(self, seed: int) -> list[Case]:
        """The named cases and `DRAWN` random ones. Each has its own stream: adding a case changes no other."""

        def stream(*key: int) -> np.random.Generator:
            return np.random.default_rng([seed, crc32(self.id.encode()), *key])

        named = [self.inputs(stream(0, crc32(name.encode())), *given) for name, given in self.cases.items()]
        drawn = [self.inputs(rng, *self.draw(rng)) for rng in (stream(1, i) for i in range(DRAWN))]
        return [Case(name, arrays) for name, arrays in zip(self.case_names, named + drawn, strict=True)]


def raised(error: type[Exception], function: Callable[..., Any], *arguments: Any) -> np.ndarray:
    """For probes: whether the call raised `error`, as an array. Other exceptions pass through."""
    try:
        function(*arguments)
    except error as met:
        if isinstance(met, NotImplementedError) and (STUB.search(str(met)) or error is not NotImplementedError):
            raise
        return np.array(True)
    return np.array(False)


@cache
def record_files() -> dict[int, Path]:
    """Chapter number to file of records, for every chapter that has one."""
    found = sorted(RECORDS.glob("[0-9][0-9]_*.py"))
    return {int(path.stem[:2]): path for path in found}


@cache
def exercises_of(chapter: int) -> tuple[Exercise, ...]:
    """The records of a chapter, in the order of the notebook."""
    files = record_files()
    if chapter not in files:
        known = ", ".join(f"{n:02d}" for n in files)
        raise BadInput(f"chapter {chapter!r} has no exercises here: those with exercises are {known}")
    module = importlib.import_module(f"autograder.checks.exercises.{files[chapter].stem}")
    return tuple(replace(e, chapter=chapter, position=i) for i, e in enumerate(module.exercises, 1))


def find(exercise_id: str) -> Exercise:
    """The record with this id."""
    if not isinstance(exercise_id, str):
        raise BadInput(
            f"check asks for the exercise's name first, as text, and got {type(exercise_id).__name__}: write it in "
            f'quotes, as in check("start-dot", dot)'
        )
    for number, path in record_files().items():
        if exercise_id.startswith(path.stem[3:] + "-"):
            for exercise in exercises_of(number):
                if exercise.id == exercise_id:
                    return exercise
    every = [e.id for number in record_files() for e in exercises_of(number)]
    near = difflib.get_close_matches(exercise_id, every, 1, 0.4)
    chapter = [i for i in every if i.split("-")[0] == re.split("-", exercise_id)[0]]
    begin = ", ".join(f"{path.stem[3:]}-" for path in record_files().values())
    known = f"there are {', '.join(chapter)}" if chapter else f"its name begins with one of {begin}"
    hint = f"did you mean {near[0]!r}?" if near else known
    raise BadInput(f"there is no exercise {exercise_id!r}: {hint}")
