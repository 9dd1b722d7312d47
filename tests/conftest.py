"""For all tests: Hypothesis draws the same examples on every run, and no test is judged by its time."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
from hypothesis import settings

from autograder.build.answers import load_file
from gradwright._framework import SHELF, forget, state

settings.register_profile("reproducible", derandomize=True, database=None, deadline=None, max_examples=100)
settings.load_profile("reproducible")


_collected: dict[str, ModuleType] = {}


@pytest.fixture(autouse=True)
def framework_as_collected(request: pytest.FixtureRequest) -> None:
    """Each test finds the chapters as they were imported at collection, all within reach, whatever ran before it."""
    here = {name: module for name, module in sys.modules.items() if name.startswith(SHELF + ".")}
    if not _collected:
        _collected.update(here)
    if request.path.name == "test_probe_processes.py":
        return  # begins every chapter itself, and compares answers that it has loaded before
    forget()
    load_file.cache_clear()  # mistakes are variations on the classes of modules that go now
    state.limit = None
    state.notebooks = {}
    for name in here:
        del sys.modules[name]
    sys.modules.update(_collected)
    for name, module in _collected.items():
        setattr(sys.modules[SHELF], name.rpartition(".")[2], module)
