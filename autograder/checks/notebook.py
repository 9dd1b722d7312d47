"""`check`: the line under every exercise."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from autograder.checks.exercise import Exercise, find
from autograder.checks.judge import judge
from autograder.checks.run import describe
from autograder.checks.verdict import Verdict
from autograder.errors import BadInput, CheckFailed, Interrupted

NOTHING = object()
"""Stands for an answer that was not given."""


@dataclass
class Session:
    """What the first cell of a notebook set."""

    framework: Any
    chapter: int
    stale: Callable[[], list[str]]
    passed: set[str] = field(default_factory=set)


_session: Session | None = None


def begin(framework: Any, chapter: int, stale: Callable[[], list[str]] = list) -> None:
    """Called by `gradwright.chapter(N)`: the framework that probes get, and the chapter whose exercises are checked.

    `stale()` gives a sentence for each notebook that changed after it was loaded.
    """
    global _session
    _session = Session(framework, chapter, stale)


def check(exercise_id: str, target: Any = NOTHING) -> None:
    """Judge `target` as the answer to an exercise and show the verdict.

    Raises CheckFailed unless every case is right, so that nbgrader scores the cell; BadInput where there is no such
    exercise, or `target` cannot be its answer.

    >>> check("start-dot", dot)          # doctest: +SKIP
    """
    if isinstance(target, str) and not isinstance(exercise_id, str):
        exercise_id, target = target, NOTHING  # the wrong way round
    exercise = find(exercise_id)
    if target is NOTHING:
        raise BadInput(
            f"check takes the exercise's name, as text, and then the answer: "
            f'write check("{exercise.id}", {exercise.name})'
        )
    session = session_of(exercise)
    try:
        verdict = judge(exercise, target, session.framework)
    except KeyboardInterrupt as stop:
        where = describe(stop, target).where or exercise.name
        raise Interrupted(f"{exercise.title} was stopped at {where}; if it never ends, look at that loop") from None
    if verdict.right:
        session.passed.add(exercise.id)
    else:
        session.passed.discard(exercise.id)
        unproven = tuple(find(needed).title for needed in exercise.needs if needed not in session.passed)
        verdict = replace(verdict, unproven=unproven)
    show(verdict)
    for sentence in session.stale():
        print(sentence)
    if not verdict.right:
        raise CheckFailed(f"{exercise.title} is {verdict.state}; the verdict above says more")


def session_of(exercise: Exercise) -> Session:
    number = exercise.chapter
    first = f"run the notebook's first cell, gradwright.chapter({number}), and then this check again"
    if _session is None:
        raise BadInput(f"no chapter has been started: {first}")
    if _session.chapter != number:
        raise BadInput(
            f"{exercise.id!r} belongs to chapter {number:02d} and this is chapter {_session.chapter:02d}: {first}"
        )
    return _session


def show(verdict: Verdict) -> None:
    """As HTML and text in a notebook, as text elsewhere. IPython is used where it runs and imported nowhere."""
    ipython = sys.modules.get("IPython")
    if ipython is not None and ipython.get_ipython() is not None:
        ipython.display.display({"text/plain": verdict.text(), "text/html": verdict.html()}, raw=True)
    else:
        print(verdict.text())
