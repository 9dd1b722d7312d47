"""Gradwright's autograder: checks exercises, builds the notebooks, grades classes."""

from autograder.checks.notebook import check

__all__ = ["check"]
