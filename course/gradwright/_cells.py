"""From a file to cells: a chapter's source is split on its cell marks, a notebook is read as the JSON it is.

jupytext and nbformat would do both, and importing either costs more than the whole framework does.
"""

from __future__ import annotations

import ast
import builtins
import json
import re
import textwrap
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from autograder.errors import NotebookError, SourceError
from gradwright import _chapters
from gradwright._chapters import relative

__all__ = [
    "MARKS",
    "Cell",
    "definition_cells",
    "names_bound",
    "python_text",
    "read_notebook",
    "read_source",
    "untouched",
]

MARKS = ("exercise", "check", "given", "figure", "widget")
KINDS = {"code": "code", "markdown": "markdown", "md": "markdown", "raw": "raw"}
MARK_LINE = re.compile(r"# %%(?: \[(?P<kind>\w+)\])?(?P<marks>(?: \w+=\"[^\"]*\")*)\s*")
MARK = re.compile(r' (\w+)="([^"]*)"')
MAGIC = re.compile(
    r"""
    (?P<indent>[ \t\f]*+)
    (?: [%!?/,;] | [^\W\d](?:[^'"\#\n=(]|'[^'\n]*'|"[^"\n]*")*+(?<=[\w\]\ \t])=[ \t]*[%!] | [^'"\#\n]*\?[ \t]*$ )
    (?:[^\\\n]|\\\n?)*+
    """,
    re.MULTILINE | re.VERBOSE,
)
"""A line of IPython's, where a statement begins, with those that continue it: no statement of Python's is like it."""
PROMPT = re.compile(r"^(?:>>>|\.\.\.)(?: |$)", re.MULTILINE)
TOKEN = re.compile(
    r"""
    \'{3}(?:[^'\\]|\\.|'(?!''))*+(?:\'{3})? | "{3}(?:[^"\\]|\\.|"(?!""))*+(?:"{3})?
    | '(?:[^'\\\n]|\\.)*+'? | "(?:[^"\\\n]|\\.)*+"? | \#[^\n]* | \\\n | [\n()\[\]{}]
    """,
    re.DOTALL | re.VERBOSE,
)
"""What says whether a line begins a statement: strings, comments, brackets and ends of lines."""


@dataclass(frozen=True)
class Cell:
    """One cell of a chapter's source or of a notebook.

    kind:     "code", "markdown" or "raw"
    text:     what the cell holds, without a final newline; Markdown without the comment signs of the source
    marks:    role -> name, {"exercise": "tensor-strides"}; empty for an unmarked cell of a source
    line:     where the text begins in the source file, counted from 1; 1 in a notebook
    position: the place among all cells, counted from 1
    id:       the notebook's own id of the cell; "" in a source
    added:    a cell of a notebook that was not released with it: the learner's own
    """

    kind: str
    text: str
    marks: dict[str, str] = field(default_factory=dict)
    line: int = 1
    position: int = 1
    id: str = ""
    added: bool = False


# A chapter's source


def read_source(path: Path | str) -> list[Cell]:
    """The cells of solutions/NN_name.py. Raises NotebookError (no such file) or SourceError (a wrong mark)."""
    path = Path(path)
    lines = _read_text(path).split("\n")
    starts = [number for number, line in enumerate(lines) if line.startswith("# %%")]
    for number, line in enumerate(lines[: starts[0] if starts else None], start=1):
        if line.strip() and not line.startswith("#"):
            raise SourceError(path, number, f"{line.strip()!r} stands before the first cell; begin a cell with '# %%'")
    ends = [*starts[1:], len(lines)]
    return [
        _source_cell(path, lines, start, end, position)
        for position, (start, end) in enumerate(zip(starts, ends, strict=True), start=1)
    ]


def _source_cell(path: Path, lines: list[str], start: int, end: int, position: int) -> Cell:
    kind, marks = _read_mark(path, start + 1, lines[start])
    first, last = start + 1, end
    while first < last and not lines[first].strip():
        first += 1
    while last > first and not lines[last - 1].strip():
        last -= 1
    body = lines[first:last]
    if kind != "code":
        body = [_uncomment(path, number, line) for number, line in enumerate(body, start=first + 1)]
    return Cell(kind, "\n".join(body), marks, line=first + 1, position=position)


