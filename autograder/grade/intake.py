"""Submissions found and read, whatever they are called; what is no submission gets a sentence."""

from __future__ import annotations

import difflib
import errno
import json
import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nbgrader.utils import parse_utc

from autograder.course import Chapter
from autograder.errors import BadInput, NotebookError, SetupError
from autograder.grade.classroom import Classroom

LARGEST = 50 * 2**20
"""Bytes of a notebook that is still read; the course's own are well under one million."""
MOST_PARTS = 2_000_000
"""Brackets and commas in it: each may become an object, which takes many times as many bytes in memory."""
MOST_TEXT = 2**19
"""Characters of the texts of its cells together: outputs may be large, but nobody types so much."""
MOST_CELLS = 500
"""The longest notebook of the course has about a hundred."""
MOST_NAMED = 5
"""Files of a folder that are named in a sentence."""
PERMISSIONS = "check its permissions."
COPY_MARK = re.compile(r"[-_ ]*(\(\d+\)|copy\s?\d*|\d+)$", re.IGNORECASE)
"""What browsers and JupyterLab put behind the name of a second copy: `start (1)`, `start-Copy1`."""


@dataclass(frozen=True)
class Submission:
    """One student's work on one chapter."""

    student: str
    chapter: Chapter
    path: Path | None
    """The notebook, or None where none could be chosen."""
    trouble: str = ""
    """Why there is no notebook, in one sentence with a remedy."""

    @property
    def renamed(self) -> str:
        """The file's name where it is not the expected one."""
        return "" if self.path is None or self.path.name == self.chapter.notebook else legible(self.path.name)


@dataclass
class Intake:
    """Everything under submitted/."""

    students: list[str] = field(default_factory=list)
    submissions: list[Submission] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    """A sentence for each thing that lies where a submission belongs and is none."""


def legible(text: str) -> str:
    """The text with a code for each sign that no terminal shows, or that would move its cursor: a file may be named so,
    and half a character cannot be printed at all."""
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)


def collect(room: Classroom, chapters: Sequence[Chapter]) -> Intake:
    """Find the submissions to any of `chapters`. Raises BadInput where there is none at all."""
    found = Intake()
    if room.submitted.exists() and not room.submitted.is_dir():
        raise BadInput(f"{room.submitted} is a file where the folder of submissions belongs: move it away.")
    for entry in everybody(room):
        if not entry.name.isprintable():
            found.remarks.append(f"submitted/{entry.name!a} is no name that can be printed: rename it.")
        elif entry.is_symlink():  # to the folder of somebody else, perhaps
            found.remarks.append(f"submitted/{entry.name} is a link to another place: put the folder itself there.")
        elif entry.is_dir():
            found.students.append(entry.name)
            try:
                collect_student(room, entry, {chapter.folder: chapter for chapter in chapters}, found)
            except OSError as error:  # the disk fails, perhaps, or it has just gone
                found.remarks.append(f"submitted/{entry.name} cannot be read ({error.strerror}): {PERMISSIONS}")
        elif entry.suffix.lower() == ".zip":
            found.remarks.append(
                f"submitted/{entry.name} is an archive: put it at downloaded/<NN_name>/archive/{entry.name} and run "
                f"`nbgrader zip_collect <NN_name>` in the class folder, or unpack it by hand."
            )
        else:
            place = f"submitted/<student>/<NN_name>/{entry.name}"
            found.remarks.append(f"submitted/{entry.name} belongs to no student: move it to {place}.")
    if not found.submissions:
        example = f"submitted/<student>/{chapters[0].folder}/{chapters[0].notebook}"
        also = f" ({found.remarks[0]})" if found.remarks else ""
        raise BadInput(
            f"{room.root} holds no submission yet{also}: put the first at {example}; "
            f"the notebooks to hand out are in {room.release}."
        )
    return found


def everybody(room: Classroom) -> list[Path]:
    """What is in submitted/. Raises SetupError where that cannot be read."""
    try:
        return visible(room.submitted)
    except PermissionError as error:
        raise SetupError(f"{room.submitted} cannot be read ({error.strerror}): {PERMISSIONS}") from error


