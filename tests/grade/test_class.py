"""One class of every kind of submission, graded by the command itself: nobody loses points, nobody stops it."""

from __future__ import annotations

import copy
import re
from pathlib import Path

import pytest

from autograder.configure import configure  # noqa: F401 - what a class's nbgrader_config.py imports
from autograder.grade.classroom import CONFIG

from .conftest import (
    START,
    Graded,
    Notebook,
    cell,
    code,
    grade,
    hand_in,
    markdown,
    once,
    stripped,
    with_answer,
    with_cells,
    without,
)

NOISY_DOT = """
logger.warning("from a handler that holds the old stderr")
print("on stderr", file=stderr)
warnings.warn("from an answer")
np.array([1.0]) / np.array([0.0])
if len(a) != len(b):
    raise ValueError(f"{len(a)} and {len(b)}")
return a @ b
"""
NOISY_SETUP = """import logging, sys, warnings
logging.basicConfig()
logger, stderr = logging.getLogger("learner"), sys.stderr
warnings.warn("from a definition cell")
"""
SCRIPT = (
    "<script>alert('run')</script><img src=x onerror=alert(2)>[a](javascript:alert(3)) $\\href{javascript:alert(4)}{x}$"
)
SHOWS_SCRIPT = """from IPython.display import HTML, Javascript, Markdown, SVG, display
display(HTML("<script>alert(1)</script><b onclick=alert(1)>html</b>"), Javascript("alert(2)"),
        Markdown("<script>alert(3)</script>"), SVG("<svg xmlns='http://www.w3.org/2000/svg' onload='alert(4)'/>"))
print("<script>alert(5)</script>")"""


def indented(body: str) -> str:
    return "def dot(a, b):\n" + "\n".join(f"    {line}" for line in body.strip().splitlines())


def submissions(released: Notebook, solution: Notebook) -> dict[str, Notebook | bytes]:
    """Student to what is handed in as start.ipynb."""
    doubled = copy.deepcopy(solution)
    for twice in ("start-dot-loop", "start-dot-loop-check", "start-dot-check", "imports"):
        doubled["cells"].append(copy.deepcopy(cell(doubled, twice)) | {"id": f"{twice}-2"})
    rewritten = copy.deepcopy(released)
    cell(rewritten, "start-dot-check")["source"] = "pass"
    cell(rewritten, "start-dot-loop-check")["metadata"]["nbgrader"] |= {"points": 100}
    cell(rewritten, "start-dot-loop-check")["source"] = "100.0"
    endless = with_answer(solution, "start-dot-loop", "def dot_loop(a, b):\n    while True:\n        pass")
    stubborn = (
        "def dot(a, b):\n    while True:\n        try:\n            while True:\n                pass\n"
        "        except BaseException:\n            pass"
    )
    return {
        "right": solution,
        "=1+1": released,
        "noisy": with_cells(with_answer(solution, "start-dot", indented(NOISY_DOT)), code(NOISY_SETUP)),
        "doubled": doubled,
        "stripped": stripped(solution),
        "Lee, Anna": without(solution, "start-dot-check", "start-dot-loop-check", "imports"),
        "rewritten": with_tags(rewritten, "skip-execution"),
        "shadowed": with_cells(released, code("def check(*arguments):\n    pass")),
        "broken": b'{"cells": [',
        "text": b"not a notebook",
        "latin": '{"cells": "\u00e9"'.encode("latin-1"),
        "crash": with_answer(solution, "start-dot-loop", "import os\ndef dot_loop(a, b):\n    os._exit(1)"),
        "endless": endless,
        "stubborn": with_answer(solution, "start-dot", stubborn),
        "scripts": with_cells(solution, markdown(SCRIPT), code(SHOWS_SCRIPT)),
    }


def with_tags(notebook: Notebook, tag: str) -> Notebook:
    made = copy.deepcopy(notebook)
    for each in made["cells"]:
        each["metadata"]["tags"] = [tag]
    return made


@pytest.fixture(scope="session")
def graded(tmp_path_factory: pytest.TempPathFactory, released: Notebook, solution: Notebook) -> Graded:
    def make(root: Path) -> None:
        for student, content in submissions(released, solution).items():
            hand_in(root, student, content)
        hand_in(root, "renamed", solution, "start (1).ipynb")
        hand_in(root, "two files", solution, "mine.ipynb")
        hand_in(root, "two files", released, "other.ipynb")
        (root / "submitted" / "linked" / START.folder).mkdir(parents=True)
        (root / "submitted/linked" / START.folder / "start.ipynb").symlink_to(
            root / "submitted/right/00_start/start.ipynb"
        )
        (root / "submitted" / "absent").mkdir()
        (root / "submitted" / "lost" / "0_start").mkdir(parents=True)
        (root / "submitted" / "flat").mkdir()
        (root / "submitted" / "flat" / START.folder).write_text("a file")
        (root / "submitted" / "flat" / "start.ipynb").write_text("beside")
        (root / "nbgrader_config.py").write_text(CONFIG.replace("timeout = 10", "timeout = 2"))
        (root / "said.txt").write_text(grade(root).said)

    root = once(tmp_path_factory, "every-kind", make)
    return Graded(root, (root / "said.txt").read_text())


FULL, HALF, NOTHING, NO_SCORE = "4", "2", "0", ""


