"""Every error a user of Gradwright can meet. Each message is one sentence that names the value and the remedy.

GradwrightError
  BadInput               something typed or passed in is not what is asked for
  NotBuiltYet            a name whose chapter is the one being built, a later one, or one that is still to come
  NotebookError          a notebook or a source file that cannot be read
  SourceError            a chapter's source breaks a rule of the builder; names file and line
  ReferenceMissing       the stored values of an exercise are not there or do not fit its record
  SetupError             the machine lacks what a command needs
  CheckFailed            an exercise is not fully right yet
  Interrupted            a check was stopped while an answer was running
"""

from __future__ import annotations

from pathlib import Path

__all__ = [
    "BadInput",
    "CheckFailed",
    "GradwrightError",
    "Interrupted",
    "NotBuiltYet",
    "NotebookError",
    "ReferenceMissing",
    "SetupError",
    "SourceError",
]


class GradwrightError(Exception):
    """The root: catch this to catch whatever the project itself raises."""

    def _render_traceback_(self) -> list[str]:
        """What IPython prints in place of a traceback: the frames are ours and help nobody, the sentence does."""
        return [f"{type(self).__name__}: {self}"]


class BadInput(GradwrightError, ValueError):
    """An argument, name or option that is not what is asked for."""


class NotBuiltYet(GradwrightError, ImportError):
    """A name of the framework that is out of reach from the current chapter.

    An ImportError and not an AttributeError: `from gradwright import x` would replace the latter's message by its own.
    """


class NotebookError(GradwrightError, ValueError):
    """A notebook or a source file that cannot be read."""


class SourceError(GradwrightError, ValueError):
    """A chapter's source that breaks a rule of the builder."""

    def __init__(self, path: Path | str, line: int, message: str) -> None:
        super().__init__(f"{path}:{line}: {message}")
        self.path, self.line, self.message = path, line, message


class ReferenceMissing(GradwrightError):
    """Stored reference values that are absent or that do not fit the record of their exercise."""


class SetupError(GradwrightError):
    """The machine lacks something that a command needs."""


class CheckFailed(GradwrightError, AssertionError):
    """Raised by `check` below its verdict when an exercise is not fully right."""


class Interrupted(GradwrightError, KeyboardInterrupt):
    """A check that was stopped by hand while an answer was running: the message says where."""
