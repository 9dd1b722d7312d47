"""`autograder check NN` and `autograder status`: a learner's notebooks, judged from the shell."""

from __future__ import annotations

import multiprocessing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gradwright
from autograder.checks import exercises_of
from autograder.checks.exercise import record_files
from autograder.errors import BadInput, GradwrightError
from gradwright._chapters import CHAPTERS, Chapter, find_chapter, relative
from gradwright._mine import find_notebook, verify

PATIENCE = 60.0
"""Seconds that `status` waits for the notebook of one chapter: a loop without an end must not hide the others."""


def check_chapter(number: int) -> int:
    """Print the verdict on every exercise of the learner's notebook; returns 0 if all are right, else 1."""
    chapter = find_chapter(number)
    path = notebook_of(chapter)
    gradwright.chapter(chapter.number)
    print(f"{chapter.label}  {relative(path)}\n")
    verdicts = verify(chapter.number, path)
    for verdict in verdicts:
        print(verdict.text() + "\n")
    right = sum(verdict.right for verdict in verdicts)
    earned, most = sum(v.points for v in verdicts), sum(v.exercise.points for v in verdicts)
    print(f"{right} of {len(verdicts)} exercises, {earned} of {most} points")
    return 0 if right == len(verdicts) else 1


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
    """What `status` says of one exercise."""

    title: str
    state: str
    right: bool
    points: int


def status() -> int:
    """Print chapters, exercises and points, and what to do next. Returns 0."""
    following, earned, most = "", 0, 0
    for chapter in CHAPTERS:
        if chapter.number not in record_files():
            continue
        worth = sum(exercise.points for exercise in exercises_of(chapter.number))
        path = find_notebook(chapter)
        rows, trouble = rows_of(chapter, path) if path else ([], "no notebook yet: `make learn` puts one there")
        got = sum(row.points for row in rows)
        right = sum(row.right for row in rows)
        earned, most = earned + got, most + worth
        count = f"{right} of {len(exercises_of(chapter.number))} exercises  {got} of {worth} points"
        print(f"{chapter.label:<14} {count}" + (f"  {trouble}" if trouble else ""))
        undone = next((row for row in rows if not row.right), None)
        if not following and (trouble or undone):
            following = f"{undone.title} ({undone.state})" if undone else trouble
            following += f" in {relative(path)}" if path else ""
    print(f"{'all':<14} {earned} of {most} points")
    print(f"next: {following}" if following else "next: nothing is left, every check passes")
    return 0


def rows_of(chapter: Chapter, path: Path) -> tuple[list[Row], str]:
    """The exercises of a notebook, judged in a process of their own, and what went wrong with it as a whole."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=send_rows, args=(chapter.number, path, sender), daemon=True)
    child.start()
    sender.close()
    try:
        if not receiver.poll(PATIENCE):
            return [], f"did not finish in {PATIENCE:.0f} seconds: is there a loop without an end?"
        return receiver.recv()
    except EOFError:
        return [], "its code ended the process: look for exit() or a crash"
    finally:
        child.kill()
        child.join()


def send_rows(number: int, path: Path, sender: Any) -> None:
    gradwright.chapter(number)
    try:
        verdicts = verify(number, path)
    except GradwrightError as error:
        sender.send(([], str(error)))
        return
    sender.send(([Row(v.exercise.title, v.state, v.right, v.points) for v in verdicts], ""))
