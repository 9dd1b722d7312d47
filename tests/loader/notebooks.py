"""What somebody wrote in chapters 01 and 02 of the small project, and stand-ins for their exercises."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from autograder.errors import NotBuiltYet

IMPORTS = ("given", "from gradwright.chapters.tensor import Tensor as Base\nfrom gradwright import double")
RIGHT = {
    1: [
        ("exercise", "def double(x):\n    return 2 * x"),
        ("given", "class Tensor:\n    of = 'mine'\n\n    def __init__(self, value):\n        self.value = value"),
        ("given", "class Flatten: ...\n\ndef tensor(value):\n    return Tensor(value)"),
    ],
    2: [
        IMPORTS,
        ("exercise", "class Tensor(Base):\n    grad = None"),
        ("given", "class Function: ...\n\ndef tensor(value): ...\n\ndef no_grad(): ..."),
    ],
}
WRONG = {1: [("exercise", "def double(x):\n    return 3 * x"), *RIGHT[1][1:]]}
WORK = {1: "work/01_tensor/tensor.ipynb", 2: "work/02_autodiff/autodiff.ipynb"}


def exercise(chapter, position, name, kind, right):
    title = f"{chapter}.{position} {name}"
    return SimpleNamespace(id=f"{chapter}-{name.lower()}", title=title, name=name, kind=kind, right=right)


def double_is_right(target, framework):
    with pytest.raises(NotBuiltYet):
        _ = framework.tensor
    return target(4) == 8


EXERCISES = {
    0: [],
    1: [exercise(1, 1, "double", "function", double_is_right)],
    2: [
        exercise(2, 1, "Tensor", "class", lambda target, framework: issubclass(target, framework.Tensor)),
        exercise(2, 2, "Tensor.__init__", "function", lambda target, framework: True),
        exercise(2, 3, "extra", "function", lambda target, framework: target() is None),
    ],
    3: [exercise(3, 1, "Linear", "class", lambda target, framework: True)],
}


def written(project, number, cells=None, place=None):
    return project.notebook(place or WORK[number], *(cells or RIGHT[number]))


def extra():
    return "def extra(): ..."
