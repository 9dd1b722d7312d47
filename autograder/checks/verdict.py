"""A verdict, as text and as HTML. Both are made from the same rows, and numbers are formatted here, not by NumPy."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape

import numpy as np

from autograder.checks.compare import Difference
from autograder.checks.exercise import Arrays, Exercise
from autograder.checks.run import Outcome
from autograder.checks.stored import StoredCase

WIDTH = 100
MARGIN = 11
FEW = 6
"""Up to so many numbers of an array are written out."""
PRINTED = 3
"""Up to so many lines of what was printed are shown."""
ROOM = {"where": 1, "cause": 3, "cell": 3, "printed": PRINTED + 1}
"""How many lines a row may take, where it is not 2: a verdict fits on one screen, whatever an answer prints."""


@dataclass(frozen=True)
class Cause:
    """Why an answer is probably wrong."""

    text: str
    seen: int
    """In how many cases it explains what came back."""
    mistake: str = ""
    """Name of the known mistake, where it is one."""
    case: str = ""
    """Name of the first case that it explains."""


@dataclass(frozen=True)
class Result:
    """One case and what came back."""

    case: StoredCase
    outcome: Outcome
    differences: tuple[Difference, ...]

    @property
    def right(self) -> bool:
        return not (self.differences or self.outcome.raised or self.outcome.changed)

    @property
    def yes_or_no(self) -> bool:
        """Whether single truth values are all that is wanted: was bad input refused?"""
        return all(array.dtype == bool and not array.shape for array in self.case.wanted.values())


@dataclass(frozen=True)
class Verdict:
    """What the check found."""

    exercise: Exercise
    results: tuple[Result, ...]
    total: int
    """How many cases there are."""
    causes: tuple[Cause, ...] = ()
    missing: str = ""
    """`1.2 index` where that exercise is not written yet: this one, or one that it builds on."""
    unproven: tuple[str, ...] = ()
    """Titles of exercises that this one builds on and whose check has not passed."""
    trouble: str = ""
    """Why there is nothing to judge: the cell is gone, or does not run."""

    @cached_property
    def failing(self) -> tuple[Result, ...]:
        return tuple(r for r in self.results if not r.right)

    @property
    def right(self) -> bool:
        return bool(self.results) and len(self.results) == self.total and not self.failing

    @property
    def points(self) -> int:
        """Points earned: all or nothing."""
        return self.exercise.points if self.right else 0

    @property
    def state(self) -> str:
        """The verdict in a few words."""
        if self.trouble:
            return "cannot be judged"
        if self.missing == self.exercise.title:
            return "not implemented yet"
        if self.missing:
            return f"blocked by {printable(self.missing)}"
        good = len(self.results) - len(self.failing)
        word = "right" if self.right else "not yet"
        return f"{word}: {good} of {self.total} cases" + " right" * (not self.right)

    def with_causes(self, causes: list[Cause]) -> Verdict:
        return replace(self, causes=tuple(causes))

    def text(self) -> str:
        """The verdict as plain text of at most 100 columns."""
        return block_text(self.exercise.title, self.state, rows(self))

    def html(self) -> str:
        """The verdict as a fragment of HTML that follows JupyterLab's theme, light or dark."""
        return block_html(self.exercise.title, self.state, rows(self), self.right)


def block_text(title: str, state: str, lines: Iterable[tuple[str, str]]) -> str:
    """A headline and labelled lines as plain text."""
    state = cut(state, WIDTH - MARGIN)
    gap = WIDTH - len(title) - len(state)
    block = [title + " " * gap + state] if gap > 0 else [title, state]
    for label, content in lines:
        for i, line in enumerate(wrapped(content)):
            block.append(f"  {label if i == 0 else '':<{MARGIN - 2}}{line}".rstrip())
    return "\n".join(block)


def rows(verdict: Verdict) -> Iterator[tuple[str, str]]:
    """Label and content of each line below the headline. Whatever comes from an answer is made printable and cut."""
    if verdict.trouble:
        found = iter([("cell", verdict.trouble)])
    elif verdict.missing:
        found = rows_of_missing(verdict)
    elif verdict.right:
        found = rows_of_output(next((r.outcome for r in verdict.results if said_something(r.outcome)), Outcome()))
    elif verdict.failing:
        found = rows_of_failure(verdict)
    else:
        found = iter([("case", "Some cases have not been run.")])
    for label, content in found:
        yield label, fitted(content, ROOM.get(label, 2))


