"""Ids of cells: from the author's words, valid, unique, and the same when numbers move."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from autograder.build.cell_ids import cell_ids, heading_slug, slug
from autograder.build.source import Chapter, SourceCell


def ids(*cells: tuple[str, str]) -> list[str]:
    made = tuple(SourceCell(role, text if role not in ("prose", "demo") else "", text, 1) for role, text in cells)
    return cell_ids(Chapter(Path("01_tiny.py"), 1, "tiny", made, ()))


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("## 2.3 Undoing a broadcast\n\nText", "undoing-a-broadcast"),
        ("# 00 Start", "start"),
        ("Text first\n\n### `Tensor.reshape` and $x^2$", "tensor-reshape-and-x-2"),
        ("No heading, #hashtag", ""),
        ("```\n# a comment\n```\n## Real", "real"),
        ("## Café au lait", "cafe-au-lait"),
        ("## 你好", ""),
    ],
)
def test_heading_slug(markdown, expected):
    assert heading_slug(markdown) == expected


def test_long_headings_are_cut_at_a_word():
    assert slug("word " * 30) == "-".join(["word"] * 9)
    assert slug("a" * 90) == "a" * 48


def test_cells_without_a_heading_count_from_the_last_one():
    cells = [("demo", "x"), ("prose", "## Idea"), ("prose", "more"), ("demo", "x"), ("prose", "## Look"), ("demo", "x")]
    assert ids(*cells) == ["tiny-1", "idea", "idea-1", "idea-2", "look", "look-1"]


def test_the_cell_above_an_exercise_belongs_to_it():
    cells = [
        ("prose", "## Idea\n\n### Exercise 1.1: `f`"),
        ("exercise", "tiny-f"),
        ("prose", "help"),
        ("check", "tiny-f"),
    ]
    assert ids(*cells) == ["tiny-f-task", "tiny-f", "tiny-f-1", "tiny-f-check"]


def test_equal_headings_and_names_of_cells_stay_apart():
    found = ids(("prose", "## Idea"), ("prose", "## Idea"), ("given", "look"), ("prose", "## Look"), ("widget", "w"))
    assert found == ["idea", "idea-2", "look", "look-2", "w"]


def test_ids_that_would_meet():
    """`idea-1` is a heading of its own, and the first cell below `idea` too."""
    found = ids(("prose", "## Idea"), ("prose", "## Idea 1"), ("prose", "## Idea"), ("demo", "x"), ("demo", "x"))
    assert len(set(found)) == len(found)
    assert all(re.fullmatch(r"[a-z0-9-]{1,64}", name) for name in found)
