"""nbgrader's own commands, for real, with the configuration that lies in a class folder."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from autograder.build.sample import add_sources
from autograder.course import chapters
from autograder.grade.classroom import COURSE_ID, Classroom, official, open_classroom

from .conftest import START, Notebook, cell, code, grade, hand_in, markdown, with_answer, with_cells
from .test_class import NOISY_DOT, NOISY_SETUP, SCRIPT, indented

NBGRADER = "import autograder.grade; from nbgrader.apps.nbgraderapp import main; main()"
"""The command, in half the time that it takes to start: what the package says about a slow import holds here too."""


def start(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    settings = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **environment}
    command = [sys.executable, "-c", NBGRADER, *arguments]
    return subprocess.run(command, cwd=folder, env=settings, capture_output=True, text=True, timeout=280)


def nbgrader(folder: Path, *arguments: str) -> str:
    """Run a command of nbgrader; returns all that it said. PATH lacks this environment, so alembic must be found."""
    done = start(folder, *arguments, PATH=os.defpath)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    return said


@pytest.fixture
def room(tmp_path: Path) -> Classroom:
    """A class folder as `autograder grade` makes it, with nothing in it yet."""
    (tmp_path / "class").mkdir()
    made = open_classroom(tmp_path / "class")
    add_sources(made.source)
    return made


def test_generate_autograde_feedback_export(room: Classroom, released: Notebook, solution: Notebook) -> None:
    """The whole way by nbgrader's commands alone, with the traps of a class on it."""
    (room.source / START.folder / "start.py").write_text("answers = 'lie here'")
    nbgrader(room.root, "generate_assignment", START.folder)
    made = json.loads((room.release / START.folder / START.notebook).read_text(encoding="utf-8"))
    assert made == released  # both ways lead to the same notebook
    assert [path.name for path in (room.release / START.folder).iterdir()] == [START.notebook]

    noisy = with_cells(with_answer(solution, "start-dot", indented(NOISY_DOT)), code(NOISY_SETUP))
    noisy["cells"] += [dict(cell(solution, "start-dot-check"), id="again")]
    hand_in(room.root, "noisy", noisy)
    hand_in(room.root, "renamed", solution, "start (1).ipynb")
    scripts = with_cells(released, markdown(SCRIPT))
    cell(scripts, "start-dot-check")["source"] = "pass"
    hand_in(room.root, "scripts", scripts)
    nbgrader(room.root, "autograde", START.folder)
    nbgrader(room.root, "generate_feedback", START.folder)
    nbgrader(room.root, "export")

    with open(room.grades, encoding="utf-8", newline="") as file:
        rows = {row["student"]: (row["score"], row["status"]) for row in csv.DictReader(file)}
    assert rows == {"noisy": ("4", "graded"), "renamed": ("4", "graded"), "scripts": ("0", "graded")}
    page = (room.feedback / "scripts" / START.folder / "start.html").read_text(encoding="utf-8")
    body = page[page.index('<div class="container">') :]
    assert "not implemented yet" in body
    assert "<script" not in body
    assert not re.search(r"<[^>]*\sonerror", body)


def test_autograde_reads_nothing_huge(room: Classroom, solution: Notebook) -> None:
    """It would make objects of 200 MB of brackets. The others are graded."""
    nbgrader(room.root, "generate_assignment", START.folder)
    whole = json.dumps(solution).encode()
    hand_in(room.root, "brackets", whole[:-1] + b', "x": [' + b"[]," * 10**6 + b"[]]}")
    hand_in(room.root, "huge", whole + b" " * (51 * 2**20))
    hand_in(room.root, "right", solution)
    done = start(room.root, "autograde", START.folder)
    assert done.returncode != 0
    for sentence in ("brackets and commas, and 2,000,000 are read at most", "start.ipynb has 51 MB, and 50 are read"):
        assert sentence in done.stderr
    assert [path.name for path in room.autograded.iterdir()] == ["right"]
    with Gradebook(room.database, COURSE_ID) as book:
        assert book.find_submission(START.folder, "right").score == 4


def test_validate(tmp_path: Path, released: Notebook, solution: Notebook) -> None:
    """The learner's own button and command: before and after."""
    for name, notebook in {"before": released, "after": solution}.items():
        (tmp_path / f"{name}.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    said = nbgrader(tmp_path, "validate", "before.ipynb", "after.ipynb")
    assert "VALIDATION FAILED ON 2 CELL(S)" in said
    assert said.count("Success! Your notebook passes all the tests.") == 1


def test_exchange(room: Classroom, tmp_path: Path, solution: Notebook) -> None:
    """From the instructor to a learner and back, through an exchange folder of this test's own."""
    exchange, learner = tmp_path / "exchange", tmp_path / "learner"
    for folder in (exchange, learner):
        folder.mkdir()
    exchange.chmod(0o777)
    official(room, START)
    through = [f"--Exchange.root={exchange}", f"--Exchange.cache={tmp_path / 'cache'}"]
    nbgrader(room.root, "release_assignment", START.folder, *through)
    nbgrader(learner, "fetch_assignment", START.folder, "--course=gradwright", *through)
    assert (learner / START.folder / START.notebook).read_bytes() == (
        room.release / START.folder / START.notebook
    ).read_bytes()
    (learner / START.folder / START.notebook).write_text(json.dumps(solution), encoding="utf-8")
    nbgrader(learner, "submit", START.folder, "--course=gradwright", *through)
    nbgrader(room.root, "collect", START.folder, *through)
    (handed_in,) = room.submitted.glob(f"*/{START.folder}")
    assert json.loads((handed_in / START.notebook).read_text(encoding="utf-8")) == solution
    assert (handed_in / "timestamp.txt").is_file()
    grade(room.root)
    for command in ((), ("generate_feedback", START.folder, "--force")):  # with the pages as graded, and made anew
        if command:
            nbgrader(room.root, *command)
        nbgrader(room.root, "release_feedback", START.folder, *through)
        nbgrader(learner, "fetch_feedback", START.folder, "--course=gradwright", *through)
        (page,) = (learner / START.folder / "feedback").glob("*/start.html")
        assert "right: 17 of 17 cases" in page.read_text(encoding="utf-8")
        shutil.rmtree(page.parent.parent)
        shutil.rmtree(exchange / "gradwright" / "feedback")


@pytest.fixture
def server(room: Classroom) -> Iterator[str]:
    """A Jupyter server started in the class folder; its address, on a port that the system chose."""
    official(room, START)
    command = ["jupyter_server", "--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1", "--ServerApp.port=0"]
    command.append("--IdentityProvider.token=t")
    process = subprocess.Popen(
        [sys.executable, "-m", *command], cwd=room.root, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    assert process.stderr is not None
    try:
        address = next(found[1] for line in process.stderr if (found := re.search(r"(http://127\S+)/\?token", line)))
        yield address
    finally:
        process.terminate()
        process.communicate(timeout=60)


def test_formgrader(room: Classroom, server: str) -> None:
    """It answers on the class folder and lists the chapters."""

    def get(path: str) -> str:
        request = urllib.request.Request(f"{server}/formgrader/{path}", headers={"Authorization": "token t"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.read().decode()

    for _ in range(100):  # it says its address a moment before it answers
        try:
            assert "Manage Assignments" in get("")
            break
        except urllib.error.URLError:
            time.sleep(0.1)
    listed = json.loads(get("api/assignments"))
    assert [one["name"] for one in listed] == [chapter.folder for chapter in chapters()]
    assert listed[0]["source_path"] == f"source/{START.folder}"
