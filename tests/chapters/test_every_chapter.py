"""Every chapter: the reference passes, mistakes are named, an untouched notebook earns nothing, a solved one all."""

from __future__ import annotations

import json
import os
import shutil
from functools import cache
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbgrader.utils import determine_grade

import gradwright
from autograder.build.answers import answers_to
from autograder.build.mistakes import report
from autograder.build.notebook import COURSE, SOURCES, source_notebook
from autograder.build.rules import BEGIN, END
from autograder.build.source import Chapter, read_chapter
from autograder.checks import Exercise, judge
from gradwright._chapters import ROOT
from gradwright._framework import limited

CHAPTERS = sorted(SOURCES.glob("[0-9][0-9]_*.py"))
each_chapter = pytest.mark.parametrize("source", CHAPTERS, ids=lambda path: path.stem)

MEANT_TO_FAIL = {
    "00_start": ["CheckFailed", "ValueError"],
    "01_tensor": ["ValueError"],
    "02_autodiff": ["RuntimeError", "RuntimeError", "GradcheckError"],
    "05_losses": ["RuntimeError"],
}
"""Errors that the demos of a solved chapter end in, in their order, because the text is about them."""


@cache
def chapter_of(source: Path) -> Chapter:
    return read_chapter(source)


# The author's side


def every_answer(exercise: Exercise):
    answers = answers_to(exercise)
    return {**answers.mistakes, **answers.alternatives}


@each_chapter
def test_every_verdict_fits_on_one_screen(source):
    for exercise in chapter_of(source).records:
        for name, answer in every_answer(exercise).items():
            with limited(exercise.chapter):
                verdict = judge(exercise, answer, gradwright)
            lines = verdict.text().splitlines()
            assert len(lines) <= 24, f"{name}\n{verdict.text()}"
            assert max(map(len, lines)) <= 100, f"{name}\n{verdict.text()}"
            assert len(verdict.html()) < 8_000
            for cause in verdict.causes:
                assert " ".join(cause.text.split()) in " ".join(verdict.text().split()), f"{name} is cut: shorten it"


def text(*arguments, **options):
    return "31"


def one_by_one(*arguments, **options):
    yield from arguments


def refused_without_a_word(*arguments, **options):
    raise ValueError


@pytest.mark.parametrize("odd", [text, one_by_one, refused_without_a_word], ids=lambda odd: odd.__name__)
@each_chapter
def test_an_answer_of_a_wrong_kind_is_not_named_by_what_it_let_through(source, odd):
    """It refuses no bad input, or all input, as many a mistake does: that alone does not make it that mistake."""
    for exercise in chapter_of(source).records:
        if exercise.kind == "function":
            with limited(exercise.chapter):
                verdict = judge(exercise, odd, gradwright)
            refusals = {result.case.name for result in verdict.failing if result.yes_or_no}
            few = [one for one in verdict.causes if one.mistake and one.seen * 2 < len(verdict.failing)]
            assert not [one for one in few if one.case in refusals], f"{exercise.id}\n{verdict.text()}"
            assert not verdict.right


@each_chapter
def test_an_exercise_says_where_to_look_next(source):
    for exercise in chapter_of(source).records:
        assert exercise.see


def test_mistakes_are_caught_and_named_and_alternatives_accepted(capsys, monkeypatch):
    """By the report that an author reads, which goes through every exercise."""
    monkeypatch.setattr("autograder.checks.notebook._session", None)
    with limited(0):  # the report goes through the chapters: afterwards another test finds all of them within reach
        code = report(as_json=True)
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert [row["id"] for row in told["exercises"]] == [e.id for s in CHAPTERS for e in chapter_of(s).records]
    for row in told["exercises"]:
        assert row["mistakes"] == row["caught"] == row["named"] >= 4, row
        assert row["alternatives"] == row["accepted"] >= 1, row
    keys = ("mistakes", "caught", "named", "alternatives", "accepted")
    assert told["totals"] == {key: sum(row[key] for row in told["exercises"]) for key in keys}


# The notebook, in a kernel


@pytest.fixture(scope="session")
def project(tmp_path_factory):
    """A copy of what a learner's kernel uses, so that nothing is read from work/ here and nothing written there."""
    root = tmp_path_factory.mktemp("project")
    left_out = shutil.ignore_patterns("__pycache__", "class", "*.ipynb", ".ipynb_checkpoints")
    for folder in ("autograder", "solutions", "course"):
        shutil.copytree(ROOT / folder, root / folder, ignore=left_out)
    return root


def execute(notebook, source, project):
    """Run a notebook from top to bottom, as Run All does, in a kernel that stands in the chapter's folder of work/."""
    folder = project / "work" / source.stem
    folder.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, folder / f"{source.stem[3:]}.ipynb")
    surroundings = os.environ | {
        "PYTHONPATH": os.pathsep.join(map(str, (project / "course", project))),
        "IPYTHONDIR": str(project / "ipython"),
    }
    client = NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(folder)}})
    return client.execute(env=surroundings)


def released(source):
    return nbformat.read(COURSE / source.stem / f"{source.stem[3:]}.ipynb", as_version=4)


def solved(source):
    """The learner's notebook with the answers put in, and nothing else changed."""
    notebook, chapter = released(source), chapter_of(source)
    answers = {cell.id: cell.source for cell in source_notebook(chapter).cells}
    for cell in notebook.cells:
        if cell.id in {record.id for record in chapter.records}:
            lines = answers[cell.id].splitlines()
            cell.source = "\n".join(line for line in lines if line.strip() not in (BEGIN, END))
    return notebook


def checks_of(notebook):
    return [cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade")]


def shown(cell):
    return [output.data["text/plain"] for output in cell.outputs if output.output_type == "display_data"]


def errors(cell):
    return [output.ename for output in cell.outputs if output.output_type == "error"]


def stderr(notebook):
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return [output.text for output in outputs if output.output_type == "stream" and output.name == "stderr"]


@each_chapter
def test_an_untouched_notebook_runs_to_its_end_and_earns_nothing(source, project):
    notebook = execute(released(source), source, project)
    records = chapter_of(source).records
    assert [cell.id for cell in checks_of(notebook)] == [f"{record.id}-check" for record in records]
    for cell, record in zip(checks_of(notebook), records, strict=True):
        (text,) = shown(cell)
        headline = text.splitlines()[0]
        assert headline.startswith(record.title)
        assert "not implemented yet" in headline or "blocked by " in headline
        assert errors(cell) == ["CheckFailed"]
        assert determine_grade(cell) == (0, record.points)
    assert all(cell.execution_count for cell in notebook.cells if cell.cell_type == "code")
    assert stderr(notebook) == []


@each_chapter
def test_a_solved_notebook_runs_without_an_error_and_earns_every_point(source, project):
    notebook = execute(solved(source), source, project)
    for cell, record in zip(checks_of(notebook), chapter_of(source).records, strict=True):
        assert "right: " in "".join(shown(cell)), "\n".join(shown(cell))
        assert determine_grade(cell) == (record.points, record.points)
        assert [output.output_type for output in cell.outputs] == ["display_data"]
    met = [(cell.id, name) for cell in notebook.cells if cell.cell_type == "code" for name in errors(cell)]
    assert [name for _, name in met] == MEANT_TO_FAIL.get(source.stem, []), met
    assert stderr(notebook) == []
