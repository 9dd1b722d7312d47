"""Lengths: counted as the reader meets them, reported where they miss a target, refused above the maxima."""

from __future__ import annotations

import pytest

from autograder.build.size import code_lines, measure
from autograder.build.source import Chapter, SourceCell
from autograder.errors import SourceError


@pytest.fixture
def sized(tmp_path):
    def measure_cells(*cells: tuple[str, str]):
        made = tuple(SourceCell(role, "slug", text, 1 + 100 * n) for n, (role, text) in enumerate(cells))
        return measure(Chapter(tmp_path / "01_tiny.py", 1, "tiny", made, ()))

    return measure_cells


def lines(n: int) -> str:
    return "\n".join(f"x{i} = {i}" for i in range(n))


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("x = 1\n\n# why\ny = 2  # here\n", 2),
        ('def f():\n    """Words\n    and words."""\n    return 1', 2),
        ('class C:\n    """Words."""\n\n    def f(self):\n        """More."""\n        return """a\n\nb"""', 5),
        ("total = sum(\n    [1,\n     2],\n)", 4),
    ],
)
def test_code_lines(text, count):
    assert code_lines(text) == count


def test_figures_are_pictures_and_not_code(sized):
    size = sized(("prose", "# Title\n\none two three"), ("figure", lines(99)), ("demo", "x = 1"))
    assert (size.words, size.code_lines) == (5, 1)


def test_the_lines_of_the_module_are_those_of_answers_and_given_cells(sized):
    size = sized(("exercise", lines(5)), ("given", lines(3)), ("demo", lines(2)), ("check", lines(1)))
    assert (size.code_lines, size.module_lines) == (11, 8)


def test_a_chapter_in_balance_has_no_remarks(sized):
    assert sized(("prose", "word " * 40), ("demo", lines(4))).remarks == ()


def test_each_missed_target_is_one_sentence(sized):
    cells = [("prose", "## Long\n\n" + "word " * 2600), *[("demo", lines(30))] * 4, ("prose", "## Short\n\nword")]
    assert sized(*cells).remarks == (
        "section 'Long' has 2,602 words: aim at 2,500 at most",
        "line 400: more than 3 code cells without prose between",
        "21.7 words a line of code: aim at 8 to 16",
        "code cells have a median of 30 lines: aim at 6",
        "one code cell in ten has more than 25 lines of code: split some",
    )


def test_pictures_break_a_row_of_code(sized):
    cells = [("demo", "x = 1"), ("demo", "x = 1"), ("widget", "w()"), ("demo", "x = 1"), ("figure", "x"), ("demo", "x")]
    assert not [remark for remark in sized(*cells).remarks if "without prose" in remark]


def test_a_cell_above_the_maximum_is_refused(sized):
    with pytest.raises(SourceError, match="the cell has 46 lines of code: split it, 45 is the most") as caught:
        sized(("prose", "words"), ("demo", lines(46)))
    assert caught.value.line == 101
    assert sized(("given", lines(46))).code_lines == 46, "a folded cell may be longer"


@pytest.mark.parametrize("role", ["exercise", "check", "widget", "demo"])
def test_a_line_that_would_be_cut_off_is_refused(sized, role):
    assert sized((role, "x = 1\n" + "# " + "w" * 98)).code_lines == 1, "100 columns are shown"
    with pytest.raises(SourceError) as caught:
        sized(("prose", "words"), (role, "x = 1\n\n# " + "w" * 99))
    assert caught.value.line == 103
    wanted = f"a line of the {role} cell 'slug' has 101 columns: break it, JupyterLab shows 100"
    assert caught.value.message == wanted


def test_a_wide_line_of_a_cell_without_a_mark_is_refused(tmp_path):
    cells = (SourceCell("demo", "", "x = 1  # " + "w" * 92, 7),)
    with pytest.raises(SourceError, match="a line of a cell without a mark has 101 columns: break it") as caught:
        measure(Chapter(tmp_path / "01_tiny.py", 1, "tiny", cells, ()))
    assert caught.value.line == 7


def test_lines_that_nobody_reads_unfolded_may_be_wide(sized):
    assert sized(("given", "x = 1  # " + "w" * 111), ("figure", "x = 1  # " + "w" * 111)).code_lines == 1


def test_a_function_above_the_maximum_is_refused(sized):
    text = "x = 1\ndef f():\n" + "".join(f"    y = {n}\n" for n in range(60))
    with pytest.raises(SourceError, match="the function f has 61 lines: split it, 60 is the most") as caught:
        sized(("given", text))
    assert caught.value.line == 2
