"""Exercises and their verdicts. Standard library and NumPy only, so that it runs in a browser and in a sandbox.

exercise.py   the record of an exercise: what is asked, the probe, the cases
run.py        a probe run on somebody's object: arrays in, arrays out        (the untrusted half)
stored.py     reference values on disk: inputs, right outputs, what known mistakes give
compare.py    two arrays to a difference
causes.py     a difference to its likely cause
judge.py      outcomes and reference values to a verdict                     (the trusted half)
verdict.py    a verdict as text and as HTML
notebook.py   `check`, the line under every exercise
"""

from autograder.checks.exercise import Exercise, exercises_of, find
from autograder.checks.judge import judge
from autograder.checks.notebook import begin, check
from autograder.checks.verdict import Verdict

__all__ = ["Exercise", "Verdict", "begin", "check", "exercises_of", "find", "judge"]
