"""The verdicts on a learner's notebook, and how they are remembered."""

from __future__ import annotations

import json

import pytest

import gradwright
from autograder.errors import BadInput, NotebookError
from gradwright import _mine
from gradwright._chapters import find_chapter
from tests.loader.notebooks import IMPORTS, RIGHT, WORK, extra, written


def test_verify_judges_every_exercise_and_leaves_everything_as_it_was(project, judged):
    path = written(project, 2)
    before = gradwright.Tensor
    verdicts = _mine.verify(2, path)
    assert [(verdict.exercise.title, verdict.right) for verdict in verdicts] == [
        ("2.1 Tensor", True),
        ("2.2 Tensor.__init__", True),
        ("2.3 extra", False),
    ]
    assert verdicts[2].trouble == (
        "the cell of `extra` is missing: `autograder fresh 02` puts an untouched copy beside yours"
    )
    assert gradwright.Tensor is before


def test_a_chapter_without_its_cells_has_nothing_right(project, judged):
    verdicts = _mine.verify("autodiff", project.notebook(WORK[2], ("given", "x = 1")))
    assert [(verdict.right, verdict.state) for verdict in verdicts] == [(False, "cannot be judged")] * 3
    assert judged == []


def test_an_exercise_under_another_name_is_told_so(project, judged):
    path = project.notebook(WORK[1], ("given", "y = 1"), ("exercise", "def doubled(x): ...", "1-double"))
    (verdict,) = _mine.verify(1, path)
    assert verdict.trouble == (
        "work/01_tensor/tensor.ipynb, cell 2 defines no `double`: give it that name again, "
        "or `autograder fresh 01` puts an untouched copy beside yours"
    )


def test_an_exercise_in_a_cell_that_also_runs_code_is_explained(project, judged):
    (verdict,) = _mine.verify(1, project.notebook(WORK[1], "def double(x):\n    return 2 * x\n\nprint(double(2))"))
    assert verdict.trouble.startswith("cell 1 defines double but also runs code, so it is not part of the module")


def test_a_cell_that_does_not_run_costs_its_exercise_and_what_builds_on_it(project, judged):
    cells = [
        IMPORTS,
        ("exercise", "class Tensor(Base):\n    grad = None"),
        ("exercise", "def extra()\n    return None", "2-extra"),
        ("given", "nothing = extra()"),
    ]
    path = project.notebook(WORK[2], *cells)
    verdicts = _mine.verify(2, path)
    assert [verdict.right for verdict in verdicts] == [True, True, False]
    assert verdicts[2].trouble.startswith(
        "work/02_autodiff/autodiff.ipynb, cell 3, line 1 cannot be run: SyntaxError: expected ':'"
    )
    with pytest.raises(NotebookError, match="cell 3, line 1 cannot be run"):
        _mine.lacking(2, path)


def test_a_given_cell_that_does_not_run_is_trouble_for_all(project, judged):
    path = project.notebook(WORK[1], ("given", "y = gone"), *RIGHT[1])
    with pytest.raises(NotebookError, match="cell 1, line 1 cannot be run: NameError"):
        _mine.verify(1, path)


def test_an_object_that_cannot_be_judged_is_wrong_for_the_reason_given(project, judged, monkeypatch):
    def strict(exercise, target, framework):
        raise BadInput(f"1.1 asks for double itself and got {target}")

    monkeypatch.setattr(_mine, "judge", strict)
    (verdict,) = _mine.verify(1, project.notebook(WORK[1], ("exercise", "double = 3")))
    assert (verdict.right, verdict.trouble) == (False, "1.1 asks for double itself and got 3")


def test_verify_raises_for_what_it_cannot_load(project, judged):
    with pytest.raises(NotebookError, match="cannot be read"):
        _mine.verify(1, project.root / "none.ipynb")


def test_verdicts_are_remembered_until_something_changes(project, judged):
    path = written(project, 2, [*RIGHT[2], "def extra():\n    return 1"])
    assert _mine.lacking(2, path) == ["2.3 extra"]
    count = len(judged)
    assert _mine.lacking("02", path) == ["2.3 extra"]
    assert len(judged) == count

    written(project, 2, [*RIGHT[2], extra()])
    assert _mine.lacking(2, path) == []
    assert len(judged) == 2 * count

    source = project.root / "solutions/01_tensor.py"
    source.write_text(source.read_text() + "\n# %%\n")
    assert _mine.lacking(2, path) == []
    assert len(judged) == 3 * count


@pytest.mark.parametrize("content", ["{", "[]", "\0", '{"place": 3}', '{"place": {"of": "mark", "lacks": 3}}'])
def test_a_spoiled_memory_is_judged_again(project, judged, content):
    path = written(project, 1)
    place, mark = str(path.resolve()), _mine.fingerprint(find_chapter(1), path)
    content = content.replace("place", place).replace("mark", mark)
    memory = project.write("work/.verdicts.json", content)
    assert _mine.lacking(1, path) == []
    assert json.loads(memory.read_text())[place] == {"of": mark, "lacks": []}
    assert [file.name for file in memory.parent.glob(".verdicts*")] == [".verdicts.json"]


def test_a_memory_that_cannot_be_written_costs_nothing_else(project, judged):
    (project.root / "work").write_text("a file where the folder should be")
    path = written(project, 1, place="elsewhere/tensor.ipynb")
    assert _mine.lacking(1, path) == _mine.lacking(1, path) == []
    assert len(judged) == 2


def test_a_memory_whose_place_is_taken_leaves_nothing_behind(project, judged):
    (project.root / "work/.verdicts.json").mkdir(parents=True)
    path = written(project, 1)
    assert _mine.lacking(1, path) == []
    assert [file.name for file in (project.root / "work").glob(".verdicts*")] == [".verdicts.json"]
