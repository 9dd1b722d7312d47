"""What goes to the judge and what comes back: plain data, so that it can cross to other processes and machines."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from autograder.errors import BadInput

SECONDS = 10.0
"""For a cell or an exercise, where the class says nothing else."""
LEAST_SECONDS, MOST_SECONDS = 1.0, 3600.0
"""With less, right answers would be late on a slow machine."""


@dataclass(frozen=True)
class Job:
    """A submission, restored."""

    student: str
    number: int
    """The chapter's number."""
    chapter: str
    """Its folder, `01_tensor`."""
    notebook: dict[str, Any]
    """Official cells with the learner's answers."""
    secret: bytes
    """The class's, from which the hidden cases follow."""
    walled: bool = True
    """Whether it must run in bubblewrap."""
    seconds_a_cell: float = SECONDS
    """How long a cell, or the answer to an exercise, may run."""


def seconds_from(config: Any) -> float:
    """The limit that a class's nbgrader_config.py sets, or the usual one. Raises BadInput where it is no limit."""
    value = config.Execute.get("timeout", SECONDS)
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        seconds = math.nan
    if not LEAST_SECONDS <= seconds <= MOST_SECONDS:
        raise BadInput(
            f"c.Execute.timeout is {value!r} in nbgrader_config.py: give it seconds, such as {SECONDS:g}, from "
            f"{LEAST_SECONDS:g} to {MOST_SECONDS:g}."
        )
    return seconds


@dataclass(frozen=True)
class Judged:
    """What became of a job."""

    notebook: dict[str, Any]
    """With outputs that are safe to show."""
    points: dict[str, float | None]
    """By grade_id, for every graded cell. None: a human has to look."""
    trouble: str = ""
    """One sentence, where something other than the answers kept the submission from being graded."""
    seconds: float = 0.0
    rulings: dict[str, str] = field(default_factory=dict)
    """By exercise: one of the seven of findings.Ruling."""
