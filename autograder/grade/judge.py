"""The judge: one submission to points. Of what a learner's process says, nothing counts but arrays that are right.

All exercises are answered by one run, on hidden cases. What is not right there is asked again in a run of its own: on
the cases that come with the notebook, for the verdict that the learner reads, and then on the hidden ones. What is
still not right, and comes after exercises that are not right either, is asked once more on top of the course's own
answers to those: nobody loses points twice for one mistake. Of such a run only the arrays are used.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from autograder.checks.exercise import Exercise, exercises_of
from autograder.checks.judge import assess, compared
from autograder.checks.stored import Reference
from autograder.checks.verdict import Verdict
from autograder.grade.classroom import is_check
from autograder.grade.findings import Finding, Ruling
from autograder.grade.hearing import Answer, CellRun, Hearing, Question
from autograder.grade.hidden import answer_texts, hidden_reference, points_of, shown_reference
from autograder.grade.isolate import BUSY
from autograder.grade.job import Job, Judged
from autograder.grade.outputs import tidy
from autograder.grade.sandbox import Bare, Walled
from gradwright._cells import Cell

TRIES = 3
"""So often is a submission judged when the grader fails, before a human has to look."""
MOST_CULPRITS = 5
"""So many cells may end the process or refuse to stop before a human has to look."""
FIRST_SECONDS = 2.0
"""For an exercise in the run that answers all of them; in a run of its own it has the time that the class allows."""
LONG = 60
"""A whole submission may take so many times as long as one exercise."""


class LeftToHuman(Exception):
    """Why a submission cannot be judged to its end."""


def judge(job: Job) -> Judged:
    """Run a submission and give its points. Raises nothing: what goes wrong here is no fault of the learner's."""
    start = time.monotonic()
    trouble = ""
    for _ in range(TRIES):
        try:
            examination = Examination(job)
            findings = examination.all_findings()
            return judged(job, examination.cell_runs, findings, time.monotonic() - start)
        except LeftToHuman as reason:
            trouble = str(reason)
            break
        except Exception as error:  # the last line of defence: one submission never stops a class
            sandbox_of(job).stop()
            trouble = f"the grader failed ({type(error).__name__}: {error}): grade again, and report it if it stays."
    return judged(job, {}, {}, time.monotonic() - start, trouble)


@cache
def warm_sandbox(chapter: int, walled: bool) -> Walled | Bare:
    """The sandbox of this process for a chapter, which lives as long as the process does."""
    return Walled(chapter) if walled else Bare(chapter)


def sandbox_of(job: Job) -> Walled | Bare:
    return warm_sandbox(job.number, job.walled)