def rows_of_missing(verdict: Verdict) -> Iterator[tuple[str, str]]:
    if verdict.missing == verdict.exercise.title:
        yield "next", "Replace the line that raises NotImplementedError, run the cell, then run this check again."
    else:
        yield "next", f"Do {verdict.missing} first: {verdict.exercise.name} builds on it, and it is not written yet."


def rows_of_failure(verdict: Verdict) -> Iterator[tuple[str, str]]:
    result = telling(verdict)
    yield "case", result.case.name
    yield from rows_of_inputs(result.case.arrays)
    if result.outcome.raised:
        yield from rows_of_exception(result.outcome)
        yield "wanted", "; ".join(brief(name, array) for name, array in result.case.wanted.items())
    elif result.differences:
        yield from rows_of_difference(result.differences[0])
    for cause in verdict.causes:
        yield "cause", fitted(cause.text, 2) + seen_in(cause.seen, len(verdict.failing))
    yield from rows_of_output(result.outcome)
    if verdict.unproven:
        yield "before", f"It builds on {' and '.join(verdict.unproven)}, whose check has not passed in this session."
    if verdict.exercise.see:
        yield "next", verdict.exercise.see


def seen_in(seen: int, failing: int) -> str:
    """How many of the failing cases a cause explains; nothing where there is one."""
    if failing == 1:
        return ""
    every = "both" if failing == 2 else f"all {failing}"
    return f"\n(Seen in {every if seen == failing else f'{seen} of the {failing}'} cases that fail.)"


def telling(verdict: Verdict) -> Result:
    """The failing case to show: an error where most end in one and the cause is another's, or else one that the cause
    explains, or else one with a wrong value (that bad input was not refused says less), or else the first."""
    raised = [r for r in verdict.failing if r.outcome.raised]
    if len(raised) * 2 > len(verdict.failing) and not explains(verdict.causes, verdict):
        return raised[0]
    explained = [r for r in verdict.failing if verdict.causes and r.case.name == verdict.causes[0].case]
    valued = [r for r in verdict.failing if r.differences and not r.outcome.raised]
    worth_more = [r for r in valued if not r.yes_or_no]
    return [*explained, *worth_more, *valued, *verdict.failing][0]


def explains(causes: Sequence[Cause], verdict: Verdict) -> bool:
    """Whether the causes account for half of what fails, or more."""
    return bool(causes) and causes[0].seen * 2 >= len(verdict.failing)


def rows_of_inputs(arrays: Arrays) -> Iterator[tuple[str, str]]:
    if arrays:
        yield "inputs", "; ".join(brief(name, array) for name, array in arrays.items())


def brief(name: str, array: np.ndarray) -> str:
    """A small array by its numbers, a larger one by its dtype and shape."""
    if answer := yes_or_no(array):
        return f"{name}: {answer}"
    return f"{name} = {short(array)}" if array.size <= FEW else f"{name}: {kind_of(array)} {array.shape}"


def yes_or_no(array: np.ndarray) -> str:
    """A single truth value in words; nothing for any other array."""
    return ("yes" if array else "no") if array.shape == () and array.dtype == bool else ""


def rows_of_exception(outcome: Outcome) -> Iterator[tuple[str, str]]:
    assert outcome.raised
    message = " ".join(outcome.raised.message.split())
    yield "raised", f"{outcome.raised.kind}: {message}" if message else outcome.raised.kind
    if outcome.raised.where:
        yield "where", outcome.raised.where


def rows_of_difference(difference: Difference) -> Iterator[tuple[str, str]]:
    wanted, got = difference.wanted, difference.got
    if difference.kind == "missing":
        yield "array", f"{difference.name}: not among the results"
    elif got is None:
        yield "array", f"{difference.name}: got {difference.odd}; it should be {kind_of(wanted)} {wanted.shape}"
    elif difference.kind == "values" and wanted.ndim == 0:
        yours, right = yes_or_no(got), yes_or_no(wanted)
        if not yours or not right:
            yours, right = pair(got[()], wanted[()])
        yield "value", f"{difference.name}: yours {yours}, right {right}"
    else:
        fine = "as it should be"
        shape = f"shape {got.shape} " + (fine if got.shape == wanted.shape else f"and not {wanted.shape}")
        same = got.dtype == wanted.dtype or (difference.kind != "dtype" and got.dtype.kind == wanted.dtype.kind)
        yield "array", f"{difference.name}: {shape}, {kind_of(got)} " + (fine if same else f"and not {kind_of(wanted)}")
        if difference.kind == "values":
            yield from rows_of_values(difference)
        elif difference.kind == "shape" and got.size <= FEW and wanted.size <= FEW:
            yield "values", f"yours {short(got)}, right {short(wanted)}"


