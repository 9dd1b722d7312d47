"""The judge: one submission to points. Of what a learner's process says, nothing counts but arrays that are right.

All exercises are answered by one run, on hidden cases. What is not right there is asked again, in another order and on
the cases that come with the notebook, for the verdict that the learner reads. What ended the first run, took too long
or comes out differently now is asked once more in a run of its own. What is still not right, and leans on exercises
that are not right either, is asked on top of the course's own answers to those: nobody loses points twice for one
mistake. Of such a run only the arrays are used.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from autograder.checks.exercise import Exercise, exercises_of
from autograder.checks.judge import assess, compared
from autograder.checks.stored import Reference
from autograder.checks.verdict import Verdict
from autograder.grade.budget import Budget, LeftToHuman, OutOfBudget
from autograder.grade.classroom import is_check
from autograder.grade.findings import Finding, Ruling, is_blocked, is_stub
from autograder.grade.hearing import Answer, CellRun, Hearing, Limits, Question
from autograder.grade.hidden import (
    answer_texts,
    hidden_reference,
    is_solved_by,
    points_of,
    released_texts,
    shown_reference,
)
from autograder.grade.job import Job, Judged
from autograder.grade.leaning import leaning_on
from autograder.grade.outputs import tidy
from autograder.grade.sandbox import Bare, Walled
from gradwright._cells import Cell

TRIES = 3
"""So often is a submission judged when the grader fails, before a human has to look."""
FIRST_SECONDS = 2.0
"""For an exercise in the run that answers all of them; in a run of its own it has the time that the class allows."""
FEW = 3
"""So many exercises have a run of their own on top of the course's answers."""