class Examination:
    """One submission on its way to a finding for each exercise."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.sandbox = sandbox_of(job)
        self.worth = points_in(job)
        self.exercises = [exercise for exercise in exercises_of(job.number) if exercise.id in self.worth]
        self.cells = cells_of(job)
        self.deadline = time.monotonic() + BUSY * LONG * job.seconds_a_cell
        self.seconds = 0.0
        """CPU time that its runs have had."""
        self.culprits: dict[str, Ruling] = {}
        """Ids of cells that ended the process or did not stop, and which."""
        self.chosen = False
        """Whether `cells` are only those that need to run."""
        self.cell_runs: dict[str, CellRun] = {}
        """What the cells printed and raised before anything was asked."""
        self.findings: dict[str, Finding] = {}

    def all_findings(self) -> dict[str, Finding]:
        """Exercise id to finding."""
        answers = self.first_answers()
        for exercise in self.exercises:
            self.findings[exercise.id] = self.find(exercise, answers[exercise.id])
        return self.findings

    def find(self, exercise: Exercise, first: Answer) -> Finding:
        hidden = hidden_reference(exercise.id, self.job.secret)
        found = finding(exercise, self.worth[exercise.id], hidden, first)
        if exercise.id in self.culprits:
            reason = "its cell was ended, and left nothing"
            return Finding(exercise, self.worth[exercise.id], self.culprits[exercise.id], 0.0, reason=reason)
        if found.ruling == Ruling.RIGHT or (found.hidden and found.hidden.missing == exercise.title):
            return found
        blocked = found.hidden is not None and found.hidden.missing != ""
        if not blocked:
            found = better(found, self.alone(exercise, hidden))
        broken = [f.exercise for f in self.findings.values() if f.ruling != Ruling.RIGHT]
        if found.ruling != Ruling.RIGHT and broken:
            found = better(found, self.on_top(exercise, hidden, broken))
        return found

    def first_answers(self) -> dict[str, Answer]:
        """The answers of one run, or of as many as it takes when something ends it."""
        seconds = min(FIRST_SECONDS, self.job.seconds_a_cell)
        secret = self.job.secret
        waiting = [Question(e.id, hidden_reference(e.id, secret).cases, seconds) for e in self.exercises]
        answers: dict[str, Answer] = {}
        while waiting:
            hearing = self.run(self.cells, waiting)
            if not answers:
                self.cell_runs |= hearing.cell_runs
            answers |= hearing.answers
            waiting = [question for question in waiting if question.id not in answers]
        self.cells = [cell for cell in self.cells if cell.id in self.cell_runs]
        self.chosen = True
        return answers

    def alone(self, exercise: Exercise, hidden: Reference) -> Finding:
        """The exercise in a run of its own."""
        stored = shown_reference(exercise.id)
        seconds = self.job.seconds_a_cell
        questions = [Question(exercise.id, reference.cases, seconds) for reference in (stored, hidden)]
        shown, last = self.run(self.cells, questions).in_order(2)
        found = finding(exercise, self.worth[exercise.id], hidden, last or shown)
        if shown.outcomes is not None:
            found = replace(found, shown=assess(exercise, stored, shown.outcomes))
        return replace(found, reason=shown.reason) if found.ruling == Ruling.NO_ANSWER else found

    def on_top(self, exercise: Exercise, hidden: Reference, broken: Sequence[Exercise]) -> Finding:
        """The exercise on top of the course's own answers to all exercises before it."""
        before = {e.id for e in self.exercises if e.position < exercise.position}
        cells = replaced(self.cells, {e: text for e, text in answer_texts(exercise.chapter).items() if e in before})
        question = Question(exercise.id, hidden.cases, self.job.seconds_a_cell)
        (answer,) = self.run(cells, [question]).in_order(1)
        needed = [e for e in broken if e.id in exercise.needs] or broken
        found = finding(exercise, self.worth[exercise.id], hidden, answer)
        if found.hidden and found.hidden.missing == exercise.title:
            return found  # it was not even tried
        return replace(found, shown=None, reason="", broken=tuple(e.title for e in needed))

    def run(self, cells: Sequence[Cell], questions: Sequence[Question]) -> Hearing:
        """One run, again without each cell that ends it."""
        while True:
            if self.seconds >= LONG * self.job.seconds_a_cell or time.monotonic() > self.deadline:
                long = f"{LONG * self.job.seconds_a_cell:.0f} seconds"
                raise LeftToHuman(f"it took longer than {long}: run it by hand, or raise c.Execute.timeout.")
            kept = [cell for cell in cells if cell.id not in self.culprits or cell not in self.cells]
            hearing = Hearing(self.job.number, kept, questions, self.job.seconds_a_cell, self.chosen)
            ending = self.sandbox.run(hearing)
            self.seconds += ending.seconds
            hearing.end(ending)
            self.culprits |= hearing.late_cells()
            if not hearing.fatal_cell:
                return hearing
            self.culprits[hearing.fatal_cell] = hearing.ruling
            self.cell_runs.setdefault(hearing.fatal_cell, hearing.cell_runs[hearing.fatal_cell])
            if len(self.culprits) > MOST_CULPRITS:
                raise LeftToHuman(f"{len(self.culprits)} of its cells end the process or do not stop: look by hand.")


def points_in(job: Job) -> dict[str, float]:
    """The exercises that the official notebook checks, and what each is worth there."""
    checks = [cell["metadata"] for cell in job.notebook["cells"] if is_check(cell)]
    return {check["gradwright"]["name"]: float(check["nbgrader"]["points"]) for check in checks}


