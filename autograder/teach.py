"""An instructor's class folder: made when none is named and the default one is missing, then graded."""

from __future__ import annotations

from pathlib import Path

from autograder.course import ROOT, chapters

__all__ = ["grade"]


def grade(named: str | None, root: Path = ROOT) -> int:
    """Grade the class in a folder, or in autograder/class, where a sample class is made first if nothing is there.

    Returns 0. Raises BadInput for a folder that is no class.
    """
    from autograder.build.sample import add_sources, make_sample
    from autograder.grade.classroom import open_classroom

    folder = Path(named) if named else root / "autograder" / "class"
    if not named and not folder.exists():
        print(make_sample(folder, chapters()), flush=True)
    add_sources(open_classroom(folder).source)
    from autograder.grade.run import grade_class  # it brings nbgrader, and a mistyped folder should not wait for that

    return grade_class(folder)
