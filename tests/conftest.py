"""For all tests: Hypothesis draws the same examples on every run, and no test is judged by its time."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings

from gradwright._framework import SHELF, forget, state

settings.register_profile("reproducible", derandomize=True, database=None, deadline=None, max_examples=100)
settings.load_profile("reproducible")


@pytest.fixture(autouse=True)
def framework_as_it_was() -> Iterator[None]:
    """A test that begins a chapter leaves the modules of the chapters, and what is within reach, as they were."""
    limit, notebooks = state.limit, dict(state.notebooks)
    modules = {name: module for name, module in sys.modules.items() if name.startswith(SHELF + ".")}
    yield
    forget()
    state.limit, state.notebooks = limit, notebooks
    for name in [name for name in sys.modules if name.startswith(SHELF + ".")]:
        del sys.modules[name]
    sys.modules.update(modules)
    for name, module in modules.items():
        setattr(sys.modules[SHELF], name.rpartition(".")[2], module)
