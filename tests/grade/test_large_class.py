"""A class of 200, killed at random moments and started again: nothing lost, nothing counted twice, the same scores."""

from __future__ import annotations

import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .conftest import Graded, Notebook, grade, hand_in, with_answer
from .test_faults import scores

pytestmark = [pytest.mark.large, pytest.mark.timeout(3000)]

STUDENTS = 200
KILLS = 8
LONGEST = 1500
"""Seconds of a whole run on a busy machine."""


def kinds(released: Notebook, solution: Notebook) -> list[Notebook]:
    """Notebooks with different scores, and some that end their process or take long."""
    answers = [
        "def dot(a, b):\n    return 0.0",
        "def dot(a, b):\n    n = min(len(a), len(b))\n    return a[:n] @ b[:n]",
        "import os\ndef dot(a, b):\n    os._exit(0)",
        "raise ValueError('in a cell')",
    ]
    return [solution, released, *(with_answer(solution, "start-dot", text) for text in answers)]


def make_class(root: Path, notebooks: list[Notebook]) -> None:
    for i in range(STUDENTS):
        hand_in(root, f"student-{i:03}", notebooks[i % len(notebooks)])


def killed(root: Path, lines: int, seconds: float) -> tuple[int, str]:
    """A run that is killed so long after it has said so many lines; its exit code and what it said."""
    command = [sys.executable, "-m", "autograder", "grade", str(root), "--allow-weak-isolation"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said = [process.stdout.readline() for _ in range(lines)]
    time.sleep(seconds)
    process.kill()
    rest, _ = process.communicate()
    return process.returncode, "".join([*said, rest])


def test_killed_at_random_and_started_again(tmp_path: Path, released: Notebook, solution: Notebook) -> None:
    calm, disturbed = tmp_path / "calm", tmp_path / "disturbed"
    make_class(calm, kinds(released, solution))
    undisturbed = grade(calm, LONGEST)
    shutil.copytree(calm / "submitted", disturbed / "submitted")
    shutil.copy(calm / ".secret", disturbed / ".secret")
    draw = random.Random(20)
    moments = sorted(draw.randrange(1, STUDENTS + 1) for _ in range(KILLS - 2)) + [STUDENTS + 1] * 2
    for lines in moments:  # the last two come while feedback is made
        code, said = killed(disturbed, lines, draw.random() * (2 if lines > STUDENTS else 0.3))
        assert code == -signal.SIGKILL, said
        if (disturbed / "gradebook.db").exists():
            halfway = {student: found for student, found in scores(disturbed).items() if found}
            wanted = scores(calm)
            assert all(found == wanted[student] for student, found in halfway.items())
    last = Graded(disturbed, grade(disturbed, LONGEST).said)
    assert len(re.findall(rf"^\[ *\d+/{STUDENTS}\] ", last.said, re.MULTILINE)) == STUDENTS
    assert last.said.count("(unchanged)") == STUDENTS
    assert scores(disturbed) == scores(calm)
    assert all(len(found) == 1 for found in scores(disturbed).values())
    assert last.table == undisturbed.table
    assert {row["status"] for row in last.table} == {"graded"}
    assert len({row["score"] for row in last.table}) >= 4
    for student in (row["student"] for row in last.table):
        assert last.page(student) == undisturbed.page(student)
        assert last.notebook(student) == undisturbed.notebook(student)
