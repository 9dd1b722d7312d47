"""`autograder check NN` and `autograder status`: a learner's notebooks, judged from the shell."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import gradwright
from autograder.checks import Exercise, Verdict, exercises_of, find
from autograder.checks.exercise import record_files
from autograder.errors import BadInput, GradwrightError, NotebookError
from gradwright._chapters import CHAPTERS, Chapter, find_chapter, relative
from gradwright._mine import find_notebook, no_verdict, opened

PATIENCE = 60.0
"""Seconds for one exercise, or for loading a notebook: a loop without an end must not hide the others."""


def check_chapter(number: int) -> int:
    """Print the verdict on every exercise of the learner's notebook; returns 0 if all are right, else 1.

    Raises NotebookError where the notebook cannot be loaded.
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

    One that does not end, or ends the process, cannot be judged, and nor can what builds on it; another process takes
    the others. Raises NotebookError where the notebook itself cannot be loaded.
    """
    done: set[str] = set()
    lost: dict[str, str] = {}
    ended = False
    while not ended:
        doing = ""
        for kind, content in messages(chapter, path, done, lost):
            if kind == "doing":
                doing = content
            elif kind == "row":
                done.add(doing)
                yield content
            elif kind == "trouble":
                raise NotebookError(content)
            elif kind == "lost" and not doing:
                raise NotebookError(f"{relative(path)}: loading it {content}")
            elif kind == "lost":
                lost[doing] = f"it {content}"
            ended = kind == "end"


def messages(chapter: Chapter, path: Path, done: set[str], lost: dict[str, str]) -> Iterator[tuple[str, Any]]:
    """What a process that judges sends, up to its end, or to `lost` and what happened to it."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=send_rows, args=(chapter.number, path, set(done), dict(lost), sender), daemon=True)
    child.start()
    sender.close()
    try:
        kind = ""
        while kind not in ("end", "trouble"):
            if not receiver.poll(PATIENCE):
                yield "lost", f"did not end in {PATIENCE:.0f} seconds: is there a loop without an end?"
                return
            kind, content = receiver.recv()
            yield kind, content
    except EOFError:
        yield "lost", "ended the process: look for exit() or a crash"
    finally:
        child.kill()
        child.join()


def send_rows(number: int, path: Path, done: set[str], lost: dict[str, str], sender: Connection) -> None:
    """Judge what is not done of a notebook, and send what is being done, each row, and how it ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that waits: it ends this one
    gradwright.chapter(number)
    exercises = exercises_of(number)
    lost = with_what_builds_on(lost, exercises)
    try:
        with opened(find_chapter(number), path, {}) as verdict_of:
            for exercise in exercises:
                if exercise.id not in done:
                    sender.send(("doing", exercise.id))
                    trouble = lost.get(exercise.id)
                    verdict = no_verdict(exercise, trouble) if trouble else verdict_of(exercise)
                    sender.send(("row", row_of(verdict)))
        sender.send(("end", None))
    except GradwrightError as error:
        sender.send(("trouble", str(error)))


def with_what_builds_on(lost: dict[str, str], exercises: Sequence[Exercise]) -> dict[str, str]:
    """`lost`, and a reason for each exercise that builds on one that is: it would wait for as long."""
    lost = dict(lost)
    for exercise in exercises:
        needed = next((one for one in exercise.needs if one in lost), "")
        if needed and exercise.id not in lost:
            lost[exercise.id] = f"it builds on {find(needed).title}, which could not be judged"
    return lost
