"""The repairs of this package as steps of nbgrader's own commands, for who runs `nbgrader autograde` by hand."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from nbformat import NotebookNode, from_dict
from nbgrader.api import Gradebook
from nbgrader.plugins import ExportPlugin
from nbgrader.preprocessors import NbGraderPreprocessor

from autograder.course import chapter, chapters
from autograder.grade.classroom import Classroom, official
from autograder.grade.export import write_grades
from autograder.grade.intake import choose, collect, readable
from autograder.grade.outputs import tidy
from autograder.grade.restore import restore


class RestoreCells(NbGraderPreprocessor):
    """First of `c.Autograde.sanitize_preprocessors`: official cells where they were lost, doubled or changed."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        names = resources["nbgrader"]
        cells = readable(Path(f"{names['notebook']}.ipynb"), nb.cells)
        released = official(Classroom(Path.cwd()), chapter(names["assignment"]))  # nbgrader works in the class folder
        return from_dict(restore(cells, released)), resources


class TidyOutputs(NbGraderPreprocessor):
    """After Execute in `c.Autograde.autograde_preprocessors`: no warning in a check cell costs its points, and nothing
    that a cell shows can run in the browser of whoever looks at it."""

    def preprocess_cell(self, cell: NotebookNode, resources: Any, index: int) -> tuple[NotebookNode, Any]:
        if cell.cell_type == "code":
            plain = json.loads(json.dumps(cell))
            tidy(plain)
            cell.outputs = from_dict(plain["outputs"])
        return cell, resources


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
