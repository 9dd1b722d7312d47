"""What a wheel holds: the two packages, and nothing of a class, of a learner or of the answers."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from autograder.course import ROOT

PLANTED = [
    "autograder/class/submitted/sample-1/00_start/start.ipynb",
    "autograder/class/gradebook.db",
    "autograder/class/grades.csv",
    "work/00_start/start.ipynb",
    "solutions/00_start.py",
    "solutions/mistakes/00_start.py",
    "tests/test_planted.py",
    "course/00_start/start.ipynb",
    "course/data/digits.npz",
]


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The files of a wheel built from a copy in which nothing is ignored and everything that must stay out is there."""
    root = tmp_path_factory.mktemp("project")
    junk = shutil.ignore_patterns("__pycache__", "class", ".ipynb_checkpoints")
    for name in ["autograder", "course/gradwright"]:
        shutil.copytree(ROOT / name, root / name, ignore=junk)
    for name in ["pyproject.toml", "LICENSE", "README.md"]:
        shutil.copy(ROOT / name, root)
    for name in PLANTED:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("planted")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(root / "dist")]
    subprocess.run(build, cwd=root, check=True, capture_output=True)
    (wheel,) = (root / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def test_the_wheel_holds_two_packages(packed: list[str]) -> None:
    tops = {name.split("/")[0] for name in packed}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"autograder", "gradwright"}
    assert len(tops) == 3


def test_the_wheel_holds_what_the_packages_need(packed: list[str]) -> None:
    modules = [
        path.relative_to(ROOT / parent).as_posix()
        for parent, name in [("course", "gradwright"), (".", "autograder")]
        for path in (ROOT / parent / name).rglob("*")
        if path.suffix in {".py", ".npz", ".json", ".mplstyle"} and "class" not in path.relative_to(ROOT).parts
    ]
    assert "autograder/bootstrap.py" in modules
    assert set(modules) <= set(packed)


def test_no_class_no_answers_no_tests_and_no_notebooks_are_packed(packed: list[str]) -> None:
    unwanted = {"class", "solutions", "tests", "work", "data"}
    found = [name for name in packed if unwanted & set(Path(name).parts) or name.endswith((".ipynb", ".db", ".csv"))]
    assert found == []
