"""Hostile submissions to chapter 00, judged for real in the sandbox of this machine."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from autograder.build.sample import filled_in, solved
from autograder.course import ROOT, chapter
from autograder.grade.job import Job, Judged
from autograder.grade.judge import judge, warm_sandbox
from autograder.grade.restore import restore
from autograder.grade.sandbox import weakness

START = chapter("00")
SECRET = b"a secret of thirty-two bytes ..."
Notebook = dict[str, Any]


@pytest.fixture(scope="session")
def walled() -> None:
    """Asks for the sandbox. Without bubblewrap there is nothing to attack: `autograder grade` refuses strangers."""
    if reason := weakness():
        pytest.skip(f"no isolation on this machine: {reason}")


@pytest.fixture(scope="session")
def released() -> Notebook:
    notebook = json.loads((ROOT / "course" / START.folder / START.notebook).read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell["source"])
    return notebook


@pytest.fixture(scope="session")
def answers() -> dict[str, str]:
    """The right answers, by exercise."""
    return solved(START)


Submit = Callable[..., Judged]


@pytest.fixture(scope="session")
def submit(released: Notebook, walled: None) -> Iterator[Submit]:
    """Judge a submission with these answers, and with these cells: each in front of all others, where it runs if it
    defines what is needed, and at the top of the first answer, where it runs in any case."""

    def submit(answers: dict[str, str], *cells: str, student: str = "one", seconds: float = 2.0) -> Judged:
        first, text = next(iter(answers.items()))
        notebook = filled_in(released, {**answers, first: "\n".join([*cells, text])})
        own = [{"cell_type": "code", "id": f"own-{i}", "source": text, "metadata": {}} for i, text in enumerate(cells)]
        cells_there = restore([*own, *notebook["cells"]], released)
        return judge(Job(student, START.number, START.folder, cells_there, SECRET, True, seconds))

    yield submit
    for number in (0, 1):
        warm_sandbox(number, True).stop()


def everything(judged: Judged) -> str:
    """All that a judgement would show to anybody."""
    return json.dumps(judged.notebook, ensure_ascii=False) + judged.trouble


def descendants(pid: int) -> list[int]:
    """The processes below a process, as the system lists them."""
    children = Path(f"/proc/{pid}/task").glob("*/children")
    found = [int(child) for path in children for child in path.read_text().split()]
    return [*found, *(below for child in found for below in descendants(child))]


def still_runs(pid: int) -> bool:
    """Whether a process is there, and stays: the system takes a moment to end one that was killed."""
    for _ in range(200):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX":
                return False
        except OSError:
            return False
        time.sleep(0.05)
    return True
