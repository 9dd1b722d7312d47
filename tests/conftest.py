"""For all tests: Hypothesis draws the same examples on every run, and no test is judged by its time."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("reproducible", derandomize=True, database=None, deadline=None, max_examples=100)
settings.load_profile("reproducible")
