"""Every rule that an author can break, with file, line and remedy."""

from __future__ import annotations

import re

import pytest

from autograder.build.source import read_chapter
from autograder.errors import SourceError

DOUBLE = '''\
def double(x):
    """Twice x, by addition."""
    ### BEGIN SOLUTION
    secret_total = x + x
    return secret_total
    ### END SOLUTION
'''
CHECK = '# %% check="tiny-double"\ncheck("tiny-double", double)\n'

# name: what stands in the good chapter, what replaces it, the line that the error must name, what it must say
BROKEN = {
    "exercise without record": (
        'exercise="tiny-double"',
        'exercise="tiny-other"',
        '# %% exercise="tiny-other"',
        "'tiny-other' has no record: add one to autograder/checks/exercises/01_tiny.py",
    ),
    "exercise without check": (CHECK, "", '# %% exercise="tiny-double"', "has no check: put a cell"),
    "last exercise without check": (
        '# %% check="tiny-box"\ncheck("tiny-box", Box)\n',
        "",
        '# %% exercise="tiny-box"',
        "has no check: put a cell",
    ),
    "check twice": (CHECK, CHECK + "\n" + CHECK, ('# %% check="tiny-double"', 2), "does not follow its exercise"),
    "check of another exercise": (
        'check="tiny-double"',
        'check="tiny-box"',
        '# %% check="tiny-box"',
        "does not follow its exercise: put it below",
    ),
    "check of nothing": (
        'check="tiny-double"',
        'check="tiny-none"',
        '# %% check="tiny-none"',
        "does not follow its exercise",
    ),
    "check in front": (
        '# %% exercise="tiny-double"',
        CHECK + '\n# %% exercise="tiny-double"',
        '# %% check="tiny-double"',
        "does not follow its exercise",
    ),
    "check with another name": (
        'check("tiny-double", double)',
        'check("tiny-double", twice)',
        'check("tiny-double", twice)',
        'write check("tiny-double", double)',
    ),
    "check with a second line": (
        'check("tiny-double", double)',
        'check("tiny-double", double)\nprint(1)',
        'check("tiny-double", double)',
        "is not its one line",
    ),
    "answer without markers": (
        DOUBLE,
        "def double(x):\n    return x + x\n",
        "def double(x):",
        "has no answer: put it between ### BEGIN",
    ),
    "empty answer": (
        "    secret_total = x + x\n    return secret_total\n",
        "",
        "    ### END SOLUTION",
        "nothing stands between",
    ),
    "answer not closed": (
        "    return secret_total\n    ### END SOLUTION\n",
        "    return secret_total\n",
        "    ### BEGIN SOLUTION",
        "has no partner: close the answer by ### END SOLUTION",
    ),
    "answer not opened": (
        "    ### BEGIN SOLUTION\n    secret_total",
        "    secret_total",
        "    ### END SOLUTION",
        "has no partner",
    ),
    "answer in an answer": (
        "    secret_total = x + x\n",
        "    secret_total = x + x\n    ### BEGIN SOLUTION\n",
        ("    ### BEGIN SOLUTION", 2),
        "marks come in pairs",
    ),
    "misspelt marker": (
        "    ### END SOLUTION\n\n# %% [markdown]\n# Some help",
        "    # END SOLUTION\n\n# %% [markdown]\n# Some help",
        "    # END SOLUTION",
        "is no mark of an answer: write ### BEGIN SOLUTION or ### END SOLUTION",
    ),
    "answer outside an exercise": (
        "print(np.arange(3))",
        "### BEGIN SOLUTION\nprint(1)\n### END SOLUTION",
        "### BEGIN SOLUTION",
        "outside an exercise: mark its cell",
    ),
    "answer marker in prose": ("# Some help.", "# Look for BEGIN SOLUTION.", "# Look for BEGIN SOLUTION.", "outside"),
    "name not defined": (
        "def double(x):",
        "def twice(x):",
        "def twice(x):",
        "does not define double, which the record names",
    ),
    "id of another chapter": (
        'exercise="tiny-double"',
        'exercise="double"',
        '# %% exercise="double"',
        "call it 'tiny-double'",
    ),
    "malformed id": (
        'exercise="tiny-double"',
        'exercise="tiny_double"',
        '# %% exercise="tiny_double"',
        "use lower-case letters",
    ),
    "malformed slug": ('given="imports"', 'given="Im ports"', '# %% given="Im ports"', "use lower-case letters"),
    "slug too long": ('figure="ramp"', f'figure="{"a" * 70}"', f'# %% figure="{"a" * 70}"', "57 characters at most"),
    "empty slug": ('figure="ramp"', 'figure=""', '# %% figure=""', "cannot be the name of a cell"),
    "duplicate slug": (
        'figure="ramp"',
        'figure="imports"',
        '# %% figure="imports"',
        "'imports' is taken since line 12: choose another",
    ),
    "duplicate id": (
        'exercise="tiny-box"',
        'exercise="tiny-double"',
        ('# %% exercise="tiny-double"', 2),
        "is taken since line",
    ),
    "slug of a check cell": (
        'given="imports"',
        'given="tiny-double-check"',
        '# %% exercise="tiny-double"',
        "'tiny-double-check' is taken",
    ),
    "unknown mark": (
        'figure="ramp"',
        'picture="ramp"',
        '# %% picture="ramp"',
        "'picture' is not a mark; the marks are",
    ),
    "two marks": (
        'figure="ramp"',
        'figure="ramp" given="ramp"',
        '# %% figure="ramp" given="ramp"',
        "keep one mark",
    ),
    "marked Markdown": (
        "# %% [markdown]\n# Some",
        '# %% [markdown] given="help"\n# Some',
        '# %% [markdown] given="help"',
        "takes no mark",
    ),
    "raw cell": ("# %% [markdown]\n# Some", "# %% [raw]\n# Some", "# %% [raw]", "a raw cell has no place"),
    "mark in a string": (
        "print(np.arange(3))",
        'print("""\n# %% not a cell\n""")',
        "# %% not a cell",
        "a string holds a line",
    ),
    "indented mark in a string": (
        "print(np.arange(3))",
        'print("""\n  # %%\n""")',
        "  # %%",
        "join it from two pieces",
    ),
    "mark in an f-string": ("print(np.arange(3))", 'print(f"""\n# %% {four}\n""")', "# %% {four}", "a string holds"),
    "indented mark": ("four = double(2)", "if True:\n    # %%\n    four = 4", None, "jupytext reads other"),
    "magic": ("four = double(2)", "# %matplotlib inline\nfour = 4", ("# %%", 2), "jupytext reads other text"),
    "text before the first cell": (
        "# %% [markdown]\n# # 1",
        "# A header\n\n# %% [markdown]\n# # 1",
        "# A header",
        "begins",
    ),
    "wrong number in the heading": (
        "# ### Exercise 1.1: `double`",
        "# ### Exercise 1.2: `double`",
        "# ### Exercise 1.2: `double`",
        "write '### Exercise 1.1: `double`' here",
    ),
    "wrong points": (
        "# Easy, 5 minutes, 2 points.",
        "# Easy, 5 minutes, 3 points.",
        "# Easy, 5 minutes, 3 points.",
        "write 'Easy, 5 minutes, 2 points.' here",
    ),
    "no terms": ("# Easy, 5 minutes, 2 points.\n", "", "# ### Exercise 1.1: `double`", "write 'Easy, 5 minutes"),
    "no heading": (
        "# ### Exercise 1.1: `double`\n# Easy, 5 minutes, 2 points.\n",
        "# Now double.\n",
        "# Now double.",
        "write '### Ex",
    ),
    "no prose above": (
        '# %% exercise="tiny-double"',
        '# %%\nprint(1)\n\n# %% exercise="tiny-double"',
        '# %% exercise="tiny-double"',
        "no Markdown cell stands right above",
    ),
    "figure without words": ('"""A line that rises\nfrom 0 to 2."""\n', "", "plt.plot", "has no alternative text: say"),
    "figure with empty words": ('"""A line that rises\nfrom 0 to 2."""\n', '""" """\n', '""" """', "alternative text"),
    "widget with two lines": (
        "# %%\nfour = double(2)",
        '# %% widget="w"\nstride_explorer()\nprint(1)',
        "stride_explorer()",
        "is not one call",
    ),
    "widget with a variable": (
        "# %%\nfour = double(2)",
        '# %% widget="w"\nstride_explorer(base=np)',
        "stride_explorer(base=np)",
        "plain arguments",
    ),
    "broken syntax": ("four = double(2)", "four = double(2", "four = double(2", "is not valid Python"),
    "unknown escape": ("four = double(2)", 'four = "\\d"', 'four = "\\d"', "is not valid Python"),
    "block across cells": (
        "# %%\nprint(np",
        "if four:\n    pass\n# %%\n    print(np",
        "    print(np",
        "not valid Python",
    ),
    "empty cell": ("four = double(2)", "# nothing", "# nothing", "the cell holds no code"),
    "chapter of another number": (
        "gradwright.chapter(1)",
        "gradwright.chapter(2)",
        "import gradwright",
        "calls gradwright.chapter(1): add",
    ),
    "first cell is marked": (
        "# %%\nimport gradwright",
        '# %% given="g"\nimport gradwright',
        "import gradwright",
        "has no mark",
    ),
}