def rows_of_values(difference: Difference) -> Iterator[tuple[str, str]]:
    wanted, got = difference.wanted, difference.got
    yours, right = pair(got[difference.first], wanted[difference.first])
    at = ", ".join(map(str, difference.first))
    by = f", by up to {number(difference.largest)}" if np.isfinite(difference.largest) else ""
    some = f"{difference.wrong} of {wanted.size} element{'s' * (wanted.size > 1)} differ{by}"
    yield "first", f"at [{at}]: yours {yours}, right {right}; {some}"


def rows_of_output(outcome: Outcome) -> Iterator[tuple[str, str]]:
    if outcome.printed.strip():
        lines = outcome.printed.strip().splitlines()
        more = ["... and more"] if len(lines) > PRINTED else []
        yield "printed", "\n".join([cut(line, WIDTH - MARGIN) for line in lines[:PRINTED]] + more)
    if outcome.warned:
        yield "warned", "\n".join(cut(" ".join(w.split()), WIDTH - MARGIN) for w in outcome.warned[:2])


def said_something(outcome: Outcome) -> bool:
    return bool(outcome.printed.strip() or outcome.warned)


def number(value: object, digits: int = 4) -> str:
    """A number in `digits` significant digits; integers, booleans and text as they are."""
    if isinstance(value, (float, complex, np.inexact)):
        return f"{value:.{digits}g}"
    return cut(repr(str(value)), 40) if isinstance(value, str) else str(value)


def pair(got: object, wanted: object) -> tuple[str, str]:
    """Two numbers in as many digits as it takes to tell them apart."""
    for digits in (4, 7, 10, 17):
        yours, right = number(got, digits), number(wanted, digits)
        if yours != right:
            break
    return yours, right


def short(array: np.ndarray) -> str:
    """A small array in nested brackets."""
    if array.ndim == 0:
        return number(array[()])
    if not array.size:
        return f"[] of shape {array.shape}"
    return "[" + ", ".join(short(np.asarray(part)) for part in array) + "]"


def kind_of(array: np.ndarray) -> str:
    """The dtype as a learner knows it."""
    return "text" if array.dtype.kind == "U" else array.dtype.name


def cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 4] + " ..."


def wrapped(content: str) -> list[str]:
    out = []
    for line in content.splitlines():
        out += textwrap.wrap(line, WIDTH - MARGIN, break_on_hyphens=False) or [""]
    return out


def fitted(content: str, most: int) -> str:
    """The content, printable, and cut to what fills so many lines of text."""
    content = printable(content[: 4 * most * WIDTH])
    lines = wrapped(content)
    if len(lines) <= most:
        return content
    return "\n".join([*lines[: most - 1], cut(lines[most - 1] + " ...", WIDTH - MARGIN)])


def printable(text: str) -> str:
    """Without signs that no screen shows: those that move a terminal's cursor, and halves of a character."""
    text = text.replace("\t", " ")
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


COLOURS = {
    True: ("--jp-success-color1", "#1b7f4d", "✓"),
    False: ("--jp-warn-color1", "#b35900", "○"),
}
"""Colour and sign of right and of not yet: the sign says the same without the colour."""


def block_html(title: str, state: str, lines: Iterable[tuple[str, str]], right: bool) -> str:
    """A headline and labelled lines as a fragment of HTML."""
    variable, fallback, sign = COLOURS[right]
    colour = f"var({variable}, {fallback})"
    cells = "".join(
        '<tr style="background:none"><th scope="row" style="text-align:left;vertical-align:top;'
        f'font-weight:normal;opacity:.75;padding:1px 14px 1px 0;background:none">{label}</th>'
        '<td style="text-align:left;white-space:pre-wrap;padding:1px 0;max-width:46em;background:none">'
        f"{coded(content)}</td></tr>"
        for label, content in lines
    )
    table = f'<table style="border-collapse:collapse;margin:6px 0 0;font-size:inherit">{cells}</table>' if cells else ""
    return (
        f'<div role="status" style="border-left:4px solid {colour};padding:4px 12px;font-size:13px;'
        'font-family:var(--jp-ui-font-family, sans-serif);line-height:1.45">'
        f'<div><span aria-hidden="true" style="color:{colour};font-weight:bold">{sign}</span> '
        f"<b>{escape(title)}</b> &nbsp; {escape(state)}</div>{table}</div>"
    )


def coded(content: str) -> str:
    """Escaped, with `names` in a code font."""
    parts = escape(content).split("`")
    if len(parts) % 2 == 0:
        return escape(content)
    return "".join(f"<code>{part}</code>" if i % 2 else part for i, part in enumerate(parts))
