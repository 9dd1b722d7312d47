"""nbgrader's own steps from a notebook with answers to the one that learners get. Importing nbgrader takes seconds."""

from __future__ import annotations

from typing import Any

from nbformat import NotebookNode
from nbgrader.preprocessors import CheckCellMetadata, ClearOutput, ClearSolutions, ComputeChecksums, LockCells

STUB = 'raise NotImplementedError("{title}")'


class ClearAnswers(ClearSolutions):
    """nbgrader has one stub for a language; this one names the exercise, and what a check says about it can too.

    In an nbgrader_config.py it takes the place of ClearSolutions in `c.GenerateAssignment.preprocessors`.
    """

    def preprocess_cell(self, cell: NotebookNode, resources: Any, cell_index: int) -> tuple[NotebookNode, Any]:
        own = cell.metadata.get("gradwright", {})
        if own.get("role") == "exercise":
            self.code_stub = {"python": STUB.format(title=own["title"])}
        return super().preprocess_cell(cell, resources, cell_index)


STEPS = (LockCells, ClearAnswers, ClearOutput, CheckCellMetadata, ComputeChecksums, CheckCellMetadata)
"""Those of `nbgrader generate_assignment` that have something to do here, in its order."""


def release(notebook: NotebookNode) -> NotebookNode:
    """Take the answers out of a notebook, in place, and lock and seal what nbgrader locks and seals."""
    resources: dict[str, Any] = {}
    for step in STEPS:
        notebook, resources = step().preprocess(notebook, resources)
    return notebook
