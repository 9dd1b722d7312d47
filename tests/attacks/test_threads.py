"""A run has only so many threads, whoever grades: the kernel limits everybody but root, so no run is root's."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from autograder.build.sample import filled_in
from autograder.errors import SetupError
from autograder.grade import wall
from autograder.grade.clock import children
from autograder.grade.isolate import MOST_THREADS
from autograder.grade.job import Job, Judged
from autograder.grade.judge import judge, warm_sandbox
from autograder.grade.restore import restore
from autograder.grade.sandbox import Walled
from autograder.grade.schedule import run_all

from .conftest import SECRET, START, Submit, descendants, everything, still_runs
from .hostile import FORGED, attack

AS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0
ONLY_ROOT = pytest.mark.skipif(not AS_ROOT, reason="who is not root has no other user to give to a run")
FULL = {"start-dot-loop-check": 2.0, "start-dot-check": 2.0}
STARTED = """import threading, time
threading.stack_size(32768)
GO, THREADS = threading.Event(), []
try:
    for _ in range({many}):
        THREADS.append(threading.Thread(target=GO.wait, daemon=True))
        THREADS[-1].start()
except RuntimeError:
    THREADS.pop()
time.sleep({seconds})
print('STARTED', len(THREADS), 'THREADS')
{after}"""
JOINED = "GO.set()\nfor thread in THREADS: thread.join()"


def threads_in(judged: Judged) -> set[int]:
    """How many the cell could start, each time that it ran."""
    return {int(said.split()[0]) for said in everything(judged).split("STARTED ")[1:]}


def test_five_hundred_threads(submit: Submit, answers: dict) -> None:
    judged = submit(answers, STARTED.format(many=500, seconds=0, after=""))
    assert threads_in(judged) == {MOST_THREADS - 1}
    wall_process = warm_sandbox(0, True).process.pid
    before = descendants(wall_process)
    assert submit(FORGED, STARTED.format(many=500, seconds=0, after=""), attack("pass")).points != FULL
    assert submit(answers, student="two").points == FULL
    assert descendants(wall_process) == before


@pytest.mark.parametrize("many", [8, 40])
def test_honest_threads_cost_nothing(many: int, submit: Submit, answers: dict) -> None:
    judged = submit(answers, STARTED.format(many=many, seconds=0, after=JOINED))
    assert (judged.points, threads_in(judged)) == (FULL, {many})


def test_runs_at_the_same_time_have_their_own(released: dict, answers: dict, walled: None) -> None:
    first, text = next(iter(answers.items()))
    cell = STARTED.format(many=40, seconds=1, after=JOINED)
    notebook = filled_in(released, {**answers, first: f"{cell}\n{text}"})
    cells = restore(notebook["cells"], released)
    jobs = [Job(student, START.number, START.folder, cells, SECRET, True, 5.0) for student in ("one", "two")]
    done = [judged for _, judged in run_all(judge, jobs, 2, lambda job: pytest.fail("a process was killed"))]
    assert [judged.points for judged in done] == [FULL, FULL]
    assert [threads_in(judged) for judged in done] == [{40}, {40}]


def test_no_run_is_root_s(submit: Submit, answers: dict) -> None:
    """Nor has it any group but one that nobody else has, or a right that the warm process had."""
    submit(answers)
    warm, seen, over = warm_sandbox(0, True).warm, {}, threading.Event()

    def look() -> None:
        while not over.wait(0.01):
            for pid in children(warm):
                fields = [line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines()]
                seen.update({name: text.split() for name, text in fields})

    looking = threading.Thread(target=look)
    looking.start()
    submit(answers, "import time\ntime.sleep(0.5)")
    over.set()
    looking.join()
    assert "0" not in seen["Uid"]
    assert (len({*seen["Uid"]}), len({*seen["Gid"]})) == (1, 1)
    assert seen["CapEff"] == seen["CapPrm"] == seen["CapAmb"] == ["0" * 16]
    if AS_ROOT:
        assert int(seen["Uid"][0]) - 1 in wall.SPARE
        assert seen["Uid"] == seen["Gid"]
        assert seen["Groups"] == []


@ONLY_ROOT
def test_what_only_root_can_read_is_told_before_anything_is_graded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, walled: None
) -> None:
    """A submission that imports it later would lose points."""
    secret = tmp_path / "later.py"
    secret.write_text("")
    secret.chmod(0o600)
    kept = wall.project
    bind = ("--ro-bind", str(secret), f"{wall.APP}/autograder/checks/later.py")
    monkeypatch.setattr(wall, "project", lambda number: (*kept(number), *bind))
    sandbox = Walled(0)
    with pytest.raises(SetupError, match=r"no submission runs as root, .*chmod -R go\+rX autograder/checks$"):
        sandbox.start()
    secret.chmod(0o644)
    sandbox.start()
    sandbox.stop()


@ONLY_ROOT
def test_root_without_another_user_is_refused(monkeypatch: pytest.MonkeyPatch, walled: None) -> None:
    if Path("/proc/self/uid_map").read_text().split()[1] != "0":
        pytest.skip("root is somebody else outside of this container, and limited")
    monkeypatch.setattr(wall, "spare", lambda: 0)
    with pytest.raises(SetupError, match="does not limit the threads of this user: grade as a normal user"):
        Walled(0).start()


@ONLY_ROOT
def test_a_user_that_may_not_be_given_is_told_and_nothing_stays(monkeypatch: pytest.MonkeyPatch, walled: None) -> None:
    monkeypatch.setattr(wall, "spare", lambda: 2**32 - 2)
    told, kept = [], wall.child_of
    monkeypatch.setattr(wall, "child_of", lambda end: told.append(kept(end)) or told[-1])
    sandbox = Walled(0)
    with pytest.raises(SetupError, match="bubblewrap cannot be given a user for submissions"):
        sandbox.start()
    sandbox.stop()
    assert not still_runs(told[0])


def machine(monkeypatch: pytest.MonkeyPatch, users: str, capabilities: int) -> None:
    said = {"uid_map": users, "gid_map": users, "status": f"Name:\tpython\nCapEff:\t{capabilities:016x}\n"}
    monkeypatch.setattr(wall.Path, "read_text", lambda path: said[path.name])
    monkeypatch.setattr(os, "geteuid", lambda: 0, raising=False)


ALL = "         0          0 4294967295\n"


@pytest.mark.parametrize(
    ("users", "capabilities", "found"),
    [
        (ALL, wall.NEEDED, True),
        ("0 1000 1\n1 100000 65536\n", 2**40 - 1, True),
        ("0 1000 1\n1 100000 999\n", wall.NEEDED, False),
        ("0 0 1\n", wall.NEEDED, False),
        (ALL, wall.NEEDED - (1 << 7), False),
        (ALL, 0, False),
    ],
)
def test_when_another_user_can_be_had(
    users: str, capabilities: int, found: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(monkeypatch, users, capabilities)
    assert (wall.spare() in wall.SPARE) == found


def test_processes_that_grade_have_users_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, ALL, wall.NEEDED)
    taken = set()
    for pid in range(1000, 1064):
        monkeypatch.setattr(os, "getpid", lambda pid=pid: pid)
        taken |= {wall.spare(), wall.spare() + 1}
    assert len(taken) == 128
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert wall.spare() == 0
