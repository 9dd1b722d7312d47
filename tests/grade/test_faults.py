"""Whatever happens to a run, the next ends as if nothing had: nothing lost or doubled, no fault of ours a zero."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from nbgrader.api import Gradebook

from autograder.__main__ import main
from autograder.errors import BadInput, NotebookError, SetupError
from autograder.grade import run as grading
from autograder.grade.classroom import COURSE_ID, Classroom, open_classroom, writing_in
from autograder.grade.gradebook import open_gradebook
from autograder.grade.intake import read_cells
from autograder.grade.journal import Entry, entries_in, open_journal
from autograder.grade.run import grade_class

from .conftest import START, Graded, Notebook, grade, hand_in, once, run, with_answer

STUDENTS = 4


def fill(root: Path, released: Notebook, solution: Notebook) -> None:
    """A class in which neighbours have different scores."""
    wrong = with_answer(solution, "start-dot", "def dot(a, b):\n    return 0.0")
    for i in range(STUDENTS):
        hand_in(root, f"student-{i:02}", [solution, wrong, released][i % 3])


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, released: Notebook, solution: Notebook) -> Graded:
    def make(root: Path) -> None:
        fill(root, released, solution)
        (root / "said.txt").write_text(grade(root).said)

    root = once(tmp_path_factory, "undisturbed", make)
    return Graded(root, (root / "said.txt").read_text())


@pytest.fixture
def room(undisturbed: Graded, tmp_path: Path) -> Classroom:
    """The same class before it was graded, with the same secret."""
    root = tmp_path / "class"
    shutil.copytree(undisturbed.root / "submitted", root / "submitted")
    shutil.copy(undisturbed.root / ".secret", root / ".secret")
    return open_classroom(root)


def scores(root: Path) -> dict[str, list[float | None]]:
    """Student to the automatic scores of each submission, straight from the gradebook."""
    with Gradebook(f"sqlite:///{root / 'gradebook.db'}", COURSE_ID) as book:
        found: dict[str, list[float | None]] = {student.id: [] for student in book.students}
        for submission in book.assignment_submissions(START.folder):
            points = [grade.auto_score for notebook in submission.notebooks for grade in notebook.grades]
            found[submission.student.id].append(None if None in points else sum(points))
    return found


def same(root: Path, undisturbed: Graded) -> bool:
    table = (root / "grades.csv").read_text(encoding="utf-8")
    return scores(root) == scores(undisturbed.root) and table == (undisturbed.root / "grades.csv").read_text("utf-8")


# What ends a run at a moment that matters: a program that does what `autograder grade` does, until a call is its last.
KILLED_AT = """
import os, signal, sys
from pathlib import Path
from autograder.grade import gradebook, journal, run

place, count, after, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "after", Path(sys.argv[4])
owner, name = {
    "journal": (run.Journal, "add"), "transaction": (gradebook, "unanswered"), "table": (run, "write_grades"),
}[place]
run.make_pages = list
kept, calls = getattr(owner, name), []

def last(*arguments):
    calls.append(1)
    if len(calls) == count and not after:
        os.kill(os.getpid(), signal.SIGKILL)
    result = kept(*arguments)
    if len(calls) == count:
        os.kill(os.getpid(), signal.SIGKILL)
    return result