def line_of(text: str, wanted: str | tuple[str, int]) -> int:
    """The number of the line that begins so, or of the nth such line."""
    start, nth = (wanted, 1) if isinstance(wanted, str) else wanted
    whole = start if isinstance(wanted, tuple) else None
    hits = [n for n, line in enumerate(text.splitlines(), 1) if (line == whole if whole else line.startswith(start))]
    return hits[nth - 1]


def test_the_chapter_they_start_from_is_right(write, text, records):
    chapter = read_chapter(write(text), records)
    roles = [cell.role for cell in chapter.cells]
    assert roles.count("exercise") == roles.count("check") == 2
    assert [record.number for record in chapter.records] == ["1.1", "1.2"]


@pytest.mark.parametrize("name", BROKEN)
def test_broken_rule_names_file_line_and_remedy(name, write, text, records):
    old, new, line, words = BROKEN[name]
    assert text.count(old) >= 1
    path = write(text.replace(old, new, 1))
    with pytest.raises(SourceError) as caught:
        read_chapter(path, records)
    error = caught.value
    assert error.path == path
    assert words in error.message
    if line is not None:
        assert error.line == line_of(path.read_text(), line)
    assert str(error) == f"{path}:{error.line}: {error.message}"
    assert re.search(": |, ", error.message), "one sentence, in two halves: what is wrong, and what to do"
    assert "\n" not in error.message


