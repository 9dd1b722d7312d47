"""Who may import whom: notebooks -> gradwright -> autograder.checks; build and grade use both, never each other."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = {"autograder": ROOT / "autograder", "gradwright": ROOT / "course" / "gradwright"}
OURS = tuple(PACKAGES)

ALLOWED = {
    "autograder.errors": (),
    "autograder.bootstrap": (),
    "autograder.writing": (),
    "autograder.course": ("autograder.errors", "gradwright._chapters"),
    "autograder.checks": ("autograder.checks", "autograder.errors"),
    "autograder.checks.exercises": ("autograder.checks.exercises", "autograder.checks.exercise", "autograder.errors"),
    "gradwright": ("gradwright", "autograder.checks", "autograder.errors"),
    "autograder.build": (
        *("autograder.build", "autograder.checks", "autograder.course", "autograder.errors"),
        "autograder.writing",
        "gradwright",
    ),
    "autograder.grade": (
        *("autograder.grade", "autograder.checks", "autograder.course", "autograder.errors"),
        "autograder.writing",
        "gradwright",
    ),
    "autograder.bench": (
        *("autograder.bench", "autograder.checks", "autograder.course", "autograder.errors"),
        "gradwright",
    ),
    "autograder": OURS,  # commands: whatever they call
}
"""Part of the tree, and what of ours it may import. The longest name that fits a module counts."""

OTHERS = {
    "autograder.errors": set(),
    "autograder.bootstrap": set(),
    "autograder.writing": set(),
    "autograder.course": set(),
    "autograder.checks": {"numpy"},
    "gradwright.widgets": {"numpy", "matplotlib", "ipywidgets", "IPython", "traitlets"},
    "gradwright": {"numpy"},
}
"""What else it may import, beside the standard library, where that is limited."""

TORCH = "autograder.build.references"


def module_name(path):
    package, folder = next((name, folder) for name, folder in PACKAGES.items() if path.is_relative_to(folder))
    parts = path.relative_to(folder).with_suffix("").parts
    return ".".join([package, *parts]).removesuffix(".__init__")


def is_module(name):
    package, *parts = name.split(".")
    place = PACKAGES[package].joinpath(*parts)
    return place.is_dir() or place.with_suffix(".py").is_file()


def imports(text):
    """Every module that a text imports anywhere, those of ours to the last module of the dotted name."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                assert node.level == 1, "a relative import stays in its folder"
                continue
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner.startswith(OURS) and is_module(inner) else node.module)
    return found


def inside(name, parts):
    return any(name == part or name.startswith(part + ".") for part in parts)


def rule_for(module, rules):
    fitting = [part for part in rules if inside(module, [part])]
    return rules[max(fitting, key=len)] if fitting else None


def ours(names):
    return {name for name in names if inside(name, OURS)}


def others(names):
    return {name.split(".")[0] for name in names} - set(OURS) - set(sys.stdlib_module_names)


MODULES = sorted(path for folder in PACKAGES.values() for path in folder.rglob("*.py") if "class" not in path.parts)
each_module = pytest.mark.parametrize("path", MODULES, ids=module_name)


@each_module
def test_a_module_imports_only_what_stands_below_it(path):
    allowed = rule_for(module_name(path), ALLOWED)
    assert {name for name in ours(imports(path.read_text())) if not inside(name, allowed)} == set()


@each_module
def test_a_module_imports_only_the_libraries_it_may_use(path):
    module, found = module_name(path), others(imports(path.read_text()))
    allowed = rule_for(module, OTHERS)
    assert allowed is None or found <= allowed
    assert "torch" not in found or module == TORCH


SOURCES = sorted((ROOT / "solutions").glob("[0-9][0-9]_*.py"))
NOTEBOOKS = sorted((ROOT / "course").glob("*/*.ipynb"))


def code_of(path):
    if path.suffix == ".py":
        return path.read_text()
    cells = json.loads(path.read_text())["cells"]
    return "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")


@pytest.mark.parametrize("path", [*SOURCES, *NOTEBOOKS], ids=lambda path: path.name)
def test_a_notebook_imports_check_and_gradwrights_public_names(path):
    found = ours(imports(code_of(path)))
    assert found <= {"autograder"} | {name for name in found if inside(name, ["gradwright"]) and "._" not in name}
    named = [
        alias.name
        for node in ast.walk(ast.parse(code_of(path)))
        if isinstance(node, ast.ImportFrom) and node.module == "autograder"
        for alias in node.names
    ]
    assert set(named) <= {"check"}


@pytest.mark.parametrize("path", sorted((ROOT / "solutions" / "mistakes").glob("*.py")), ids=lambda path: path.stem)
def test_mistakes_build_on_the_framework_alone(path):
    found = imports(path.read_text())
    assert {name for name in ours(found) if not inside(name, ["gradwright"])} == set()
    assert others(found) <= {"numpy"}


# The test itself


@pytest.mark.parametrize(
    "module, text",
    [
        ("autograder.checks.judge", "from autograder.build.answers import answers_to"),
        ("autograder.checks.judge", "import gradwright"),
        ("autograder.checks.judge", "def f():\n    from gradwright import _mine"),
        ("autograder.checks.exercises.00_start", "from autograder.checks.stored import read_reference"),
        ("autograder.build.source", "from autograder.grade import intake"),
        ("autograder.grade.intake", "import autograder.build.source as source"),
        ("autograder.grade.intake", "from autograder import build"),
        ("autograder.grade.intake", "from autograder import shell"),
        ("gradwright._mine", "from autograder.build import notebook"),
        ("autograder.errors", "from autograder import checks"),
    ],
)
def test_an_arrow_that_points_up_is_found(module, text):
    assert any(not inside(name, rule_for(module, ALLOWED)) for name in ours(imports(text)))


@pytest.mark.parametrize(
    "module, text",
    [
        ("autograder.checks.judge", "import torch"),
        ("autograder.checks.notebook", "from IPython.display import display"),
        ("gradwright._loader", "def f():\n    import nbformat"),
        ("gradwright", "import matplotlib.pyplot as plt"),
        ("autograder.errors", "import numpy"),
    ],
)
def test_a_library_out_of_place_is_found(module, text):
    assert not others(imports(text)) <= rule_for(module, OTHERS)