def collect_student(room: Classroom, folder: Path, chapters: dict[str, Chapter], found: Intake) -> None:
    for entry in visible(folder):
        where = legible(entry.relative_to(room.root).as_posix())
        if entry.name in chapters and entry.is_dir():
            found.submissions.append(choose(room, folder.name, chapters[entry.name], entry))
        elif entry.name in chapters:
            found.remarks.append(f"{where} is a file where a folder belongs: move it to {where}/<name>.ipynb.")
        elif entry.is_dir():
            near = meant(entry.name, chapters)
            rename = f"rename it to {near}" if near else f"the chapters are {', '.join(chapters)}"
            found.remarks.append(f"{where} is no chapter: {rename}.")
        elif entry.suffix == ".ipynb":
            found.remarks.append(
                f"{where} lies beside the chapters' folders: move it into one, such as {min(chapters)}."
            )


def meant(name: str, chapters: dict[str, Chapter]) -> str | None:
    """The chapter's folder that a name resembles; one with another number is another chapter, here or to come."""
    digits, word = re.fullmatch(r"([0-9]*)[-_. ]*(.*)", name, re.DOTALL).groups()
    possible = {c.name: folder for folder, c in chapters.items() if not digits or int(digits) == c.number}
    near = difflib.get_close_matches(word.lower(), possible, 1) if word else list(possible) if digits else []
    return possible[near[0]] if near else None


def visible(folder: Path) -> list[Path]:
    """What is in a folder, in order, without what systems and editors leave there."""
    if not folder.is_dir():
        return []
    return sorted(entry for entry in folder.iterdir() if not entry.name.startswith((".", "__")))


def choose(room: Classroom, student: str, chapter: Chapter, folder: Path) -> Submission:
    """The notebook of a submission: the expected name, else the only one, else the only one named like a copy of it."""
    where = folder.relative_to(room.root).as_posix()
    if folder.is_symlink():  # what lies there is nobody's business, not even by name
        trouble = f"{where} is a link to another place: put the folder itself there."
        return Submission(student, chapter, None, trouble)
    try:
        there = [entry for entry in visible(folder) if entry.suffix.lower() == ".ipynb"]
        return chosen(student, chapter, there, where)
    except OSError as error:
        trouble = f"{where} cannot be read ({error.strerror}): {remedy(error)}"
        return Submission(student, chapter, None, trouble)


def chosen(student: str, chapter: Chapter, there: Sequence[Path], where: str) -> Submission:
    exact = [path for path in there if path.name == chapter.notebook]
    named = [path for path in there if COPY_MARK.sub("", path.stem).lower() == chapter.name]
    for candidates in (exact, there, named):
        if len(candidates) == 1:
            return checked(student, chapter, candidates[0], where)
    if there:
        more = f" and {len(there) - MOST_NAMED} more" if len(there) > MOST_NAMED else ""
        names = ", ".join(path.name for path in there[:MOST_NAMED]) + more
        trouble = f"{where} holds {names} and none is {chapter.notebook}: rename the one that counts."
    else:
        trouble = f"{where} holds no notebook: it should hold {chapter.notebook}."
    return Submission(student, chapter, None, trouble)


def checked(student: str, chapter: Chapter, path: Path, where: str) -> Submission:
    """A submission whose file is a file, is the student's own and is not huge."""
    trouble = ""
    if path.is_symlink():
        trouble = f"{where}/{path.name} is a link to another place: put the file itself there."
    elif not path.is_file():
        trouble = f"{where}/{path.name} is no file: put the notebook itself there."
    elif size := too_large(path):
        trouble = f"{where}/{path.name} {size}"
    return Submission(student, chapter, None if trouble else path, trouble)


def too_large(path: Path) -> str:
    """What to say of a file that nobody will read; empty for others."""
    size = path.stat().st_size
    most = f"{LARGEST >> 20} are read at most"
    return f"has {size / 2**20:.0f} MB, and {most}: clear its outputs." if size > LARGEST else ""


