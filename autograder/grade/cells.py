"""Which cells of a notebook a run needs, and their code."""

from __future__ import annotations
import __future__

import ast
import builtins
import contextlib
import symtable
from collections.abc import Iterator, Sequence
from functools import lru_cache
from types import CodeType

from gradwright._cells import Cell, definition_cells, names_bound, python_text
from gradwright._loader import remember_lines

NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
ASSIGNED = (ast.Assign, ast.AnnAssign)
BLOCKS = (ast.If, ast.Try, ast.With, ast.For)
"""Statements in which definitions may stand at the top of a cell."""
FUTURE = "from __future__ import annotations"

bound = lru_cache(maxsize=1024)(names_bound)


def cells_to_run(cells: list[Cell], future: bool) -> list[Cell]:
    """The definition cells, and of all others those that define a name which is read there and defined nowhere else.

    A notebook that works when it is run from top to bottom shall not fail here because a helper stands beside a demo.
    """
    chosen = definition_cells(cells)
    others = [cell for cell in cells if cell.kind == "code" and "check" not in cell.marks]
    while True:
        there = {cell.position for cell in chosen}
        others = [cell for cell in others if cell.position not in there]
        offered = set().union(*(bound(cell.text) for cell in others)).difference(dir(builtins))
        readers = [cell for cell in chosen if "given" not in cell.marks and offered & names_in(cell, future)]
        wanted = set().union(*(globals_read(cell.text) for cell in readers)) & offered
        wanted = wanted.difference(*(bound(cell.text) for cell in chosen)) if wanted else wanted
        found = [cell for cell in others if wanted & bound(cell.text)] if wanted else []
        if not found:
            return chosen
        chosen = sorted([*chosen, *found], key=lambda cell: cell.position)


def names_in(cell: Cell, future: bool) -> set[str]:
    """The names that a cell's code uses and that are no local variables: globals, attributes, imports. Quicker than to
    tell them apart, since the code is needed in any case."""
    found: set[str] = set()
    with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        codes = [compiled(cell.text, file_of(cell), future)]
        while codes:
            code = codes.pop()
            found.update(code.co_names)
            codes += [const for const in code.co_consts if isinstance(const, CodeType)]
    return found


@lru_cache(maxsize=1024)
def globals_read(text: str) -> set[str]:
    """The names that a cell takes from the notebook; none where it is not Python."""
    found: set[str] = set()
    try:
        tables = [symtable.symtable(python_text(text), "cell", "exec")]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return found
    while tables:
        table = tables.pop()
        top = table.get_type() == "module"
        found |= {s.get_name() for s in table.get_symbols() if s.is_referenced() and (top or s.is_global())}
        tables += table.get_children()
    return found


@lru_cache(maxsize=1024)
def compiled(text: str, file: str, future: bool) -> CodeType:
    """A cell's code; a coroutine's where it awaits something at its top."""
    flags = flags_for(future)
    try:
        plain, code = text, compile(text, file, "exec", flags, dont_inherit=True)
    except SyntaxError:  # a magic, perhaps, or `await`: to look for those first would take twice as long
        plain = python_text(text)
        code = compile(plain, file, "exec", flags | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    remember_lines(file, plain.split("\n"))
    return code


def flags_for(future: bool) -> int:
    return __future__.annotations.compiler_flag * future


def file_of(cell: Cell) -> str:
    """What tracebacks call a cell. A given cell has one name in all notebooks, so that its code is made once."""
    return f"given cell {cell.marks['given']}" if "given" in cell.marks else f"cell {cell.position}"


def definitions_below(error: BaseException, cell: Cell, future: bool) -> Iterator[CodeType]:
    """The code of what a cell defines below the line that raised: in Jupyter it may do well, where `display` is known,
    somebody answers `input`, and a library is there that is not here."""
    failed = error.__traceback__ and error.__traceback__.tb_next
    while failed and failed.tb_frame.f_code.co_filename != file_of(cell):  # the event loop's
        failed = failed.tb_next
    if failed:  # otherwise it is not Python
        for node in below(ast.parse(python_text(cell.text)).body, failed.tb_lineno):
            with contextlib.suppress(SyntaxError):
                yield compile(ast.Module([node], []), file_of(cell), "exec", flags_for(future), dont_inherit=True)


def below(body: Sequence[ast.stmt], line: int) -> Iterator[ast.stmt]:
    """The statements after a line that define something, in blocks too."""
    for node in body:
        if node.lineno > line:
            if isinstance(node, NAMED + ASSIGNED) or (isinstance(node, BLOCKS) and defines(node)):
                yield node
        elif isinstance(node, BLOCKS):
            yield from below(rest_of(node, line), line)


def rest_of(block: ast.stmt, line: int) -> list[ast.stmt]:
    """The statements in a block among which those are that would have come after a line: of two branches one."""
    branches = [block.body, *(handler.body for handler in getattr(block, "handlers", ()))]
    taken = next((branch for branch in branches if branch[0].lineno <= line <= branch[-1].end_lineno), None)
    otherwise = [] if taken and (taken is not block.body or isinstance(block, ast.If)) else getattr(block, "orelse", [])
    return [*(taken or block.body), *otherwise, *getattr(block, "finalbody", ())]


def defines(block: ast.stmt) -> bool:
    """Whether a function, a class or an import stands in a block."""
    return any(isinstance(node, NAMED) for node in ast.walk(block))
