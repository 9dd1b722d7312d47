"""A probe, run once on somebody's object. What comes out is arrays and plain text, and could have crossed a wall."""

from __future__ import annotations

import contextlib
import dis
import io
import linecache
import sys
import sysconfig
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from pathlib import PurePath
from types import CodeType, TracebackType
from typing import Any

import numpy as np

from autograder.checks.exercise import Arrays, Exercise
from autograder.errors import BadInput

NO_RETURN = "None, because no line of it returns a value"
OWN_FILES = str(PurePath(__file__).parents[1])
LIBRARIES = tuple({sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), OWN_FILES, "<frozen", "<__array"})
"""How the files begin whose lines are not the learner's."""
MOST_TEXT = 1_000
"""Of a message so many characters are kept,"""
MOST_PRINTED = 20_000
"""and of what was printed so many: a loop may print without end."""


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


NOTHING = Outcome()


class Printed(io.StringIO):
    """Stands in for stdout and stderr, and keeps the beginning."""

    @contextlib.contextmanager
    def instead(self) -> Iterator[None]:
        """Stand in for both inside. (contextlib has one for each, and together they take four times as long.)"""
        before = sys.stdout, sys.stderr
        sys.stdout = sys.stderr = self
        try:
            yield
        finally:
            sys.stdout, sys.stderr = before

    def write(self, text: str) -> int:
        if self.tell() < MOST_PRINTED:
            super().write(text[:MOST_PRINTED])
        return len(text)

    def close(self) -> None:
        """Nothing: an answer may close stdout, and what it printed before is still to be read."""


def run_probe(exercise: Exercise, target: Any, arrays: Arrays, framework: Any) -> Outcome:
    """Call the probe on copies of `arrays`, and catch all that the learner's code prints, warns and raises."""
    copies = {name: array.copy() for name, array in arrays.items()}
    printed, failure, outcome, no_dict = Printed(), None, NOTHING, ""
    with warnings.catch_warnings(record=True) as caught, printed.instead():
        warnings.simplefilter("always")
        try:
            returned = exercise.probe(target, dict(copies), framework)
            if isinstance(returned, Mapping):
                outcome = sort_out(returned, target)
            else:
                no_dict = type(returned).__name__
            del returned  # here, where what an object says as it goes is caught
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # SystemExit too: nothing that an answer raises ends the notebook's run
            failure = describe(error, target)
        warned = tuple(dict.fromkeys(f"{w.category.__name__}: {words(w.message)}" for w in caught)) if caught else ()
    if no_dict:
        raise BadInput(f"the probe of {exercise.id!r} gave a {no_dict}: let it return a dict of arrays by name")
    changed = tuple(name for name, array in arrays.items() if not unchanged(array, copies[name]))
    return Outcome(outcome.outputs, outcome.weak, outcome.odd, failure, changed, printed.getvalue(), warned)


def sort_out(returned: Mapping[str, Any], target: Any) -> Outcome:
    """What a probe returned, as arrays of our own. The learner's objects are used for the last time here."""
    outputs, weak, odd = {}, set(), {}
    for name, value in returned.items():
        array, problem = as_array(value)
        if problem:
            odd[name] = NO_RETURN if value is None and ends_without_return(target) else problem
            continue
        outputs[name] = array
        if type(value) in (int, float, complex):
            weak.add(name)
    return Outcome(outputs, frozenset(weak), odd)


def as_array(value: Any) -> tuple[np.ndarray, str]:
    """The value as an array of its own, or what it is instead of an array."""
    nothing = np.empty(0)
    if value is None:
        return nothing, "None"
    kind = type(value).__name__
    if isinstance(value, type) or callable(value):
        return nothing, f"{words(getattr(value, '__name__', f'a {kind}'))}, which is not a value"
    try:
        array = np.array(value)
    except (ValueError, TypeError) as error:
        unequal = "inhomogeneous" in words(error)
        return nothing, f"a {kind} " + ("of parts with unequal shapes" if unequal else f"({words(error)})")
    if array.dtype.kind not in "biufcU":
        return nothing, f"a {kind}, which is no array of numbers"
    return array, ""


def words(thing: object) -> str:
    """A message as text. Its `__str__` may be the learner's."""
    try:
        return str(thing).strip()[:MOST_TEXT]
    except Exception as error:
        return f"a {type(thing).__name__} whose message cannot be read ({type(error).__name__})"


def ends_without_return(target: Any) -> bool:
    """Whether a Python function has no `return` that hands anything back."""
    code = getattr(target, "__code__", None)
    if code is None:
        return False
    steps = list(dis.get_instructions(code))
    ends = [(before, step) for before, step in pairwise(steps) if step.opname in ("RETURN_VALUE", "RETURN_CONST")]
    given = [step if step.opname == "RETURN_CONST" else before for before, step in ends]
    return bool(given) and all(step.argrepr == "None" for step in given)


def unchanged(before: np.ndarray, after: np.ndarray) -> bool:
    """Whether an input is as it was, to the bit. (NaN equals itself here.)"""
    return before.shape == after.shape and before.dtype == after.dtype and before.tobytes() == after.tobytes()


def describe(error: BaseException, target: Any = None) -> Raised:
    """An exception, with the innermost line that is the learner's own, or else one of the reference implementation.

    Where calls went round in a circle the innermost is met by chance: one of `target`'s own file is better.
    """
    ours = [step for step in steps_of(error) if is_own(step.tb_frame.f_code.co_filename)]
    own = [step for step in ours if "solutions" not in PurePath(step.tb_frame.f_code.co_filename).parts] or ours
    home = getattr(getattr(target, "__code__", None), "co_filename", "")
    if isinstance(error, RecursionError):
        own = [step for step in own if step.tb_frame.f_code.co_filename == home] or own
    if not own:
        return Raised(type(error).__name__, words(error))
    code, number = own[-1].tb_frame.f_code, own[-1].tb_lineno
    linecache.checkcache(code.co_filename)
    text = linecache.getline(code.co_filename, number, own[-1].tb_frame.f_globals).strip()
    line = f": {text[:MOST_TEXT]}" if text else ""
    return Raised(type(error).__name__, words(error), f"{place(code, home)}, line {number}{line}")


def steps_of(error: BaseException) -> Iterator[TracebackType]:
    """The calls that led to an exception, outermost first. `traceback` is slow: it finds columns too."""
    step = error.__traceback__
    while step is not None:
        yield step
        step = step.tb_next


@lru_cache(maxsize=1024)
def is_own(file: str) -> bool:
    """Whether a file's lines may be the learner's."""
    return not file.startswith(LIBRARIES) and "-packages" not in file


def place(code: CodeType, home: str) -> str:
    """A file name as a learner knows it: kernels call every cell by a file in a temporary folder."""
    if "ipykernel" not in code.co_filename and not code.co_filename.startswith("<ipython"):
        return PurePath(code.co_filename).name
    if code.co_filename == home or not home:
        return "your cell"
    return "another cell" if code.co_name.startswith("<") else f"the cell of {code.co_name}"
