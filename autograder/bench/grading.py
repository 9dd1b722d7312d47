"""Grades one class twice, in one run: by `autograder grade` and by nbgrader's own `autograde`.

Ours is timed to its last submission and to its last feedback page. Where an exercise is all right or all wrong, both
must have given the same points.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from autograder.bench.report import machine
from autograder.course import ROOT, Chapter, chapters
from autograder.errors import GradwrightError

__all__ = ["report"]

STUDENTS = 200
MAKE = "import sys; from pathlib import Path; from autograder.build.sample import *; make_sample(Path(sys.argv[1]), "
STOCK = "c = get_config()\nc.CourseDirectory.course_id = 'stock'\nc.Execute.timeout = 60\n"
POINTS = """
select student.id, cell.name, grade.auto_score, grade_cells.max_score
from grade join grade_cells on grade.cell_id = grade_cells.id join base_cell as cell on cell.id = grade_cells.id
join submitted_notebook on grade.notebook_id = submitted_notebook.id
join submitted_assignment on submitted_notebook.assignment_id = submitted_assignment.id
join student on submitted_assignment.student_id = student.id
"""

Points = dict[tuple[str, str], tuple[float, float]]
"""Student and check to points and the most there are."""


def report(folder: Path) -> None:
    """Grade, print what it took, and write `folder`/grading.json. Raises GradwrightError where scores differ."""
    chapter = chapters()[1]
    with tempfile.TemporaryDirectory() as place:
        ours, stock = Path(place, "ours"), Path(place, "stock")
        make_class(ours, chapter)
        print(f"grading: {STUDENTS} submissions to {chapter.folder}, by autograder grade and by nbgrader autograde. "
              f"The latter takes minutes.", flush=True)  # fmt: skip
        graded, with_pages = our_times(ours)
        print(f"autograder grade   {graded:7.1f} s: {graded / STUDENTS:.3f} s each; with the feedback pages, which "
              f"nbgrader autograde does not make, {with_pages:.1f} s", flush=True)  # fmt: skip
        make_stock(ours, stock, chapter)
        theirs = timed(["nbgrader", "autograde", chapter.folder, "--create"], stock)
        print(f"nbgrader autograde {theirs:7.1f} s: {theirs / STUDENTS:.3f} s each", flush=True)
        compared = agreement(points_in(ours), points_in(stock))
    numbers = {
        "benchmark": "grading",
        **machine(),
        "submissions": STUDENTS,
        "autograder seconds": graded,
        "autograder seconds with feedback": with_pages,
        "nbgrader seconds": theirs,
        "exercises compared": compared,
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "grading.json").write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")
    print(f"Points agree in all {compared} exercises that are all right or all wrong.")


def make_class(folder: Path, chapter: Chapter) -> None:
    """A class of the sample students' work, again and again."""
    made = folder.with_name("sample")
    program = MAKE + f"[c for c in chapters() if c.number == {chapter.number}])"
    subprocess.run([sys.executable, "-c", program, str(made)], check=True, cwd=folder.parent)
    students = sorted((made / "submitted").iterdir())
    for i in range(STUDENTS):
        shutil.copytree(students[i % len(students)], folder / "submitted" / f"student-{i:03}")


def make_stock(ours: Path, stock: Path, chapter: Chapter) -> None:
    """The same class as nbgrader wants it, with nothing of ours in its configuration."""
    (stock / "source" / chapter.folder).mkdir(parents=True)
    (stock / "nbgrader_config.py").write_text(STOCK, encoding="utf-8")
    shutil.copy(ROOT / "course" / chapter.folder / chapter.notebook, stock / "source" / chapter.folder)
    shutil.copytree(ours / "submitted", stock / "submitted")
    timed(["nbgrader", "generate_assignment", chapter.folder, "--create"], stock)


def our_times(folder: Path) -> tuple[float, float]:
    """Seconds until all submissions are in the gradebook, and until all pages are there too."""
    start = time.monotonic()
    command = [sys.executable, "-m", "autograder", "grade", str(folder), "--allow-weak-isolation"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        graded, said = start, ""
        for said in process.stdout or ():
            if said.startswith("["):
                graded = time.monotonic()
    if process.returncode:
        raise GradwrightError(f"autograder grade failed: {said.strip()}")
    return graded - start, time.monotonic() - start


def timed(command: Sequence[str], folder: Path) -> float:
    """Seconds of a command of this environment. Raises GradwrightError where it fails."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True
    )
    if done.returncode:
        raise GradwrightError(f"{' '.join(command[:2])} failed: {(done.stderr or done.stdout).strip()[-500:]}")
    return time.monotonic() - start


def points_in(folder: Path) -> Points:
    with sqlite3.connect(folder / "gradebook.db") as book:
        rows = book.execute(POINTS).fetchall()
    book.close()
    return {(student, cell): (points or 0.0, most) for student, cell, points, most in rows}


def agreement(ours: Points, stock: Points) -> int:
    """How many exercises both have graded and ours finds all right or all wrong. Raises where nbgrader differs."""
    compared = [key for key in stock if key in ours and ours[key][0] in (0.0, ours[key][1])]
    differing = [key for key in compared if ours[key][0] != stock[key][0]]
    if differing:
        student, cell = differing[0]
        raise GradwrightError(
            f"{len(differing)} of {len(compared)} exercises have other points in nbgrader, the first is {cell} of "
            f"{student}: {stock[differing[0]][0]:g} and not {ours[differing[0]][0]:g}."
        )
    return len(compared)
