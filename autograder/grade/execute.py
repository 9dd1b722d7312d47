"""One submission to points. This is the seam: whatever takes a Job and gives a Judged can stand in its place.

Here it is nbgrader's own executor: a kernel of its own for each submission, in a process with your rights. It is no
sandbox. A cell that ends the process or cannot be stopped costs that cell; the rest is run again without it.
"""

from __future__ import annotations

import copy
import os
import subprocess
import tempfile
import time
from dataclasses import dataclass
from typing import Any

import traitlets.log
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat import from_dict
from nbformat.v4 import new_code_cell, new_output
from nbgrader.preprocessors import Execute
from nbgrader.utils import determine_grade

from autograder.grade.classroom import is_check
from autograder.grade.outputs import tidy

LEVEL = "Isolation: none. Submissions run as programs of yours, with your rights: grade only people whom you trust."
"""The one line a run prints about what a submission could do."""

SECONDS_A_CELL = 30.0
CELLS_LONG = 10
"""A whole submission may take so many times as long as one cell."""
MOST_CULPRITS = 5
"""So many cells may end the process or refuse to stop before a human has to look."""
PREAMBLE = "gradwright-begins"
"""Id of a cell that runs first and is not shown."""
NOT_THEIR_FAULT = {"ReferenceMissing", "SetupError"}
"""What a check raises when something of ours is missing."""


@dataclass(frozen=True)
class Job:
    """A submission, restored: plain data, so that it can be sent anywhere."""

    student: str
    number: int
    """The chapter's number."""
    chapter: str
    """Its folder, `01_tensor`."""
    notebook: dict[str, Any]
    """Official cells with the learner's answers."""
    idle: tuple[str, ...] = ()
    """Ids of cells that need not run."""
    seconds_a_cell: float = SECONDS_A_CELL


@dataclass(frozen=True)
class Judged:
    """What became of a job: plain data too."""

    notebook: dict[str, Any]
    """With outputs that are safe to show."""
    points: dict[str, float | None]
    """By grade_id, for every graded cell. None: a human has to look."""
    trouble: str = ""
    """One sentence, where something other than the answers kept the submission from being graded."""
    seconds: float = 0.0


def judge(job: Job) -> Judged:
    """Run a submission and give its points. Raises nothing: what goes wrong here is no fault of the learner's."""
    start = time.monotonic()
    traitlets.log.get_logger().setLevel("CRITICAL")  # what nbclient would log is in the notebook and in the report
    notebook = copy.deepcopy(job.notebook)
    finished: set[str] = set()
    try:
        trouble = run(job, notebook, finished)
    except Exception as error:  # the last line of defence: one submission never stops a class
        trouble = f"the grader failed ({type(error).__name__}: {error}): grade again, and report it if it stays."
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            tidy(cell)
    points = {
        cell["metadata"]["nbgrader"]["grade_id"]: points_of(cell, cell["id"] in finished)
        for cell in notebook["cells"]
        if cell["metadata"].get("nbgrader", {}).get("grade") or cell["metadata"].get("nbgrader", {}).get("task")
    }
    return Judged(notebook, points, trouble, time.monotonic() - start)


def points_of(cell: dict[str, Any], finished: bool) -> float | None:
    """What an executed cell earned. A check earns its points by showing a verdict and raising nothing."""
    if not is_check(cell):
        return None if cell["metadata"]["nbgrader"].get("task") else determine_grade(from_dict(cell))[0]
    raised = [output["ename"] for output in cell["outputs"] if output["output_type"] == "error"]
    if not finished or NOT_THEIR_FAULT.intersection(raised):
        return None
    shown = any(output["output_type"] == "display_data" for output in cell["outputs"])
    return float(cell["metadata"]["nbgrader"]["points"]) if shown and not raised else 0.0


def run(job: Job, notebook: dict[str, Any], finished: set[str]) -> str:
    """Execute the cells in place; the ids of those that have had their turn are added to `finished`.

    Returns a sentence where it could not come to an end.
    """
    limit = job.seconds_a_cell * CELLS_LONG
    deadline = time.monotonic() + limit
    culprits: dict[str, str] = {}
    while True:
        attempt = from_dict(notebook)
        runner = Runner(job, culprits, deadline)
        try:
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                runner.preprocess(attempt, {"metadata": {"path": folder}})
        except TimeoutError as error:
            if not isinstance(error, CellTimeoutError):
                return f"it took longer than {limit:.0f} seconds: run it by hand, or raise c.Execute.timeout."
            culprits[runner.at] = "this cell took too long and could not be stopped"
        except DeadKernelError:
            culprits[runner.at] = "this cell ended the Python process"
        else:
            return ""
        finally:
            finished |= runner.finished
            notebook["cells"] = [dict(cell) for cell in attempt.cells if cell.id != PREAMBLE]
        if PREAMBLE in culprits or "" in culprits:
            return "Python could not be started for it: is the machine out of memory? Grade again."
        if len(culprits) > MOST_CULPRITS:
            return f"{len(culprits)} of its cells ended the process or did not stop: look at it by hand."


class Runner(Execute):
    """nbgrader's executor, with our limits, once over the notebook."""

    def __init__(self, job: Job, culprits: dict[str, str], deadline: float) -> None:
        super().__init__(timeout_func=self.seconds_left, shutdown_kernel="immediate")
        self.job, self.culprits, self.deadline = job, culprits, deadline
        self.at = ""
        self.finished: set[str] = set()

    def seconds_left(self, cell: Any) -> float:
        return max(1.0, min(self.job.seconds_a_cell, self.deadline - time.monotonic()))

    def start_new_kernel(self, **options: Any) -> None:
        one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        environment = {**os.environ, **one_thread, "NBGRADER_EXECUTION": "autograde"}
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        super().start_new_kernel(env=environment, **silent, **options)

    def preprocess(self, notebook: Any, resources: Any) -> Any:
        text = f"import gradwright\ngradwright.chapter({self.job.number})"
        notebook.cells.insert(0, new_code_cell(text, id=PREAMBLE))
        return super().preprocess(notebook, resources)

    def preprocess_cell(self, cell: Any, resources: Any, index: int) -> Any:
        if time.monotonic() > self.deadline:
            raise TimeoutError
        if cell.id in self.culprits:
            text = self.culprits[cell.id]
            cell.outputs = [new_output("error", ename="Stopped", evalue=text, traceback=[f"Stopped: {text}"])]
        elif cell.id not in self.job.idle:
            self.at = cell.id
            self.execute_official(cell, resources, index)
        if cell.id == PREAMBLE and any(output.output_type == "error" for output in cell.outputs):
            raise RuntimeError(f"gradwright cannot be loaded: {cell.outputs[-1].evalue}")
        self.finished.add(cell.id)
        return cell, resources

    def execute_official(self, cell: Any, resources: Any, index: int) -> None:
        """A check calls our `check`, whatever the notebook has made of that name."""
        text = cell.source
        if is_check(cell):
            cell.source = f"from autograder import check\n{text}"
        try:
            super().preprocess_cell(cell, resources, index)
        finally:
            cell.source = text
