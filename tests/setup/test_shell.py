"""`autograder check` and `autograder status`: the learner's notebook, judged in a process of its own."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from autograder import shell
from autograder.course import ROOT
from autograder.errors import NotebookError
from gradwright._chapters import find_chapter
from gradwright._loader import read_source

START = find_chapter(0)
PROCESS = SimpleNamespace(start=lambda: None, kill=lambda: None, join=lambda: None)


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
    """sends(*messages): in place of a process, what one would send. After the last of them comes silence, or an end."""

    def set_up(*messages, then=None):
        left = list(messages)

        def receive():
            if left:
                return left.pop(0)
            raise then

        receiver = SimpleNamespace(poll=lambda seconds: bool(left or then), recv=receive)
        sender = SimpleNamespace(close=lambda: None)
        context = SimpleNamespace(Pipe=lambda duplex: (receiver, sender), Process=lambda **options: PROCESS)
        monkeypatch.setattr(shell.multiprocessing, "get_context", lambda method: context)

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


def test_a_notebook_that_ends_the_process_is_told_so(tmp_path):
    path = write_notebook(tmp_path / "start.ipynb", dot="import os\n\ndef dot(a, b):\n    os._exit(0)")
    with pytest.raises(NotebookError, match=r"start.ipynb: 0\.2 dot ended the process: look for exit\(\) or a crash"):
        list(shell.judged(START, path))


def test_an_exercise_without_an_end_is_named_after_the_verdicts_before_it(tmp_path, sends, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = write_notebook(tmp_path / "start.ipynb")
    sends(("doing", "0.1 dot"), row(1), ("doing", "0.2 dot"))
    with pytest.raises(NotebookError) as caught:
        shell.check_chapter(0)
    assert str(caught.value) == (f"{path}: 0.2 dot did not end in 60 seconds: is there a loop without an end?")
    assert "the verdict on 0.1 dot" in capsys.readouterr().out


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
    sends(row(1), second, ("end", None))
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
