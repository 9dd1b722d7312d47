"""On which earlier exercises an answer leans: what is wrong there may be all that is wrong here.

Read from the record and from the words of the cells, without running or parsing anything: too many is only slower.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from autograder.checks.exercise import Exercise
from gradwright._cells import Cell

WORD = re.compile(r"[^\W\d]\w*")
BOUND = re.compile(
    r"^[ \t]*(?:async[ \t]+)?(?:(?:def|class)[ \t]+(\w+)|(?:import|from)\b([^\n]*))"
    r"|^([^\W\d][\w, ]*)(?::[^=\n]*)?=(?!=)",
    re.MULTILINE,
)
"""Where a cell gives a name: a function or class at any depth, an import, a variable at its top. Reads every text in a
time that grows as its length does."""


@lru_cache(maxsize=2048)
def words_in(text: str) -> frozenset[str]:
    return frozenset(WORD.findall(text))


@lru_cache(maxsize=2048)
def names_given(text: str) -> frozenset[str]:
    return frozenset(word for found in BOUND.findall(text) for part in found for word in WORD.findall(part))


def leaning_on(exercise: Exercise, others: Iterable[Exercise], cells: Sequence[Cell]) -> list[Exercise]:
    """Those of `others` that the answer in these cells may use, through whatever other cells."""
    needed, reached = needs_of(exercise, {other.id: other for other in others}), reachable(exercise, cells)
    return [other for other in others if other.id in needed or reached & names_of(other, cells)]


def needs_of(exercise: Exercise, known: dict[str, Exercise]) -> set[str]:
    """What the record says that it builds on, and what that builds on."""
    found = set(exercise.needs)
    return found.union(*(needs_of(known[need], known) for need in exercise.needs if need in known))


def names_of(exercise: Exercise, cells: Sequence[Cell]) -> frozenset[str]:
    """What the exercise is called, and all else that its cell defines."""
    own = [names_given(cell.text) for cell in cells if cell.marks.get("exercise") == exercise.id]
    return frozenset({exercise.name.rpartition(".")[2]}).union(*own)


def reachable(exercise: Exercise, cells: Sequence[Cell]) -> set[str]:
    """All words of the cells that give its name, of the cells that give one of those, and so on."""
    reached = set(exercise.name.split("."))
    waiting = [(names_given(c.text), c.marks.get("exercise") == exercise.id, words_in(c.text)) for c in cells]
    while True:
        found = [own or not reached.isdisjoint(given) for given, own, _ in waiting]
        if not any(found):
            return reached
        reached = reached.union(*(words for (_, _, words), there in zip(waiting, found, strict=True) if there))
        waiting = [cell for cell, there in zip(waiting, found, strict=True) if not there]
