"""Notebooks to hand in, and one class of every kind of submission, graded once for all tests."""

from __future__ import annotations

import copy
import csv
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from autograder.build.sample import filled_in, solved
from autograder.course import ROOT, chapter

Notebook = dict[str, Any]
START = chapter("00")


@pytest.fixture(scope="session")
def released() -> Notebook:
    """Chapter 00 as it is handed out."""
    return json.loads((ROOT / "course" / START.folder / START.notebook).read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def solution(released: Notebook) -> Notebook:
    """Chapter 00 with every answer."""
    return filled_in(released, solved(START))


@dataclass(frozen=True)
class Graded:
    """A class after a run."""

    root: Path
    said: str
    """What the command printed."""

    @property
    def table(self) -> list[dict[str, str]]:
        with open(self.root / "grades.csv", encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    def row(self, student: str) -> tuple[str, str]:
        """Score and status in chapter 00."""
        (row,) = [row for row in self.table if (row["student"], row["chapter"]) == (student, START.folder)]
        return row["score"], row["status"]

    def page(self, student: str) -> str:
        return (self.root / "feedback" / student / START.folder / "start.html").read_text(encoding="utf-8")

    def notebook(self, student: str) -> Notebook:
        path = self.root / "autograded" / student / START.folder / START.notebook
        return json.loads(path.read_text(encoding="utf-8"))


def hand_in(root: Path, student: str, content: Notebook | bytes, name: str = START.notebook) -> Path:
    path = root / "submitted" / student / START.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


def run(command: list[str], folder: Path, timeout: float = 280, **environment: str) -> subprocess.CompletedProcess[str]:
    """A command of this environment, started in a folder, with one thread each for BLAS."""
    settings = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **environment}
    return subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, env=settings, capture_output=True, text=True, timeout=timeout
    )


def grade(root: Path, timeout: float = 280) -> Graded:
    done = run(["autograder", "grade", str(root), "--allow-weak-isolation"], root, timeout)
    assert done.returncode == 0, done.stderr
    return Graded(root, done.stdout)


def once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """A folder that the first process to ask for it makes, and that all processes of this test run share."""
    base = factory.getbasetemp().parent if "PYTEST_XDIST_WORKER" in os.environ else factory.getbasetemp()
    folder, state = base / name, base / f"{name}.state"
    try:
        (base / f"{name}.lock").mkdir()
    except FileExistsError:
        while not state.exists():
            time.sleep(0.1)
        assert state.read_text() == "made", f"{name} could not be made by another process"
        return folder
    try:
        folder.mkdir()
        make(folder)
    except BaseException:
        state.write_text("failed")
        raise
    state.write_text("made")
    return folder


def cell(notebook: Notebook, cell_id: str) -> Notebook:
    return next(cell for cell in notebook["cells"] if cell["id"] == cell_id)


def code(text: str) -> Notebook:
    return {"cell_type": "code", "id": "mine", "source": text, "metadata": {}, "outputs": [], "execution_count": None}


def markdown(text: str) -> Notebook:
    return {"cell_type": "markdown", "id": "my-words", "source": text, "metadata": {}}


def with_answer(notebook: Notebook, exercise: str, text: str) -> Notebook:
    return filled_in(notebook, {exercise: text})


def with_cells(notebook: Notebook, *cells: Notebook) -> Notebook:
    """The notebook with cells of the learner's own behind the course's first two code cells."""
    made = copy.deepcopy(notebook)
    made["cells"][4:4] = cells
    return made


def without(notebook: Notebook, *cell_ids: str) -> Notebook:
    kept = [cell for cell in notebook["cells"] if cell["id"] not in cell_ids]
    return {**notebook, "cells": kept}


def stripped(notebook: Notebook) -> Notebook:
    """Without any metadata and without ids, as some editors and converters leave a notebook."""
    cells = [{k: v for k, v in cell.items() if k != "id"} | {"metadata": {}} for cell in notebook["cells"]]
    return {**notebook, "cells": cells, "metadata": {}, "nbformat_minor": 4}
