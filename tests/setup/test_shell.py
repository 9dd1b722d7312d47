"""`autograder check` and `autograder status`: the learner's notebook, judged in a process of its own."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from autograder import shell
from autograder.checks import exercises_of
from autograder.course import ROOT
from autograder.errors import NotebookError
from gradwright._chapters import find_chapter
from gradwright._loader import read_source

START = find_chapter(0)
PROCESS = SimpleNamespace(start=lambda: None, kill=lambda: None, join=lambda: None)
SILENCE = object()
"""Stands between the messages of two processes: the first sends nothing more."""


def write_notebook(path: Path, **instead: str) -> Path:
    """Chapter 00's definition cells with their answers, or with another text for the exercise of that name."""
    cells = []
    for cell in read_source(ROOT / "solutions" / "00_start.py"):
        role, name = next(iter(cell.marks.items()), ("", ""))
        if role in ("exercise", "given"):
            text = instead.get(name.removeprefix("start-").replace("-", "_"), cell.text)
            metadata = {"gradwright": {"role": role, "name": name}}
            cells.append({"cell_type": "code", "id": f"c{len(cells)}", "metadata": metadata, "source": text})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}))
    return path


@pytest.fixture
def sends(monkeypatch):
    """sends(*messages): in place of processes, what they would send. After the last of them comes silence, or an end.

    Returns the list of what each process was started with.
    """

    def set_up(*messages, then=None):
        left, started = list(messages), []

        def poll(seconds):
            if left and left[0] is SILENCE:
                return left.pop(0) is not SILENCE
            return bool(left or then)

        def receive():
            if left:
                return left.pop(0)
            raise then

        def process(**options):
            started.append(options["args"])
            return PROCESS

        sender = SimpleNamespace(close=lambda: None)
        pipe = SimpleNamespace(poll=poll, recv=receive), sender
        context = SimpleNamespace(Pipe=lambda duplex: pipe, Process=process)
        monkeypatch.setattr(shell.multiprocessing, "get_context", lambda method: context)
        return started

    return set_up


def row(number, right=True, trouble=""):
    title = f"0.{number} dot"
    return "row", shell.Row(
        title, "right" if right else "not yet", trouble, right, right * 2, f"the verdict on {title}"
    )


def rows_until_error(path):
    rows = []
    with pytest.raises(NotebookError) as caught:
        rows.extend(shell.judged(START, path))
    return rows, str(caught.value)


def test_check_prints_every_verdict(tmp_path, monkeypatch, capsys):
    write_notebook(tmp_path / "start.ipynb", dot_loop="def dot_loop(a, b)\n    return 0")
    monkeypatch.chdir(tmp_path)
    assert shell.check_chapter(0) == 1
    said = capsys.readouterr().out
    assert "cannot be judged" in said
    assert "SyntaxError: expected ':'" in said.replace("\n           ", " ")
    assert "0.2 dot " in said
    assert "\n1 of 2 exercises, " in said


def test_check_of_a_right_notebook(tmp_path, monkeypatch, capsys):
    write_notebook(tmp_path / "start.ipynb")
    monkeypatch.chdir(tmp_path)
    assert shell.check_chapter(0) == 0
    assert "\n2 of 2 exercises, " in capsys.readouterr().out


def test_an_exercise_that_ends_the_process_is_told_so_and_hides_no_other(tmp_path):
    path = write_notebook(tmp_path / "start.ipynb", dot_loop="import os\n\ndef dot_loop(a, b):\n    os._exit(0)")
    first, second = shell.judged(START, path)
    assert first.undone == "0.1 dot_loop (it ended the process: look for exit() or a crash)"
    assert second.right


def test_an_exercise_without_an_end_hides_no_other(tmp_path, sends):
    lost = {"start-dot-loop": "it did not end in 60 seconds: is there a loop without an end?"}
    first = ("doing", "start-dot-loop"), SILENCE
    second = ("doing", "start-dot-loop"), row(1, False), ("doing", "start-dot"), SILENCE
    third = ("doing", "start-dot"), row(2, False), ("end", None)
    started = sends(*first, *second, *third)
    rows = list(shell.judged(START, tmp_path / "start.ipynb"))
    assert [row.title for row in rows] == ["0.1 dot", "0.2 dot"]
    lost_too = lost | {"start-dot": "it did not end in 60 seconds: is there a loop without an end?"}
    assert [given[2:4] for given in started] == [(set(), {}), (set(), lost), ({"start-dot-loop"}, lost_too)]


def test_what_builds_on_an_exercise_that_cannot_be_judged_does_not_wait_for_it():
    lost = shell.with_what_builds_on({"tensor-strides": "it did not end"}, exercises_of(1))
    assert lost["tensor-strides"] == "it did not end"
    assert lost["tensor-permute"] == "it builds on 1.1 row_major_strides, which could not be judged"
    assert "tensor-debug-shape" not in lost


@pytest.mark.parametrize(
    ("options", "says"),
    [({}, "loading it did not end in 60 seconds"), ({"then": EOFError()}, "loading it ended the process")],
)
def test_a_notebook_that_never_loads(tmp_path, sends, options, says):
    sends(**options)
    assert says in rows_until_error(tmp_path / "start.ipynb")[1]


@pytest.fixture
def one_chapter(monkeypatch):
    monkeypatch.setattr(shell, "CHAPTERS", (START,))
    monkeypatch.setattr(shell, "exercises_of", lambda number: [SimpleNamespace(points=2)] * 2)


def test_status_says_once_what_is_wrong_with_a_notebook(tmp_path, monkeypatch, one_chapter, sends, capsys):
    monkeypatch.setattr(shell, "find_notebook", lambda chapter: tmp_path / "start.ipynb")
    sends(("doing", "0.1 dot"), row(1), ("trouble", "start.ipynb is on fire"))
    assert shell.status() == 0
    assert capsys.readouterr().out.splitlines() == [
        "00 start       1 of 2 exercises  2 of 4 points  start.ipynb is on fire",
        "all            2 of 4 points",
        "next: what the line of 00 start says",
    ]


@pytest.mark.parametrize(
    ("second", "following"),
    [
        (row(2), "nothing is left, every check passes"),
        (row(2, right=False), "0.2 dot (not yet) in "),
        (row(2, right=False, trouble="its cell is missing"), "0.2 dot (its cell is missing) in "),
    ],
)
def test_status_names_what_is_next(tmp_path, monkeypatch, one_chapter, sends, capsys, second, following):
    monkeypatch.setattr(shell, "find_notebook", lambda chapter: tmp_path / "start.ipynb")
    sends(("doing", "start-dot-loop"), row(1), ("doing", "start-dot"), second, ("end", None))
    shell.status()
    assert f"\nnext: {following}" in capsys.readouterr().out


def test_status_of_a_notebook_that_is_gone(monkeypatch, one_chapter, capsys):
    def gone(chapter):
        raise NotebookError("work/00_start/start.ipynb is missing: `autograder fresh 00` puts an untouched copy there")

    monkeypatch.setattr(shell, "find_notebook", gone)
    shell.status()
    said = capsys.readouterr().out
    assert said.count("is missing") == 1
    assert "0 of 2 exercises  0 of 4 points  work/00_start/start.ipynb is missing: `autograder fresh 00`" in said
