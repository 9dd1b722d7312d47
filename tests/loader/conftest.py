"""A small project of its own for every test: three chapters, a fourth still to come, and somebody's notebooks."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gradwright import _chapters, _framework, _mine
from gradwright._chapters import Chapter, find_chapter
from tests.loader.notebooks import EXERCISES

CHAPTERS = (
    Chapter(0, "start", "Start"),
    Chapter(1, "tensor", "Tensor", {"": ("Tensor", "tensor", "double"), "nn": ("Flatten",)}),
    Chapter(2, "autodiff", "Autodiff", {"": ("Tensor", "tensor", "no_grad"), "autograd": ("Function",)}),
    Chapter(3, "layers", "Layers", {"nn": ("Linear",), "nn.functional": ("linear",)}),
    Chapter(4, "losses", "Losses", {"nn": ("MSELoss",)}),
)

TENSOR = '''
# %% [markdown]
# # Tensor

# %%
raise RuntimeError("a demo must not run")

# %% given="imports"
from __future__ import annotations

import numpy as np

# %% exercise="tensor-double"
def double(x: Undefined) -> float:
    """Twice x."""
    ### BEGIN SOLUTION
    return x + x
    ### END SOLUTION

# %% check="tensor-double"
check("tensor-double", double)

# %% given="class"
class Tensor:
    """Holds a value."""

    class Storage:
        pass

    def __init__(self, value):
        self.value = value

    def twice(self):
        return type(self)(double(self.value))


class Flatten:
    pass


def tensor(value):
    return Tensor(value)
'''

AUTODIFF = """
# %% given="base"
from gradwright.chapters.tensor import Tensor as Base
from gradwright import double

# %% exercise="autodiff-tensor"
class Tensor(Base):
    grad = None

# %% given="rest"
class Function:
    pass


def tensor(value):
    return Tensor(double(value) / 2)


def no_grad():
    return "off"
"""

LAYERS = """
# %% exercise="layers-linear"
import gradwright
from gradwright import Tensor


class Linear:
    made_of = Tensor


def linear(x):
    return gradwright.tensor(x)
"""


@dataclass
class Project:
    """The folder of a project, and what tests put into it."""

    root: Path

    def write(self, place: str, text: str) -> Path:
        path = self.root / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.lstrip("\n"), encoding="utf-8")
        return path

    def source(self, key: int, text: str) -> Path:
        return self.write(f"solutions/{find_chapter(key).folder}.py", text)

    def notebook(self, place: str, *cells: Any) -> Path:
        """A notebook of cells that are (role, text) or (role, text, name); a plain text is one the learner added."""
        raw = [_raw_cell(*(cell if isinstance(cell, tuple) else (None, cell))) for cell in cells]
        return self.write(place, json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": raw}))


def _raw_cell(role: str | None, text: str, name: str = "some-name") -> dict[str, Any]:
    kind = "markdown" if role == "prose" else "code"
    metadata = {"gradwright": {"role": role, "name": name}} if role else {}
    text = textwrap.dedent(text).strip("\n")
    return {"cell_type": kind, "id": f"cell-{abs(hash(text))}", "metadata": metadata, "source": text.splitlines(True)}


@pytest.fixture
def empty_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    real = _framework.unload(0)
    monkeypatch.setattr(_chapters, "CHAPTERS", CHAPTERS)
    monkeypatch.setattr(_chapters, "ROOT", tmp_path)
    monkeypatch.chdir(tmp_path)
    yield Project(tmp_path)
    _framework.unload(0)
    _framework.state.limit = None
    _framework.state.notebooks.clear()
    for chapter, module in real.items():
        _framework.put(chapter, module)


@pytest.fixture
def project(empty_project: Project) -> Project:
    """Chapters 01 to 03 are there; 04 is still to come."""
    for number, text in ((0, '# %% given="x"\nX = 1\n'), (1, TENSOR), (2, AUTODIFF), (3, LAYERS)):
        empty_project.source(number, text)
    return empty_project


@pytest.fixture
def sentence() -> Callable[..., str]:
    """sentence(error, function, *arguments): what the call says when it raises that error."""

    def catch(error: type[Exception], function: Callable[..., Any], *arguments: Any, **options: Any) -> str:
        with pytest.raises(error) as caught:
            function(*arguments, **options)
        return str(caught.value)

    return catch


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Stand-ins for records and judge; the list of what was judged."""
    calls = []

    def judge(exercise, target, framework):
        calls.append(exercise.title)
        return SimpleNamespace(exercise=exercise, right=bool(exercise.right(target, framework)), trouble="")

    monkeypatch.setattr(_mine, "exercises_of", lambda number: tuple(EXERCISES[number]))
    monkeypatch.setattr(_mine, "judge", judge)
    monkeypatch.setattr(_mine, "read_reference", lambda exercise: SimpleNamespace(cases=()))
    return calls