setattr(owner, name, last)
if __name__ == "__main__":
    run.grade_class(folder, weak=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_a_run_that_is_killed_at_the_moments_that_matter(room: Classroom, undisturbed: Graded) -> None:
    program = room.root.parent / "killed_at.py"
    program.write_text(KILLED_AT)
    moments = [("journal", 1, "before"), ("journal", 1, "after"), ("transaction", 2, "after"), ("table", 1, "before")]
    for place, count, when in moments:
        command = [sys.executable, str(program), place, str(count), when, str(room.root)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode == -signal.SIGKILL, done.stderr
        if room.gradebook.exists():
            kept = {student: found for student, found in scores(room.root).items() if found}
            wanted = scores(undisturbed.root)
            assert all(found == wanted[student] for student, found in kept.items())  # whole, or not there
    assert "(unchanged)" in grade(room.root).said
    assert same(room.root, undisturbed)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_a_run_that_is_killed_at_any_moment(room: Classroom, undisturbed: Graded) -> None:
    draw = random.Random(7)
    for _ in range(2):
        command = [sys.executable, "-m", "autograder", "grade", str(room.root), "--allow-weak-isolation"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        lines = draw.randrange(1, STUDENTS)
        for _ in range(lines):  # by what it has said, since machines differ in speed
            process.stdout.readline()
        time.sleep(draw.random() / 20)
        process.kill()
        _, complaint = process.communicate()
        assert complaint == ""  # of the processes that it leaves alone
    grade(room.root)
    assert same(room.root, undisturbed)


def test_a_regrade_without_the_journal_gives_the_same(room: Classroom, undisturbed: Graded) -> None:
    grade(room.root)
    room.journal.unlink()
    assert "(unchanged)" not in grade(room.root).said
    assert same(room.root, undisturbed)


@pytest.fixture
def no_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Feedback is made after all is graded; runs that never get there need not wait for it."""
    monkeypatch.setattr(grading, "make_pages", list)


def test_a_run_that_is_stopped_by_hand(
    room: Classroom, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(*arguments: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(grading, "grade_all", stopped)
    assert main(["grade", str(room.root), "--allow-weak-isolation"]) == 130
    said = capsys.readouterr().err
    assert said == "Stopped. What is graded stays graded; the same command goes on from there.\n"


def no_room(*arguments: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device", "a file")


@pytest.mark.usefixtures("no_pages")
@pytest.mark.parametrize(("owner", "name"), [(grading, "write"), (os, "fsync")])
def test_a_full_disk(
    owner: Any, name: str, room: Classroom, undisturbed: Graded, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(owner, name, no_room)
        with pytest.raises(SetupError, match=r"cannot be written \(No space left on device\): make room"):
            grade_class(room.root, weak=True)
    grade(room.root)
    assert same(room.root, undisturbed)


def test_a_reader_who_has_seen_enough_is_no_full_disk(room: Classroom) -> None:
    """`autograder grade CLASS | head -3`."""
    with pytest.raises(BrokenPipeError), writing_in(room.root):
        raise BrokenPipeError


IN_A_SMALL_PLACE = """
mount -t tmpfs -o size={size} none small && cp -a prepared/. small && cd small || exit 99
"{python}" -m autograder grade . --allow-weak-isolation
code=$?
cp -a . ../after && exit $code
"""


@pytest.mark.skipif(shutil.which("unshare") is None, reason="nothing to mount with")
@pytest.mark.parametrize("free", [20, 600])
def test_a_disk_that_is_full_for_real(free: int, tmp_path: Path, undisturbed: Graded) -> None:
    """Of a file system with so many kilobytes to spare: a journal, or some of the notebooks too, fit on it."""
    prepared = tmp_path / "prepared"
    for name in ("submitted", "release", "source"):
        shutil.copytree(undisturbed.root / name, prepared / name)
    shutil.copy(undisturbed.root / ".secret", prepared / ".secret")
    (tmp_path / "small").mkdir()
    pages = sum(path.stat().st_size // 4096 + 1 for path in prepared.rglob("*") if path.is_file())
    script = IN_A_SMALL_PLACE.format(size=f"{4 * pages + free}k", python=sys.executable)
    apart = ["unshare", "--user", "--map-root-user", "--mount"]
    if subprocess.run([*apart, "mount", "-t", "tmpfs", "none", "small"], cwd=tmp_path, capture_output=True).returncode:
        pytest.skip("this user may mount nothing")
    done = subprocess.run([*apart, "sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=280)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "make room" in done.stderr
    grade(tmp_path / "after")
    assert same(tmp_path / "after", undisturbed)


def descendants(pid: int) -> list[int]:
    found = [child for thread in Path(f"/proc/{pid}/task").iterdir() for child in children_of(thread)]
    return [*found, *(below for child in found for below in descendants(child))]


def children_of(thread: Path) -> list[int]:
    try:
        return [int(child) for child in (thread / "children").read_text().split()]
    except OSError:
        return []


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def hear_interrupts() -> None:
    """A shell lets what it starts in the background ignore Ctrl-C, and this is inherited."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the processes below another are listed in /proc")
@pytest.mark.parametrize("lines", [2, STUDENTS + 1])
@pytest.mark.parametrize(
    ("ends", "sign"), [(os.killpg, signal.SIGINT), (os.kill, signal.SIGTERM)], ids=["Ctrl-C", "a service is stopped"]
)
def test_stopped(ends: Callable[[int, int], None], sign: int, lines: int, room: Classroom, undisturbed: Graded) -> None:
    """While submissions run and while feedback is made. The terminal sends Ctrl-C to all that was started from it."""
    command = [sys.executable, "-m", "autograder", "grade", str(room.root), "--allow-weak-isolation"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, start_new_session=True, preexec_fn=hear_interrupts, **pipes)
    for _ in range(lines):
        process.stdout.readline()
    started = descendants(process.pid)
    ends(process.pid, sign)
    said, complaint = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert complaint == "Stopped. What is graded stays graded; the same command goes on from there.\n"
    assert started
    wait_until(lambda: all(map(gone, started)))
    assert "(unchanged)" in grade(room.root).said
    assert same(room.root, undisturbed)


def wait_until(true: Callable[[], bool]) -> None:
    """The system takes a moment to end what was killed."""
    for _ in range(200):
        if true():
            return
        time.sleep(0.05)
    raise AssertionError("it never came")


def test_a_gradebook_that_is_locked(room: Classroom, undisturbed: Graded) -> None:
    shutil.copy(undisturbed.root / "gradebook.db", room.gradebook)
    before = room.gradebook.read_bytes()
    with sqlite3.connect(room.gradebook, isolation_level=None) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(SetupError, match=r"cannot be used .*locked"):
            grade_class(room.root, weak=True)
        other.execute("ROLLBACK")
    other.close()
    assert room.gradebook.read_bytes() == before


def changed(statement: str) -> Callable[[bytes], bytes]:
    """What is left of a gradebook after a statement."""

    def change(data: bytes) -> bytes:
        with contextlib.closing(sqlite3.connect(":memory:")) as book:
            book.deserialize(data)
            book.execute(statement)
            book.commit()
            return book.serialize()

    return change


def other_program(data: bytes) -> bytes:
    with contextlib.closing(sqlite3.connect(":memory:")) as book:
        book.execute("CREATE TABLE bookmarks (address)")
        return book.serialize()


DAMAGE: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "cut": (lambda data: data[: len(data) // 2], "put back a copy of it"),
    "cut in its head": (lambda data: data[:60], "put back a copy of it"),
    "random bytes": (lambda data: random.Random(1).randbytes(50_000), "put back a copy of it"),
    "a page of zeros": (lambda data: data[:100] + bytes(3996) + data[4096:], "put back a copy of it"),
    "another program's": (other_program, "is no gradebook, it has a table 'bookmarks'"),
    "of an older nbgrader": (changed("ALTER TABLE grade DROP COLUMN extra_credit"), "run `nbgrader db upgrade`"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_gradebook_that_is_damaged(name: str, room: Classroom, undisturbed: Graded) -> None:
    """It stays as it is, for somebody to repair; moved away, it is made anew."""
    damage, remedy = DAMAGE[name]
    damaged = damage((undisturbed.root / "gradebook.db").read_bytes())
    room.gradebook.write_bytes(damaged)
    with pytest.raises(SetupError, match=remedy):
        grade_class(room.root, weak=True)
    assert room.gradebook.read_bytes() == damaged


@pytest.mark.parametrize("name", ["gradebook.db", "/".join(["long" * 30] * 8)])
def test_a_gradebook_that_cannot_be_opened(name: str, tmp_path: Path) -> None:
    """A folder lies in its place, or SQLite finds the path too long."""
    (tmp_path / name).mkdir(parents=True)
    root = tmp_path if name == "gradebook.db" else tmp_path / name
    with pytest.raises(SetupError, match="a folder of that name must be moved away"), open_gradebook(Classroom(root)):
        pass


@pytest.mark.parametrize("name", ["why?", "$HOME", "a%20b"])
def test_a_class_in_a_place_that_nbgrader_cannot_name(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(BadInput, match=r"in its path, which nbgrader takes for a sign of its own: rename it"):
        open_classroom(tmp_path / name)


@pytest.mark.parametrize("name", ["ü 'single' \"double\" #1 100% ; a & b"])
def test_a_class_in_a_place_with_an_odd_name(name: str, room: Classroom, undisturbed: Graded) -> None:
    there = room.root.rename(room.root.parent / name)
    grade(there)
    assert same(there, undisturbed)


def test_a_notebook_that_went_while_the_class_was_graded(tmp_path: Path) -> None:
    with pytest.raises(NotebookError, match="put it back and grade again"):
        read_cells(tmp_path / "start.ipynb")
    (tmp_path / "start.ipynb").symlink_to(tmp_path)
    with pytest.raises(NotebookError, match="it is a link: put the file itself there"):
        read_cells(tmp_path / "start.ipynb")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write what is read-only")
def test_a_gradebook_that_may_only_be_read(room: Classroom, undisturbed: Graded) -> None:
    shutil.copy(undisturbed.root / "gradebook.db", room.gradebook)
    room.gradebook.chmod(0o400)
    with pytest.raises(SetupError, match="allow it to be written"):
        grade_class(room.root, weak=True)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows locks no files in this way")
def test_two_runs_at_once(room: Classroom) -> None:
    """The second names the first. What a run that was killed has left is no lock."""
    room.grader.write_text("process 1 on a machine, which began at 00:00")
    with open_journal(room):
        second = run(["autograder", "grade", str(room.root), "--allow-weak-isolation"], room.root)
    assert (second.returncode, second.stderr.count("\n")) == (2, 1)
    assert f"is being graded by process {os.getpid()} on" in second.stderr
    with open_journal(room):
        pass


def test_a_journal_that_was_cut_or_spoilt(room: Classroom) -> None:
    one, two = (Entry(f"{i}", START.folder, "key", "hash", {"a": 1.5, "b": None}, {}) for i in range(2))
    with open_journal(room) as journal:
        journal.add(one)
    whole = room.journal.read_bytes()
    room.journal.write_bytes(whole[:-7])  # killed in the middle of a line
    with open_journal(room) as journal:
        assert journal.entries == {}
        journal.add(two)
        journal.add(one)
    room.journal.write_bytes(room.journal.read_bytes() + b"\xff\xfe{}\n0123456789abcdef {}\n")
    assert list(entries_in(room.journal.read_bytes())) == [two, one]
    with open_journal(room) as journal:
        assert journal.find("1", START.folder, "key") == two
        assert journal.find("1", START.folder, "another key") is None
