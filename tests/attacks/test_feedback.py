"""What is slow or huge to show, names that cannot be printed, times that cannot be read: no page, no run is lost."""

from __future__ import annotations

import os
import time
from functools import cache
from pathlib import Path

import nbformat
import pytest

from autograder.grade import feedback
from autograder.grade.classroom import Classroom
from autograder.grade.intake import STAMP, collect, legible, stamp_in

from .conftest import START, Notebook

SLOW = ["a" + " " * 200_000 + "b", "<div>" * 40_000, "\\begin{a}" * 20_000, "[" * 200_000]


@pytest.mark.parametrize("text", SLOW, ids=lambda text: text[:8])
def test_a_long_text_is_shown_in_no_time(text: str) -> None:
    start = time.process_time()
    page = feedback.rendered(text, "{}") + feedback.coloured(text, "python")
    assert time.process_time() - start < 2
    assert "<div>" not in page


def test_a_long_text_makes_no_link() -> None:
    page = feedback.rendered("<script>alert(1)</script> $\\href{javascript:alert(1)}{x}$" * 1000, "{}")
    assert "<script" not in page
    assert "\\href" not in page


def test_a_picture_is_there_once_however_often_it_is_named() -> None:
    page = feedback.rendered("![a](attachment:a)\n" * 100, '{"a": {"image/png": "PICTURE"}}')
    assert page.count("PICTURE") == 1


def test_a_page_that_takes_too_long_holds_its_checks(
    tmp_path: Path, released: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Slow:
        def from_filename(self, *_: object) -> None:
            while True:
                pass

        def from_notebook_node(self, notebook: nbformat.NotebookNode, _: object) -> tuple[str, dict]:
            return " ".join(cell.metadata.gradwright.name for cell in notebook.cells), {}

    room, page = Classroom(tmp_path), feedback.Page(tmp_path, "one", START.folder, START.name)
    place = room.autograded / page.place / START.notebook
    place.parent.mkdir(parents=True)
    nbformat.write(nbformat.from_dict(released), place)
    monkeypatch.setattr(feedback, "SECONDS", 0.2)
    monkeypatch.setattr(feedback, "exporter", cache(Slow))
    assert feedback.write_page(page) == ""
    shown = (room.feedback / page.place / f"{START.name}.html").read_text(encoding="utf-8")
    assert shown == "start-dot-loop start-dot"


@pytest.mark.parametrize("text", ["12h99999999999999999900999999999", "1:1e999", "nan", "0" * 199])
def test_a_time_that_nobody_can_read_is_none(text: str, tmp_path: Path) -> None:
    (tmp_path / STAMP).write_text(text)
    stamp_in(tmp_path)


def test_a_name_of_half_characters_and_lines_can_be_printed(tmp_path: Path) -> None:
    folder = tmp_path / "submitted" / "one" / START.folder
    folder.mkdir(parents=True)
    (folder.with_name(os.fsdecode(b"\xfe"))).mkdir()
    (folder / os.fsdecode(b"\xff\n\x1b[2J.ipynb")).write_text("{}")
    found = collect(Classroom(tmp_path), [START])
    said = [*found.remarks, found.submissions[0].renamed]
    assert len(said) == 2
    assert all(text.isprintable() for text in said)
    assert legible("a\u00e9 b") == "a\u00e9 b"


def test_a_link_in_place_of_a_folder_tells_no_names(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name in ("exam", "salaries"):
        (elsewhere / f"{name}.ipynb").touch()
    (tmp_path / "submitted" / "one").mkdir(parents=True)
    (tmp_path / "submitted" / "one" / START.folder).symlink_to(elsewhere)
    (found,) = collect(Classroom(tmp_path), [START]).submissions
    assert "is a link" in found.trouble
    assert "exam" not in found.trouble
