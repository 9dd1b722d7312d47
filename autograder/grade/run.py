"""A class, graded: every submission run, the gradebook written, feedback and grades.csv made."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook
from nbgrader.plugins import BasePlugin
from traitlets.config import Config, PyFileConfigLoader

from autograder.course import Chapter, chapters
from autograder.errors import BadInput, NotebookError, SetupError
from autograder.grade.classroom import Classroom, official, open_classroom, writing_in
from autograder.grade.export import Row, write_grades
from autograder.grade.feedback import Page, write_page
from autograder.grade.gradebook import lateness, open_gradebook, record, register, withdraw
from autograder.grade.hidden import secret_of
from autograder.grade.intake import Intake, Submission, collect, legible, notes_in, read_cells
from autograder.grade.job import Job, Judged, seconds_from
from autograder.grade.journal import Entry, Journal, digest_of, key_of, open_journal
from autograder.grade.judge import judge
from autograder.grade.restore import restore
from autograder.grade.sandbox import level
from autograder.grade.schedule import run_all
from autograder.writing import write

MOST_NAMED = 20
"""Lines of a kind at the end of a run."""


def grade_class(folder: Path, weak: bool = False) -> int:
    """Grade every submission in a class folder; returns 0 when the run has come to its end.

    `weak`: submissions may run without isolation, where there is none. Raises BadInput for a folder without
    submissions, NotebookError for a broken official notebook, SetupError for a gradebook that cannot be used, a full
    disk, or a machine without isolation. A bad submission raises nothing: it gets a line and a status.
    """
    start = time.monotonic()
    with writing_in(folder):
        room = open_classroom(folder)
        config = settings_of(room)
        there = chapters()
        released = {chapter: official(room, chapter) for chapter in there}
        intake = collect(room, there)
        walled, sentence = level(weak)
        print(sentence, flush=True)
        with open_journal(room) as journal, open_gradebook(room) as book:
            for chapter in there:
                register(book, room, chapter, released[chapter])
            pages = grade_all(Run(room, book, journal, walled, config, lateness(config)), intake.submissions, released)
            make_pages(pages)
            rows = write_grades(room.grades, book, intake, there)
    for line in (*to_look_at(pages), *(f"Left out: {remark}" for remark in intake.remarks), *kept(rows, intake)):
        print(line)
    print(summary(room, rows, time.monotonic() - start))
    return 0


@dataclass(frozen=True)
class Run:
    """What a run writes to, and how submissions run in it."""

    room: Classroom
    book: Gradebook
    journal: Journal
    walled: bool
    config: Config
    late: BasePlugin
    """What the class takes off a late submission."""


def workers() -> int:
    """Processes to use: one a core that this process may have."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, cores or 1)


def settings_of(room: Classroom) -> Config:
    """What the class's own nbgrader_config.py says."""
    try:
        return PyFileConfigLoader(room.config.name, path=str(room.root)).load_config()
    except (Exception, SystemExit) as error:  # it is a program of the instructor's, and may raise anything
        raise BadInput(f"{room.config} cannot be run ({type(error).__name__}: {error}): correct it.") from error


def grade_all(run: Run, submissions: Sequence[Submission], released: dict[Chapter, dict[str, Any]]) -> list[Page]:
    """Judge and record all submissions, a line each as it is done; returns the feedback pages to be made."""
    pages: list[Page] = []
    limit, secret = seconds_from(run.config), secret_of(run.room)
    by_folder = {chapter.folder: chapter for chapter in released}
    total = len(submissions)

    def say(student: str, chapter: Chapter, news: str, trouble: str = "") -> None:
        pages.append(Page(run.room.root, student, chapter.folder, chapter.name, legible(trouble)))
        print(f"[{len(pages):>{len(str(total))}}/{total}] {student}  {chapter.folder}  {legible(news)}", flush=True)

    def jobs() -> Iterator[Job]:
        for each in submissions:
            try:
                if each.path is None:
                    raise NotebookError(each.trouble)
                notebook = restore(read_cells(each.path), released[each.chapter])
            except NotebookError as error:
                withdraw(run.book, each.student, each.chapter, legible(str(error)))
                say(each.student, each.chapter, f"unreadable: {error}", str(error))
                continue
            except (OSError, SetupError):
                raise
            except Exception as error:  # whatever a file is made to do to us, it never stops a class
                trouble = f"the grader cannot read it ({type(error).__name__}): look at the file, and report it."
                withdraw(run.book, each.student, each.chapter, trouble)
                say(each.student, each.chapter, f"error: {trouble}", trouble)
                continue
            job = Job(each.student, each.chapter.number, each.chapter.folder, notebook, secret, run.walled, limit)
            if known := judged_before(run, job, each.chapter):
                say(each.student, each.chapter, f"{enter(run, job, each.chapter, known)} (unchanged)")
            else:
                yield job

    renamed = {(each.student, each.chapter): each.renamed for each in submissions}
    for job, judged in run_all(judge, jobs(), workers(), lost):
        chapter = by_folder[job.chapter]
        note(run, job, chapter, judged)
        said, file = enter(run, job, chapter, judged), renamed[job.student, chapter]
        say(job.student, chapter, said + (f" (found as {file})" if file else ""), judged.trouble)
    return pages


