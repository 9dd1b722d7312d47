"""A class in which files, folders and names are the attack: each costs its own submission, and none the run."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from autograder.grade.intake import MOST_CELLS, MOST_TEXT
from autograder.grade.outputs import safe_html

from .conftest import START, Graded, Notebook, code, grade, hand_in, markdown, once, with_cells

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows needs rights to make links, and has no FIFOs")
MISSING, UNREADABLE, FULL = ("", "missing"), ("", "unreadable"), ("4", "graded")


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory, released: Notebook, solution: Notebook) -> Graded:
    def make(root: Path) -> None:
        for student, content in notebooks(solution).items():
            hand_in(root, student, content)
        for student in ("stamp of other bytes", "stamp that is a link", "stamp that is a pipe", "stamp of the year"):
            hand_in(root, student, solution)
        stamps = {
            name: root / "submitted" / name / START.folder / "timestamp.txt" for name in os.listdir(root / "submitted")
        }
        stamps["stamp of other bytes"].write_bytes(b"\xff\xfe\x00")
        stamps["stamp that is a link"].symlink_to("../../../.secret")
        os.mkfifo(stamps["stamp that is a pipe"])
        stamps["stamp of the year"].write_text("99999999-01-01 00:00:00 UTC")
        secrets = {name: stamp.with_name("submission_secret.txt") for name, stamp in stamps.items()}
        secrets["stamp of other bytes"].write_bytes(b"\xff\xfe\x00")
        secrets["stamp that is a link"].symlink_to("../../../.secret")
        os.mkfifo(secrets["stamp that is a pipe"])
        secrets["stamp of the year"].write_text("../../other")
        submitted = root / "submitted"
        hand_in(root, "honest", solution)
        (submitted / "linked student").symlink_to("honest")
        (submitted / "linked chapter").mkdir()
        (submitted / "linked chapter" / START.folder).symlink_to(f"../honest/{START.folder}")
        for student in ("loop", "pipe", "folder"):
            (submitted / student / START.folder).mkdir(parents=True)
        (submitted / "loop" / START.folder / START.notebook).symlink_to(START.notebook)
        os.mkfifo(submitted / "pipe" / START.folder / START.notebook)
        (submitted / "folder" / START.folder / START.notebook).mkdir()
        (root / "said.txt").write_text(grade(root).said)

    root = once(tmp_path_factory, "hostile", make)
    return Graded(root, (root / "said.txt").read_text())


def notebooks(solution: Notebook) -> dict[str, Notebook | bytes]:
    """Student to what is handed in, all of it with right answers."""
    deep = json.dumps(solution)[:-1] + ', "more": ' + "[" * 900 + "]" * 900 + "}"
    strange = {"metadata": [1], "attachments": [1], "outputs": "x", "id": {"a": 1}}
    return {
        "half characters": json.dumps(with_cells(solution, markdown("\ud800"), code("# \udfff"))).encode(),
        "no attachment": with_cells(solution, markdown("![a](attachment:a.png)") | {"attachments": {"a.png": "b"}}),
        "half an attachment": with_cells(
            solution, markdown("![a](attachment:\ud800)") | {"attachments": {"\ud800": {"image/png": "\udc00"}}}
        ),
        "nothing as it should be": with_cells(solution, *[code("x = 1") | strange, markdown("x") | strange]),
        "zeros": with_cells(solution, markdown("a\0b"), code("x = '\0'")),
        "deep": deep.encode(),
        "deeper": b'{"nbformat": 4, "cells": ' + b"[" * 10**5 + b"]" * 10**5 + b"}",
        "a long number": b'{"nbformat": 4, "cells": [' + b"9" * 10**4 + b"]}",
        "many cells": with_cells(solution, *[code(f"x = {i}") for i in range(MOST_CELLS)]),
        "much text": with_cells(solution, code("x = [" + "1," * (MOST_TEXT // 2) + "]")),
        "brackets": with_cells(solution, markdown("[" * 5000), markdown("> " * 2000), markdown("<div>" * 2000)),
        "%s {0} 'x\" ; -- <b>": solution,
        "$(id)": solution,
        "?x=1#y": solution,
    }


@pytest.mark.parametrize(
    ("student", "row"),
    [
        ("honest", FULL),
        ("half characters", FULL),
        ("no attachment", FULL),
        ("half an attachment", FULL),
        ("nothing as it should be", FULL),
        ("zeros", FULL),
        ("deep", FULL),
        ("brackets", FULL),
        ("%s {0} 'x\" ; -- <b>", FULL),
        ("$(id)", FULL),
        ("?x=1#y", FULL),
        ("stamp of other bytes", FULL),
        ("stamp that is a link", FULL),
        ("stamp that is a pipe", FULL),
        ("stamp of the year", FULL),
        ("deeper", UNREADABLE),
        ("a long number", UNREADABLE),
        ("many cells", UNREADABLE),
        ("much text", UNREADABLE),
        ("linked chapter", UNREADABLE),
        ("loop", UNREADABLE),
        ("pipe", UNREADABLE),
        ("folder", UNREADABLE),
    ],
)
def test_each_costs_only_itself(hostile: Graded, student: str, row: tuple[str, str]) -> None:
    assert hostile.row(student) == row


def test_work_of_others_behind_a_link_is_nobody_s(hostile: Graded) -> None:
    assert "Left out: submitted/linked student is a link to another place" in hostile.said
    assert "linked student" not in {row["student"] for row in hostile.table}


def test_everybody_has_a_page(hostile: Graded) -> None:
    assert "could not be made" not in hostile.said
    assert all(hostile.page(row["student"]) for row in hostile.table)


def test_the_secret_does_not_go_back_with_the_feedback(hostile: Graded) -> None:
    secret = (hostile.root / ".secret").read_text().strip()
    files = [path for path in (hostile.root / "feedback").rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if secret in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("sign", ["\\", "&#92;", "&#x5c;", "&bsol;"])
def test_a_formula_makes_no_link_however_it_is_spelt(sign: str) -> None:
    shown = safe_html(f"<div>${sign}href{{javascript:alert(1)}}{{x}}$ &amp;#92; &lt;script&gt;</div>")
    assert "\\ href" in shown
    assert "&amp;#92; &lt;script&gt;" in shown


@pytest.mark.parametrize("value", ["url(http://a/b)", "u\\72l(http://a/b)", "image-set('http://a/b')"])
def test_a_style_reaches_for_nothing(value: str) -> None:
    assert "http" not in safe_html(f'<b style="background: {value}">x</b>')
    assert "rgb" in safe_html('<b style="color: rgb(1, 2, 3)">x</b>')
