"""The framework that the course builds, with PyTorch's layout: `gradwright.tensor`, `gradwright.nn.Linear`, ...

Every name comes from the module of a chapter and is looked up when it is first used. Three functions are here from the
start: `chapter`, which a notebook's first cell calls, `use`, which puts your own code in place of the reference
implementation, and `stale`, which tells whether that code has changed since.
"""

from __future__ import annotations

import sys
from typing import Any

from autograder import checks
from gradwright import _framework
from gradwright._mine import begin_chapter, stale, use

__all__ = ["__version__", "chapter", "stale", "use"]

__version__ = "0.1.0"

sys.meta_path.append(_framework.Assembler())


def chapter(number: int | str) -> None:
    """Begin a chapter: what it and later chapters build is out of reach from here on, as it is when it is graded.

    number: the chapter's number or name, 2 or "autodiff". Raises BadInput for another.
    """
    begun = begin_chapter(number)
    checks.begin(framework=sys.modules[__name__], chapter=begun.number, stale=stale)


def __getattr__(name: str) -> Any:
    return _framework.resolve("", name)


def __dir__() -> list[str]:
    return sorted({"chapter", "chapters", "stale", "use", "widgets", *_framework.reachable_names("")})
