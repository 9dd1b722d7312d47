"""Every chapter of the course: what is committed is what its source gives, and no answer is in it."""

from __future__ import annotations

import ast
import json
from functools import cache
from pathlib import Path

import pytest

from autograder.build.notebook import COURSE, SOURCES, as_bytes, release_notebook, source_notebook
from autograder.build.rules import answers
from autograder.build.size import measure
from autograder.build.source import Chapter, read_chapter
from gradwright._chapters import find_chapter

CHAPTERS = sorted(SOURCES.glob("[0-9][0-9]_*.py"))
each_chapter = pytest.mark.parametrize("source", CHAPTERS, ids=lambda path: path.stem)


@cache
def chapter_of(source: Path) -> Chapter:
    return read_chapter(source)


def committed(source: Path) -> Path:
    return COURSE / source.stem / f"{source.stem[3:]}.ipynb"


@each_chapter
def test_rebuilding_gives_the_committed_bytes(source):
    rebuilt = as_bytes(release_notebook(chapter_of(source)))
    assert committed(source).read_bytes() == rebuilt, "run `make build` and commit what it wrote"


@each_chapter
def test_no_line_of_an_answer_is_in_the_release(source):
    """Lines that also stand outside the answers of the source, as scaffold or in prose, are known to the learner."""
    chapter = chapter_of(source)
    lines = source.read_text().splitlines()
    inside = [
        n for cell in chapter.cells if cell.role == "exercise" for span in answers(chapter, cell) for n in range(*span)
    ]
    outside = "\n".join(line for n, line in enumerate(lines, 1) if n not in inside)
    secrets = {text for n in inside if len(text := lines[n - 1].strip()) > 12 and text not in outside}
    assert secrets
    notebook = json.loads(committed(source).read_bytes())
    released = "\n".join("".join(cell["source"]) for cell in notebook["cells"])
    everything = json.dumps(notebook, ensure_ascii=False)
    for secret in secrets:
        assert secret not in released
        assert json.dumps(secret, ensure_ascii=False)[1:-1] not in everything


@each_chapter
def test_every_released_exercise_is_a_stub(source):
    notebook = json.loads(committed(source).read_bytes())
    cells = {cell["id"]: "".join(cell["source"]) for cell in notebook["cells"]}
    for record in chapter_of(source).records:
        ast.parse(cells[record.id])
        assert f'raise NotImplementedError("Exercise {record.number}: {record.name}")' in cells[record.id]


@each_chapter
def test_the_instructors_notebook_holds_the_source(source):
    """Text, answers and order survive the way into the notebook."""
    chapter = chapter_of(source)
    shown = [cell.source for cell in source_notebook(chapter).cells if cell.metadata.gradwright.role != "figure"]
    assert shown == [cell.text for cell in chapter.cells if cell.role != "figure"]


def test_the_machine_of_chapter_02_is_one_that_can_be_read():
    """Answers and given cells, without blank lines, comments and docstrings: fewer than 400 lines in all."""
    assert measure(chapter_of(find_chapter("autodiff").source)).module_lines < 400


@pytest.mark.parametrize("name", ["start", "autodiff", "operations"])
def test_no_docstring_of_an_exercise_is_cut_off(name):
    """A cell of JupyterLab shows little more in a window of 1280 pixels; what is behind has to be scrolled to."""
    chapter = chapter_of(find_chapter(name).source)
    for cell in release_notebook(chapter).cells:
        if cell.metadata.get("gradwright", {}).get("role") == "exercise":
            lines, documented = cell.source.splitlines(), 0
            for node in ast.walk(ast.parse(cell.source)):
                if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node):
                    text, documented = node.body[0], documented + 1
                    assert max(map(len, lines[text.lineno - 1 : text.end_lineno])) <= 100
            assert documented


def test_every_notebook_of_the_course_has_a_source():
    assert {committed(source) for source in CHAPTERS} == set(COURSE.glob("[0-9][0-9]_*/*.ipynb"))
