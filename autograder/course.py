"""Where the project lies and which chapters it has."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from autograder.errors import BadInput, SetupError

__all__ = ["ROOT", "Chapter", "chapter", "chapters"]

ROOT = Path(__file__).resolve().parent.parent
FOLDER = re.compile(r"(\d\d)_([a-z]+)")


@dataclass(frozen=True, order=True)
class Chapter:
    """A chapter whose notebook is in course/."""

    number: int
    name: str

    @property
    def folder(self) -> str:
        """The folder's name, the same in course/, in work/ and in a submission: `02_autodiff`."""
        return f"{self.number:02d}_{self.name}"

    @property
    def notebook(self) -> str:
        """The notebook's name: `autodiff.ipynb`."""
        return f"{self.name}.ipynb"


def chapters(root: Path = ROOT) -> list[Chapter]:
    """The chapters in `root`/course, in order; SetupError where there is none."""
    folders = (path.parent.name for path in (root / "course").glob("*/*.ipynb") if FOLDER.fullmatch(path.parent.name))
    found = sorted({Chapter(int(name[:2]), name[3:]) for name in folders})
    if not found:
        raise SetupError(f"{root / 'course'} holds no chapter: run `make build` in a complete copy of the project.")
    return found


def chapter(wanted: str, root: Path = ROOT) -> Chapter:
    """The chapter that somebody calls 0, 00, start or 00_start; BadInput, with what there is, for anything else."""
    there = chapters(root)
    for one in there:
        if wanted in (str(one.number), f"{one.number:02d}", one.name, one.folder):
            return one
    names = ", ".join(one.folder for one in there)
    raise BadInput(f"there is no chapter {wanted!r}: choose one of {names}, by number or by name.")
