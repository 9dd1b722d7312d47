"""Modules from cells: what runs, and where tracebacks and `inspect` point."""

from __future__ import annotations

import inspect
import sys
import traceback
from pathlib import Path

import pytest

from autograder.errors import NotBuiltYet, NotebookError
from gradwright._loader import definition_text, load_module, missing_names

NAME = "gradwright.chapters.tensor"
PLACE = "work/01_tensor/tensor.ipynb"

HELPER = ("given", "def helper(x):\n    return 1 / x")
MODEL = (
    "exercise",
    '''
    import dataclasses

    @dataclasses.dataclass
    class Model:
        """A model."""

        width: int = 3

        class Inner:
            depth = 1

        def run(self):
            return helper(0)
    ''',
)


@pytest.fixture
def load(empty_project):
    def load_cells(*cells):
        return load_module(NAME, empty_project.notebook(PLACE, *cells))

    return load_cells


def test_only_definition_cells_run_in_order(load):
    module = load(
        ("given", "x = [1]"), ("demo", "x.append(2)"), ("check", "1 / 0"), "y = 4", ("exercise", "x.append(3)")
    )
    assert (module.x, module.y) == ([1, 3], 4)
    assert sys.modules[NAME] is module
    assert module.__name__ == NAME


def test_a_future_import_reaches_the_cells_after_it(load):
    module = load(("given", "from __future__ import annotations"), ("exercise", "def f(x: Nowhere): ..."))
    assert module.f.__annotations__ == {"x": "Nowhere"}


def test_annotations_are_evaluated_without_it(load, sentence):
    assert "NameError: name 'Nowhere'" in sentence(NotebookError, load, ("exercise", "def f(x: Nowhere): ..."))


def test_a_traceback_names_notebook_and_cell(load):
    module = load("# %%", ("demo", ""), HELPER, ("prose", "text"), MODEL)
    with pytest.raises(ZeroDivisionError) as caught:
        module.Model().run()
    steps = traceback.extract_tb(caught.tb)[1:]
    assert [(step.filename, step.lineno, step.line) for step in steps] == [
        (f"{PLACE}, cell 5", 13, "return helper(0)"),
        (f"{PLACE}, cell 3", 2, "return 1 / x"),
    ]


def test_inspect_shows_functions_and_classes_of_a_notebook(load):
    module = load(("demo", "print()"), HELPER, "# just\n# a\n# remark", "%matplotlib inline\nimport os", MODEL)
    assert inspect.getsource(module.helper) == "def helper(x):\n    return 1 / x\n"
    assert inspect.getsource(module.Model).startswith('@dataclasses.dataclass\nclass Model:\n    """A model."""\n')
    assert inspect.getsource(module.Model).endswith("return helper(0)\n")
    assert inspect.getsource(module.Model.Inner) == "    class Inner:\n        depth = 1\n"
    assert inspect.getsource(module.Model.run).startswith("    def run(self):")


def test_a_class_from_elsewhere_keeps_its_own_lines(load):
    before = inspect.getsource(traceback.TracebackException)
    module = load(("given", "\n\nfrom traceback import TracebackException"))
    assert inspect.getsource(module.TracebackException) == before


def test_a_source_keeps_its_own_file_and_lines(project):
    path = project.root / "solutions/01_tensor.py"
    module = load_module(NAME, path)
    with pytest.raises(TypeError) as caught:
        module.double(None)
    (step,) = traceback.extract_tb(caught.tb)[1:]
    assert (step.filename, step.line) == (str(path), "return x + x")
    assert path.read_text().splitlines()[step.lineno - 1] == "    return x + x"
    assert inspect.getsource(module.Tensor.Storage) == "    class Storage:\n        pass\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "x = 1\ny = x / 0",
            f"{PLACE}, cell 2, line 2 cannot be run: ZeroDivisionError: division by zero; mend that cell",
        ),
        ("def f(:\n    pass", f"{PLACE}, cell 2, line 1 cannot be run: SyntaxError: "),
        ("def f():\nreturn 1", f"{PLACE}, cell 2, line 2 cannot be run: IndentationError: "),
        ("x = 1\nreturn x", f"{PLACE}, cell 2, line 2 cannot be run: SyntaxError: 'return' outside function"),
        ("def f():\n    1 / 0\n\nf()", f"{PLACE}, cell 2, line 2 cannot be run: ZeroDivisionError"),
        ("exit(3)", f"{PLACE}, cell 2, line 1 cannot be run: SystemExit: 3"),
        ("import gone_for_good", f"{PLACE}, cell 2, line 1 cannot be run: ModuleNotFoundError: No module named"),
        ("x = '\0'", f"{PLACE}, cell 2, line 1 cannot be run: "),
    ],
)
def test_a_cell_that_cannot_be_run_is_named(load, text, says):
    before = sys.modules.get(NAME)
    with pytest.raises(NotebookError) as caught:
        load(("prose", "text"), ("exercise", text))
    assert str(caught.value).startswith(says)
    assert caught.value.__cause__ is not None
    assert sys.modules.get(NAME) is before


