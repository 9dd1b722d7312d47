"""Whole verdicts, as text and as HTML, compared with those in tests/verdicts.

After a change that is meant: REWRITE_VERDICTS=1 pytest tests/checks/test_verdicts.py, and review the difference.
"""

from __future__ import annotations

import os
import re
import warnings
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from autograder.build.answers import answers_to
from autograder.checks.exercise import find
from autograder.checks.judge import assess, judge
from autograder.checks.run import Outcome, Raised
from autograder.checks.verdict import COLOURS, Cause, Verdict, number, pair, short
from tests.checks.small_exercise import make_exercise, make_reference, verdict_on

SNAPSHOTS = Path(__file__).parents[1] / "verdicts"
REWRITE = bool(os.environ.get("REWRITE_VERDICTS"))


def mistake(exercise_id, name):
    exercise = find(exercise_id)
    return judge(exercise, answers_to(exercise).mistakes[name], None)


def right(a, b):
    return np.tanh(a) @ b.T


def on_matrices(answer, truth=right, **changes):
    """A verdict of an answer that takes two matrices."""
    return verdict_on(answer, truth, make_exercise(**changes))


def not_written(a, b):
    raise NotImplementedError("Exercise 0.3: small")


def calls_one_that_is_not(a, b):
    raise NotImplementedError("Exercise 0.2: dot")


def prints_and_forgets_to_return(a, b):
    print("the product is")
    print(np.round(right(a, b), 2))


def wrong_index(a, b):
    return right(a, b)[len(a)]


def in_place(a, b):
    a *= b
    return a.sum()


def unequal_rows(a, b):
    return [row[:i] for i, row in enumerate(right(a, b))]


def warns(a, b):
    return np.log(right(a, b))


def one_element_off(a, b):
    out = right(a, b)
    out[-1, -1] += 3e-6
    return out


def summed(a, b):
    return right(a, b).sum(0)


def two_causes():
    truth = mistake("start-dot-loop", "every_pair")
    causes = [replace(truth.causes[0], seen=1), Cause("Another sentence, to be told from the first.", 1, "another")]
    return truth.with_causes(causes)


SITUATIONS = {
    "right": lambda: judge(find("start-dot"), answers_to(find("start-dot")).alternatives["matmul"], None),
    "not-implemented": lambda: on_matrices(not_written),
    "blocked": lambda: on_matrices(calls_one_that_is_not),
    "dot-loop-every-pair": lambda: mistake("start-dot-loop", "every_pair"),
    "dot-loop-cut-to-the-shorter": lambda: mistake("start-dot-loop", "cut_to_the_shorter"),
    "dot-loop-started-with-the-first-product": lambda: mistake("start-dot-loop", "started_with_the_first_product"),
    "dot-second-reversed": lambda: mistake("start-dot", "second_reversed"),
    "two-causes": two_causes,
    "no-cause": lambda: on_matrices(lambda a, b: np.sin(a) @ np.cos(b.T)),
    "transposed": lambda: on_matrices(lambda a, b: right(a, b).T),
    "float32": lambda: on_matrices(lambda a, b: np.float32(np.round(a)), lambda a, b: np.round(a)),
    "one-element-off": lambda: on_matrices(one_element_off),
    "axis-summed": lambda: on_matrices(summed),
    "nan": lambda: on_matrices(warns),
    "returns-none-and-prints": lambda: on_matrices(prints_and_forgets_to_return),
    "raises": lambda: on_matrices(wrong_index),
    "changes-its-input": lambda: on_matrices(in_place),
    "unequal-rows": lambda: on_matrices(unequal_rows),
    "text": lambda: on_matrices(lambda a, b: "0.5", lambda a, b: np.tanh(a).sum()),
    "cannot-be-judged": lambda: Verdict(
        find("start-dot-loop"),
        (),
        17,
        trouble="the cell of `dot_loop` is missing: `autograder fresh 00` puts an untouched copy beside yours",
    ),
    "builds-on-unproven": lambda: replace(on_matrices(lambda a, b: -right(a, b)), unproven=("0.1 dot_loop", "0.2 dot")),
}


def stable(text):
    """Without the lines at which answers stand in their files."""
    return re.sub(r"(\.py, line )\d+", r"\1N", text)


def compare_with_snapshot(path, found):
    if REWRITE:
        path.write_text(found, encoding="utf-8")
    assert path.is_file(), f"{path.name} is missing: run with REWRITE_VERDICTS=1 and review it"
    assert found == path.read_text(encoding="utf-8"), "run with REWRITE_VERDICTS=1 if this is meant, and review it"


@pytest.mark.parametrize("situation", SITUATIONS)
def test_the_text_is_as_reviewed(situation):
    compare_with_snapshot(SNAPSHOTS / f"{situation}.txt", stable(SITUATIONS[situation]().text()) + "\n")


@pytest.mark.parametrize("situation", SITUATIONS)
def test_the_html_is_as_reviewed(situation):
    pieces = re.sub(r"(</tr>|</div>|<table)", r"\1\n", SITUATIONS[situation]().html())
    compare_with_snapshot(SNAPSHOTS / f"{situation}.html", stable(pieces).rstrip("\n") + "\n")


def test_every_reviewed_file_belongs_to_a_situation():
    names = {f"{situation}.{kind}" for situation in SITUATIONS for kind in ("txt", "html")}
    assert {path.name for path in SNAPSHOTS.iterdir()} == names


class Page(HTMLParser):
    """The tags of a page, properly nested, and its words."""

    def __init__(self, html):
        super().__init__()
        self.open, self.tags, self.words = [], set(), []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        assert {name for name, _ in attributes} <= {"style", "role", "scope", "aria-hidden"}
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


