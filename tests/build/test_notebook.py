"""The notebooks that are built: valid, sealed, reproducible, and without answers."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from autograder.build.notebook import as_bytes, build_all, build_chapter, release_notebook, source_notebook
from autograder.build.source import read_chapter
from autograder.errors import SourceError


@pytest.fixture(scope="module")
def chapter(tmp_path_factory, text, records):
    path = tmp_path_factory.mktemp("solutions") / "01_tiny.py"
    path.write_text(text, encoding="utf-8")
    return read_chapter(path, records)


@pytest.fixture(scope="module")
def released(chapter):
    return {cell.id: cell for cell in release_notebook(chapter).cells}


def test_cells_and_ids(chapter):
    roles = {cell.id: cell.metadata.gradwright.role for cell in release_notebook(chapter).cells}
    assert roles == {
        "tiny": "prose",
        "tiny-1": "demo",
        "imports": "given",
        "ramp": "figure",
        "tiny-double-task": "prose",
        "tiny-double": "exercise",
        "tiny-double-1": "prose",
        "tiny-double-check": "check",
        "tiny-box-task": "prose",
        "tiny-box": "exercise",
        "tiny-box-check": "check",
        "tiny-box-1": "prose",
        "tiny-box-2": "demo",
        "tiny-box-3": "demo",
    }


def test_release_is_valid(chapter):
    from nbgrader.preprocessors import CheckCellMetadata

    notebook = nbformat.reads(as_bytes(release_notebook(chapter)).decode(), as_version=4)
    nbformat.validate(notebook)
    CheckCellMetadata().preprocess(notebook, {})
    assert all(re.fullmatch(r"[a-z0-9-]{1,64}", cell.id) for cell in notebook.cells)
    assert dict(notebook.metadata) == {
        "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    assert all(cell.execution_count is None and not cell.outputs for cell in notebook.cells if cell.cell_type == "code")


def test_metadata_of_an_exercise(released):
    metadata = released["tiny-double"].metadata
    assert metadata.gradwright == {"role": "exercise", "name": "tiny-double", "title": "Exercise 1.1: double"}
    described = {key: metadata.nbgrader[key] for key in ("grade", "grade_id", "locked", "solution")}
    assert described == {"grade": False, "grade_id": "tiny-double", "locked": False, "solution": True}
    assert metadata.deletable is False and "editable" not in metadata and "tags" not in metadata


def test_metadata_of_a_check(released):
    metadata = released["tiny-double-check"].metadata
    assert metadata.gradwright == {"role": "check", "name": "tiny-double"}
    described = {key: metadata.nbgrader[key] for key in ("grade", "grade_id", "locked", "solution", "points")}
    assert described == {
        "grade": True,
        "grade_id": "tiny-double-check",
        "locked": True,
        "solution": False,
        "points": 2,
    }
    assert metadata.tags == ["raises-exception"] and metadata.editable is False


def test_metadata_of_given_code(released):
    metadata = released["imports"].metadata
    assert metadata.jupyter == {"source_hidden": True}
    assert metadata.nbgrader.locked and not metadata.nbgrader.grade and not metadata.nbgrader.solution
    assert metadata.editable is False and metadata.deletable is False


def test_demos_are_tagged_where_they_use_an_answer(released):
    assert released["tiny-box-2"].metadata.tags == ["raises-exception"]
    assert "tags" not in released["tiny-box-3"].metadata
    assert "nbgrader" not in released["tiny-box-3"].metadata


def test_figure_is_an_attachment_with_words(released):
    cell = released["ramp"]
    assert cell.cell_type == "markdown"
    assert cell.source == "![A line that rises from 0 to 2.](attachment:ramp.png)"
    assert list(cell.attachments["ramp.png"]) == ["image/png"]


def test_stub_compiles_and_raises(released):
    space: dict = {}
    exec(released["tiny-double"].source, space)
    with pytest.raises(NotImplementedError, match=r"^Exercise 1\.1: double$"):
        space["double"](2)
    exec(released["tiny-box"].source, space)
    with pytest.raises(NotImplementedError, match=r"^Exercise 1\.2: Box$"):
        space["Box"](2)
    assert released["tiny-box"].source.count("raise NotImplementedError") == 2
    assert space["Box"].get.__doc__ == "What is in it."


def test_no_answer_leaves(chapter):
    content = as_bytes(release_notebook(chapter)).decode()
    for secret in ("secret_total", "hidden_number", "x + x", "BEGIN SOLUTION", "END SOLUTION"):
        assert secret not in content
    assert "secret_total" in as_bytes(source_notebook(chapter)).decode()


def test_stub_must_compile(write, text, records):
    """An answer that holds the `else` of an `if` outside it leaves half a statement behind."""
    inside = "    secret_total = x + x\n    return secret_total\n"
    broken = text.replace(
        "    ### BEGIN SOLUTION\n" + inside, "    if x:\n    ### BEGIN SOLUTION\n        return x + x\n"
    )
    path = write(broken.replace("    ### END SOLUTION\n", "    ### END SOLUTION\n    return 0\n", 1))
    with pytest.raises(SourceError, match="without its answer 'tiny-double' is not valid Python") as caught:
        build_chapter(path, path.parent, records)
    assert caught.value.line == path.read_text().splitlines().index("def double(x):") + 1


def test_building_twice_gives_the_same_bytes(write, text, records, tmp_path):
    source = write(text)
    first = build_chapter(source, tmp_path / "a", records).notebook.read_bytes()
    second = build_chapter(source, tmp_path / "b", records).notebook.read_bytes()
    assert first == second
    assert first.endswith(b"}\n") and b"\r" not in first


SCRIPT = """
import sys
from pathlib import Path
from autograder.build.notebook import build_chapter
from autograder.checks import Exercise
def record(id, name, difficulty, minutes, points):
    return Exercise(id=id, name=name, difficulty=difficulty, minutes=minutes, points=points,
                    probe=None, cases={}, inputs=None, draw=None)
