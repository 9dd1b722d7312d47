"""`use`: which chapters are the learner's own, what the line says, what is stale."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

import gradwright
from autograder.errors import BadInput, Interrupted, NotBuiltYet, NotebookError, ReferenceMissing
from gradwright import _chapters, _framework, _mine
from gradwright._chapters import CHAPTERS, find_chapter
from gradwright._loader import read_source
from tests.loader.notebooks import EXERCISES, RIGHT, WORK, WRONG, exercise, extra, written


@pytest.fixture
def mine(project, judged, capsys):
    """mine(upto): the lines that use("mine") prints, by chapter."""

    def lines(upto=None):
        gradwright.use("mine", upto=upto)
        return dict(re.split("  +", line, maxsplit=1) for line in capsys.readouterr().out.splitlines())

    return lines


def test_a_right_chapter_is_used_and_the_chapters_above_stand_on_it(project, mine):
    written(project, 1)
    gradwright.chapter(3)
    assert mine() == {
        "00 start": "reference: no notebook of yours",
        "01 tensor": "yours (work/01_tensor/tensor.ipynb), 1 of 1 exercises",
        "02 autodiff": "reference: no notebook of yours",
    }
    assert gradwright.chapters.tensor.Tensor.of == gradwright.Tensor.of == "mine"
    assert gradwright.double(4) == 8
    assert gradwright.chapters.autodiff.__file__.endswith("solutions/02_autodiff.py")


def test_two_right_chapters(project, mine):
    written(project, 1)
    written(project, 2, [*RIGHT[2], extra()])
    assert mine(upto=2)["02 autodiff"] == "yours (work/02_autodiff/autodiff.ipynb), 3 of 3 exercises"
    assert gradwright.Tensor.__mro__[1].of == "mine"


def test_a_chapter_that_lacks_something_is_not_used(project, mine):
    written(project, 1, WRONG[1])
    written(project, 2)
    lines = mine(upto="autodiff")
    assert lines["01 tensor"] == "reference: yours (work/01_tensor/tensor.ipynb) lacks 1.1 double"
    assert lines["02 autodiff"] == "reference: yours (work/02_autodiff/autodiff.ipynb) lacks 2.3 extra"
    assert gradwright.double(4) == 8
    assert gradwright.Tensor.__module__ == "gradwright.chapters.autodiff"
    assert _framework.state.notebooks == {}


def test_many_missing_exercises_are_counted(project, mine, monkeypatch):
    wrong = [exercise(1, n, "double", "function", lambda *given: False) for n in range(1, 8)]
    monkeypatch.setitem(EXERCISES, 1, wrong)
    written(project, 1)
    assert mine(upto=1)["01 tensor"].endswith("lacks all 7 exercises")
    monkeypatch.setitem(EXERCISES, 1, [*wrong, exercise(1, 8, "double", "function", lambda *given: True)])
    (project.root / "work/.verdicts.json").unlink()
    said = mine(upto=1)["01 tensor"]
    assert said.endswith("lacks 1.1 double, 1.2 double, 1.3 double, 1.4 double and 3 more")


def test_a_notebook_that_cannot_be_loaded(project, mine):
    project.notebook(WORK[1], ("exercise", "def double(x):\nreturn x"))
    assert mine(upto=1)["01 tensor"].startswith(
        "reference: your notebook cannot be loaded: work/01_tensor/tensor.ipynb, cell 1, line 2 cannot be run: Indent"
    )
    project.write(WORK[1], "{")
    assert "tensor.ipynb is not valid JSON" in mine(upto=1)["01 tensor"]


def test_a_chapter_that_cannot_be_judged(project, mine, monkeypatch):
    def missing(*given):
        raise ReferenceMissing("no stored values for tensor-double")

    monkeypatch.setattr(_mine, "judge", missing)
    written(project, 1)
    assert mine(upto=1)["01 tensor"] == (
        "reference: yours (work/01_tensor/tensor.ipynb) cannot be judged: no stored values for tensor-double"
    )


def test_a_helper_in_a_cell_that_also_runs_code_is_explained(project, mine):
    cells = [
        "def two():\n    return 2\n\nprint(two())",
        ("exercise", "def double(x):\n    return x * gone()"),
        "gone = two",
    ]
    written(project, 1, [*cells[:1], ("exercise", "def double(x):\n    return 0 if x else two()"), *RIGHT[1][1:]])
    assert mine(upto=1)["01 tensor"].endswith(
        "lacks 1.1 double; cell 1 defines two but also runs code, so it is not part of the module: "
        "move the definition into a cell of its own"
    )


def test_where_the_notebook_is_looked_for(project, monkeypatch):
    places = ["here/01_tensor/tensor.ipynb", "here/02_autodiff/tensor.ipynb", WORK[1], "course/01_tensor/tensor.ipynb"]
    paths = [written(project, 1, place=place) for place in places]
    monkeypatch.chdir(project.root / "here/02_autodiff")
    for path in paths:
        assert _mine.find_notebook(find_chapter(1)) == path
        shutil.rmtree(path.parent) if path == paths[2] else path.unlink()
    assert _mine.find_notebook(find_chapter(1)) is None


@pytest.mark.parametrize(
    ("others", "remedy"),
    [
        ([], ": `autograder fresh 01` puts an untouched copy there"),
        (["mine.ipynb"], "; there is mine.ipynb: rename it, or `autograder fresh 01` puts an untouched copy there"),
        (["a.ipynb", "b.ipynb"], "; there are a.ipynb and b.ipynb: rename the one that is yours, or `autograder fresh"),
        (["a.ipynb", "b.ipynb", "c.ipynb"], "; there are a.ipynb, b.ipynb and c.ipynb: rename the one that is yours"),
    ],
)
def test_a_notebook_that_is_gone_from_work_is_not_taken_from_the_course(project, sentence, mine, others, remedy):
    written(project, 1, place="course/01_tensor/tensor.ipynb")
    (project.root / "work/01_tensor").mkdir(parents=True)
    for other in others:
        written(project, 1, place=f"work/01_tensor/{other}")
    said = sentence(NotebookError, _mine.find_notebook, find_chapter(1))
    assert said.startswith(f"work/01_tensor/tensor.ipynb is missing{remedy}")
    assert mine(upto=1)["01 tensor"] == f"reference: your notebook cannot be loaded: {said}"


def test_a_folder_of_the_notebook_s_name_is_no_notebook_to_be_renamed(project, sentence):
    (project.root / "work/01_tensor/tensor.ipynb").mkdir(parents=True)
    said = sentence(NotebookError, _mine.find_notebook, find_chapter(1))
    assert said == "work/01_tensor/tensor.ipynb is missing: `autograder fresh 01` puts an untouched copy there"


def test_use_that_is_interrupted_says_where_it_was(project, judged, monkeypatch, sentence):
    def endless(exercise, target, framework):
        raise KeyboardInterrupt

    monkeypatch.setattr(_mine, "judge", endless)
    written(project, 1)
    said = sentence(Interrupted, gradwright.use, "mine", upto=1)
    assert said == (
        'use("mine") was stopped in chapter 01 tensor, which stands on the reference; if your notebook never ends, '
        "`autograder check 01` names the exercise with the loop"
    )
    assert _framework.state.notebooks == {}
    assert not hasattr(gradwright.Tensor, "of")


def test_only_chapters_before_this_one_and_up_to_the_last_asked_for(project, mine):
    written(project, 1)
    gradwright.chapter(2)
    assert list(mine()) == ["00 start", "01 tensor"]
    assert list(mine(upto=0)) == ["00 start"]
    assert _framework.state.notebooks == {}
    assert list(mine(upto=4)) == ["00 start", "01 tensor"]


def test_reference_switches_back(project, mine):
    written(project, 1)
    mine()
    assert hasattr(gradwright.Tensor, "of")
    gradwright.use("reference")
    assert not hasattr(gradwright.Tensor, "of")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"which": "yours"}, 'use takes "mine" or "reference", not \'yours\''),
        ({"which": 3}, 'use takes "mine" or "reference", not 3'),
        ({"which": "reference", "upto": 2}, 'upto=2 goes with "mine"'),
        ({"which": "mine", "upto": 99}, "there is no chapter 99"),
    ],
)
def test_use_refuses_what_it_does_not_know(project, sentence, given, says):
    assert sentence(BadInput, gradwright.use, **given).startswith(says)


def test_what_was_imported_before_is_said_to_be_the_reference(project, judged, capsys):
    written(project, 1)
    _ = gradwright.Tensor
    gradwright.use("mine", upto=1)
    said = capsys.readouterr().out.strip()
    assert said.endswith("what was imported from 01 tensor, 02 autodiff before is still the old one: import it again")


def touch(path, seconds):
    os.utime(path, (path.stat().st_atime, path.stat().st_mtime + seconds))


def test_a_notebook_that_changed_after_it_was_loaded(project, mine):
    path = written(project, 1)
    mine(upto=1)
    assert gradwright.stale() == []
    touch(path, 5)
    assert gradwright.stale() == []
    touch(written(project, 1, [*RIGHT[1], ("given", "x = 1")]), 9)
    said = (
        "work/01_tensor/tensor.ipynb has changed since it was loaded for chapter 01 tensor: "
        "restart the kernel to use the new version"
    )
    assert gradwright.stale() == [said]
    assert mine(upto=1)["01 tensor"] == said
    assert not hasattr(gradwright.chapters.tensor, "x")
    path.unlink()
    assert "cannot be read any more" in gradwright.stale()[0]


def test_use_again_keeps_what_is_loaded(project, mine):
    written(project, 1)
    mine(upto=1)
    before = gradwright.Tensor
    assert mine(upto=1)["01 tensor"] == "yours (work/01_tensor/tensor.ipynb), as loaded before"
    assert gradwright.Tensor is before


def test_a_chapter_mended_below_is_taken_and_those_above_are_loaded_again_on_it(project, mine):
    written(project, 1, WRONG[1])
    written(project, 2, [*RIGHT[2], extra()])
    assert mine()["02 autodiff"].startswith("yours")
    assert not hasattr(gradwright.Tensor, "of")
    written(project, 1)
    lines = mine()
    assert lines["01 tensor"].startswith("yours")
    assert lines["02 autodiff"].startswith("yours")
    assert gradwright.Tensor.of == "mine"


def test_another_chapter_starts_from_the_reference_again(project, mine):
    written(project, 1)
    gradwright.chapter(2)
    mine()
    gradwright.chapter(2)
    assert gradwright.Tensor.of == "mine"
    gradwright.chapter(3)
    assert _framework.state.notebooks == {}
    assert not hasattr(gradwright.Tensor, "of")


def test_without_a_reference_the_line_says_missing(project, mine, sentence):
    written(project, 1, WRONG[1])
    (project.root / "solutions/01_tensor.py").unlink()
    assert mine(upto=1)["01 tensor"].startswith("missing: yours (work/01_tensor/tensor.ipynb) lacks 1.1 double")
    assert "still to come" in sentence(NotBuiltYet, lambda: gradwright.double)


# With the real records, judge and chapter 00


def as_notebook(source, project, place, stub):
    cells = []
    for cell in read_source(source):
        role = next(iter(cell.marks), "demo" if cell.kind == "code" else "prose")
        text = cell.text
        if stub and role == "exercise":
            head = text.partition("### BEGIN SOLUTION")[0].rstrip()
            text = head + '\n    raise NotImplementedError("Exercise 0.1: dot_loop")'
        cells.append((role, text))
    return project.notebook(place, *cells)


@pytest.mark.parametrize("stub", [False, True])
def test_chapter_00_for_real(empty_project, monkeypatch, capsys, stub):
    start = next(chapter for chapter in CHAPTERS if chapter.number == 0)
    source = Path(gradwright.__file__).parents[2] / "solutions/00_start.py"
    monkeypatch.setattr(_chapters, "CHAPTERS", (start,))
    as_notebook(source, empty_project, "work/00_start/start.ipynb", stub)
    gradwright.use("mine", upto=0)
    assert capsys.readouterr().out.strip() == (
        "00 start  missing: yours (work/00_start/start.ipynb) lacks all 2 exercises"
        if stub
        else "00 start  yours (work/00_start/start.ipynb), 2 of 2 exercises"
    )