def _read_mark(path: Path, number: int, line: str) -> tuple[str, dict[str, str]]:
    match = MARK_LINE.fullmatch(line)
    if match is None:
        raise SourceError(
            path, number, f"{line!r} is not a cell mark; write it like '# %% exercise=\"tensor-strides\"'"
        )
    kind = KINDS.get(match["kind"] or "code")
    if kind is None:
        raise SourceError(path, number, f"[{match['kind']}] is not a kind of cell; use [markdown], [raw] or nothing")
    marks = dict(MARK.findall(match["marks"]))
    for mark in marks:
        if mark not in MARKS:
            raise SourceError(path, number, f"{mark!r} is not a mark; the marks are {', '.join(MARKS)}")
    return kind, marks


def _uncomment(path: Path, number: int, line: str) -> str:
    if line.startswith("# "):
        return line[2:]
    if line.strip() in ("", "#"):
        return ""
    raise SourceError(
        path, number, f"{line!r} stands in a text cell; begin the line with '# ', or a new cell before it"
    )


# A notebook


def read_notebook(path: Path | str, released: Mapping[str, dict[str, str]] | None = None) -> list[Cell]:
    """The cells of a notebook. Raises NotebookError for a file that is missing, not JSON or not a notebook.

    A released cell says what it is in its metadata: under "gradwright", else under "nbgrader". Some editors drop
    both; `released` (cell id -> marks) then tells by the id. What remains was added by the learner.
    """
    path = Path(path)
    return [
        _notebook_cell(path, raw, position, released or {}) for position, raw in enumerate(_raw_cells(path), start=1)
    ]


def _raw_cells(path: Path) -> list[Any]:
    text = _read_text(path)
    try:
        content = json.loads(text)
    except ValueError as error:
        raise NotebookError(
            f"{relative(path)} is not valid JSON ({error}): {untouched(path)}, to paste your cells into"
        ) from error
    if not isinstance(content, dict) or not isinstance(content.get("nbformat"), int):
        raise NotebookError(
            f"{relative(path)} is JSON but not a notebook: it has no nbformat number; is it another file?"
        )
    if content["nbformat"] != 4 or not isinstance(content.get("cells"), list):
        raise NotebookError(
            f"{relative(path)} is a notebook in format {content['nbformat']} without a list of cells "
            "as format 4 has it; open it in JupyterLab and save it again"
        )
    return content["cells"]


def _notebook_cell(path: Path, raw: Any, position: int, released: Mapping[str, dict[str, str]]) -> Cell:
    source = raw.get("source") if isinstance(raw, dict) else None
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    if not isinstance(source, str) or raw.get("cell_type") not in KINDS:
        raise NotebookError(
            f"{relative(path)}, cell {position} has no text or no known cell type; "
            "delete that cell in JupyterLab and save"
        )
    cell_id = str(raw.get("id") or "")
    metadata = raw.get("metadata")
    marks = _marks_of(metadata if isinstance(metadata, dict) else {}, raw["cell_type"]) or released.get(cell_id, {})
    return Cell(raw["cell_type"], source.rstrip("\n"), marks, position=position, id=cell_id, added=not marks)


def _marks_of(metadata: dict[str, Any], cell_type: str) -> dict[str, str]:
    own = metadata.get("gradwright")
    if isinstance(own, dict) and isinstance(own.get("role"), str):
        return {own["role"]: str(own.get("name", ""))}
    nbgrader = metadata.get("nbgrader")
    if not isinstance(nbgrader, dict) or not nbgrader.get("grade_id"):
        return {}
    name = str(nbgrader["grade_id"])
    if cell_type != "code":
        return {"prose": name}
    if nbgrader.get("grade"):
        return {"check": name.removesuffix("-check")}
    return {"exercise" if nbgrader.get("solution") else "given": name}


def untouched(path: Path, where: str = "beside it") -> str:
    """How to get what a chapter's notebook was in the beginning."""
    number = next((f"{chapter.number:02d}" for chapter in _chapters.CHAPTERS if chapter.name == path.stem), "NN")
    return f"`autograder fresh {number}` puts an untouched copy {where}"


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise NotebookError(
            f"{relative(path)} is not UTF-8 text: save it again as UTF-8, or {untouched(path)}"
        ) from error
    except OSError as error:
        raise NotebookError(
            f"{relative(path)} cannot be read ({error.strerror}): check the name and where you started"
        ) from error


# Which cells make the module


def definition_cells(cells: Sequence[Cell]) -> list[Cell]:
    """The cells that make a chapter's module, in order: exercises, given cells, and what a learner added beside them.

    A cell of the learner's counts when it holds only imports, functions, classes and constants: nothing that would
    start a demo or a training run on import. A constant may use only names that definition cells before it made.
    """
    chosen: list[Cell] = []
    known = set(dir(builtins))
    for cell in cells:
        if cell.kind != "code":
            continue
        if "exercise" in cell.marks or "given" in cell.marks or (cell.added and _only_defines(cell, known)):
            chosen.append(cell)
            known |= names_bound(cell.text)
    return chosen


