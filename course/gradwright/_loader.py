"""From the definition cells of a chapter to its module, with tracebacks that point to file and line, or to notebook
and cell.
"""

from __future__ import annotations
import __future__

import ast
import inspect
import linecache
import sys
from collections.abc import Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from autograder.errors import NotBuiltYet, NotebookError
from gradwright import _chapters
from gradwright._cells import Cell, definition_cells, names_bound, python_text, read_notebook, read_source
from gradwright._chapters import relative

__all__ = [
    "Cell",
    "ChapterModule",
    "definition_cells",
    "definition_text",
    "fill_module",
    "load_module",
    "missing_names",
    "read_cells",
    "read_notebook",
    "read_source",
]

FUTURES = 0
for _name in __future__.all_feature_names:
    FUTURES |= getattr(__future__, _name).compiler_flag


class ChapterModule(ModuleType):
    """The module of a chapter: it knows why a name that a reader expects in it is not there."""

    def __getattr__(self, name: str) -> Any:
        own = vars(self)
        if own.get("__building__") and not name.startswith("__"):
            raise NotBuiltYet(
                f"{self.__name__} asks itself for {name} while it is being built: "
                f"inside a chapter its names need no import, write {name}"
            )
        reason = own.get("__skipped__", {}).get(name)
        raise AttributeError(
            f"{self.__name__} has no {name}: {reason}" if reason else f"{self.__name__} has no {name}",
            name=name,
            obj=self,
        )


def load_module(name: str, path: Path | str, broken: dict[str, str] | None = None) -> ModuleType:
    """Make the module `name` from a source or a notebook and enter it in sys.modules.

    broken: takes the exercises whose cell cannot be run (id -> the sentence that says so), and the rest is loaded.
    Raises NotebookError where the file cannot be read or one of its cells cannot be run; sys.modules is then as before.
    """
    module = ChapterModule(name)
    before = sys.modules.get(name)
    sys.modules[name] = module
    try:
        fill_module(module, Path(path), broken)
    except BaseException:
        if before is None:
            del sys.modules[name]
        else:
            sys.modules[name] = before
        raise
    return module


def read_cells(path: Path) -> list[Cell]:
    """The cells of a source (.py) or a notebook (.ipynb). A chapter's release tells what cells without metadata are."""
    if path.suffix == ".py":
        return read_source(path)
    cells = read_notebook(path)
    release = next((chapter.release for chapter in _chapters.CHAPTERS if chapter.name == path.stem), path)
    if any(cell.added for cell in cells) and release.resolve() != path.resolve() and release.is_file():
        return read_notebook(path, released={cell.id: cell.marks for cell in read_notebook(release)})
    return cells


def definition_text(path: Path) -> str:
    """What a module made from this file would be made of; two files with the same text make the same module."""
    return "\n".join(f"# %% {cell.id}\n{cell.text}" for cell in definition_cells(read_cells(path)))


def fill_module(module: ModuleType, path: Path, broken: dict[str, str] | None = None) -> None:
    """Run the definition cells of a file in a module, in order. `broken` is as for `load_module`."""
    cells = read_cells(path)
    chosen = definition_cells(cells)
    place = SourceFile(path) if path.suffix == ".py" else Notebook(path)
    names = vars(module)
    names.update(__file__=place.file, __building__=True, __skipped__=skipped_names(cells, chosen))
    flags = 0
    for cell in chosen:
        try:
            code = place.compile(cell, flags)
            flags |= code.co_flags & FUTURES
            exec(code, names)
        except (Exception, SystemExit) as error:
            reason = names["__skipped__"].get(getattr(error, "name", None)) if isinstance(error, NameError) else None
            sentence = definition_failed(place, cell, error, reason)
            # After a broken exercise the cells that build on it fail as well; a given one that fails by itself is
            # trouble for all exercises.
            if broken is None or not (broken or "exercise" in cell.marks):
                raise NotebookError(sentence) from error
            broken.setdefault(cell.marks.get("exercise", cell.id), sentence)
        else:
            place.ran(cell, names)
    del names["__building__"]


