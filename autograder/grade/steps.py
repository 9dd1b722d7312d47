"""The repairs of this package as steps of nbgrader's own commands, for who runs `nbgrader autograde` by hand."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from nbconvert.exporters import NotebookExporter
from nbformat import NotebookNode, from_dict
from nbgrader.api import Gradebook
from nbgrader.plugins import ExportPlugin
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Bool

from autograder.course import chapter, chapters
from autograder.errors import SetupError
from autograder.grade.classroom import Classroom, official
from autograder.grade.export import write_grades
from autograder.grade.hidden import secret_of
from autograder.grade.intake import choose, collect, read_cells, readable
from autograder.grade.job import Job, seconds_from
from autograder.grade.judge import judge
from autograder.grade.restore import restore
from autograder.grade.sandbox import level


class BoundedExporter(NotebookExporter):
    """Of `c.Autograde.exporter_class`: a notebook that `autograder grade` would not read stops here, with its sentence,
    before nbgrader makes objects of all that is in it. Nobody else's is touched by that."""

    def from_filename(self, filename: str, resources: Any = None, **other: Any) -> tuple[NotebookNode, Any]:
        read_cells(Path(filename))
        return super().from_filename(filename, resources, **other)


class RestoreCells(NbGraderPreprocessor):
    """First of `c.Autograde.sanitize_preprocessors`: official cells where they were lost, doubled or changed."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        names = resources["nbgrader"]
        cells = readable(Path(f"{names['notebook']}.ipynb"), nb.cells)
        released = official(Classroom(Path.cwd()), chapter(names["assignment"]))  # nbgrader works in the class folder
        return from_dict(restore(cells, released)), resources


class JudgeCells(NbGraderPreprocessor):
    """In place of Execute in `c.Autograde.autograde_preprocessors`: the judge of `autograder grade`."""

    allow_weak_isolation = Bool(
        False, help="Run submissions without isolation where there is none, with your rights."
    ).tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        names = resources["nbgrader"]
        graded = chapter(names["assignment"])
        seconds = seconds_from(self.config)
        walled, _ = level(self.allow_weak_isolation)
        secret = secret_of(Classroom(Path.cwd()))
        plain = json.loads(json.dumps(nb))
        judged = judge(Job(names["student"], graded.number, graded.folder, plain, secret, walled, seconds))
        if judged.trouble:
            raise SetupError(judged.trouble)  # nbgrader then gives no score, where None would be read as full marks
        return from_dict(judged.notebook), resources


class GradesCsv(ExportPlugin):
    """`nbgrader export`: the table that `autograder grade` writes, for when somebody has graded by hand since."""

    def export(self, gradebook: Gradebook) -> None:
        room = Classroom(Path(gradebook.engine.url.database).parent)
        write_grades(Path(self.to) if self.to else room.grades, gradebook, collect(room, chapters()), chapters())


def name_as_expected(assignment: str, student: str, notebooks: list[str]) -> None:
    """The `pre_convert_hook` of Autograde: give a renamed notebook its expected name beside it, and use that copy."""
    folder = Path(notebooks[0]).parent
    found = choose(Classroom(folder.parents[2]), folder.parent.name, chapter(folder.name), folder)
    if found.path is not None and found.renamed:
        notebooks[:] = [
            str(shutil.copy(found.path, folder / found.chapter.notebook))
        ]  # nbgrader goes on with this list