def python_text(text: str) -> str:
    """The cell without IPython's magics, each replaced by a `pass` so that line numbers stay. Raises SyntaxError.

    Only a line that begins a statement is taken for a magic: `% width` may also continue an expression.
    """
    return _read_python(text)[0]


@lru_cache(maxsize=1024)
def _read_python(text: str) -> tuple[str, ast.Module]:
    try:
        return text, _parse(text)
    except SyntaxError:
        plain = _without_magics(text)
        if plain == text:
            raise
    return plain, _parse(plain)


def _without_magics(text: str) -> str:
    """In one pass: to ask Python for one after the other takes time that grows as the square of their number."""
    text = _cleaned(text)
    kept, place, depth, begins = [], 0, 0, True
    while place < len(text):
        if begins and (magic := MAGIC.match(text, place)):
            kept.append(magic["indent"] + "pass" + "\n" * magic[0].count("\n"))
            place = magic.end()
        token = TOKEN.search(text, place)
        end = token.end() if token else len(text)
        sign = token[0] if token else ""
        depth = max(0, depth + (sign in {"(", "[", "{"}) - (sign in {")", "]", "}"}))
        begins = sign == "\n" and not depth
        kept.append(text[place:end])
        place = end
    return "".join(kept)


def _cleaned(text: str) -> str:
    """The cell as IPython has it before it looks for magics: without the indentation of a block that it was pasted from
    and without Python's prompts; and with line ends as a browser has them."""
    text = textwrap.dedent(text.replace("\r\n", "\n").replace("\r", "\n"))
    return PROMPT.sub("", text) if text.lstrip("\n").startswith(">>>") else text


def names_bound(text: str) -> set[str]:
    """The names that the top level of a cell binds; none for a cell that is not Python."""
    return {name for statement in _statements(text) for name in _bound_by(statement)}


def _statements(text: str) -> list[ast.stmt]:
    """The statements of a cell; none where it is not Python (or too deep, or too large, for Python to read)."""
    try:
        return _read_python(text)[1].body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def _parse(text: str) -> ast.Module:
    with warnings.catch_warnings():  # an odd escape in a string warns when the cell is compiled, once is enough
        warnings.simplefilter("ignore")
        return ast.parse(text)


def _bound_by(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement binds where it stands: not those inside a function or a class that it defines."""
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
        else:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id
            waiting.extend(ast.iter_child_nodes(node))


def _only_defines(cell: Cell, before: set[str]) -> bool:
    body = _statements(cell.text)
    if cell.text.lstrip().startswith("%%") or all(isinstance(statement, ast.Pass | ast.Expr) for statement in body):
        return False  # timed, captured, not Python, or nothing but a remark
    known = before.copy()
    for statement in body:
        if not _defines(statement, known):
            return False
        known.update(_bound_by(statement))
    return True


def _defines(statement: ast.stmt, known: set[str]) -> bool:
    if isinstance(statement, ast.Assign):
        return all(_plain_target(target, known) for target in statement.targets) and _constant(statement.value, known)
    if isinstance(statement, ast.AnnAssign):
        return _plain_target(statement.target, known) and (statement.value is None or _constant(statement.value, known))
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    return isinstance(
        statement,
        ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom | ast.Pass,
    )


def _plain_target(target: ast.expr, known: set[str]) -> bool:
    """Whether it is a name, or an attribute of something known: `Tensor.relu = relu` adds a method."""
    if isinstance(target, ast.Tuple | ast.List):
        return all(_plain_target(part, known) for part in target.elts)
    if isinstance(target, ast.Attribute):
        return isinstance(target.value, ast.Name) and target.value.id in known
    return isinstance(target, ast.Name)


ALLOWED = (
    ast.Constant, ast.Name, ast.Lambda, ast.Tuple, ast.List, ast.Set, ast.Dict, ast.UnaryOp, ast.BinOp, ast.BoolOp,
    ast.Compare, ast.Attribute, ast.Subscript, ast.Slice, ast.JoinedStr, ast.FormattedValue, ast.IfExp, ast.Starred,
)  # fmt: skip


def _constant(value: ast.expr, known: set[str]) -> bool:
    """Whether an expression only combines literals and known names: no call, no comprehension, no await."""
    waiting = [value]  # and no call of itself: a long sum is as deep as it has terms
    while waiting:
        node = waiting.pop()
        if not isinstance(node, ALLOWED) or (isinstance(node, ast.Name) and node.id not in known):
            return False
        if not isinstance(node, ast.Lambda):
            waiting += [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
    return True