def judge(job: Job) -> Judged:
    """Run a submission and give its points. Raises nothing: what goes wrong here is no fault of the learner's."""
    start = time.monotonic()
    trouble = ""
    budget = Budget(job.seconds_a_cell)
    for _ in range(TRIES):
        try:
            examination = Examination(job, budget)
            findings = examination.all_findings()
            return judged(job, examination.cell_runs, findings, time.monotonic() - start)
        except LeftToHuman as reason:
            trouble = str(reason)
            break
        except Exception as error:  # the last line of defence: one submission never stops a class
            sandbox_of(job).stop()
            budget.spoilt = True
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

    def __init__(self, job: Job, budget: Budget) -> None:
        self.job = job
        self.budget = budget
        self.sandbox = sandbox_of(job)
        self.worth = points_in(job)
        self.exercises = [exercise for exercise in exercises_of(job.number) if exercise.id in self.worth]
        self.cells = cells_of(job)
        self.culprits: dict[str, Ruling] = {}
        """Ids of cells that ended the process or did not stop, and which."""
        self.late: set[str] = set()
        """Ids of cells that were stopped: of these only what they define is waited for again."""
        self.chosen = False
        """Whether `cells` are only those that need to run."""
        self.cell_runs: dict[str, CellRun] = {}
        """What the cells printed and raised before anything was asked."""
        self.findings: dict[str, Finding] = {}

    def all_findings(self) -> dict[str, Finding]:
        """Exercise id to finding."""
        first = self.first_findings()
        try:
            again = self.in_reverse([exercise for exercise in self.exercises if worth_asking_again(first[exercise.id])])
            for exercise in self.exercises:
                self.findings[exercise.id] = self.settled(exercise, first[exercise.id], again.get(exercise.id))
            for found in self.on_right_ones([f for f in self.findings.values() if not self.is_settled(f)]):
                self.findings[found.exercise.id] = better(self.findings[found.exercise.id], found)
        except OutOfBudget as reason:
            for found in first.values():
                cut = found if self.is_settled(found) else replace(found, reason=found.reason or str(reason))
                self.findings.setdefault(found.exercise.id, cut)
        return self.findings

    def first_findings(self) -> dict[str, Finding]:
        answers = self.first_answers()
        return {exercise.id: self.first_finding(exercise, answers[exercise.id]) for exercise in self.exercises}

    def first_finding(self, exercise: Exercise, answer: Answer) -> Finding:
        if exercise.id in self.culprits:
            reason = "its cell was ended, and left nothing"
            return Finding(exercise, self.worth[exercise.id], self.culprits[exercise.id], 0.0, reason=reason)
        found = finding(exercise, self.worth[exercise.id], self.hidden(exercise), answer)
        if is_blocked(found) and self.is_untouched(exercise):
            return replace(found, ruling=Ruling.NO_ANSWER, hidden=replace(found.hidden, missing=exercise.title))
        return found

    def is_settled(self, found: Finding) -> bool:
        """Whether nothing that others do can change it."""
        return found.ruling == Ruling.RIGHT or is_stub(found) or found.exercise.id in self.culprits

    def hidden_question(self, exercise: Exercise, seconds: float) -> Question:
        return hidden_question(exercise.id, self.job.secret, seconds)

    def is_untouched(self, exercise: Exercise) -> bool:
        text = released_texts(exercise.chapter).get(exercise.id)
        return [cell.text for cell in self.cells if cell.marks.get("exercise") == exercise.id] == [text]

    def hidden(self, exercise: Exercise) -> Reference:
        return hidden_reference(exercise.id, self.job.secret)

    def settled(self, exercise: Exercise, first: Finding, again: Verdict | None) -> Finding:
        """The finding on an exercise as the learner's notebook has it.

        again  the verdict on the cases that come with the notebook, after other exercises than the first time: where it
               finds the same, no other exercise has to do with it
        """
        if self.is_settled(first):
            return first
        found = first
        if again is not None and alike(first, again):
            found = replace(first, shown=again)
        elif not is_blocked(first):
            found = better(first, self.alone(exercise))
        return found

    def first_answers(self) -> dict[str, Answer]:
        """The answers of one run, or of as many as it takes when something ends it."""
        seconds = min(FIRST_SECONDS, self.job.seconds_a_cell)
        waiting = [self.hidden_question(exercise, seconds) for exercise in self.exercises]
        answers: dict[str, Answer] = {}
        while waiting:
            try:
                hearing = self.run(self.cells, waiting)
            except OutOfBudget as reason:
                return answers | {q.id: Answer(ruling=Ruling.TIMED_OUT, reason=str(reason)) for q in waiting}
            if not answers:
                self.cell_runs |= hearing.cell_runs
            answers |= hearing.answers
            waiting = [question for question in waiting if question.id not in answers]
        self.cells = [cell for cell in self.cells if cell.id in self.cell_runs]
        self.chosen = True
        return answers

    def in_reverse(self, exercises: Sequence[Exercise]) -> dict[str, Verdict]:
        """Exercise id to verdict on the cases that come with the notebook, from one run.

        It goes from the last exercise to the first: what an answer does to the process can spoil the exercises after
        it, and these are others than the first time.
        """
        if not exercises:
            return {}
        seconds = min(FIRST_SECONDS, self.job.seconds_a_cell)
        asked = [*reversed(exercises)]
        answers = self.run(self.cells, [shown_question(exercise.id, seconds) for exercise in asked]).answers
        return {
            exercise.id: assess(exercise, shown_reference(exercise.id), answer.outcomes)
            for exercise in asked
            if (answer := answers.get(exercise.id)) and answer.outcomes is not None and not answer.reason
        }

    def alone(self, exercise: Exercise) -> Finding:
        """The exercise in a run of its own."""
        stored, hidden = shown_reference(exercise.id), self.hidden(exercise)
        seconds = self.job.seconds_a_cell
        questions = [shown_question(exercise.id, seconds), self.hidden_question(exercise, seconds)]
        shown, last = self.run(self.cells, questions).in_order(2)
        found = finding(exercise, self.worth[exercise.id], hidden, last or shown)
        if shown.outcomes is not None:
            found = replace(found, shown=assess(exercise, stored, shown.outcomes))
        return replace(found, reason=shown.reason) if found.ruling == Ruling.NO_ANSWER else found

    def on_right_ones(self, found: Sequence[Finding]) -> Iterator[Finding]:
        """What is not right and may be so because of others, on top of the course's own answers to all before it.

        In one run, from the first to the last: the course's answer to an exercise comes in when that exercise has been
        answered. If few are not right there either, each has a run of its own, where no other has been before it.
        """
        culprits = {f.exercise.id: self.before(f.exercise) for f in found}
        waiting = [f.exercise for f in found if culprits[f.exercise.id]]
        tried = self.on_top(waiting) if waiting else {}
        wrong = [
            exercise for exercise in waiting if exercise.id not in tried or tried[exercise.id].ruling != Ruling.RIGHT
        ]
        if len(waiting) > 1 and len(wrong) <= FEW:
            for exercise in wrong:
                tried |= self.on_top([exercise])
        for exercise in waiting:
            if exercise.id in tried and not is_stub(tried[exercise.id]):
                titles = tuple(other.title for other in culprits[exercise.id])
                yield replace(tried[exercise.id], shown=None, reason="", broken=titles)

    def before(self, exercise: Exercise) -> list[Exercise]:
        """The earlier exercises that are not right and may be why this one is not: none where the course's answer to
        an earlier one would answer this one too."""
        earlier = [other for other in self.exercises if other.position < exercise.position]
        if any(is_solved_by(exercise.id, other.id, self.job.secret) for other in earlier):
            return []
        wrong = [f.exercise for f in self.findings.values() if f.ruling != Ruling.RIGHT]
        broken = [other for other in wrong if other.position < exercise.position]
        leaning = broken if is_blocked(self.findings[exercise.id]) else leaning_on(exercise, broken, self.cells)
        return [other for other in leaning if other.id in exercise.needs] or leaning

    def on_top(self, exercises: Sequence[Exercise]) -> dict[str, Finding]:
        """Exercises, in their order, in one run on top of the course's own answers to those before each."""
        questions, first = [], 0
        for asked in exercises:
            texts = answer_texts(asked.chapter)
            before = {e.id: texts[e.id] for e in self.exercises if first <= e.position < asked.position}
            questions.append(replace(self.hidden_question(asked, self.job.seconds_a_cell), texts=before))
            first = asked.position
        cells = emptied(self.cells, self.culprits, [e for e in self.exercises if e.position < first])
        answers = self.run(cells, questions, waits=True).answers
        return {e.id: finding(e, self.worth[e.id], self.hidden(e), answers[e.id]) for e in exercises if e.id in answers}

    def run(self, cells: Sequence[Cell], questions: Sequence[Question], waits: bool = False) -> Hearing:
        """One run, again without each cell that ends it. `waits`: each question says with what the cells are run."""
        while True:
            self.budget.require()
            # What is in a culprit's place on top of the course's answers has another text, and harms nobody.
            kept = [cell for cell in cells if cell.id not in self.culprits or cell not in self.cells]
            limits = Limits(self.job.seconds_a_cell, self.budget.cpu, self.budget.naps, frozenset(self.late))
            hearing = Hearing(self.job.number, kept, questions, limits, self.chosen, waits)
            ending = self.sandbox.run(hearing)
            self.budget.take(ending)
            hearing.end(ending)
            self.late |= hearing.late_cells()
            if not hearing.fatal_cell:
                return hearing
            self.culprits[hearing.fatal_cell] = hearing.ruling
            self.cell_runs.setdefault(hearing.fatal_cell, hearing.cell_runs[hearing.fatal_cell])


