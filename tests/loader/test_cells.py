"""Files to cells, and the sentences for files that are not what they should be."""

from __future__ import annotations

import ast
import contextlib
import json
import random

import pytest
from IPython.core.inputtransformer2 import TransformerManager

from autograder.errors import NotebookError, SourceError
from gradwright import _cells
from gradwright._cells import Cell, definition_cells, names_bound, python_text, read_notebook, read_source


def cells_of(project, text):
    return read_source(project.write("solutions/01_tensor.py", text))


def test_a_source_is_split_on_its_marks(empty_project):
    cells = cells_of(
        empty_project,
        "# ---\n# jupyter: {}\n# ---\n\n# %% [markdown]\n# # Title\n#\n# text\n\n# %%\nx = 1\n\n"
        '# %% exercise="tensor-strides"\n\ndef f():\n\n    return 1\n\n# %% [markdown] widget="a" figure="b c"\n# z\n',
    )
    assert [(c.kind, c.text, c.marks, c.line, c.position) for c in cells] == [
        ("markdown", "# Title\n\ntext", {}, 6, 1),
        ("code", "x = 1", {}, 11, 2),
        ("code", "def f():\n\n    return 1", {"exercise": "tensor-strides"}, 15, 3),
        ("markdown", "z", {"widget": "a", "figure": "b c"}, 20, 4),
    ]
    assert not any(cell.added for cell in cells)


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("import os\n\n# %%\n", 1, "stands before the first cell"),
        ("# %%\n\n# %%exercise='x'\n", 3, "is not a cell mark"),
        ('# %% solution="x"\n', 1, "'solution' is not a mark; the marks are exercise, check"),
        ("# %% [code2]\n", 1, "[code2] is not a kind of cell"),
        ("# %% [markdown]\n# fine\nnot fine\n", 3, "'not fine' stands in a text cell"),
    ],
)
def test_a_wrong_source_names_file_and_line(empty_project, sentence, text, line, says):
    said = sentence(SourceError, cells_of, empty_project, text)
    assert said.startswith(f"{empty_project.root / 'solutions/01_tensor.py'}:{line}: ")
    assert says in said


def write_json(project, content, encoding="utf-8"):
    path = project.root / "some.ipynb"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding=encoding)
    return path


def raw(source, cell_type="code", **more):
    return {"cell_type": cell_type, "metadata": {}, "source": source, **more}


def test_a_notebook_with_a_byte_order_mark_and_both_kinds_of_source(empty_project):
    content = {"nbformat": 4, "cells": [raw(["a = 1\n", "b = 2\n"]), raw("text", "markdown", id="m")]}
    cells = read_notebook(write_json(empty_project, content, "utf-8-sig"))
    assert [(c.kind, c.text, c.id, c.position, c.added) for c in cells] == [
        ("code", "a = 1\nb = 2", "", 1, True),
        ("markdown", "text", "m", 2, True),
    ]


@pytest.mark.parametrize(
    ("metadata", "cell_id", "marks"),
    [
        ({"gradwright": {"role": "given", "name": "imports"}}, "x", {"given": "imports"}),
        ({"nbgrader": {"grade_id": "t-a", "solution": True, "grade": False}}, "x", {"exercise": "t-a"}),
        ({"nbgrader": {"grade_id": "t-a-check", "solution": False, "grade": True}}, "x", {"check": "t-a"}),
        ({"nbgrader": {"grade_id": "imports", "locked": True}}, "x", {"given": "imports"}),
        ({}, "t-b", {"exercise": "t-b"}),
        ("not even a dict", "t-b", {"exercise": "t-b"}),
        ({"nbgrader": {"solution": True}}, "x", {}),
    ],
)
def test_a_cell_is_known_by_metadata_then_grade_id_then_id(empty_project, metadata, cell_id, marks):
    content = {"nbformat": 4, "cells": [raw("x", id=cell_id) | {"metadata": metadata}]}
    (cell,) = read_notebook(write_json(empty_project, content), released={"t-b": {"exercise": "t-b"}})
    assert cell.marks == marks
    assert cell.added is (not marks)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{'a'", "some.ipynb is not valid JSON"),
        ("", "some.ipynb is not valid JSON"),
        ([1], "is JSON but not a notebook"),
        ({"cells": []}, "is JSON but not a notebook"),
        ({"nbformat": 3, "worksheets": []}, "in format 3"),
        ({"nbformat": 4, "cells": {}}, "without a list of cells"),
        ({"nbformat": 4, "cells": [raw("x"), raw(None)]}, "some.ipynb, cell 2 has no text"),
        ({"nbformat": 4, "cells": ["x"]}, "some.ipynb, cell 1 has no text"),
        ({"nbformat": 4, "cells": [raw("x", "heading")]}, "no known cell type"),
    ],
)
def test_a_file_that_is_no_notebook_gets_one_sentence(empty_project, sentence, content, says):
    said = sentence(NotebookError, read_notebook, write_json(empty_project, content))
    assert says in said
    assert "\n" not in said


