"""An instructor's class folder: made when none is named and the default one is missing, then graded."""

from __future__ import annotations

import re
import signal
import sys
from contextlib import suppress
from pathlib import Path

from autograder.course import ROOT, chapters

__all__ = ["grade"]


SAMPLE = re.compile(r"sample-\d+")


def grade(named: str | None, weak: bool = False, root: Path = ROOT) -> int:
    """Grade the class in a folder, or in autograder/class, where a sample class is made first if nothing is there.

    `weak`: submissions may run without isolation. Those of the sample class always may: they are ours.
    Returns 0. Raises BadInput for a folder that is no class, SetupError for one that cannot be
    written.
    """
    from autograder.build.sample import add_sources, make_sample
    from autograder.grade.classroom import open_classroom, writing_in

    folder = Path(named) if named else root / "autograder" / "class"
    with writing_in(folder):
        if not named and not folder.exists():
            print(make_sample(folder, chapters()), flush=True)
        add_sources(open_classroom(folder).source)
    from autograder.grade.run import grade_class  # it brings nbgrader, and a mistyped folder should not wait for that

    with suppress(ValueError):  # not the main thread: nobody can end it alone
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # a service that is stopped ends as by Ctrl-C
    try:
        return grade_class(folder, weak or (not named and all_samples(folder)))
    except KeyboardInterrupt:
        print("Stopped. What is graded stays graded; the same command goes on from there.", file=sys.stderr)
        raise


def all_samples(folder: Path) -> bool:
    """Whether nobody has handed in anything but the sample students."""
    submitted = folder / "submitted"
    return submitted.is_dir() and all(SAMPLE.fullmatch(student.name) for student in submitted.iterdir())
