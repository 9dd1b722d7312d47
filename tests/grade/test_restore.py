"""A submission's text in the official cells, whatever has become of the cells on the way."""

from __future__ import annotations

import copy

import pytest

from autograder.grade.restore import restore

from .conftest import Notebook, cell, markdown, stripped, with_answer, without

GIVEN = ("start-dot-loop-check", "start-dot-check", "imports")


def joined(notebook: Notebook) -> Notebook:
    """As it is in memory: the lines of each cell as one text."""
    made = copy.deepcopy(notebook)
    for each in made["cells"]:
        each["source"] = "".join(each["source"])
    return made


@pytest.fixture
def official(released: Notebook) -> Notebook:
    return joined(released)


@pytest.fixture
def solved(solution: Notebook) -> Notebook:
    return joined(solution)


def ids(notebook: Notebook) -> list[str]:
    return [each["id"] for each in notebook["cells"]]


def test_an_untouched_notebook_comes_back_as_it_was(official: Notebook) -> None:
    made = restore(official["cells"], official)
    assert [each["source"] for each in made["cells"]] == [each["source"] for each in official["cells"]]
    assert ids(made) == ids(official)


def test_answers_stay_and_nothing_else_does(solved: Notebook, official: Notebook) -> None:
    for each in solved["cells"]:
        each["metadata"]["tags"] = ["skip-execution"]
        if each["cell_type"] == "code":
            each["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "forged"}]
    made = restore(solved["cells"], official)
    for each, wanted in zip(made["cells"], official["cells"], strict=True):
        assert each.get("outputs", []) == []
        assert each["metadata"].get("tags") == wanted["metadata"].get("tags")
        if each["id"] in ("start-dot", "start-dot-loop"):
            assert each["source"] == cell(solved, each["id"])["source"]


def test_lost_metadata_and_ids_are_found_by_text_and_by_name(solved: Notebook, official: Notebook) -> None:
    assert ids(restore(stripped(solved)["cells"], official)) == ids(official)


def test_lost_metadata_is_found_by_id(solved: Notebook, official: Notebook) -> None:
    for each in solved["cells"]:
        each["metadata"] = {}
        if each["cell_type"] == "code":
            each["source"] += "\n# changed"
    made = restore(solved["cells"], official)
    assert ids(made) == ids(official)
    assert [cell(made, one)["source"] for one in GIVEN] == [cell(official, one)["source"] for one in GIVEN]


@pytest.mark.parametrize("gone", GIVEN)
def test_a_deleted_cell_is_put_back_in_its_place(solved: Notebook, official: Notebook, gone: str) -> None:
    assert ids(restore(without(solved, gone)["cells"], official)) == ids(official)


def test_a_deleted_check_follows_an_answer_that_was_moved(solved: Notebook, official: Notebook) -> None:
    moved = without(solved, "start-dot", "start-dot-check")
    moved["cells"].append(cell(solved, "start-dot"))
    assert ids(restore(moved["cells"], official))[-2:] == ["start-dot", "start-dot-check"]


def test_doubled_cells_are_there_once(solved: Notebook, official: Notebook) -> None:
    twice = copy.deepcopy(solved["cells"] + solved["cells"])
    made = restore(twice, official)
    for one in GIVEN:
        assert ids(made).count(one) == 1
    answers = [each for each in made["cells"] if each["source"] == cell(solved, "start-dot")["source"]]
    assert [("nbgrader" in each["metadata"]) for each in answers] == [False, True]  # both run, the last one counts
    assert len(set(ids(made))) == len(made["cells"])


def test_points_and_tests_come_from_the_official_notebook(solved: Notebook, official: Notebook) -> None:
    for one in GIVEN:
        changed = cell(solved, one)
        changed["source"] = "100.0"
        changed["metadata"]["nbgrader"] |= {"points": 100, "locked": False, "checksum": "0"}
    made = restore(solved["cells"], official)
    assert [cell(made, one) for one in GIVEN] == [cell(official, one) for one in GIVEN]


def test_a_check_turned_to_markdown_is_code_again(solved: Notebook, official: Notebook) -> None:
    cell(solved, "start-dot-check")["cell_type"] = "markdown"
    cell(solved, "start-dot")["cell_type"] = "raw"
    made = restore(solved["cells"], official)
    assert cell(made, "start-dot-check") == cell(official, "start-dot-check")
    assert cell(made, "start-dot")["cell_type"] == "code"


def test_metadata_of_any_shape_is_survived(solved: Notebook, official: Notebook) -> None:
    odd = [None, 3, [], {"nbgrader": None}, {"nbgrader": {"grade_id": ["a"]}}, {"gradwright": {"role": {}, "name": 1}}]
    cells = [dict(each, metadata=odd[i % len(odd)]) for i, each in enumerate(solved["cells"])]
    cells.append(markdown("mine") | {"id": ["no", "id"], "attachments": {"a.png": {"text/html": "<script>"}, "b": {}}})
    made = restore(cells, official)
    assert ids(made)[:-1] == ids(official)
    assert "attachments" not in made["cells"][-1]


def test_a_manually_graded_cell_that_an_instructor_added(solved: Notebook, official: Notebook) -> None:
    own = {"grade": True, "grade_id": "essay", "locked": False, "points": 3, "schema_version": 3, "solution": True}
    essay = markdown("Your answer here.") | {"id": "essay", "metadata": {"nbgrader": own | {"task": False}}}
    official["cells"].append(essay)
    assert restore(solved["cells"], official)["cells"][-1] == essay  # deleted: put back, unanswered
    written = restore([*solved["cells"], essay | {"source": "Because."}], official)["cells"][-1]
    assert (written["source"], written["metadata"]) == ("Because.", essay["metadata"])


def test_no_manually_graded_cell_is_released(official: Notebook) -> None:
    marks = [each["metadata"].get("nbgrader", {}) for each in official["cells"]]
    assert not [one for one in marks if one.get("task") or (one.get("grade") and one.get("solution"))]


def test_a_cell_that_is_not_python_is_survived(official: Notebook) -> None:
    broken = with_answer(official, "start-dot", "def dot(a, b:\n\x00")
    assert cell(restore(broken["cells"], official), "start-dot")["source"] == "def dot(a, b:\n\x00"


def test_nothing_that_was_handed_in_is_parsed(
    solved: Notebook, official: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python takes minutes for some texts, and here the whole class would wait."""

    def refused(*arguments: object, **options: object) -> None:
        raise AssertionError("parsed")

    cell(solved, "start-dot")["source"] += "\nx = (  # no Python any more"
    monkeypatch.setattr("builtins.compile", refused)
    made = restore(stripped(solved)["cells"], official)
    monkeypatch.undo()
    assert ids(made) == ids(official)
    assert "no Python any more" in cell(made, "start-dot")["source"]
