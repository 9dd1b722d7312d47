"""A sample class, made from the answers and the known mistakes: what an instructor can try everything on.

Six students hand in every chapter. sample-1 has all right, sample-2 the first half of the exercises, sample-3 nothing;
sample-4, -5 and -6 have all right but for one known mistake each.
"""

from __future__ import annotations

import ast
import copy
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import gradwright
from autograder.build.answers import answers_to
from autograder.build.notebook import write
from autograder.build.rules import BEGIN, END
from autograder.checks.exercise import Exercise, exercises_of, record_files
from autograder.course import ROOT, Chapter, chapters
from autograder.errors import NotebookError
from gradwright._loader import read_source
from gradwright._mine import verify

MISTAKEN = ("sample-4", "sample-5", "sample-6")


def make_sample(folder: Path, there: Sequence[Chapter]) -> str:
    """Make a class folder with submissions to some chapters, whole or not at all. Returns a sentence that says so."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".sample-") as building:
        for chapter in there:
            for student, notebook in submissions(chapter).items():
                place = Path(building, "class", "submitted", student, chapter.folder, chapter.notebook)
                write(place, as_text(notebook))
        Path(building, "class").rename(folder)
    return (
        f"There was no class in {folder}, so a sample class is there now, made from solutions/: sample-1 has all "
        f"right, sample-2 half of it, sample-3 nothing, and sample-4 to sample-6 one known mistake each in every "
        f"chapter. Delete the folder to have it made afresh."
    )


def as_text(notebook: dict[str, Any]) -> bytes:
    return (json.dumps(notebook, ensure_ascii=False, indent=1, sort_keys=True) + "\n").encode()


def submissions(chapter: Chapter) -> dict[str, dict[str, Any]]:
    """Student to notebook, for one chapter."""
    released = released_notebook(chapter)
    answers = solved(chapter)
    half = dict(list(answers.items())[: len(answers) // 2])
    made = {
        "sample-1": filled_in(released, answers),
        "sample-2": filled_in(released, half),
        "sample-3": released,
    }
    wrong = one_mistake_each(chapter, released, answers)
    return made | dict(zip(MISTAKEN, wrong, strict=False))


def released_notebook(chapter: Chapter) -> dict[str, Any]:
    return json.loads((ROOT / "course" / chapter.folder / chapter.notebook).read_text(encoding="utf-8"))


def marked(chapter: Chapter) -> dict[str, str]:
    """Exercise id to the text of its cell in solutions/, in the order of the chapter."""
    cells = read_source(ROOT / "solutions" / f"{chapter.folder}.py")
    return {cell.marks["exercise"]: cell.text for cell in cells if "exercise" in cell.marks}


def solved(chapter: Chapter) -> dict[str, str]:
    """The same as a learner would have it: without the marks around the answer."""
    return {
        exercise: "\n".join(line for line in text.splitlines() if line.strip() not in (BEGIN, END))
        for exercise, text in marked(chapter).items()
    }


def filled_in(released: dict[str, Any], texts: Mapping[str, str]) -> dict[str, Any]:
    """The released notebook with other texts in some of its exercises."""
    notebook = copy.deepcopy(released)
    for cell in notebook["cells"]:
        if cell["id"] in texts:
            cell["source"] = texts[cell["id"]]
    return notebook


def one_mistake_each(chapter: Chapter, released: dict[str, Any], answers: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Notebooks in which one exercise is wrong and the verdict names the mistake. They take turns among exercises."""
    gradwright.chapter(chapter.number)
    with tempfile.TemporaryDirectory() as folder:
        for exercise, mistake, text in mistakes_in_turn(chapter, answers):
            notebook = filled_in(released, answers | {exercise.id: text})
            path = Path(folder, chapter.notebook)
            path.write_text(json.dumps(notebook), encoding="utf-8")
            if is_only_fault(chapter, path, exercise, mistake):
                yield notebook


def is_only_fault(chapter: Chapter, path: Path, exercise: Exercise, mistake: str) -> bool:
    """Whether a notebook fails this exercise alone, by this mistake. (What others build on fails them too.)"""
    try:
        failed = [verdict for verdict in verify(chapter.number, path) if not verdict.right]
    except NotebookError:  # the mistake leans on something that a notebook does not have
        return False
    return [v.exercise.id for v in failed] == [exercise.id] and [c.mistake for c in failed[0].causes] == [mistake]


def mistakes_in_turn(chapter: Chapter, answers: dict[str, str]) -> Iterator[tuple[Exercise, str, str]]:
    """Exercise, mistake, and text for the exercise's cell: the first mistake of each exercise, then the second ..."""
    columns = [
        [(exercise, mistake, mistaken(chapter, exercise, mistake, answers[exercise.id])) for mistake in known]
        for exercise in exercises_of(chapter.number)
        if "." not in exercise.name and (known := answers_to(exercise).mistakes)
    ]
    for turn in zip_longest(*columns):
        yield from (one for one in turn if one is not None)


def mistaken(chapter: Chapter, exercise: Exercise, mistake: str, answer: str) -> str:
    """A mistake as a learner could have written it: under the exercise's name, with what it needs, without the
    sentence that names it."""
    tree = ast.parse((ROOT / "solutions" / "mistakes" / record_files()[exercise.chapter].name).read_text("utf-8"))
    wrong = copy.deepcopy(inside(inside(inside(tree, exercise.id.replace("-", "_")), "mistakes"), mistake))
    needed = helpers(tree, wrong)
    extends = isinstance(wrong, ast.ClassDef) and any(ast.unparse(base) == exercise.name for base in wrong.bases)
    wrong.name = exercise.name
    wrong.body = [step for step in wrong.body[1:] if not imports_own(chapter, step)] or [ast.Pass()]
    parts = [ast.unparse(node) for node in (*needed, wrong) if not imports_own(chapter, node)]
    return "\n\n\n".join([answer] * extends + parts)


def inside(node: Any, name: str) -> Any:
    """The function or class of this name in the body of another, or of a module."""
    return next(child for child in node.body if getattr(child, "name", None) == name)


def imports_own(chapter: Chapter, node: ast.AST) -> bool:
    """Whether it imports from the chapter itself, whose names a notebook has without."""
    return isinstance(node, ast.ImportFrom) and node.module == f"gradwright.chapters.{chapter.name}"


def helpers(tree: ast.Module, wanted: ast.AST) -> list[ast.stmt]:
    """The statements at the top of the file that `wanted` leans on, in the file's order."""
    needed: list[ast.stmt] = []
    names = {node.id for node in ast.walk(wanted) if isinstance(node, ast.Name)}
    for node in reversed(tree.body):
        if names & bound(node):
            needed.insert(0, node)
            names |= {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
    return needed


def bound(node: ast.stmt) -> set[str]:
    """The names that a statement at the top of the file makes."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {alias.asname or alias.name.partition(".")[0] for alias in node.names}
    if isinstance(node, ast.Assign):
        return {name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)}
    return {node.name} if isinstance(node, ast.FunctionDef | ast.ClassDef) else set()


def add_sources(folder: Path) -> None:
    """Put the notebooks with answers that are missing into `folder`/<NN_name>/, for `nbgrader generate_assignment`.

    Only notebooks are there: nbgrader releases every other file beside one as it is.
    """
    for chapter in chapters():
        path = folder / chapter.folder / chapter.notebook
        if not path.exists() and (ROOT / "solutions" / f"{chapter.folder}.py").exists():
            write(path, as_text(filled_in(released_notebook(chapter), marked(chapter))))