def test_a_file_that_is_missing_or_not_text(empty_project, sentence):
    said = sentence(NotebookError, read_notebook, empty_project.root / "none.ipynb")
    assert said == ("none.ipynb cannot be read (No such file or directory): check the name and where you started")
    binary = write_json(empty_project, "\u00e9", "latin-1")
    assert sentence(NotebookError, read_notebook, binary).startswith(f"{binary.name} is not UTF-8 text: save it again")


def test_the_remedy_for_a_chapter_s_notebook_names_the_chapter(empty_project, sentence):
    said = sentence(NotebookError, read_notebook, empty_project.write("work/01_tensor/tensor.ipynb", "{"))
    assert said.startswith("work/01_tensor/tensor.ipynb is not valid JSON (")
    assert said.endswith("): `autograder fresh 01` puts an untouched copy beside it, to paste your cells into")


DEFINES = [
    "import os\nfrom math import pi as PI",
    "def f(x=3):\n    print(x)",
    "@property\ndef f(self): ...",
    "class A:\n    x = 1",
    "N = 3\nSIZES = (1, 2, *(3, 4))\nTABLE = {'a': [1, -2.5], 'b': {N}}",
    "width: int = 3\nheight: int",
    "TAU = 2 * 3.14\nhalf = TAU / 2\na, b = 1, 2",
    '"""A remark."""\nx = 1',
    "import numpy as np\nArray = np.ndarray\nShape = tuple[int, ...]",
    "square = lambda x: x * x",
    "%matplotlib inline\nimport numpy as np",
    "class A: ...\ndef f(self): ...\nA.f = f\nA.x, A.y = 1, 2",
]
RUNS = [
    "print(1)",
    "x = f(3)",
    "x.shape",
    "",
    "# only a comment",
    '"""Only a remark."""',
    "for i in range(3):\n    pass",
    "def f(): ...\nprint(f())",
    "y = x",
    "x.a = 3",
    "x[0] = 1",
    "x += 1",
    "a = [i for i in range(3)]",
    "%%time\ndef f(): ...",
    "%%bash\nls",
    "this is not Python",
    "%timeit f(3)",
    "x = 1\nassert x == 1",
    "with open('x') as f:\n    pass",
    "x = y = (z := 3)",
    "x = 'a\0b'",
]


@pytest.mark.parametrize("text", DEFINES)
def test_a_learners_cell_that_only_defines_is_part_of_the_module(empty_project, text):
    cells = read_notebook(empty_project.notebook("a.ipynb", text))
    assert definition_cells(cells) == cells


@pytest.mark.parametrize("text", RUNS)
def test_a_learners_cell_that_runs_code_is_not(empty_project, text):
    cells = read_notebook(empty_project.notebook("a.ipynb", text))
    assert definition_cells(cells) == []


def test_a_constant_may_use_what_definition_cells_before_it_made(empty_project):
    cells = read_notebook(
        empty_project.notebook(
            "a.ipynb", "late = N", ("given", "N = 3"), ("demo", "M = 4"), "a = N + 1", "b = a", "c = M"
        )
    )
    assert [cell.text for cell in definition_cells(cells)] == ["N = 3", "a = N + 1", "b = a"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("def f():\n    inner = 1\nclass A:\n    x = 1", {"f", "A"}),
        ("if True:\n    def f():\n        inner = 1\nelse:\n    import numpy as np", {"f", "np"}),
        ("try:\n    from a import b as c\nexcept ImportError:\n    c = d = None", {"c", "d"}),
        ("with open('x') as file:\n    for i in file:\n        import os.path", {"file", "i", "os"}),
        ("x.a = y[0] = (z := 1)", {"z"}),
        ("not Python", set()),
    ],
)
def test_what_a_cell_binds_stands_in_blocks_too(text, names):
    assert names_bound(text) == names


def test_released_cells_count_by_their_role_alone(empty_project):
    roles = ("exercise", "check", "given", "demo", "widget", "figure", "prose")
    cells = read_notebook(empty_project.notebook("a.ipynb", *((role, f"x = '{role}'") for role in roles)))
    assert [cell.text for cell in definition_cells(cells)] == ["x = 'exercise'", "x = 'given'"]


