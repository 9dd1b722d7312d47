"""Which cells stop in an untouched notebook: decided from the text, and compared with running it."""

from __future__ import annotations

import pytest

from autograder.build.source import SourceCell
from autograder.build.uses import stopping

STUB = """
def f(x):
    ### BEGIN SOLUTION
    raise NotImplementedError
    ### END SOLUTION
"""
CLASS = """
class C:
    def m(self):
        ### BEGIN SOLUTION
        raise NotImplementedError
        ### END SOLUTION
"""

# name: the cells after the exercises f and C, each with its role; and which of them stop
CHAPTERS = {
    "no use": (["x = 1", "print(x)"], []),
    "a call": (["x = f(1)"], [0]),
    "a variable made with an answer": (["x = f(1)", "y = x + 1", "print(y)", "print(3)"], [0, 1, 2]),
    "a variable that the stopped cell would have set": (["f(1)\nz = 3", "print(z)"], [0, 1]),
    "a variable set before the cell stops": (["z = 3\nf(1)", "print(z)"], [0]),
    "an import after the cell stops": (["f(1)\nimport math", "math.pi"], [0, 1]),
    "a name set again": (["x = f(1)", "x = 3", "print(x)"], [0]),
    "a function that calls it": (["def g(x):\n    return f(x)", "g(1)", "g"], [1, 2]),
    "given code that calls it": (["given:def g(x):\n    return f(x)", "g(1)"], [1]),
    "given code that runs it": (["given:TABLE = [f(n) for n in range(3)]", "TABLE"], [0, 1]),
    "a function of a function": (["def g(x):\n    return h(x)", "def h(x):\n    return f(x)", "g(1)"], [2]),
    "a default": (["def g(x=f(1)):\n    return x", "g()"], [0, 1]),
    "a decorator": (["@f\ndef g(x):\n    return x", "g(1)"], [0, 1]),
    "a comprehension": (["[f(n) for n in range(3)]"], [0]),
    "a loop": (["for n in range(3):\n    total = f(n)", "total"], [0, 1]),
    "a subclass": (["class D(C):\n    pass", "D().m()"], [1]),
    "a class attribute": (["class D:\n    table = f(1)", "D"], [0, 1]),
    "a class that uses its own names": (["class D:\n    a = 1\n    b = a", "D.b"], []),
    "a method": (["c = C()\nc.m()", "c"], [0, 1]),
    "an attribute that is set": (["x = []", "x.append\nx.y = f(1)", "x"], [1, 2]),
    "an item that is set": (["x = {}", "x['a'] = f(1)", "x['b']"], [1, 2]),
    "a variable added to": (["x = 1", "x += f(1)", "x"], [1, 2]),
    "a widget": (["widget:stride_explorer()"], []),
    "a check of something wrong": (['def wrong(x):\n    return x\n\n\ncheck("tiny-f", wrong)', "wrong"], [0]),
    "an equal name inside a function": (["def g():\n    f = 1\n    return f", "print(1)"], []),
}


def cells_of(texts: list[str]) -> list[SourceCell]:
    cells = [SourceCell("exercise", "tiny-f", STUB, 1), SourceCell("exercise", "tiny-c", CLASS, 1)]
    for text in texts:
        role, colon, rest = text.partition(":")
        marked = colon and role in ("given", "widget")
        cells.append(SourceCell(role, "slug", rest, 1) if marked else SourceCell("demo", "", text, 1))
    return cells


@pytest.mark.parametrize("name", CHAPTERS)
def test_stopping(name):
    texts, stopped = CHAPTERS[name]
    assert stopping(cells_of(texts)) == {n + 2 for n in stopped}


@pytest.mark.parametrize("name", CHAPTERS)
def test_no_other_cell_stops_when_run(name):
    """Run All in an untouched notebook goes on only past tagged cells."""
    cells = cells_of(CHAPTERS[name][0])
    tagged = stopping(cells)

    def check(*arguments):
        raise AssertionError

    space = {"stride_explorer": lambda: None, "check": check}
    for position, cell in enumerate(cells):
        try:
            exec(cell.text, space)
        except Exception as error:
            assert position in tagged, (cell.text, error)


def test_scaffold_beside_an_answer_is_no_answer():
    text = "import numpy as np\nLIMIT = 3\n\n\n" + STUB
    cells = [SourceCell("exercise", "tiny-f", text, 1), SourceCell("demo", "", "np.arange(LIMIT)", 1)]
    assert stopping(cells) == set()


def test_a_method_put_on_a_class_spoils_it_from_there():
    given = SourceCell("given", "box", "class Box:\n    pass", 1)
    before = SourceCell("demo", "", "Box()", 1)
    exercise = SourceCell("exercise", "tiny-m", STUB + "\n\n\nBox.m = f\n", 1)
    after = SourceCell("demo", "", "Box().m()", 1)
    assert stopping([given, before, exercise, after]) == {3}


def test_every_check_stops():
    assert stopping([SourceCell("check", "tiny-f", 'check("tiny-f", f)', 1)]) == {0}
