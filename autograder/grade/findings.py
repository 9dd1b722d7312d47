"""What the judge found on an exercise: one of seven rulings, points, and what the learner reads.

Of hidden cases a learner reads how many are right, the names of those that are not, and whether shape, dtype or values
are at fault: never an input or a number of them.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from autograder.checks.exercise import Exercise
from autograder.checks.verdict import Result, Verdict, block_html, block_text, rows
from autograder.grade.outputs import MATHJAX_COMMANDS

MOST_NAMED = 3
FAULTS = {"odd": "is no array", "missing": "is missing", "shape": "has another shape", "dtype": "has another dtype"}


class Ruling(StrEnum):
    """What became of an exercise."""

    RIGHT = "right"
    WRONG = "wrong"
    RAISED = "raised"
    TIMED_OUT = "timed out"
    KILLED = "killed"
    NO_ANSWER = "no answer"
    GRADER_ERROR = "grader error"


@dataclass(frozen=True)
class Finding:
    """The judge's word on one exercise."""

    exercise: Exercise
    worth: float
    """Points that it can earn."""
    ruling: Ruling
    points: float | None
    """None where a human has to look."""
    hidden: Verdict | None = None
    """On the hidden cases."""
    shown: Verdict | None = None
    """On the cases that come with the notebook, where these have been run too."""
    reason: str = ""
    """A sentence, where there is no verdict to read."""
    broken: tuple[str, ...] = ()
    """Titles of earlier exercises that are not right, where this one is better on top of right ones."""

    @property
    def state(self) -> str:
        """The headline."""
        if self.hidden is None or self.hidden.missing:
            return self.hidden.state if self.hidden else self.ruling
        good, total = sum(result.right for result in self.hidden.results), self.hidden.total
        word = "right" if self.ruling == Ruling.RIGHT else "not yet"
        return f"{word}: {good} of {total} cases"

    def rows(self) -> Iterator[tuple[str, str]]:
        """Label and text of each line below the headline."""
        if self.reason:
            yield "because", self.reason
        elif self.shown is not None and not self.shown.right and not self.broken:
            yield from rows(self.shown)
        elif self.hidden is not None and self.hidden.failing and not self.broken:
            yield "hidden", self.summary(self.hidden)
        if self.broken:
            yield "before", self.on_top()
        if self.points and self.points < self.worth:
            yield "points", f"{self.points:g} of {self.worth:g}, for the cases that are right"

    def summary(self, hidden: Verdict) -> str:
        """Hidden cases in words."""
        named = [f"{result.case.name} ({fault(result)})" for result in hidden.failing[:MOST_NAMED]]
        more = f" and {len(hidden.failing) - MOST_NAMED} more" if len(hidden.failing) > MOST_NAMED else ""
        return f"Right on the inputs that come with the notebook, not on others: {'; '.join(named)}{more}."

    def on_top(self) -> str:
        names = " and ".join(self.broken)
        return f"Tried on top of the course's own {names} in place of yours, and it counts as it is there."

    def text(self) -> str:
        return block_text(self.exercise.title, self.state, self.rows())

    def outputs(self) -> list[dict[str, Any]]:
        """The outputs of the check cell: the verdict, and what makes nbgrader read the same points from it."""
        html = block_html(self.exercise.title, self.state, self.rows(), self.ruling == Ruling.RIGHT)
        html = MATHJAX_COMMANDS.sub(r"\\ ", html)
        data = {"text/plain": self.text(), "text/html": html}
        shown: list[dict[str, Any]] = [{"output_type": "display_data", "data": data, "metadata": {}}]
        if self.points == 0:
            said = f"{self.exercise.title} is {self.state}; the verdict above says more"
            shown.append(
                {"output_type": "error", "ename": "CheckFailed", "evalue": said, "traceback": [f"CheckFailed: {said}"]}
            )
        elif self.points is not None and self.points < self.worth:
            number = {"text/plain": f"{self.points:g}"}
            shown.append({"output_type": "execute_result", "data": number, "metadata": {}, "execution_count": None})
        return shown


def is_stub(found: Finding) -> bool:
    """Whether the exercise is as it was handed out."""
    return found.hidden is not None and found.hidden.missing == found.exercise.title


def is_blocked(found: Finding) -> bool:
    """Whether another exercise, on which it builds, is as it was handed out."""
    return found.hidden is not None and found.hidden.missing not in ("", found.exercise.title)


def fault(result: Result) -> str:
    """What is wrong in a hidden case, without a number of it."""
    if result.outcome.raised:
        kind = result.outcome.raised.kind
        return f"{kind if isinstance(getattr(builtins, kind, None), type) else 'an exception'} is raised"
    if result.outcome.changed:
        return "an input is changed"
    return f"`{result.differences[0].name}` {FAULTS.get(result.differences[0].kind, 'has other values')}"