def cells_of(job: Job) -> list[Cell]:
    """The code cells, each with what the official notebook says that it is."""
    made = []
    for position, cell in enumerate(job.notebook["cells"], 1):
        if cell["cell_type"] == "code":
            mark = cell["metadata"].get("gradwright")
            marks = {mark["role"]: mark["name"]} if mark else {}
            made.append(Cell("code", cell["source"], marks, 1, position, cell["id"], added=not marks))
    return made


def replaced(cells: Iterable[Cell], texts: dict[str, str]) -> list[Cell]:
    """The cells with other texts in some exercises; one that the notebook lacks is put in front."""
    cells = list(cells)
    there = {cell.marks.get("exercise") for cell in cells}
    lacking = [Cell("code", text, {"exercise": e}, id=e) for e, text in texts.items() if e not in there]
    swapped = [replace(c, text=texts[c.marks["exercise"]]) if c.marks.get("exercise") in texts else c for c in cells]
    places = [i for i, cell in enumerate(swapped) if "exercise" in cell.marks]
    place = places[0] if places else len(swapped)
    return [*swapped[:place], *lacking, *swapped[place:]]


def finding(exercise: Exercise, worth: float, reference: Reference, answer: Answer) -> Finding:
    """What an answer to the hidden cases is worth."""
    if answer.outcomes is None:
        return Finding(exercise, worth, answer.ruling, 0.0, reason=answer.reason)
    verdict = compared(exercise, reference, answer.outcomes)
    if verdict.missing not in {other.title for other in exercises_of(exercise.chapter)}:
        verdict = replace(verdict, missing="")  # somebody's own words, and they have seen hidden inputs
    points = points_of(verdict, worth)
    ruling = ruling_of(verdict, answer)
    if ruling == Ruling.TIMED_OUT:
        return Finding(exercise, worth, ruling, points, verdict, reason=answer.reason)
    return Finding(exercise, worth, ruling, points, verdict)


def ruling_of(verdict: Verdict, answer: Answer) -> Ruling:
    if verdict.right:
        return Ruling.RIGHT
    if verdict.missing == verdict.exercise.title:
        return Ruling.NO_ANSWER
    if answer.ruling == Ruling.TIMED_OUT:
        return Ruling.TIMED_OUT
    if verdict.missing or all(result.outcome.raised for result in verdict.failing):
        return Ruling.RAISED
    return Ruling.WRONG


def better(first: Finding, second: Finding) -> Finding:
    """The finding with more points; among equals the one that says more, which a run of its own does."""
    if second.broken:
        return second if second.points > first.points else first
    return second if second.points >= first.points else first


def judged(
    job: Job, runs: dict[str, CellRun], findings: dict[str, Finding], seconds: float, trouble: str = ""
) -> Judged:
    """The notebook with outputs, and the points of all its graded cells."""
    notebook = copy.deepcopy(job.notebook)
    points: dict[str, float | None] = {}
    rulings: dict[str, str] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"] = []
        mark = cell["metadata"].get("nbgrader", {})
        if is_check(cell):
            name = cell["metadata"]["gradwright"]["name"]
            found = findings.get(name)
            points[mark["grade_id"]] = found.points if found else None
            rulings[name] = found.ruling if found else Ruling.GRADER_ERROR
            cell["outputs"] = found.outputs() if found else []  # our own words: safe as they are
        elif mark.get("grade") or mark.get("task"):
            points[mark["grade_id"]] = by_hand(cell)
        elif cell["id"] in runs:
            cell["outputs"] = runs[cell["id"]].outputs()
        if cell["cell_type"] == "code" and not is_check(cell):
            tidy(cell)
    return Judged(notebook, points, trouble, seconds, rulings)


def by_hand(cell: dict[str, Any]) -> float | None:
    """Of a question for a human: nothing where it is as it was released, else no points yet."""
    mark = cell["metadata"]["nbgrader"]
    if mark.get("task") or not mark.get("solution"):
        return None
    from nbformat import from_dict
    from nbgrader.utils import compute_checksum

    return 0.0 if mark.get("checksum") == compute_checksum(from_dict(cell)) else None
