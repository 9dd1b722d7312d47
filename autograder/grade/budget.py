"""What one submission may use of the machine, over all its runs and however often the grader has to begin again.

Each cell and each exercise has a limit of its own; this is about a submission that comes close to it again and again.
What a busy machine makes it wait for a processor counts for nothing.
"""

from __future__ import annotations

import time

from autograder.grade.sandbox import Ending

LONG = 30
"""A whole submission may take so many times the CPU time of one exercise,"""
NAPS = 10
"""may sleep and wait for so many times that,"""
LONGER = 3
"""and may last for so many times its CPU time by the clock on the wall, before a human has to look."""


class LeftToHuman(Exception):
    """Why a submission cannot be judged to its end."""


class OutOfBudget(Exception):
    """Why nothing more of a submission is run: what has been judged counts, and what has not is late."""


class Budget:
    """Of one submission.

    limit  seconds that a cell, or the answer to an exercise, may take
    """

    def __init__(self, limit: float) -> None:
        self.cpu = LONG * limit
        """Seconds of CPU time that are left."""
        self.naps = NAPS * limit
        """Seconds that are left to sleep or wait."""
        self.told = f"all its answers and cells together may take {self.cpu:g} seconds, and sleep for {self.naps:g}"
        self.deadline = time.monotonic() + LONGER * self.cpu
        self.spoilt = False
        """Whether the grader has used some of it in vain."""

    def take(self, ending: Ending) -> None:
        self.cpu -= ending.seconds
        self.naps -= ending.idle

    def require(self) -> None:
        """Raise OutOfBudget where the submission has used what it may; LeftToHuman where others may be the reason."""
        over = self.cpu <= 0 or self.naps <= 0
        if (over and self.spoilt) or (not over and time.monotonic() > self.deadline):
            raise LeftToHuman("it took longer than any honest work: run it by hand, or raise c.Execute.timeout.")
        if over:
            raise OutOfBudget(f"not run to its end, since time was up: {self.told}")