def test_magics_become_pass_and_keep_the_lines():
    text = "%load_ext x\nif True:\n    !ls -l 'a\nfiles = !ls\nf?\nx = (7\n% 4)\n"
    assert python_text(text) == "pass\nif True:\n    pass\npass\npass\nx = (7\n% 4)\n"
    with pytest.raises(SyntaxError):
        python_text("x = (")


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"%a{i}\n" for i in range(20_000)),
        "a = 1\n" * 20_000 + "".join(f"%a{i}\n" for i in range(20_000)),
        " " * 400_000 + "x = (",
        "'" + "\\'" * 200_000,
        '"""\\"' * 100_000,
        "?" * 300_000 + "x",
        "(\n" * 200_000,
    ],
    ids=["magics", "magics below code", "spaces", "quotes", "long strings", "questions", "brackets"],
)
def test_a_cell_is_parsed_twice_at_most(text, monkeypatch):
    kept, parsed = _cells._parse, []
    monkeypatch.setattr(_cells, "_parse", lambda plain: parsed.append(plain) or kept(plain))
    with contextlib.suppress(SyntaxError, MemoryError):
        python_text(text)
    assert 1 <= len(parsed) <= 2


def test_a_magic_stands_where_a_statement_begins():
    text = 'x = """\n%d items\n"""\ny = [1,  # (\n% 2, "\'",\n3]\nz = 7 \\\n% 4\n# f?\n%time (\nw = \'%\'\nf.g??\n  !ls'
    told = text.replace("%time (", "pass").replace("f.g??", "pass").replace("!ls", "pass")
    assert _cells._without_magics(text) == told


PIECES = [
    "x = 1", "def f(a):\n    %time a\n    return a", "@d\ndef h():\n    return 2", "if x:\n    !ls\nelse:\n    f?",
    "# it's?",
    "s = '''\n%time x\nf?\n'''", "z = (1\n  % 2)", "z = 10 \\\n  % 3", "z = {\n'a': 1  # it's?\n}", "s = '%d?' % 3",
    "%time f(x)", "!ls it's", "!ls \\\n  -l", "%timeit f(1, \\\n   2)", "x = !ls \\\n -a", "a, b = !ls", "x[0] = !ls",
    "d.a = %time f(1)", "d['='] = !ls", "n: int = %time 3", "?f", "f.g??", "*.txt?", "!!ls", "x += 1  # !ls",
]  # fmt: skip
NO_CELLS = ["x += !ls", "f(x = !ls)", "x = (", "x = y ? 1 : 2", "def f(:"]


def without_calls(text):
    """What is left of a cell where all that IPython does by itself is gone."""

    class Plain(ast.NodeTransformer):
        def visit(self, node):
            ours = isinstance(node, ast.Pass) or (
                isinstance(node, ast.stmt) and "get_ipython" in ast.unparse(node)[:40]
            )
            return None if ours and not hasattr(node, "body") else self.generic_visit(node)

    return ast.dump(Plain().visit(ast.parse(text)))


@pytest.mark.parametrize("seed", range(5))
def test_what_ipython_reads_is_read_alike(seed):
    """Lines of its own in any order, with any line ends, pasted from a block or a prompt: else the cell is lost."""
    draw = random.Random(seed)
    for _ in range(100):
        text = "\n".join(draw.sample(PIECES, 3))
        wanted = without_calls(TransformerManager().transform_cell(text))
        got = python_text(text)
        assert without_calls(got) == wanted, text
        assert got.count("\n") == text.count("\n")
        for end in ("\r\n", "\r"):
            assert without_calls(python_text(text.replace("\n", end))) == wanted, (text, end)
    assert python_text("/f 1\n,f a b\n;f a b") == "pass\npass\npass"
    for text in (
        "    def f():\n        return 1",
        "\n\tx = 1\n\ty = 2",
        ">>> def f():\n...     return 1\n...\n>>> x = 2",
    ):
        assert without_calls(python_text(text)) == without_calls(TransformerManager().transform_cell(text))


@pytest.mark.parametrize("text", NO_CELLS)
def test_what_ipython_cannot_read_is_not_read(text):
    for read in (python_text, lambda text: ast.parse(TransformerManager().transform_cell(text))):
        with pytest.raises(SyntaxError):
            read(text)


def test_a_long_sum_is_a_constant():
    assert definition_cells([long := Cell("code", "x = " + "1 + " * 900 + "1", added=True)]) == [long]


def test_each_cell_s_names_are_found_once(monkeypatch):
    kept, found = _cells.names_bound, []
    monkeypatch.setattr(_cells, "names_bound", lambda text: found.append(text) or kept(text))
    cells = [Cell("code", f"x{i} = {i}", added=True) for i in range(40)]
    assert len(definition_cells(cells)) == len(found) == 40
