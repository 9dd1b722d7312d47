"""The author's side of an exercise: solutions/mistakes/NN_name.py, beside the packages and never shipped."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from autograder.checks.exercise import Exercise, record_files
from autograder.errors import SourceError
from gradwright._chapters import CHAPTERS, ROOT
from gradwright._framework import limited, within_reach


@dataclass(frozen=True)
class Answers:
    """Known answers to an exercise."""

    oracle: Callable[..., dict[str, Any]]
    """oracle(arrays, torch): the right outputs."""
    mistakes: dict[str, Any]
    """Wrong answers by name; the docstring of each is the sentence that a learner reads."""
    alternatives: dict[str, Any]
    """Other right answers by name."""

    @property
    def sentences(self) -> dict[str, str]:
        return {name: " ".join(inspect.getdoc(wrong).split()) for name, wrong in self.mistakes.items()}


def answers_to(exercise: Exercise) -> Answers:
    """What solutions/mistakes says about an exercise."""
    path = ROOT / "solutions" / "mistakes" / record_files()[exercise.chapter].name
    if not path.exists():
        raise SourceError(path, 1, f"{exercise.id!r} has no oracle and no mistakes: write this file")
    module = load_file(path, exercise.chapter, chapters_before(exercise.chapter))
    group = getattr(module, exercise.id.replace("-", "_"), None)
    if group is None:
        line = len(path.read_text(encoding="utf-8").splitlines())
        raise SourceError(path, line, f"{exercise.id!r} is missing: add class {exercise.id.replace('-', '_')}")
    parts = {part: getattr(group, part, None) for part in ("oracle", "mistakes", "alternatives")}
    for part, value in parts.items():
        if value is None:
            raise SourceError(path, line_of(group), f"class {group.__name__} has no {part}: add it")
    answers = Answers(parts["oracle"], public(parts["mistakes"]), public(parts["alternatives"]))
    for name, wrong in answers.mistakes.items():
        if not wrong.__doc__:
            message = f"the mistake {name!r} has no docstring: write the sentence that is shown"
            raise SourceError(path, line_of(wrong), message)
    return answers


def line_of(thing: Any) -> int:
    return inspect.getsourcelines(thing)[1]


def public(group: type) -> dict[str, Any]:
    return {name: value for name, value in vars(group).items() if not name.startswith("_")}


def chapters_before(number: int) -> tuple[ModuleType, ...]:
    """The modules of the chapters before this one, as they are loaded now."""
    with limited(number):
        return tuple(importlib.import_module(c.module) for c in CHAPTERS if c.number < number and within_reach(c))


@cache
def load_file(path: Path, chapter: int, below: tuple[ModuleType, ...]) -> ModuleType:
    """The file as a module. Its imports reach the chapter itself: wrong answers are variations on the right ones.

    below  the chapters it stands on: where one was loaded anew, its classes are others, and a file that holds the old
           ones would not know the tensors that it is given
    """
    spec = importlib.util.spec_from_file_location(f"gradwright_mistakes_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where inspect looks for a class's lines
    with limited(chapter), limited(chapter + 1):  # the outer one takes the chapter out of reach again
        spec.loader.exec_module(module)
    return module