@pytest.mark.parametrize(
    ("student", "score", "status"),
    [
        ("right", FULL, "graded"),
        ("noisy", FULL, "graded"),
        ("doubled", FULL, "graded"),
        ("renamed", FULL, "graded"),
        ("stripped", FULL, "graded"),
        ("rewritten", NOTHING, "graded"),
        ("shadowed", NOTHING, "graded"),
        ("crash", HALF, "graded"),
        ("endless", HALF, "graded"),
        ("stubborn", HALF, "graded"),
        ("scripts", FULL, "graded"),
        ("Lee, Anna", FULL, "graded"),
        ("'=1+1", NOTHING, "graded"),
        ("broken", NO_SCORE, "unreadable"),
        ("text", NO_SCORE, "unreadable"),
        ("latin", NO_SCORE, "unreadable"),
        ("two files", NO_SCORE, "unreadable"),
        ("linked", NO_SCORE, "unreadable"),
        ("absent", NO_SCORE, "missing"),
        ("lost", NO_SCORE, "missing"),
        ("flat", NO_SCORE, "missing"),
    ],
)
def test_everybody_gets_what_is_theirs(graded: Graded, student: str, score: str, status: str) -> None:
    assert graded.row(student) == (score, status)


def test_table_is_exact(graded: Graded) -> None:
    lines = (graded.root / "grades.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "student,chapter,score,max_score,status"
    assert lines[1] == "'=1+1,00_start,0,4,graded"
    assert '"Lee, Anna",00_start,4,4,graded' in lines
    assert "absent,00_start,,4,missing" in lines
    assert len(lines) == 1 + 21


def test_a_line_for_each_submission_and_one_for_the_level(graded: Graded) -> None:
    assert "Isolation: bubblewrap." in graded.said or "Isolation: none (" in graded.said
    assert len(re.findall(r"^\[ ?\d+/18\] ", graded.said, re.MULTILINE)) == 18
    assert "renamed  00_start  4/4" in graded.said
    assert "(found as start (1).ipynb)" in graded.said


@pytest.mark.parametrize(
    "sentence",
    [
        "submitted/lost/0_start is no chapter: rename it to 00_start.",
        "submitted/flat/00_start is a file where a folder belongs",
        "submitted/flat/start.ipynb lies beside the chapters' folders",
        "broken  00_start  unreadable: start.ipynb is not valid JSON",
        "two files  00_start  unreadable: submitted/two files/00_start holds mine.ipynb, other.ipynb and none is",
        "linked  00_start  unreadable: submitted/linked/00_start/start.ipynb is a link to another place",
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(graded: Graded, sentence: str) -> None:
    assert sentence in graded.said


def test_what_has_no_score_is_said_again_at_the_end(graded: Graded) -> None:
    lines = graded.said.splitlines()
    end = lines[max(i for i, line in enumerate(lines) if line.startswith("[")) + 1 :]
    unread = {row["student"] for row in graded.table if row["status"] == "unreadable"}
    assert {line.removeprefix("No score: ").split("  ")[0] for line in end if line.startswith("No score: ")} == unread
    assert sum(line.startswith("Left out: ") for line in end) == graded.said.count("Left out: ") == 3


def test_official_cells_are_there_once_and_as_they_were(graded: Graded, released: Notebook) -> None:
    official = {c["id"]: c for c in released["cells"] if c["metadata"].get("nbgrader", {}).get("locked")}
    for student in ("doubled", "stripped", "Lee, Anna", "rewritten"):
        cells = graded.notebook(student)["cells"]
        for cell_id, wanted in official.items():
            (found,) = [c for c in cells if c["id"] == cell_id]
            assert found["source"] == "".join(wanted["source"]), (student, cell_id)
            assert found["metadata"]["nbgrader"] == wanted["metadata"]["nbgrader"], (student, cell_id)


def test_feedback_shows_the_verdict(graded: Graded) -> None:
    assert "right: 17 of 17 cases" in graded.page("right")
    assert "not implemented yet" in graded.page("=1+1")
    assert "it ended the Python process" in graded.page("crash")
    assert "border-left:" in graded.page("right")  # the verdict's own look survives the cleaning
    assert "is not valid JSON" in graded.page("broken")
    assert "this is not a zero" in graded.page("broken")


def test_nothing_of_a_learner_runs_on_the_page(graded: Graded) -> None:
    page = graded.page("scripts")
    body = page[page.index('<div class="container">') :]
    assert "<script" not in body
    assert not re.search(r"<[^>]*\son\w+\s*=", body)
    assert not re.search(r"""(href|src)\s*=\s*["']?\s*javascript:""", body, re.IGNORECASE)
    assert "\\href" not in body
    assert "&lt;script&gt;alert(5)" in body  # printed text is shown as text


def test_a_notebook_for_the_formgrader_holds_text_and_pixels_only(graded: Graded) -> None:
    kinds = {
        (kind, c["metadata"].get("gradwright", {}).get("role"))
        for student in ("scripts", "right")
        for c in graded.notebook(student)["cells"]
        for output in c.get("outputs", ())
        for kind in output.get("data", ())
    }
    assert kinds <= {("text/plain", None), ("text/plain", "check"), ("text/html", "check"), ("image/png", None)}
