"""For all tests: Hypothesis draws the same examples on every run, and no test is judged by its time."""

from __future__ import annotations

from types import ModuleType

import pytest
from hypothesis import settings

from gradwright._chapters import Chapter
from gradwright._framework import put, state, unload

settings.register_profile("reproducible", derandomize=True, database=None, deadline=None, max_examples=100)
settings.load_profile("reproducible")


_collected: dict[Chapter, ModuleType] = {}


@pytest.fixture(autouse=True)
def framework_as_collected() -> None:
    """Each test finds the chapters as they were imported at collection, all within reach, whatever ran before it."""
    here = unload(0)
    if not _collected:
        _collected.update(here)
    state.limit = None
    state.notebooks = {}
    for chapter, module in _collected.items():
        put(chapter, module)
