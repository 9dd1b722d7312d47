"""How long a chapter is, and where it is longer than it should be. Only the maxima stop a build."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median, quantiles

from autograder.build.rules import fail
from autograder.build.source import Chapter, SourceCell

SECTION_WORDS = 2500
WORDS_PER_CODE_LINE = (8, 16)
CELL_LINES = (6, 25, 45)
"""Median, ninth decile, maximum."""
CELL_COLUMNS = 100
"""JupyterLab shows hardly more beside its file browser, in a window of 1280 pixels."""
FUNCTION_LINES = 60
CELLS_IN_A_ROW = 3
SILENT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


@dataclass(frozen=True)
class Size:
    """What was counted, and a sentence for each target that is missed."""

    words: int
    code_lines: int
    module_lines: int
    """Those of answers and given cells, which make the chapter's module."""
    remarks: tuple[str, ...]


def measure(chapter: Chapter) -> Size:
    """Count a chapter as its reader meets it: figures are pictures there, and not code.

    Raises SourceError for an open cell of more than 45 lines of code or with a line of more than 100 columns, and for a
    function of more than 60 lines.
    """
    code = [cell for cell in chapter.cells if cell.role not in ("prose", "figure")]
    for cell in code:
        refuse_too_long(chapter, cell)
        refuse_too_wide(chapter, cell)
    words = sum(len(cell.text.split()) for cell in chapter.cells if cell.role == "prose")
    lines = [code_lines(cell.text) for cell in code]
    remarks = (
        *long_sections(chapter),
        *code_without_prose(chapter),
        *off_balance(words, sum(lines)),
        *long_cells([n for cell, n in zip(code, lines, strict=True) if cell.role != "given"]),
    )
    module = [n for cell, n in zip(code, lines, strict=True) if cell.role in ("exercise", "given")]
    return Size(words, sum(lines), sum(module), remarks)


def refuse_too_long(chapter: Chapter, cell: SourceCell) -> None:
    lines, most = code_lines(cell.text), CELL_LINES[-1]
    if lines > most and cell.role != "given":
        fail(chapter, cell.line, f"the cell has {lines} lines of code: split it, {most} is the most")
    for node in ast.walk(ast.parse(cell.text)):
        if isinstance(node, ast.FunctionDef) and (lines := code_lines(ast.unparse(node))) > FUNCTION_LINES:
            line = cell.line + node.lineno - 1
            fail(chapter, line, f"the function {node.name} has {lines} lines: split it, {FUNCTION_LINES} is the most")


def refuse_too_wide(chapter: Chapter, cell: SourceCell) -> None:
    """Each line of an open cell is read where it stands, an answer's by the instructor. A folded cell may be wider."""
    if cell.role == "given":
        return
    which = f"the {cell.role} cell {cell.name!r}" if cell.name else "a cell without a mark"
    for number, line in enumerate(cell.text.splitlines(), cell.line):
        if len(line) > CELL_COLUMNS:
            message = f"a line of {which} has {len(line)} columns: break it, JupyterLab shows {CELL_COLUMNS}"
            fail(chapter, number, message)


def code_lines(text: str) -> int:
    """Lines that are neither blank, nor comment, nor docstring."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    full = {n for token in tokens if token.type not in SILENT for n in range(token.start[0], token.end[0] + 1)}
    return len(full - docstring_lines(ast.parse(text)))


def docstring_lines(tree: ast.AST) -> set[int]:
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module) and ast.get_docstring(node, clean=False):
            found |= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return found


def long_sections(chapter: Chapter) -> Iterator[str]:
    """Sections begin at headings of the first and second level."""
    title, words = chapter.name, 0
    for cell in (*chapter.cells, None):
        parts = re.split(r"^(?=##? )", cell.text, flags=re.MULTILINE) if cell and cell.role == "prose" else []
        for part in (*parts, "## the end" if cell is None else ""):
            if part.startswith("#") and not part.startswith("###"):
                if words > SECTION_WORDS:
                    yield f"section {title!r} has {words:,} words: aim at {SECTION_WORDS:,} at most"
                title, words = part.splitlines()[0].lstrip("# "), 0
            words += len(part.split())


def code_without_prose(chapter: Chapter) -> Iterator[str]:
    """A figure, and the picture in front of a widget, is prose here."""
    run = 0
    for cell in chapter.cells:
        run = {"prose": 0, "figure": 0, "widget": 1}.get(cell.role, run + 1)
        if run == CELLS_IN_A_ROW + 1:
            yield f"line {cell.line - 1}: more than {CELLS_IN_A_ROW} code cells without prose between"


def off_balance(words: int, lines: int) -> Iterator[str]:
    low, high = WORDS_PER_CODE_LINE
    if lines and not low <= words / lines <= high:
        yield f"{words / lines:.1f} words a line of code: aim at {low} to {high}"


def long_cells(lines: list[int]) -> Iterator[str]:
    middle, decile, _ = CELL_LINES
    if lines and median(lines) > middle:
        yield f"code cells have a median of {median(lines):g} lines: aim at {middle}"
    if len(lines) > 1 and quantiles(lines, n=10)[-1] > decile:
        yield f"one code cell in ten has more than {decile} lines of code: split some"