records = [record("tiny-double", "double", "Easy", 5, 2), record("tiny-box", "Box", "Hard", 1, 1)]
build_chapter(Path(sys.argv[1]), Path(sys.argv[2]), records)
"""


def test_another_process_with_another_hash_seed_gives_the_same_bytes(write, text, records, tmp_path):
    source = write(text)
    here = build_chapter(source, tmp_path / "here", records).notebook.read_bytes()
    environment = {**os.environ, "PYTHONHASHSEED": "4242", "TZ": "Asia/Tokyo"}
    command = [sys.executable, "-c", SCRIPT, str(source), str(tmp_path / "there")]
    subprocess.run(command, env=environment, check=True, timeout=120)
    assert (tmp_path / "there" / "tiny.ipynb").read_bytes() == here


def test_an_unchanged_notebook_is_not_written(write, text, records, tmp_path):
    source = write(text)
    out = tmp_path / "01_tiny"
    first = build_chapter(source, out, records)
    os.utime(first.notebook, ns=(1, 1))
    second = build_chapter(source, out, records)
    assert first.changed and not second.changed
    assert first.notebook.stat().st_mtime_ns == 1
    assert second.text().startswith("01_tiny: unchanged (2 exercises, 3 points, ")


def test_other_files_stay_and_nothing_is_left_over(write, text, records, tmp_path):
    out = tmp_path / "01_tiny"
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    (out / "tiny.ipynb").write_text("an older one")
    build_chapter(write(text), out, records)
    assert sorted(path.name for path in out.iterdir()) == ["notes.txt", "tiny.ipynb"]
    assert (out / "notes.txt").read_text() == "mine"
    assert json.loads((out / "tiny.ipynb").read_text())["nbformat"] == 4


def test_a_broken_source_leaves_the_old_notebook(write, text, records, tmp_path):
    built = build_chapter(write(text), tmp_path / "01_tiny", records)
    before = built.notebook.read_bytes()
    with pytest.raises(SourceError):
        build_chapter(write(text.replace("END SOLUTION", "END")), tmp_path / "01_tiny", records)
    assert built.notebook.read_bytes() == before


def test_a_failed_write_leaves_nothing_behind(write, text, records, tmp_path, monkeypatch):
    def refuse(source, target):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="disk full"):
        build_chapter(write(text), tmp_path / "01_tiny", records)
    assert list((tmp_path / "01_tiny").iterdir()) == []


def test_importing_the_builder_is_quick():
    """nbgrader takes two seconds and Matplotlib half a second: they wait until something is built."""
    script = "import sys, autograder.build.notebook; print({'nbgrader', 'matplotlib', 'jupytext'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout == "set()\n"


def test_no_chapters_at_all(tmp_path):
    with pytest.raises(SourceError, match="there is no chapter here"):
        build_all(tmp_path, tmp_path)


def test_learner_and_loader_see_the_same_definitions(chapter, released, tmp_path):
    """The module that is assembled from the released notebook has the cells of the one from the source."""
    from gradwright._loader import definition_cells, read_notebook, read_source

    (tmp_path / "tiny.ipynb").write_bytes(as_bytes(source_notebook(chapter)))
    from_source = [cell.text for cell in definition_cells(read_source(chapter.path))]
    from_notebook = [cell.text for cell in definition_cells(read_notebook(tmp_path / "tiny.ipynb"))]
    assert from_source == from_notebook and len(from_source) == 3


def test_nbgrader_generate_assignment_gives_the_same_release(chapter, tmp_path, monkeypatch):
    """nbgrader's own command, on the instructor's notebook and with our stub, writes what the builder writes."""
    from nbgrader.apps import NbGraderAPI
    from nbgrader.converters import GenerateAssignment
    from traitlets.config import Config

    from autograder.build.release import ClearAnswers

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")  # it calls alembic
    folder = tmp_path / "source" / "01_tiny"
    folder.mkdir(parents=True)
    (folder / "tiny.ipynb").write_bytes(as_bytes(source_notebook(chapter)))
    config = Config()
    config.CourseDirectory.root = str(tmp_path)
    steps = GenerateAssignment.preprocessors.default_args[0]
    config.GenerateAssignment.preprocessors = [
        ClearAnswers if step.__name__ == "ClearSolutions" else step for step in steps
    ]
    outcome = NbGraderAPI(config=config).generate_assignment("01_tiny")
    assert outcome["success"], outcome["log"]
    theirs = (tmp_path / "release" / "01_tiny" / "tiny.ipynb").read_bytes()
    assert theirs.rstrip() == as_bytes(release_notebook(chapter)).rstrip()
