"""The real thing, once: what git has of the project, set up from nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from autograder.course import ROOT

PROGRAM = """
import pathlib, sys, autograder, gradwright, jupyterlab, nbgrader, numpy
print(pathlib.Path(gradwright.__file__).parent, pathlib.Path(autograder.__file__).parent, sys.prefix, sep="\\n")
"""


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the files that git knows."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    root = tmp_path_factory.mktemp("clean") / "gradwright"
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, root / name)
    return root


def run(clone: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in {"VIRTUAL_ENV", "PYTHONPATH"}}
    return subprocess.run(command, cwd=clone.parent, env=environment, capture_output=True, text=True)


@pytest.mark.network
def test_a_clean_clone_sets_itself_up_and_works(clone: Path) -> None:
    script = str(clone / "autograder" / "bootstrap.py")
    base = getattr(sys, "_base_executable", sys.executable)
    first = run(clone, base, script)
    assert first.returncode == 0, first.stderr
    assert first.stdout.endswith(f"Gradwright is set up in {clone / '.venv'}.\n")

    second = run(clone, base, script)
    assert (second.returncode, second.stdout) == (0, f"Gradwright is set up in {clone / '.venv'}.\n")

    python = str(clone / ".venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
    imported = run(clone, python, "-c", PROGRAM)
    assert imported.returncode == 0, imported.stderr
    assert imported.stdout.splitlines() == [
        str(clone / "course" / "gradwright"),
        str(clone / "autograder"),
        str(clone / ".venv"),
    ]
    assert run(clone, python, "-m", "pip", "check").returncode == 0

    helped = run(clone, base, script, "--help")
    assert helped.returncode == 0, helped.stderr
    assert helped.stdout.startswith("usage: autograder")
    assert not (clone / "work").exists()