@cache
def hidden_question(exercise: str, secret: bytes, seconds: float) -> Question:
    return Question(exercise, hidden_reference(exercise, secret).cases, seconds)


@cache
def shown_question(exercise: str, seconds: float) -> Question:
    return Question(exercise, shown_reference(exercise).cases, seconds)


def points_in(job: Job) -> dict[str, float]:
    """The exercises that the official notebook checks, and what each is worth there."""
    checks = [cell["metadata"] for cell in job.notebook["cells"] if is_check(cell)]
    return {check["gradwright"]["name"]: float(check["nbgrader"]["points"]) for check in checks}


def cells_of(job: Job) -> list[Cell]:
    """The code cells but for the checks, each with what the official notebook says that it is."""
    made = []
    for position, cell in enumerate(job.notebook["cells"], 1):
        if cell["cell_type"] == "code" and not is_check(cell):
            mark = cell["metadata"].get("gradwright")
            marks = {mark["role"]: mark["name"]} if mark else {}
            made.append(Cell("code", cell["source"], marks, 1, position, cell["id"], added=not marks))
    return made


def emptied(cells: Sequence[Cell], culprits: Collection[str], exercises: Iterable[Exercise]) -> list[Cell]:
    """The cells, empty where one ends its run; an exercise that the notebook lacks has an empty one in front."""
    there = {cell.marks.get("exercise") for cell in cells}
    lacking = [Cell("code", "", {"exercise": e.id}, id=e.id) for e in exercises if e.id not in there]
    kept = [replace(cell, text="") if cell.id in culprits else cell for cell in cells]
    places = [i for i, cell in enumerate(kept) if "exercise" in cell.marks]
    place = places[0] if places else len(kept)
    return [*kept[:place], *lacking, *kept[place:]]


def finding(exercise: Exercise, worth: float, reference: Reference, answer: Answer) -> Finding:
    """What an answer to the hidden cases is worth."""
    if answer.outcomes is None:
        return Finding(exercise, worth, answer.ruling, 0.0, reason=answer.reason)
    verdict = compared(exercise, reference, answer.outcomes)
    if verdict.missing and verdict.missing not in {other.title for other in exercises_of(exercise.chapter)}:
        verdict = replace(verdict, missing="")  # somebody's own words, and they have seen hidden inputs
    points = points_of(verdict, worth)
    ruling = ruling_of(verdict, answer)
    if ruling == Ruling.TIMED_OUT:
        return Finding(exercise, worth, ruling, points, verdict, reason=answer.reason)
    return Finding(exercise, worth, ruling, points, verdict)


def worth_asking_again(found: Finding) -> bool:
    """Whether an exercise is not right and has said so in time and in its own words."""
    return found.ruling in (Ruling.WRONG, Ruling.RAISED) and found.hidden is not None and not found.hidden.missing


def alike(first: Finding, again: Verdict) -> bool:
    """Whether the named cases, which are the same here and there but for their numbers, went the same way."""

    def ways(verdict: Verdict) -> list[tuple[bool, str]]:
        named = verdict.results[: len(verdict.exercise.cases)]
        return [(result.right, result.outcome.raised.kind if result.outcome.raised else "") for result in named]

    return first.hidden is not None and not again.right and ways(first.hidden) == ways(again)


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
    notebook = {**job.notebook, "cells": [dict(cell) for cell in job.notebook["cells"]]}
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
