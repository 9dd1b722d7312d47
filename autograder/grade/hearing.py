"""One conversation with a run: what is asked, what may be answered at each step, and what it comes to."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from autograder.checks.exercise import find
from autograder.checks.run import MOST_PRINTED, MOST_TEXT, Outcome, Raised
from autograder.checks.stored import StoredCase
from autograder.grade.budget import LeftToHuman
from autograder.grade.findings import Ruling
from autograder.grade.protocol import Message, ProtocolError, pack, text_of
from autograder.grade.sandbox import Ending
from gradwright._cells import Cell

GRACE = 0.5
"""Seconds by which the limits of a run may be overstepped before it is ended from outside."""
START_SECONDS = 30.0
"""Before the first cell."""
MOST_NAMES = 64
LATE = "TimeIsUp"
"""What a cell raises that is stopped."""


@dataclass(frozen=True)
class Question:
    """An exercise to be answered on some cases."""

    id: str
    cases: Sequence[StoredCase]
    seconds: float
    texts: dict[str, str] | None = None
    """Exercise to text: with these in their cells, all cells are run anew before it is asked."""

    @cached_property
    def frame(self) -> bytes:
        """As it is sent. All submissions to a chapter are asked the same."""
        names = [list(case.arrays) for case in self.cases]
        arrays = [array for case in self.cases for array in case.arrays.values()]
        return pack({"id": self.id, "cases": names, "seconds": self.seconds, "texts": self.texts}, arrays)

    @property
    def patience(self) -> float:
        """Seconds until the answer must be there."""
        return self.seconds * (1 if self.texts is None else 2) + GRACE


@dataclass(frozen=True)
class Answer:
    """What came back to a question."""

    outcomes: list[Outcome] | None = None
    """None where nothing came that could be judged."""
    ruling: Ruling = Ruling.NO_ANSWER
    """What to call it where there are no outcomes, or not all of them."""
    reason: str = ""


@dataclass
class CellRun:
    """What a cell printed and raised."""

    printed: str = ""
    raised: Raised | None = None

    def outputs(self) -> list[dict[str, Any]]:
        """As a notebook has it."""
        outputs: list[dict[str, Any]] = []
        if self.printed:
            outputs.append({"output_type": "stream", "name": "stdout", "text": self.printed})
        if self.raised:
            lines = [self.raised.where] if self.raised.where else []
            lines.append(f"{self.raised.kind}: {self.raised.message}")
            error = {"ename": self.raised.kind, "evalue": self.raised.message, "traceback": lines}
            outputs.append({"output_type": "error", **error})
        return outputs


@dataclass(frozen=True)
class Limits:
    """What a run may take."""

    seconds: float
    """For a cell."""
    cpu: float = math.inf
    """Seconds of CPU time in all, once its cells have been read."""
    naps: float = math.inf
    """Seconds that it may sleep or wait in all."""
    late: frozenset[str] = frozenset()
    """Ids of cells that were stopped before: those have a moment, and then come their definitions."""


@dataclass
class Hearing:
    """The judge's side of a run. It accepts only what can come next: cells, then an answer to each question in turn."""

    chapter: int
    cells: Sequence[Cell]
    questions: Sequence[Question]
    limits: Limits
    chosen: bool = False
    """Whether these are the cells to run, or those to choose from."""
    waits: bool = False
    """Whether they are run for each question, and not before there is one."""
    cell_runs: dict[str, CellRun] = field(default_factory=dict)
    given: list[Answer] = field(default_factory=list)
    at: str = ""
    """The cell that is running, or the last one that did."""
    begun: Counter[str] = field(default_factory=Counter)
    """How often each cell was."""
    ready: bool = False
    """Whether all cells have run."""
    fatal_cell: str = ""
    """The cell that ended the run."""
    ruling: Ruling = Ruling.NO_ANSWER

    # While it runs

    @property
    def naps(self) -> float:
        return self.limits.naps

    def opening(self) -> bytes:
        seconds = self.limits.seconds
        total = START_SECONDS + min(2 * seconds * (1 + len(self.questions)), self.limits.cpu)
        cells = [vars(cell) for cell in self.cells]
        limits = {"seconds": seconds, "total_seconds": total, "late": sorted(self.limits.late)}
        return pack({"chapter": self.chapter, "cells": cells, "chosen": self.chosen, "waits": self.waits, **limits})

    def patience(self) -> float:
        if self.ready:
            return self.questions[len(self.given)].patience
        return self.limits.seconds + GRACE if self.at else START_SECONDS

    def hear(self, message: Message, arrays: list[np.ndarray]) -> bytes | None:
        kind = message.get("kind")
        if self.ready:
            self.given.append(self.explained(answer_of(message, arrays, self.questions[len(self.given)])))
        elif arrays:
            raise ProtocolError("arrays before anything was asked")
        elif kind == "ready":
            self.ready = True
        elif kind == "cell":
            self.begin_cell(message.get("id"))
        elif kind == "cell done" and message.get("id") == self.at:
            self.cell_runs[self.at] = CellRun(
                text_of(message.get("printed"), MOST_PRINTED), raised_of(message.get("raised"))
            )
        else:
            raise ProtocolError("a frame that cannot come here")
        if not self.ready:
            return b""
        return self.question() if len(self.given) < len(self.questions) else None

    def explained(self, answer: Answer) -> Answer:
        """A refusal in the learner's terms: the run knows only that its module lacks a name."""
        if answer.outcomes is not None:
            return answer
        exercise = find(self.questions[len(self.given)].id)
        own = [self.cell_runs.get(cell.id) for cell in self.cells if cell.marks.get("exercise") == exercise.id]
        if ended := next((run.raised for run in own if run and run.raised), None):
            ruling = Ruling.TIMED_OUT if ended.kind == LATE else answer.ruling
            return replace(answer, ruling=ruling, reason=f"its cell ended in {ended.kind}: {ended.message}")
        absent = answer.reason.startswith("AttributeError: ")
        return replace(answer, reason=f"no cell defines {exercise.name}") if absent else answer

    def begin_cell(self, cell_id: Any) -> None:
        known = isinstance(cell_id, str) and cell_id in self.ids
        if not known or self.begun[cell_id] == 2 or (cell_id in self.cell_runs and not self.cell_runs[cell_id].raised):
            raise ProtocolError("a cell that is not to be run now")
        self.begun[cell_id] += 1
        self.at = cell_id

    @cached_property
    def ids(self) -> frozenset[str]:
        return frozenset(cell.id for cell in self.cells)

    def question(self) -> bytes:
        return self.questions[len(self.given)].frame

    # Afterwards

    def end(self, ending: Ending) -> None:
        """Take down how the run ended, and give it to the cell or the question at which it did."""
        self.ruling, reason = described(ending)
        if ending.way == "done":
            return
        if self.ready:
            self.given.append(Answer(ruling=self.ruling, reason=reason))
        elif self.at:
            self.fatal_cell = self.at
            self.cell_runs[self.at] = CellRun(raised=Raised("Stopped", f"This cell was ended: {reason}"))
        elif ending.way == "overran":
            raise LeftToHuman(f"Python takes over {START_SECONDS:g} seconds to read its cells: look at them by hand.")
        else:
            raise RuntimeError(f"a run ended before its first cell ({ending.way}, signal {ending.signal})")

    @property
    def answers(self) -> dict[str, Answer]:
        return {question.id: answer for question, answer in zip(self.questions, self.given, strict=False)}

    def in_order(self, count: int) -> list[Answer | None]:
        return [self.given[i] if i < len(self.given) else None for i in range(count)]

    def late_cells(self) -> set[str]:
        """Cells that were stopped for taking too long."""
        return {name for name, run in self.cell_runs.items() if run.raised and run.raised.kind == LATE}


