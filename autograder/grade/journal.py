"""What has been judged, written down before it goes into the gradebook.

A line each, with a checksum in front; on the disk before anything else is done with it. A run that is killed at any
moment and started again finds here what it need not do again: a submission that is the same, under the same checks, to
the byte. What it does again gives the same, and entering it in the gradebook twice is entering it once.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

from autograder.course import ROOT, chapters
from autograder.errors import SetupError
from autograder.grade.classroom import Classroom
from autograder.grade.job import Job
from autograder.writing import write

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


@dataclass(frozen=True)
class Entry:
    """One submission, judged."""

    student: str
    chapter: str
    key: str
    """`key_of` the job."""
    notebook: str
    """SHA-256 of the file in autograded/."""
    points: dict[str, float | None]
    rulings: dict[str, str]


class Journal:
    """The journal of a class, open for one run."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.entries: dict[tuple[str, str], Entry] = {}
        for entry in entries_in(file.read()):
            self.entries[entry.student, entry.chapter] = entry

    def add(self, entry: Entry) -> None:
        """Write an entry; when this returns, it is on the disk. Raises SetupError where it cannot be."""
        text = json.dumps(asdict(entry))
        try:
            # The line in front ends what a killed run may have left of one.
            self.file.write(f"\n{checksum(text)} {text}\n".encode())
            self.file.flush()
            os.fsync(self.file.fileno())
        except OSError as error:
            raise SetupError(
                f"{self.file.name} cannot be written ({error.strerror}): make room, or allow it, and grade again; "
                f"what is graded stays graded."
            ) from error
        self.entries[entry.student, entry.chapter] = entry

    def find(self, student: str, chapter: str, key: str) -> Entry | None:
        """What was found on this very submission, if it was."""
        entry = self.entries.get((student, chapter))
        return entry if entry and entry.key == key else None


@contextmanager
def open_journal(room: Classroom) -> Iterator[Journal]:
    """The journal of a class. Raises SetupError where it cannot be used, or where another run is using it."""
    with opened(room) as file:
        write(room.grader, f"process {os.getpid()} on {platform.node()}, which began at {time.strftime('%H:%M')}\n")
        yield Journal(file)


def opened(room: Classroom) -> BinaryIO:
    """The journal's file, at its beginning and locked."""
    try:
        file = open(room.journal, "a+b")  # noqa: SIM115 - whoever asked for it closes it
    except OSError as error:
        raise SetupError(
            f"{room.journal} cannot be opened ({error.strerror}): move it away or allow it, and grade again."
        ) from error
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        file.close()
        other = room.grader.read_text(encoding="utf-8").strip() if room.grader.is_file() else "another run"
        raise SetupError(f"{room.root} is being graded by {other}: wait for its end, or stop it.") from error
    file.seek(0)
    return file


def entries_in(data: bytes) -> Iterator[Entry]:
    """The entries of all lines that are whole."""
    for line in data.decode("utf-8", "replace").splitlines():
        mark, _, text = line.partition(" ")
        if text and mark == checksum(text):
            yield Entry(**json.loads(text))


def checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def digest_of(path: Path) -> str:
    """The hash of a file, empty where there is none."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError:
        return ""


def key_of(job: Job) -> str:
    """A hash of everything that a judgement depends on."""
    parts: list[Any] = [job.notebook, job.seconds_a_cell, job.walled, job.secret.hex(), version(job.number)]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@cache
def version(number: int) -> str:
    """A hash of the checks, the judge and the answers that a chapter is graded by."""
    package = ROOT / "autograder"
    files = [package / "errors.py", *(package / "checks").rglob("*.*"), *(package / "grade").glob("*.py")]
    files += list((ROOT / "course" / "gradwright").glob("*.py"))
    files += [ROOT / "solutions" / f"{chapter.folder}.py" for chapter in chapters() if chapter.number <= number]
    read = [path for path in sorted(files) if path.suffix in (".py", ".json", ".npz")]
    return hashlib.sha256("".join(map(digest_of, read)).encode()).hexdigest()
