"""A chapter's cells to its two notebooks: the instructor's with answers, and the learner's without.

Every piece of metadata is made here, from the marks of the source and the records of the exercises.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from autograder.build.cell_ids import cell_ids
from autograder.build.figures import Still, picture
from autograder.build.rules import refuse_broken_python
from autograder.build.size import Size, measure
from autograder.build.source import Chapter, SourceCell, read_chapter
from autograder.build.uses import stopping
from autograder.checks.exercise import Exercise
from autograder.errors import SourceError
from autograder.writing import write
from gradwright._chapters import ROOT

SOURCES = ROOT / "solutions"
COURSE = ROOT / "course"
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
FORMAT = (4, 5)


@dataclass(frozen=True)
class Built:
    """What became of one chapter."""

    chapter: Chapter
    notebook: Path
    changed: bool
    size: Size

    def text(self) -> str:
        """One line, and one below it for each target that is missed."""
        records = self.chapter.records
        state = "written" if self.changed else "unchanged"
        counts = f"{len(records)} exercises, {sum(record.points for record in records)} points"
        code = f"{self.size.code_lines} lines of code, {self.size.module_lines} of them in the module"
        lengths = f"{self.size.words:,} words, {code}"
        head = f"{self.chapter.path.stem}: {state} ({counts}, {lengths})"
        return "\n".join([head, *(f"    {remark}" for remark in self.size.remarks)])


def build_all(sources: Path = SOURCES, course: Path = COURSE) -> list[Built]:
    """Build every chapter in `sources` into `course` and say so, a line each.

    Raises SourceError at the first chapter that breaks a rule; those before it are built.
    """
    found = sorted(sources.glob("[0-9][0-9]_*.py"))
    if not found:
        raise SourceError(sources, 1, "there is no chapter here: run from a clone that holds solutions/NN_name.py")
    built = []
    for source in found:
        built.append(build_chapter(source, course / source.stem))
        print(built[-1].text())
    return built


def build_chapter(source: Path, out_dir: Path, records: Sequence[Exercise] | None = None) -> Built:
    """Build one chapter's notebook in its folder, course/NN_name. Other files there stay as they are.

    A notebook that would not change is not written. Raises SourceError.
    """
    chapter = read_chapter(source, records)
    size = measure(chapter)
    target = out_dir / f"{chapter.name}.ipynb"
    content = as_bytes(release_notebook(chapter))
    changed = not target.is_file() or target.read_bytes() != content
    if changed:
        write(target, content)
    return Built(chapter, target, changed, size)


def as_bytes(notebook: NotebookNode) -> bytes:
    """The notebook as it lies on disk: sorted keys, one final newline, UTF-8."""
    return (nbformat.writes(notebook).rstrip("\n") + "\n").encode()


def release_notebook(chapter: Chapter) -> NotebookNode:
    """The learner's notebook: answers replaced by stubs, cells locked and sealed by nbgrader's own steps."""
    from autograder.build.release import release

    notebook = release(source_notebook(chapter))
    stubs = {cell.id: cell.source for cell in notebook.cells}
    for cell in chapter.cells:
        if cell.role == "exercise":
            refuse_broken_stub(chapter, cell, stubs[cell.name])
    return notebook


def refuse_broken_stub(chapter: Chapter, cell: SourceCell, stub: str) -> None:
    try:
        refuse_broken_python(chapter.path, stub)
    except SourceError as error:
        message = f"without its answer {cell.name!r} is not valid Python: let the marks enclose whole statements"
        raise SourceError(chapter.path, cell.line, message) from error


def source_notebook(chapter: Chapter) -> NotebookNode:
    """The instructor's notebook: with answers, pictures and all metadata, ready for `nbgrader generate_assignment`."""
    stopped = stopping(chapter.cells)
    cells: list[NotebookNode] = []
    for position, (cell, cell_id) in enumerate(zip(chapter.cells, cell_ids(chapter), strict=True)):
        if cell.role in ("figure", "widget"):
            cells.append(picture_cell(chapter, cell))
        if cell.role == "prose":
            cells.append(markdown_cell(cell_id, cell.text, "prose"))
        elif cell.role != "figure":
            cells.append(code_cell(chapter, cell, cell_id, position in stopped))
    notebook = NotebookNode(
        cells=cells,
        metadata=NotebookNode(kernelspec=NotebookNode(KERNEL), language_info=NotebookNode(name="python")),
        nbformat=FORMAT[0],
        nbformat_minor=FORMAT[1],
    )
    nbformat.validate(notebook)
    return notebook


def markdown_cell(cell_id: str, text: str, role: str) -> NotebookNode:
    return nbformat.v4.new_markdown_cell(text, id=cell_id, metadata={"gradwright": {"role": role, "name": cell_id}})


def picture_cell(chapter: Chapter, cell: SourceCell) -> NotebookNode:
    """A picture as an attachment, which every reader of notebooks shows without a kernel."""
    still: Still = picture(chapter, cell)
    file = f"{cell.name}.png"
    made = markdown_cell(
        cell.name if cell.role == "figure" else f"{cell.name}-figure",
        f"![{escaped(still.alt)}](attachment:{file})",
        "figure",
    )
    made["attachments"] = {file: {"image/png": base64.b64encode(still.png).decode("ascii")}}
    return made


def escaped(alt: str) -> str:
    r"""Words inside the brackets of a Markdown image: \ [ ] and what would start a formula or emphasis."""
    return "".join(f"\\{sign}" if sign in r"\[]*_$`<" else sign for sign in alt)


def code_cell(chapter: Chapter, cell: SourceCell, cell_id: str, stops: bool) -> NotebookNode:
    metadata: dict[str, object] = {"gradwright": {"role": cell.role, "name": cell.name or cell_id}}
    if cell.role == "exercise":
        record = chapter.record(cell.name)
        title = f"Exercise {record.number}: {record.name}"
        metadata["gradwright"] = {"role": "exercise", "name": cell.name, "title": title}
        metadata["nbgrader"] = nbgrader_metadata(cell_id, solution=True)
    elif cell.role == "check":
        metadata["nbgrader"] = nbgrader_metadata(cell_id, points=chapter.record(cell.name).points)
    elif cell.role == "given":
        metadata["nbgrader"] = nbgrader_metadata(cell_id)
        metadata["jupyter"] = {"source_hidden": True}
    if stops:
        metadata["tags"] = ["raises-exception"]
    return nbformat.v4.new_code_cell(cell.text, id=cell_id, metadata=metadata)


def nbgrader_metadata(grade_id: str, *, solution: bool = False, points: int | None = None) -> dict[str, object]:
    """nbgrader's description of a cell: an answer, a check with points, or a cell that is only to be left alone."""
    described: dict[str, object] = {
        "grade": points is not None,
        "grade_id": grade_id,
        "locked": not solution,
        "schema_version": 3,
        "solution": solution,
        "task": False,
    }
    return described if points is None else {**described, "points": points}
