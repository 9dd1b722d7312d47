"""The time of a run: a busy machine costs nobody anything, and nothing sleeps for long."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from autograder.grade import budget, clock, sandbox
from autograder.grade import judge as judging
from autograder.grade.clock import BUSY, NAP, RunClock, Watch, children
from autograder.grade.hearing import Hearing, Limits
from autograder.grade.judge import judge, warm_sandbox
from autograder.grade.sandbox import Bare, Ending

from .conftest import Notebook, with_answer
from .test_judge import CLEAN, FIRST, FULL, SECOND, WALLED, job_of, no_sandbox_stays, verdict  # noqa: F401 - a fixture of this module too

BUSY_ANSWER = """import time
def dot(a, b):
    end = time.process_time() + 0.02
    while time.process_time() < end: pass
    if len(a) != len(b):
        raise ValueError
    return a @ b"""


@contextlib.contextmanager
def crowded(core: int, others: int) -> Iterator[None]:
    """A core that so many other processes are busy on, and to which all runs of chapter 00 are bound."""
    spin = f"import os\nos.sched_setaffinity(0, [{core}])\nwhile True: pass"
    crowd = [subprocess.Popen([sys.executable, "-c", spin]) for _ in range(others)]
    over = threading.Event()

    def bind() -> None:
        while not over.wait(0.005):
            for pid in children(warm_sandbox(0, True).warm):
                with contextlib.suppress(ProcessLookupError):
                    os.sched_setaffinity(pid, [core])

    binding = threading.Thread(target=bind)
    binding.start()
    try:
        yield
    finally:
        over.set()
        binding.join()
        for each in crowd:
            each.kill()
            each.wait()


@pytest.mark.skipif(not (WALLED and RunClock(os.getpid).starved() is not None), reason="nobody tells who was starved")
def test_a_busy_machine_costs_nobody_anything(solution: Notebook, released: Notebook) -> None:
    """A run that gets a sixth of its time needs far longer than a cell may sleep, and all its points are there."""
    job = job_of(with_answer(solution, "start-dot", BUSY_ANSWER), released, seconds=0.6)
    judge(job)  # the warm process is there
    with crowded(min(os.sched_getaffinity(0)), 5):
        judged = judge(job)
    assert (judged.points, judged.trouble) == (FULL, "")


@pytest.mark.parametrize("where", ["an answer", "a cell"])
def test_what_sleeps_is_ended(where: str, solution: Notebook, released: Notebook) -> None:
    """Long before half an hour, and it costs nothing but itself."""
    asleep = "import time\ntime.sleep(1000)\n" + CLEAN
    text = CLEAN.replace("def dot(a, b):", "def dot(a, b):\n    __import__('time').sleep(1000)")
    judged = judge(job_of(with_answer(solution, "start-dot", text if where == "an answer" else asleep), released, 1))
    assert judged.points == {FIRST: 2.0, SECOND: 0.0}
    assert judged.rulings["start-dot"] == "timed out"


STUBBORN = """
    while True:
        try:
            while True: sum(range(1000))
        except BaseException: pass"""


def test_what_is_over_budget_is_told_and_costs_nothing_before_it(
    solution: Notebook, released: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that sleeps, and one that cannot be stopped."""
    for name, body in (("NAPS", "\n    __import__('time').sleep(1000)"), ("LONG", STUBBORN)):
        monkeypatch.setattr(budget, name, 1)
        asleep = with_answer(solution, "start-dot", "import numpy as np\ndef dot(a, b):" + body)
        assert judge(job_of(asleep, released, 0.5)).points == {FIRST: 2.0, SECOND: 0.0}
        asleep = with_answer(asleep, "start-dot-loop", "import numpy as np\ndef dot_loop(a, b):" + body)
        judged = judge(job_of(asleep, released, 0.5))
        assert (judged.points, judged.trouble) == (dict.fromkeys(FULL, 0.0), "")
        assert set(judged.rulings.values()) == {"timed out"}
        assert "not run to its end, since time was up: all its answers and cells together" in verdict(judged, SECOND)
        monkeypatch.undo()


def test_one_budget_for_all_runs_and_tries(
    solution: Notebook, released: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the grader used in vain costs no points: then a human has to look."""
    runs = []

    class Failing(type(warm_sandbox(0, WALLED))):
        def run(self, talk: Hearing) -> Ending:
            ending = super().run(talk)
            if len(runs) < 2:
                talk.given.clear()
                runs.append(talk.limits.cpu)
                return Ending("no way at all", seconds=ending.seconds + 200)
            return ending

        def stop(self) -> None:
            """It goes on being warm."""

    def ended(hearing: Hearing, ending: Ending) -> None:
        if ending.way == "no way at all":
            raise RuntimeError("the grader's fault")
        kept(hearing, ending)

    kept, failing = Hearing.end, Failing(0)
    monkeypatch.setattr(Hearing, "end", ended)
    monkeypatch.setattr(judging, "sandbox_of", lambda job: failing)
    judged = judge(job_of(solution, released))
    type(warm_sandbox(0, WALLED)).stop(failing)
    assert judged.points == dict.fromkeys(FULL)
    assert "longer than any honest work" in judged.trouble
    assert runs[0] > runs[1] > 0


class Times(RunClock):
    """A clock that is told what it says."""

    used, delayed = 0.0, 0.0

    def cpu(self) -> float:
        return self.used

    def starved(self) -> float | None:
        return self.delayed


def test_without_isolation_too_a_run_is_charged_what_it_used(monkeypatch: pytest.MonkeyPatch) -> None:
    times = Times()
    times.used, times.delayed = 0.25, 1000.0  # the machine is busy with others
    monkeypatch.setattr(sandbox, "RunClock", lambda find: times)
    assert Bare(0).run(Hearing(0, [], [], Limits(10.0))) == Ending("done", seconds=0.25)


def test_time_is_counted_where_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    now, times = [0.0], Times()
    monkeypatch.setattr(clock.time, "monotonic", lambda: now[0])
    watch = Watch(2.0, times)
    assert watch.left() == 2
    now[0], times.used, times.delayed = 100.0, 0.5, 99.0  # the machine is busy with others
    assert watch.left() == 1.5
    times.used = 2.0
    assert watch.left() == 0
    now[0], times.used, times.delayed = 2.0 * NAP, 0.0, 0.0  # it waits for something that does not come
    assert watch.left() == 0
    times.delayed = None  # nobody knows what it waits for
    assert watch.left() > 0
    now[0] = 2.0 * BUSY
    assert watch.left() == 0
