"""Which chapters this copy of the project holds, for commands that take one."""

from __future__ import annotations

from pathlib import Path

from autograder.errors import BadInput, SetupError
from gradwright._chapters import CHAPTERS, ROOT, Chapter

__all__ = ["ROOT", "Chapter", "chapter", "chapters"]


def chapters(root: Path = ROOT) -> list[Chapter]:
    """The chapters whose notebook is in `root`/course, in order; SetupError where there is none."""
    found = [chapter for chapter in CHAPTERS if (root / "course" / chapter.place).is_file()]
    if not found:
        raise SetupError(f"{root / 'course'} holds no chapter: run `make build` in a complete copy of the project.")
    return found


def chapter(wanted: str, root: Path = ROOT) -> Chapter:
    """The chapter that somebody calls 0, 00, start or 00_start; BadInput, with what there is, for anything else."""
    there = chapters(root)
    for one in there:
        if one.is_called(wanted):
            return one
    names = ", ".join(one.folder for one in there)
    raise BadInput(f"there is no chapter {wanted!r}: choose one of {names}, by number or by name.")
