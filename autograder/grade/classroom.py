"""A class folder: what lies where in it, and what is put there before anything is graded."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.checks import exercises_of
from autograder.course import ROOT, Chapter
from autograder.errors import BadInput, NotebookError, SetupError
from autograder.writing import write

COURSE_ID = "gradwright"
MISREAD = re.compile(r"[?$]|%[0-9a-fA-F]{2}")
"""In a path: addresses of databases and names of settings' files are read otherwise than they are written."""
CONFIG = r'''"""nbgrader's configuration for this class. Made once and never overwritten: change what you like.

`nbgrader` finds it when it is started in this folder, and so does the formgrader.
"""

from pathlib import Path

from autograder.configure import configure

c = get_config()
configure(c, Path(__file__).parent)

# Seconds of CPU time that a cell, or the answer to one exercise, may take; a whole submission may take thirty times
# as long. What sleeps or waits is stopped after three times as long, and a whole submission after ten.
c.Execute.timeout = 10

# What a submission loses that came after the due date of its assignment, which the formgrader's Manage Assignments can
# set: "none" or, with "zero", all its points. A class of yours at c.AssignLatePenalties.plugin_class may take off some.
# c.LateSubmissionPlugin.penalty_method = "zero"

# How the files in an LMS's zip are named, for `nbgrader zip_collect`. This one is Moodle's.
# c.FileNameCollectorPlugin.named_regexp = (
#     r".*[\\/](?P<student_id>[^\\/]+)_\d+_assignsubmission_file[_\\/](?P<file_id>[^\\/]+)"
# )

# Where learners fetch and submit, if you use nbgrader's exchange: a folder that all of them can write to. They need the
# same line, in /etc/jupyter/nbgrader_config.py or in ~/.jupyter/nbgrader_config.py.
# c.Exchange.root = "/srv/nbgrader/exchange"
'''


@dataclass(frozen=True)
class Classroom:
    """The places in a class folder. nbgrader has its own names for most of them."""

    root: Path

    @property
    def submitted(self) -> Path:
        """submitted/<student>/<NN_name>/<name>.ipynb: what learners handed in. Only read."""
        return self.root / "submitted"

    @property
    def source(self) -> Path:
        """source/<NN_name>/<name>.ipynb: with answers, for `nbgrader generate_assignment`."""
        return self.root / "source"

    @property
    def release(self) -> Path:
        """release/<NN_name>/<name>.ipynb: what learners got. Its check cells and points are the official ones."""
        return self.root / "release"

    @property
    def autograded(self) -> Path:
        """autograded/<student>/<NN_name>/<name>.ipynb: after the run, as the formgrader shows it."""
        return self.root / "autograded"

    @property
    def feedback(self) -> Path:
        """feedback/<student>/<NN_name>/<name>.html: what goes back."""
        return self.root / "feedback"

    @property
    def gradebook(self) -> Path:
        return self.root / "gradebook.db"

    @property
    def secret(self) -> Path:
        """What the hidden cases are drawn from. Keep it: with another one, the class is graded on other cases."""
        return self.root / ".secret"

    @property
    def journal(self) -> Path:
        """What has been judged, a line each, before it is in the gradebook."""
        return self.root / ".journal"

    @property
    def grader(self) -> Path:
        """Which process is grading the class, or was the last to do so."""
        return self.root / ".grader"

    @property
    def grades(self) -> Path:
        return self.root / "grades.csv"

    @property
    def config(self) -> Path:
        return self.root / "nbgrader_config.py"

    @property
    def database(self) -> str:
        """The gradebook's address, as SQLAlchemy and nbgrader write it."""
        return f"sqlite:///{self.gradebook}"


def open_classroom(folder: Path) -> Classroom:
    """The class in an existing folder, with nbgrader's configuration in it. Raises BadInput; OSError where it cannot be
    written."""
    layout = "submitted/<student>/<NN_name>/<name>.ipynb"
    if not folder.exists():
        raise BadInput(f"there is no class folder {folder}: check its name, or make it and put {layout} in it.")
    if not folder.is_dir():
        raise BadInput(f"{folder} is a file and not a class folder: name the folder that holds {layout}.")
    room = Classroom(folder.resolve())
    if odd := MISREAD.search(str(room.root)):
        raise BadInput(f"{room.root} has {odd[0]} in its path, which nbgrader takes for a sign of its own: rename it.")
    if not room.config.exists():
        require_room(room)
        write(room.config, CONFIG)
    # nbgrader calls alembic by its name to make a new gradebook: it must be found when only Python's path was given.
    scripts = str(Path(sys.executable).parent)
    if scripts not in os.environ.get("PATH", "").split(os.pathsep):
        os.environ["PATH"] = os.pathsep.join(filter(None, [scripts, os.environ.get("PATH")]))
    return room


def require_room(room: Classroom) -> None:
    """Raise BadInput for a folder that is something else: notebooks with answers would be put there for all to read."""
    for place in (room.root, *room.root.parents):
        if place.name == room.submitted.name and Classroom(place.parent).config.exists():
            raise BadInput(f"{room.root} lies inside a class, whose folder is {place.parent}: name that.")
    there = sorted(entry.name for entry in room.root.iterdir() if not entry.name.startswith("."))
    if there and room.submitted.name not in there:
        raise BadInput(
            f"{room.root} is no class folder, since it holds {there[0]} and no {room.submitted.name}/: name the folder "
            f"that holds {room.submitted.name}/, or make it there."
        )


@contextmanager
def writing_in(folder: Path) -> Iterator[None]:
    """Inside, whatever cannot be read or written is one sentence: a SetupError."""
    try:
        yield
    except BrokenPipeError:  # it is about who reads what is printed
        raise
    except OSError as error:
        place = error.filename2 or error.filename or folder  # the first is a temporary name where there is a second
        raise SetupError(
            f"{place} cannot be written ({error.strerror}): make room, or allow it, and grade again; what is graded "
            f"stays graded."
        ) from error


def official(room: Classroom, chapter: Chapter) -> dict[str, Any]:
    """The official notebook of a chapter in this class: release/, filled from course/ the first time.

    Raises NotebookError where it cannot be read or asks for exercises that are not there any more: otherwise the whole
    class would fail a check that nobody can pass.
    """
    path = room.release / chapter.folder / chapter.notebook
    if not path.exists():
        write(path, (ROOT / "course" / chapter.folder / chapter.notebook).read_text(encoding="utf-8"))
    remedy = "restore it, or delete it and the current one from course/ takes its place"
    try:
        notebook = json.loads(path.read_text(encoding="utf-8"))
        for cell in notebook["cells"]:
            cell["source"] = "".join(cell["source"])  # on disk a list of lines, everywhere else one text
        checks = [cell["metadata"]["gradwright"]["name"] for cell in notebook["cells"] if is_check(cell)]
    except (ValueError, KeyError, TypeError) as error:
        raise NotebookError(f"{path} is not a released notebook ({error}): {remedy}.") from error
    known = {exercise.id for exercise in exercises_of(chapter.number)} if checks else set()
    if unknown := [name for name in checks if name not in known]:
        raise NotebookError(f"{path} checks {unknown[0]!r}, an exercise that this version does not have: {remedy}.")
    return notebook


def is_check(cell: dict[str, Any]) -> bool:
    """Whether an official cell is one of our checks."""
    return cell["metadata"].get("gradwright", {}).get("role") == "check"