def place_of(run: Run, student: str, chapter: Chapter) -> Path:
    return run.room.autograded / student / chapter.folder / chapter.notebook


def note(run: Run, job: Job, chapter: Chapter, judged: Judged) -> None:
    """Put a judgement on the disk: the notebook, then the line in the journal. One with trouble is to be made again."""
    path = place_of(run, job.student, chapter)
    write(path, json.dumps(judged.notebook, ensure_ascii=False, indent=1, sort_keys=True) + "\n")
    if not judged.trouble:
        run.journal.add(
            Entry(job.student, job.chapter, key_of(job), digest_of(path), judged.points, dict(judged.rulings))
        )


def enter(run: Run, job: Job, chapter: Chapter, judged: Judged) -> str:
    """Put a judgement into the gradebook, and beside the notebook what the exchange needs to send its page back.
    Returns what the progress line says."""
    score, by_hand = record(run.book, run.room, job.student, chapter, judged, run.late)
    for name, text in notes_in(run.room.submitted / job.student / job.chapter).items():
        write(place_of(run, job.student, chapter).parent / name, text)
    return f"error: {judged.trouble}" if judged.trouble else news(judged, score, by_hand)


def judged_before(run: Run, job: Job, chapter: Chapter) -> Judged | None:
    """The judgement on this very submission, where an earlier run has made it and its notebook is as it was."""
    entry = run.journal.find(job.student, job.chapter, key_of(job))
    path = place_of(run, job.student, chapter)
    if entry is None or digest_of(path) != entry.notebook:
        return None
    return Judged(json.loads(path.read_text(encoding="utf-8")), entry.points, rulings=entry.rulings)


def lost(job: Job) -> Judged:
    """The result of a job whose process was killed twice from outside."""
    points = {
        cell["metadata"]["nbgrader"]["grade_id"]: None
        for cell in job.notebook["cells"]
        if cell["metadata"].get("nbgrader", {}).get("grade")
    }
    return Judged(job.notebook, points, "its process was killed twice: is the machine out of memory? Grade again.")


def news(judged: Judged, score: float, by_hand: int) -> str:
    """What a progress line says of a submission that was run: its score with what was entered by hand."""
    most = sum(
        cell["metadata"]["nbgrader"]["points"]
        for cell in judged.notebook["cells"]
        if cell["metadata"].get("nbgrader", {}).get("points")
    )
    also = f", {by_hand} to grade by hand" if by_hand else ""
    took = f"  {judged.seconds:.1f} s" if judged.seconds else ""
    return f"{score:g}/{most:g}{also}{took}"


def make_pages(pages: Sequence[Page]) -> None:
    """Write all feedback pages; a line for each that could not be made."""
    for page, trouble in run_all(
        write_page, pages, workers(), lambda page: "its process was killed twice: grade again."
    ):
        if trouble:
            print(f"{page.student}  {page.chapter}  {trouble}")


def to_look_at(pages: Sequence[Page]) -> Iterator[str]:
    """What has no score, once more at the end, where it is seen after hundreds of lines."""
    without = [page for page in pages if page.trouble]
    for page in without[:MOST_NAMED]:
        yield f"No score: {page.student}  {page.chapter}  {page.trouble}"
    if len(without) > MOST_NAMED:
        yield f"No score: {len(without) - MOST_NAMED} more, in the lines above"


def kept(rows: Sequence[Row], intake: Intake) -> Iterator[str]:
    """A sentence about grades whose submission has gone, as when a folder was renamed."""
    there = {(each.student, each.chapter.folder) for each in intake.submissions}
    gone = [f"{row.student} {row.chapter}" for row in rows if row.score is not None and row.place not in there]
    more = f" and {len(gone) - MOST_NAMED} more" if len(gone) > MOST_NAMED else ""
    if gone:
        yield (
            f"Kept: {', '.join(gone[:MOST_NAMED])}{more}: no longer in submitted/, and still in the gradebook. To take "
            f"a whole student out of it: `nbgrader db student remove NAME --force`, and delete autograded/NAME."
        )


def summary(room: Classroom, rows: Sequence[Row], seconds: float) -> str:
    counts = Counter(row.status for row in rows)
    students = len({row.student for row in rows})
    statuses = ", ".join(f"{count} {status}" for status, count in counts.most_common())
    return (
        f"{students} student{'s' * (students != 1)} in {seconds:.0f} s: {statuses}.\n"
        f"Grades: {room.grades}\nFeedback: {room.feedback}\nGradebook: {room.gradebook}"
    )