def test_a_line_of_a_source_that_cannot_be_run_is_named(empty_project, sentence):
    path = empty_project.source(1, '# %% given="a"\nx = 1\n\n# %% exercise="b"\ny = 2\nz = nowhere\n')
    said = sentence(NotebookError, load_module, NAME, path)
    assert said.startswith("solutions/01_tensor.py, line 6 cannot be run: NameError: name 'nowhere' is not defined;")


MIXED = "def helper(x):\n    return x\n\nprint(helper(3))"
SKIPPED = "cell 1 defines helper but also runs code, so it is not part of the module"


def test_a_name_from_a_skipped_cell_is_explained_where_it_is_missed(load, sentence):
    assert SKIPPED in sentence(NotebookError, load, MIXED, ("exercise", "x = helper(3)"))


def test_a_name_from_a_skipped_cell_is_explained_to_who_asks_the_module(load, sentence):
    module = load(MIXED, ("exercise", "def f():\n    return helper(1)"))
    assert SKIPPED in sentence(AttributeError, lambda: module.helper)
    assert [SKIPPED in text for text in missing_names(module_path(module))] == [True]
    assert not hasattr(module, "something_else")


def test_nothing_is_missed_when_another_cell_defines_it_or_nobody_reads_it(load):
    assert missing_names(module_path(load(MIXED, "def helper(x): ...", ("exercise", "def f(): helper(1)")))) == []
    assert missing_names(module_path(load(MIXED, ("exercise", "def f(): ...")))) == []


def module_path(module):
    return Path(module.__file__)


def test_a_chapter_that_asks_itself_is_told(load, sentence):
    text = "import gradwright.chapters.tensor as me\n\ndef f(): ...\n\nme.f\nme.g"
    said = sentence(NotebookError, load, ("exercise", text))
    assert "line 6 cannot be run: NotBuiltYet: gradwright.chapters.tensor asks itself for g" in said
    assert "inside a chapter its names need no import" in said


def test_a_chapter_that_imports_itself_is_told(project, sentence):
    project.source(1, '# %% given="a"\nfrom gradwright.chapters.tensor import tensor\n')
    said = sentence(NotebookError, __import__, NAME)
    assert said.startswith("solutions/01_tensor.py, line 2 cannot be run: NotBuiltYet: gradwright.chapters.tensor asks")
    project.source(1, '# %% given="a"\nfrom gradwright import tensor\n')
    assert "what you are about to build in chapter 01 tensor" in sentence(NotebookError, __import__, NAME)
    project.source(1, '# %% given="a"\nimport gradwright.chapters.autodiff\n')
    assert "comes later: it is built in chapter 02 autodiff" in sentence(NotebookError, __import__, NAME)


def test_a_cell_without_metadata_is_known_by_its_id(empty_project):
    released = empty_project.notebook("course/01_tensor/tensor.ipynb", ("given", "x = list()"), ("demo", "x = 3"))
    bare = released.read_text().replace('"gradwright"', '"dropped"')
    assert load_module(NAME, empty_project.write(PLACE, bare)).x == []


def test_the_definition_text_is_what_the_module_is_made_of(empty_project):
    path = empty_project.notebook(PLACE, ("given", "x = 1"), ("demo", "x = 2"))
    before = definition_text(path)
    assert definition_text(empty_project.notebook(PLACE, ("given", "x = 1"), ("demo", "x = 3"))) == before
    assert definition_text(empty_project.notebook(PLACE, ("given", "x = 4"), ("demo", "x = 2"))) != before


def test_an_out_of_reach_name_inside_a_cell_keeps_its_own_sentence(project, sentence):
    path = project.notebook(PLACE, ("exercise", "from gradwright.nn import MSELoss"))
    with pytest.raises(NotebookError) as caught:
        load_module(NAME, path)
    assert isinstance(caught.value.__cause__, NotBuiltYet)
    assert "chapter 04 losses, which is still to come in this edition" in str(caught.value)