def test_every_cell_begins_at_its_line(write, text, records):
    path = write(text)
    lines = path.read_text().splitlines()
    for cell in read_chapter(path, records).cells:
        shown = lines[cell.line - 1].removeprefix("# ") if cell.role == "prose" else lines[cell.line - 1]
        assert shown == cell.text.splitlines()[0]


def test_record_without_cell(write, text, records):
    path = write(text)
    with pytest.raises(SourceError, match="the record 'tiny-box-two' has no cell: add one") as caught:
        read_chapter(path, [*records, type(records[0])(**{**vars(records[0]), "id": "tiny-box-two"})])
    assert caught.value.line == len(path.read_text().splitlines())


def test_two_records_of_one_id(write, text, records):
    with pytest.raises(SourceError, match="two records of 'tiny-double'"):
        read_chapter(write(text), [*records, records[0]])


def test_records_in_another_order(write, text, records):
    with pytest.raises(SourceError, match="not 'tiny-double': give both one order"):
        read_chapter(write(text), records[::-1])


@pytest.mark.parametrize("name", ["tiny.py", "1_tiny.py", "01_Tiny.py", "01_two_words.py"])
def test_file_name(name, write, text, records):
    with pytest.raises(SourceError, match=f"rename '{name}'"):
        read_chapter(write(text, name), records)


def test_no_such_file(tmp_path, records):
    with pytest.raises(SourceError, match="there is no such source"):
        read_chapter(tmp_path / "01_tiny.py", records)


def test_not_utf8(tmp_path, text, records):
    path = tmp_path / "01_tiny.py"
    path.write_bytes(text.encode().replace(b"Some help.", b"Some h\xe9lp."))
    with pytest.raises(SourceError, match="not UTF-8: save it") as caught:
        read_chapter(path, records)
    assert caught.value.line == line_of(text, "# Some help.")


def test_methods_may_be_exercises(write, text, records):
    """A dotted name is a method: of a class in the cell, or assigned to a class from outside."""
    method = type(records[0])(**{**vars(records[1]), "name": "Box.get"})
    dotted = text.replace("`Box`", "`Box.get`").replace('check("tiny-box", Box)', 'check("tiny-box", Box.get)')
    assert read_chapter(write(dotted), [records[0], method]).records[1].name == "Box.get"
    outside = dotted.replace("class Box:", "class Other:").replace(
        '# %% check="tiny-box"', 'Box = Other\nBox.get = Other.get\n\n# %% check="tiny-box"'
    )
    assert read_chapter(write(outside), [records[0], method]).records[1].name == "Box.get"