class SourceFile:
    """A .py file: its cells keep the file's own line numbers."""

    def __init__(self, path: Path) -> None:
        self.file = str(path.absolute())
        self.label = relative(path)

    def compile(self, cell: Cell, flags: int) -> CodeType:
        return compile("\n" * (cell.line - 1) + cell.text, self.file, "exec", flags, dont_inherit=True)

    def file_of(self, cell: Cell) -> str:
        return self.file

    def where(self, cell: Cell, line: int | None) -> str:
        return f"{self.label}, line {line or cell.line}"

    def ran(self, cell: Cell, names: dict[str, Any]) -> None:
        """Nothing to do: Python finds the text in the file."""


class Notebook:
    """A notebook: each cell is a file of its own, called `work/01_tensor/tensor.ipynb, cell 12`.

    `linecache` is where tracebacks and `inspect` look for text. A function knows its own file, a class only that of
    its module; so the notebook's path stands for all cells one after the other.
    """

    def __init__(self, path: Path) -> None:
        self.file = str(path.absolute())
        self.label = relative(path)
        self.lines: list[str] = []

    def compile(self, cell: Cell, flags: int) -> CodeType:
        text = python_text(cell.text)
        remember_lines(self.file_of(cell), text.split("\n"))
        return compile(text, self.file_of(cell), "exec", flags, dont_inherit=True)

    def file_of(self, cell: Cell) -> str:
        return f"{self.label}, cell {cell.position}"

    def where(self, cell: Cell, line: int | None) -> str:
        return f"{self.file_of(cell)}, line {line or 1}"

    def ran(self, cell: Cell, names: dict[str, Any]) -> None:
        text = python_text(cell.text)
        self.lines.append(f"# %% cell {cell.position}")
        for name in names_bound(text):
            if isinstance(names.get(name), type) and names[name].__module__ == names["__name__"]:
                shift_class(names[name], len(self.lines))
        self.lines += text.split("\n")
        remember_lines(self.file, self.lines)


def remember_lines(file: str, lines: Sequence[str]) -> None:
    text = [line + "\n" for line in lines]
    linecache.cache[file] = (sum(map(len, text)), None, text, file)


def shift_class(cls: type, offset: int) -> None:
    """From Python 3.13 on a class stores its first line, counted in its cell; `inspect` counts in the module's file."""
    first = vars(cls).get("__firstlineno__")
    if first is not None:
        type.__setattr__(cls, "__firstlineno__", first + offset)
        for inner in vars(cls).values():
            if inspect.isclass(inner) and inner.__qualname__.startswith(cls.__qualname__ + "."):
                shift_class(inner, offset)


def definition_failed(place: SourceFile | Notebook, cell: Cell, error: BaseException, reason: str | None) -> str:
    """The sentence for a definition cell that cannot be run."""
    line = error.lineno if isinstance(error, SyntaxError) else None
    step = error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == place.file_of(cell):
            line = step.tb_lineno
        step = step.tb_next
    said = error.msg if isinstance(error, SyntaxError) else error
    remedy = reason or "mend that cell, save, and try again"
    return f"{place.where(cell, line)} cannot be run: {type(error).__name__}: {said}; {remedy}"


def skipped_names(cells: Sequence[Cell], chosen: Sequence[Cell]) -> dict[str, str]:
    """Names that only a cell outside the module defines, each with the sentence that says so."""
    skipped = [cell for cell in cells if cell.added and cell.kind == "code" and cell not in chosen]
    inside = {name for cell in chosen for name in names_bound(cell.text)} if skipped else set()
    return {
        name: f"cell {cell.position} defines {name} but also runs code, so it is not part of the module: "
        f"move the definition into a cell of its own"
        for cell in skipped
        for name in names_bound(cell.text) - inside
    }


def missing_names(path: Path) -> list[str]:
    """A sentence for each name that the module's text reads and only a skipped cell defines."""
    cells = read_cells(path)
    chosen = definition_cells(cells)
    used = {
        node.id for cell in chosen for node in ast.walk(ast.parse(python_text(cell.text))) if isinstance(node, ast.Name)
    }
    return [sentence for name, sentence in skipped_names(cells, chosen).items() if name in used]