OUR_TAGS = {"div", "span", "b", "table", "tr", "th", "td", "code"}


@pytest.mark.parametrize("situation", SITUATIONS)
def test_text_and_html_say_the_same(situation):
    verdict = SITUATIONS[situation]()
    html_words = " ".join(Page(verdict.html()).words).split()
    signs = {sign for _, _, sign in COLOURS.values()}
    text_words = verdict.text().replace("`", " ").split()
    assert sorted("".join(word for word in html_words if word not in signs)) == sorted("".join(text_words))


def assert_fits(verdict):
    lines = verdict.text().splitlines()
    assert len(lines) <= 24, verdict.text()
    assert max(map(len, lines)) <= 100, verdict.text()
    assert all(line == line.rstrip() and line.isprintable() for line in lines)
    verdict.text().encode()
    page = Page(verdict.html())
    assert page.tags <= OUR_TAGS
    verdict.html().encode()
    assert len(verdict.html()) < 12_000
    assert "\n" not in verdict.state


@pytest.mark.parametrize("situation", SITUATIONS)
def test_a_verdict_fits_on_one_screen(situation):
    assert_fits(SITUATIONS[situation]())


# Hostile text

SCRIPT = "<script>alert(1)</script>"
HOSTILE = [
    SCRIPT,
    "<img src=x onerror=alert(1)>",
    "</td></table></div><h1>right: 17 of 17 cases</h1>",
    '" onmouseover="alert(1)',
    "`<b>`",
    "a ` lonely ` tick ` and & entities &lt;script&gt;",
    "\x1b[2J\x1b[H\x07\x00\r\b",
    "\ud800 half a character \udfff",
    "left\u202eright\u2028line\u2029paragraph\x85next",
    "x" * 100_000,
    "many words " * 10_000,
    "line\n" * 10_000,
    "\t\ttabs\tand\n\n\n\n  blanks  ",
]


def everything_at_once(text):
    """An answer that puts a text wherever an answer can."""

    def answer(a, b):
        print(text)
        warnings.warn(text, stacklevel=1)
        warnings.warn("second " + text, stacklevel=1)
        if a.shape == (2, 5):
            raise type(text[:50].replace("\x00", "").encode("ascii", "ignore").decode() or "E", (ValueError,), {})(text)
        return {text: 1} if a.shape == (4, 2) else text

    return answer


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_of_an_answer_is_shown_and_does_nothing(text):
    verdict = on_matrices(everything_at_once(text))
    assert_fits(verdict)
    assert verdict.points == 0


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_in_every_field_of_an_outcome_is_shown_and_does_nothing(text):
    exercise = make_exercise()
    reference = make_reference(exercise, right)
    for outcome in (
        Outcome(raised=Raised(text, text, text), printed=text, warned=(text, text, text), changed=("a",)),
        Outcome(odd={"y": text}, printed=text, warned=(text,)),
        Outcome({"y": np.full((3, 3), text[:1000])}, printed=text),
        Outcome(raised=Raised("NotImplementedError", f"Exercise 0.2: {text}")),
    ):
        verdict = assess(exercise, reference, [outcome] * 11)
        assert_fits(verdict)
        crowded = replace(verdict, unproven=("0.1 " + "dot_loop" * 20, "0.2 dot"))
        assert_fits(crowded.with_causes([Cause("Long. " * 90, 3)] * 2))


def test_a_hostile_name_of_a_function_is_shown_and_does_nothing():
    def answer(a, b):
        return answer

    answer.__name__ = SCRIPT
    verdict = on_matrices(answer)
    assert "&lt;script&gt;" in verdict.html()
    assert_fits(verdict)


def test_a_forged_headline_in_the_output_does_not_begin_a_line():
    def answer(a, b):
        print("0.3 small  right: 11 of 11 cases")
        return None

    lines = on_matrices(answer).text().splitlines()
    assert lines[0].endswith("not yet: 0 of 11 cases right")
    assert all(line.startswith("  ") for line in lines[1:])


# Numbers


@pytest.mark.parametrize(
    "value, text",
    [
        (1.0, "1"),
        (np.float64(1 / 3), "0.3333"),
        (np.float32(0.1), "0.1"),
        (np.float16(2.5), "2.5"),
        (-0.0, "-0"),
        (1e-12, "1e-12"),
        (123456.0, "1.235e+05"),
        (np.nan, "nan"),
        (-np.inf, "-inf"),
        (np.complex64(1 + 2j), "1+2j"),
        (np.int8(-3), "-3"),
        (2**70, "1180591620717411303424"),
        (np.True_, "True"),
        (np.str_("ab"), "'ab'"),
    ],
)
def test_a_number_in_few_digits(value, text):
    assert number(value) == text


@pytest.mark.parametrize(
    "got, wanted, shown",
    [
        (1.0, 2.0, ("1", "2")),
        (1.00001, 1.0, ("1.00001", "1")),
        (1 / 3 + 1e-9, 1 / 3, ("0.3333333343", "0.3333333333")),
        (np.nextafter(1, 2), 1.0, ("1.0000000000000002", "1")),
        ("1", 1, ("'1'", "1")),
    ],
)
def test_two_numbers_in_as_many_digits_as_tell_them_apart(got, wanted, shown):
    assert pair(got, wanted) == shown


@pytest.mark.parametrize(
    "array, text",
    [
        (np.array(2.0), "2"),
        (np.array([1.0, 0.5]), "[1, 0.5]"),
        (np.arange(4).reshape(2, 2), "[[0, 1], [2, 3]]"),
        (np.zeros((0, 3)), "[] of shape (0, 3)"),
        (np.array([True, False]), "[True, False]"),
    ],
)
def test_a_small_array_in_brackets(array, text):
    assert short(array) == text
