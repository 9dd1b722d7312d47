"""`autograder check NN` and `autograder status`: a learner's notebooks, judged from the shell."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import gradwright
from autograder.checks import Verdict, exercises_of
from autograder.checks.exercise import record_files
from autograder.errors import BadInput, GradwrightError, NotebookError
from gradwright._chapters import CHAPTERS, Chapter, find_chapter, relative
from gradwright._mine import find_notebook, opened

PATIENCE = 60.0
"""Seconds for one exercise, or for loading a notebook: a loop without an end must not hide the others."""


def check_chapter(number: int) -> int:
    """Print the verdict on every exercise of the learner's notebook; returns 0 if all are right, else 1.

    Raises NotebookError, after the verdicts that could be had, where the notebook cannot be loaded or does not end.
    """
    chapter = find_chapter(number)
    path = notebook_of(chapter)
    print(f"{chapter.label}  {relative(path)}\n", flush=True)
    rows = []
    for row in judged(chapter, path):
        print(row.text + "\n", flush=True)
        rows.append(row)
    right, earned = sum(row.right for row in rows), sum(row.points for row in rows)
    print(f"{right} of {len(rows)} exercises, {earned} of {worth(chapter)} points")
    return 0 if right == len(rows) else 1


def notebook_of(chapter: Chapter) -> Path:
    """Where the learner's notebook of a chapter is; one sentence where there is none."""
    path = find_notebook(chapter)
    if path is None:
        raise BadInput(
            f"there is no notebook {chapter.notebook} in work/ or course/: `make learn` copies the chapters that exist"
        )
    return path


@dataclass(frozen=True)
class Row:
    """What crosses from the process that judges: one exercise's verdict."""

    title: str
    state: str
    trouble: str
    right: bool
    points: int
    text: str

    @property
    def undone(self) -> str:
        """The exercise, and how far it is."""
        return f"{self.title} ({self.trouble or self.state})"


def row_of(verdict: Verdict) -> Row:
    title = verdict.exercise.title
    return Row(title, verdict.state, verdict.trouble, verdict.right, verdict.points, verdict.text())


def worth(chapter: Chapter) -> int:
    """The points that a chapter has."""
    return sum(exercise.points for exercise in exercises_of(chapter.number))


def status() -> int:
    """Print chapters, exercises and points, and what to do next. Returns 0."""
    following, earned, most = "", 0, 0
    for chapter in CHAPTERS:
        if chapter.number not in record_files():
            continue
        rows, trouble, undone = standing(chapter)
        got, right = sum(row.points for row in rows), sum(row.right for row in rows)
        earned, most = earned + got, most + worth(chapter)
        count = f"{right} of {len(exercises_of(chapter.number))} exercises  {got} of {worth(chapter)} points"
        print(f"{chapter.label:<14} {count}" + (f"  {trouble}" if trouble else ""), flush=True)
        following = following or (f"what the line of {chapter.label} says" if trouble else undone)
    print(f"{'all':<14} {earned} of {most} points")
    print(f"next: {following or 'nothing is left, every check passes'}")
    return 0


def standing(chapter: Chapter) -> tuple[list[Row], str, str]:
    """The exercises of a chapter, what is wrong with its notebook as a whole, and the first that is not right."""
    rows: list[Row] = []
    try:
        path = find_notebook(chapter)
        if path is None:
            return [], "no notebook yet: `make learn` puts one there", ""
        rows.extend(judged(chapter, path))
    except GradwrightError as error:
        return rows, str(error), ""
    undone = next((row.undone for row in rows if not row.right), "")
    return rows, "", f"{undone} in {relative(path)}" if undone else ""


def judged(chapter: Chapter, path: Path) -> Iterator[Row]:
    """The exercises of a notebook, judged in a process of their own, each as soon as it is known.

    Raises NotebookError where the notebook cannot be loaded, does not end or ends the process.
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=send_rows, args=(chapter.number, path, sender), daemon=True)
    child.start()
    sender.close()
    doing = "loading it"
    try:
        while receiver.poll(PATIENCE):
            kind, content = receiver.recv()
            if kind == "row":
                yield content
            elif kind == "doing":
                doing = content
            elif kind == "trouble":
                raise NotebookError(content)
            else:
                return
        raise NotebookError(
            f"{relative(path)}: {doing} did not end in {PATIENCE:.0f} seconds: is there a loop without an end?"
        )
    except EOFError:
        raise NotebookError(f"{relative(path)}: {doing} ended the process: look for exit() or a crash") from None
    finally:
        child.kill()
        child.join()


def send_rows(number: int, path: Path, sender: Connection) -> None:
    """Judge a notebook and send what is being done, each row, and how it ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that waits: it ends this one
    gradwright.chapter(number)
    try:
        with opened(find_chapter(number), path, {}) as verdict_of:
            for exercise in exercises_of(number):
                sender.send(("doing", exercise.title))
                sender.send(("row", row_of(verdict_of(exercise))))
        sender.send(("end", None))
    except GradwrightError as error:
        sender.send(("trouble", str(error)))