def described(ending: Ending) -> tuple[Ruling, str]:
    """An ending as a ruling and a sentence."""
    if ending.way == "overran":
        return Ruling.TIMED_OUT, "it took too long and could not be stopped"
    if ending.way == "garbled":
        return Ruling.NO_ANSWER, "what came back cannot be read"
    if ending.signal:
        return Ruling.KILLED, f"its process was killed by signal {ending.signal}, as when memory runs out"
    return Ruling.KILLED, "it ended the Python process"


def answer_of(message: Message, arrays: list[np.ndarray], asked: Question) -> Answer:
    """An answer, checked."""
    kind = message.get("kind")
    if message.get("id") != asked.id:
        raise ProtocolError("an answer to something else")
    if kind == "refused":
        return Answer(reason=text_of(message.get("reason"), MOST_TEXT))
    told, in_time = message.get("cases"), message.get("in_time")
    if kind != "outcomes" or not isinstance(told, list) or len(told) > len(asked.cases) or type(in_time) is not bool:
        raise ProtocolError("no answer")
    waiting = list(reversed(arrays))
    outcomes = [outcome_of(one, waiting) for one in told]
    if waiting:
        raise ProtocolError("more arrays than names")
    if in_time:
        return Answer(outcomes)
    return Answer(outcomes, Ruling.TIMED_OUT, f"it was stopped after {asked.seconds:g} seconds")


NO_OUTCOME = {"names": [], "weak": [], "odd": {}, "raised": None, "changed": [], "printed": "", "warned": []}
"""What is not told of an outcome is as it is here."""


def outcome_of(told: Any, waiting: list[np.ndarray]) -> Outcome:
    """An outcome, checked; takes its arrays from the end of `waiting`."""
    names = told.get("names") if type(told) is dict else None
    if type(names) is not list or len(names) > min(MOST_NAMES, len(waiting)):
        raise ProtocolError("no outcome, or more names than anything has")
    arrays = {text_of(name, MOST_TEXT): waiting.pop() for name in names}
    if len(told) == 1:
        return Outcome(arrays)
    match NO_OUTCOME | told:
        case {"weak": list(weak), "odd": dict(odd), "raised": raised, "changed": list(changed), "printed": printed,
              "warned": list(warned)} if max(map(len, (weak, odd, changed, warned))) <= MOST_NAMES:  # fmt: skip
            pass
        case _:
            raise ProtocolError("no outcome")
    return Outcome(
        arrays,
        frozenset(name for name in weak if isinstance(name, str) and is_number(arrays.get(name))),
        {text_of(name, MOST_TEXT): text_of(what, MOST_TEXT) for name, what in odd.items()},
        raised_of(raised),
        tuple(text_of(name, MOST_TEXT) for name in changed),
        text_of(printed, MOST_PRINTED),
        tuple(text_of(one, MOST_TEXT) for one in warned),
    )


def is_number(array: np.ndarray | None) -> bool:
    """Whether it can be what a Python number becomes. Only then its dtype is nobody's choice."""
    return array is not None and array.shape == () and array.dtype.str in ("<i8", "<f8", "<c16")


def raised_of(told: Any) -> Raised | None:
    if told is None:
        return None
    match told:
        case {"kind": kind, "message": message, "where": where}:
            return Raised(text_of(kind, 100), text_of(message, MOST_TEXT), text_of(where, 2 * MOST_TEXT))
    raise ProtocolError("no exception")
