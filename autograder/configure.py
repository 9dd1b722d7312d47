"""What nbgrader is told in a class folder: CLASS/nbgrader_config.py calls `configure`, and may then say otherwise."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from nbgrader.converters import Autograde, GenerateAssignment
from nbgrader.preprocessors import ClearSolutions, Execute

from autograder.build.release import ClearAnswers
from autograder.grade.classroom import COURSE_ID
from autograder.grade.feedback import safe_pages
from autograder.grade.steps import BoundedExporter, GradesCsv, JudgeCells, RestoreCells, name_as_expected

__all__ = ["configure"]


def configure(c: Any, root: Path) -> None:
    """Set nbgrader's configuration object up for the class in `root`."""
    scripts = str(Path(sys.executable).parent)
    os.environ["PATH"] = os.pathsep.join([scripts, os.environ.get("PATH", "")])  # nbgrader calls alembic by its name
    c.CourseDirectory.root = str(root.resolve())
    c.CourseDirectory.course_id = COURSE_ID
    c.CourseDirectory.ignore = [".ipynb_checkpoints", "*.pyc", "__pycache__", "feedback", "*.py"]
    c.GenerateAssignment.preprocessors = [
        ClearAnswers if step is ClearSolutions else step for step in GenerateAssignment.preprocessors.default()
    ]
    c.Autograde.pre_convert_hook = name_as_expected
    c.Autograde.exporter_class = BoundedExporter
    c.Autograde.sanitize_preprocessors = [RestoreCells, *Autograde.sanitize_preprocessors.default()]
    c.Autograde.autograde_preprocessors = [
        JudgeCells if step is Execute else step for step in Autograde.autograde_preprocessors.default()
    ]
    c.ExportApp.plugin_class = GradesCsv
    safe_pages(c)
