"""Which cells stop as long as an answer is missing.

Such a cell gets the tag `raises-exception`, so that Run All goes on in an untouched notebook. A cell stops when it uses
an answer, or anything that was made with one: a function that calls it, a variable that a stopped cell would have set.
A demo that calls `check` itself shows a verdict on something wrong, and stops as well.
Where it cannot be known the cell counts as stopping: a needless tag costs nothing, a missing one ends the run.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Sequence

from autograder.build.rules import BEGIN
from autograder.build.source import SourceCell

ANSWER = "### an answer"
"""Stands for every answer; no Python name can be equal to it."""


class Reads(ast.NodeVisitor):
    """The names a statement reads when it runs, those it reads later in a function's body, and those it binds."""

    def __init__(self, statement: ast.stmt) -> None:
        self.now: set[str] = set()
        self.later: set[str] = set()
        self.bound: set[str] = set()
        self.visit(statement)

    def visit_Name(self, node: ast.Name) -> None:
        (self.now if isinstance(node.ctx, ast.Load) else self.bound).add(node.id)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.bound.add(node.name)
        for part in (*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(part)
        self.later |= loaded(node.body)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """A subclass of an unfinished class can be made; using it is another matter."""
        self.later |= loaded(node.bases)
        for part in (*node.decorator_list, *node.keywords):
            self.visit(part)
        inner = [Reads(statement) for statement in node.body]
        own = set().union(*(reads.bound for reads in inner))
        self.now |= set().union(*(reads.now for reads in inner)) - own
        self.later |= set().union(*(reads.later for reads in inner))
        self.bound.add(node.name)

    def visit_alias(self, node: ast.alias) -> None:
        self.bound.add((node.asname or node.name).partition(".")[0])

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.change(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self.change(node)

    def change(self, node: ast.Attribute | ast.Subscript) -> None:
        """`x.a = y` and `x[i] = y` change x, and so what x is made of."""
        if not isinstance(node.ctx, ast.Load):
            inner: ast.expr = node
            while isinstance(inner, ast.Attribute | ast.Subscript):
                inner = inner.value
            if isinstance(inner, ast.Name):
                self.bound.add(inner.id)
        self.generic_visit(node)


def loaded(nodes: Sequence[ast.AST]) -> set[str]:
    return {
        name.id
        for node in nodes
        for name in ast.walk(node)
        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Load)
    }


class Names:
    """What every name has been made of so far."""

    def __init__(self) -> None:
        self.parts: defaultdict[str, set[str]] = defaultdict(set)

    def need_answer(self, names: set[str]) -> bool:
        """Whether one of the names leads to an answer."""
        seen, front = set(), set(names)
        while front:
            seen |= front
            front = set().union(*(self.parts[name] for name in front)) - seen
        return ANSWER in seen

    def bind(self, reads: Reads, stopped: bool) -> None:
        made_of = reads.now | reads.later | ({ANSWER} if stopped else set())
        for name in reads.bound:
            kept = self.parts[name] if name in reads.now else set()
            self.parts[name] = kept | made_of - {name}


def stopping(cells: Sequence[SourceCell]) -> set[int]:
    """Positions of the code cells that stop in an untouched notebook: every check, and what uses an answer.

    An exercise is not among them: it only defines, and an error in it should end Run All where the learner made it.
    """
    names, found = Names(), set()
    for position, cell in enumerate(cells):
        if cell.role in ("prose", "figure"):
            continue
        if cell.role == "check" or (stops(cell, names) and cell.role != "exercise"):
            found.add(position)
    return found


def stops(cell: SourceCell, names: Names) -> bool:
    """Whether the cell stops; takes note of the names that it binds."""
    lines = cell.text.splitlines()
    stopped = False
    for statement in ast.parse(cell.text).body:
        reads = Reads(statement)
        stopped = stopped or "check" in reads.now or names.need_answer(reads.now)
        is_answer = any(BEGIN in line for line in lines[statement.lineno - 1 : statement.end_lineno])
        names.bind(reads, stopped or is_answer)
    return stopped
