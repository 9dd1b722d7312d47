"""A probe, run once on somebody's object. What comes out is arrays and plain text, and could have crossed a wall."""

from __future__ import annotations

import contextlib
import dis
import io
import traceback
import warnings
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from autograder.checks.exercise import Arrays, Exercise

NO_RETURN = "None, because no line of it returns a value"
OWN_FILES = __file__.rsplit("run.py", 1)[0]


@dataclass(frozen=True)
class Raised:
    """An exception of the learner's code, in words."""

    kind: str
    message: str
    where: str = ""
    """`cell or file, line 3: the line itself`, innermost line that is the learner's own."""


@dataclass(frozen=True)
class Outcome:
    """What a probe gave on one case."""

    outputs: Arrays = field(default_factory=dict)
    weak: frozenset[str] = frozenset()
    """Outputs that are Python numbers: they have no dtype, and take the one that is wanted."""
    odd: dict[str, str] = field(default_factory=dict)
    """Outputs that are no array, and what they are instead: `None`, `a list of arrays of unequal shapes`."""
    raised: Raised | None = None
    changed: tuple[str, ...] = ()
    """Inputs that are no longer what they were."""
    printed: str = ""
    warned: tuple[str, ...] = ()


def run_probe(exercise: Exercise, target: Any, arrays: Arrays, framework: Any) -> Outcome:
    """Call the probe on copies of `arrays`, and catch all that the learner's code prints, warns and raises."""
    given = {name: array.copy() for name, array in arrays.items()}
    printed, failure, returned = io.StringIO(), None, {}
    with warnings.catch_warnings(record=True) as caught, contextlib.ExitStack() as stack:
        warnings.simplefilter("always")
        stack.enter_context(contextlib.redirect_stdout(printed))
        stack.enter_context(contextlib.redirect_stderr(printed))
        try:
            returned = dict(exercise.probe(target, given, framework))
        except (Exception, SystemExit) as error:
            failure = describe(error)
    outputs, weak, odd = {}, set(), {}
    for name, value in returned.items():
        array, problem = as_array(value)
        if value is None and ends_without_return(target):
            problem = NO_RETURN
        if problem:
            odd[name] = problem
        else:
            outputs[name] = array
            if type(value) in (int, float, complex):
                weak.add(name)
    changed = tuple(name for name, array in arrays.items() if not unchanged(array, given[name]))
    return Outcome(
        outputs,
        frozenset(weak),
        odd,
        failure,
        changed,
        printed.getvalue(),
        tuple(dict.fromkeys(f"{w.category.__name__}: {w.message}" for w in caught)),
    )


def as_array(value: Any) -> tuple[np.ndarray, str]:
    """The value as an array of its own, or what it is instead of an array."""
    nothing = np.empty(0)
    if value is None:
        return nothing, "None"
    if isinstance(value, type) or callable(value):
        return nothing, f"{getattr(value, '__name__', 'an object')}, which is not a value"
    try:
        array = np.array(value)
    except (ValueError, TypeError) as error:
        return nothing, f"a {type(value).__name__} that is no array ({error})"
    if array.dtype == object:
        return nothing, f"a {type(value).__name__}, which is no array of numbers"
    return array, ""


def ends_without_return(target: Any) -> bool:
    """Whether a Python function has no `return` that hands anything back."""
    code = getattr(target, "__code__", None)
    if code is None:
        return False
    steps = list(dis.get_instructions(code))
    ends = [(before, step) for before, step in pairwise(steps) if step.opname.startswith("RETURN_")]
    return all((step if step.opname == "RETURN_CONST" else before).argrepr == "None" for before, step in ends)


def unchanged(before: np.ndarray, after: np.ndarray) -> bool:
    """Whether an input is as it was, to the bit. (NaN equals itself here.)"""
    return before.shape == after.shape and before.dtype == after.dtype and before.tobytes() == after.tobytes()


def describe(error: BaseException) -> Raised:
    """An exception, with the innermost line that belongs neither to the checks nor to a library."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if not f.filename.startswith(OWN_FILES) and "site-packages" not in f.filename]
    where = ""
    if own:
        frame = own[-1]
        line = f": {frame.line}" if frame.line else ""
        where = f"{place(frame.filename)}, line {frame.lineno}{line}"
    return Raised(type(error).__name__, str(error).strip(), where)


def place(filename: str) -> str:
    """A file name as a learner knows it: kernels call every cell by a file in a temporary folder."""
    return "your cell" if "ipykernel" in filename or filename.startswith("<ipython") else filename.rsplit("/", 1)[-1]