def read_cells(path: Path) -> list[dict[str, Any]]:
    """The cells of a submitted notebook, each a dict whose `source` is text, as untrusted as they were.

    Any Unicode encoding will do, with or without a byte-order mark. Raises NotebookError, in a sentence that learner
    and instructor both read.
    """
    whole = "a copy that JupyterLab opens must be handed in"
    data = read_bytes(path)
    try:
        content = json.loads(data)
        cells = content["cells"] if content["nbformat"] >= 4 else None
    except (ValueError, RecursionError) as error:
        what = f"is not valid JSON ({error})" if data else "is an empty file"
        raise NotebookError(f"{path.name} {what}: {whole}.") from error
    except (KeyError, TypeError) as error:
        raise NotebookError(f"{path.name} is JSON but not a notebook: {whole}.") from error
    if not isinstance(cells, list):
        raise NotebookError(f"{path.name} is not a notebook of format 4: save it in JupyterLab and hand it in again.")
    if not cells:
        raise NotebookError(f"{path.name} has no cells at all: {whole}.")
    if len(cells) > MOST_CELLS:
        raise NotebookError(
            f"{path.name} has {len(cells):,} cells, and {MOST_CELLS:,} are read at most: delete some and hand it in "
            f"again."
        )
    read = list(readable(path, cells))
    if (length := sum(len(cell["source"]) for cell in read)) > MOST_TEXT:
        raise NotebookError(
            f"{path.name} has {length:,} characters in its cells, and {MOST_TEXT:,} are read at most: data belong into "
            f"a file."
        )
    return read


def read_bytes(path: Path) -> bytes:
    """The bytes of a notebook, if they can be JSON that fits into memory. Raises NotebookError."""
    try:
        if trouble := too_large(path):
            raise NotebookError(f"{path.name} {trouble}")
        with open(path, "rb", opener=opened) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise NotebookError(f"{path.name} is no file: put the notebook itself there.")
            data = file.read(LARGEST + 1)
        if len(data) > LARGEST:
            raise NotebookError(f"{path.name} grows while it is read: hand it in again.")
    except OSError as error:
        raise NotebookError(f"{path.name} cannot be read ({error.strerror}): {remedy(error)}") from error
    if (parts := sum(map(data.count, (b"[", b"{", b",")))) > MOST_PARTS:
        most = f"{MOST_PARTS:,} are read at most"
        raise NotebookError(f"{path.name} has {parts:,} brackets and commas, and {most}: clear its outputs.")
    return data


def remedy(error: OSError) -> str:
    """What to do about a file that cannot be read: it may have been moved or replaced while the class was graded."""
    gone = {errno.ENOENT: "put it back and grade again.", errno.ELOOP: "it is a link: put the file itself there."}
    return gone.get(error.errno, PERMISSIONS)


def opened(path: str, flags: int) -> int:
    """A file that is no link, and that nobody has to write to: it may be another than when it was found."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))


def readable(path: Path, cells: list[Any]) -> Iterator[dict[str, Any]]:
    for position, cell in enumerate(cells, 1):
        source = cell.get("source") if isinstance(cell, dict) else None
        if isinstance(source, list) and all(isinstance(line, str) for line in source):
            source = "".join(source)
        if not isinstance(source, str) or cell.get("cell_type") not in ("code", "markdown", "raw"):
            raise NotebookError(f"{path.name}: cell {position} has no text or no known type: delete it and save again.")
        yield {**cell, "source": storable(source)}


def storable(text: str) -> str:
    """The text without halves of characters, which JSON can hold and no file."""
    return text.encode("utf-8", "replace").decode()


STAMP, SECRET = "timestamp.txt", "submission_secret.txt"
SECRET_TEXT = re.compile("[0-9a-f]{128}")


def notes_in(folder: Path) -> dict[str, str]:
    """What nbgrader's exchange has put beside a submission, file to text: when it was made, and the secret by which
    `nbgrader release_feedback` makes its page one that only this learner finds. Nothing where it came another way."""
    secret = short_text(folder / SECRET)
    notes = {STAMP: stamp_in(folder), SECRET: secret if SECRET_TEXT.fullmatch(secret) else ""}
    return {name: text for name, text in notes.items() if text}


def stamp_in(folder: Path) -> str:
    """When a submission was made, where the exchange has noted it; else nothing."""
    text = short_text(folder / STAMP)
    try:
        parse_utc(text or None)
    except Exception:  # dateutil raises ValueError for most of what is no time, and for some whatever comes
        return ""
    return text


def short_text(path: Path) -> str:
    """The text of a small file. What else may lie there under its name, a link or a large file, is not read: it would
    go back with the feedback."""
    try:
        if path.parent.is_symlink() or not stat.S_ISREG((found := path.lstat()).st_mode) or found.st_size > 200:
            return ""
        return path.read_bytes().decode("ascii", "replace").strip()
    except OSError:  # it is not there, or not for us
        return ""
