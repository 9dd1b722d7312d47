"""The time of a run, as the system counts it: what it had of a processor, what it waited for one, what it slept.

A limit in seconds of the clock on the wall would cost points on a busy machine, and one in CPU time alone would let a
run sleep for ever. So a step has its seconds of CPU time, and may be idle, with a processor to be had, for a few times
as long. Where the system does not tell how long a process has waited for a processor, the wall decides, with patience.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable
from pathlib import Path

CPU_OF_PROCESS = 2
"""The low bits of the number of a clock that counts the CPU time of a process (Linux)."""
NAP = 3
"""A step may sleep or wait for so many times the CPU time that it has,"""
BUSY = 10
"""and last for so many times as long where nobody can tell whether it sleeps."""
SHORTEST = 0.05
"""Seconds between two looks at a run that is late."""


def children(pid: int) -> list[int]:
    """The processes that a process has started, as the system lists them; none where it does not."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def last_below(pid: int) -> int:
    """The last of a chain of processes, of which each has started the next; 0 where there is no chain."""
    below = children(pid)
    return (last_below(below[0]) or below[0]) if below else 0


class RunClock:
    """The time of one run.

    find  gives the number of its process, or 0 as long as there is none
    """

    def __init__(self, find: Callable[[], int] = lambda: 0) -> None:
        self.find = find if sys.platform.startswith("linux") else lambda: 0
        self.number = 0
        self.begin = time.monotonic()
        self.had = 0.0
        self.waited = 0.0

    def cpu(self) -> float:
        """Seconds of CPU time until now, or until it was last there to be looked at."""
        self.number = self.number or self.find()
        if self.number:
            with contextlib.suppress(OSError):  # it has ended
                self.had = time.clock_gettime(~self.number << 3 | CPU_OF_PROCESS)
        return self.had

    def starved(self) -> float | None:
        """Seconds that it was ready and had no processor: the most that any of its threads was. None: not known."""
        self.number = self.number or self.find()
        try:
            threads = [path.read_text().split() for path in Path(f"/proc/{self.number}/task").glob("*/schedstat")]
        except OSError:  # one of them has just ended
            return self.waited
        if not threads:
            return self.waited or None
        self.waited = max(self.waited, *(int(waited) / 1e9 for _, waited, _ in threads))
        return self.waited

    def age(self) -> float:
        """Seconds since it was first looked at."""
        return time.monotonic() - self.begin

    def idle(self) -> float:
        """Seconds of those that it slept or waited for something other than a processor."""
        starved = self.starved()
        return 0.0 if starved is None else max(0.0, self.age() - self.cpu() - starved)


class Watch:
    """Looks how long a step of a run takes."""

    def __init__(self, seconds: float, clock: RunClock) -> None:
        self.seconds = seconds
        self.clock = clock
        self.from_cpu = clock.cpu()
        self.begin = time.monotonic()

    def left(self) -> float:
        """For how long to wait before looking again; 0 where the time is up."""
        passed = time.monotonic() - self.begin
        if passed < self.seconds:
            return self.seconds - passed
        used, starved = self.clock.cpu() - self.from_cpu, self.clock.starved()
        if starved is None:
            left = min(self.seconds - used, BUSY * self.seconds - passed)
        else:
            left = min(self.seconds - used, NAP * self.seconds - (passed - used - starved))
        return max(left, SHORTEST) if left > 0 else 0.0
