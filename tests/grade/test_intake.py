"""Which file is the submission, how it is read, and the sentences for what cannot be graded at all."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from autograder.__main__ import main
from autograder.course import chapters
from autograder.errors import BadInput, NotebookError
from autograder.grade import intake
from autograder.grade.classroom import Classroom, official, open_classroom
from autograder.grade.intake import choose, collect, meant, notes_in, read_cells

from .conftest import START, Notebook, code, hand_in


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (["start.ipynb"], "start.ipynb"),
        (["start (1).ipynb"], "start (1).ipynb"),
        (["anything.ipynb", "notes.txt", ".hidden.ipynb"], "anything.ipynb"),
        (["start.ipynb", "start (1).ipynb", "scratch.ipynb"], "start.ipynb"),
        (["start-Copy1.ipynb", "scratch.ipynb"], "start-Copy1.ipynb"),
        (["Start.IPYNB", "scratch.ipynb"], "Start.IPYNB"),
        (["start (1).ipynb", "start (2).ipynb"], None),
        (["a.ipynb", "b.ipynb"], None),
        ([], None),
    ],
)
def test_the_file_that_counts(tmp_path: Path, names: list[str], chosen: str | None) -> None:
    folder = tmp_path / "submitted" / "one" / START.folder
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).write_text("{}")
    found = choose(Classroom(tmp_path), "one", START, folder)
    assert (found.path and found.path.name) == chosen
    assert bool(found.trouble) == (chosen is None)


def test_a_huge_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "LARGEST", 2**20)
    path = hand_in(tmp_path, "one", b" " * (3 * 2**20))
    found = choose(Classroom(tmp_path), "one", START, path.parent)
    assert found.path is None
    assert found.trouble.endswith("start.ipynb has 3 MB, and 1 are read at most: clear its outputs.")


@pytest.mark.parametrize("inner", ["[" * 200_000 + "]" * 200_000, '{"a":' * 200_000 + "1" + "}" * 200_000])
def test_deep_json_is_no_notebook(tmp_path: Path, inner: str) -> None:
    path = hand_in(tmp_path, "one", f'{{"nbformat": 4, "cells": {inner}}}'.encode())
    with pytest.raises(NotebookError, match="is not valid JSON"):
        read_cells(path)


def test_what_would_fill_the_memory_is_not_read(tmp_path: Path) -> None:
    """Of three bytes each object would make sixty-four."""
    path = hand_in(tmp_path, "one", b'{"nbformat": 4, "cells": [], "x": [' + b"[]," * 10**6 + b"[]]}")
    with pytest.raises(NotebookError, match="2,000,006 brackets and commas, and 2,000,000 are read at most"):
        read_cells(path)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_every_unicode_encoding_is_read(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "start.ipynb"
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [code("# Grüße, 世界")]}
    path.write_bytes(json.dumps(notebook, ensure_ascii=False).encode(encoding))
    assert [cell["source"] for cell in read_cells(path)] == ["# Grüße, 世界"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is an empty file: a copy that JupyterLab opens must be handed in"),
        (b"{", "is not valid JSON"),
        (b"\xff\xfe\xfa", "is not valid JSON"),
        (b"[" * 100_000, "is not valid JSON"),
        (b"[]", "is JSON but not a notebook"),
        (b"{}", "is JSON but not a notebook"),
        (b'{"nbformat": "4", "cells": []}', "is JSON but not a notebook"),
        (b'{"nbformat": 3, "worksheets": [], "cells": []}', "is not a notebook of format 4"),
        (b'{"nbformat": 4, "cells": {}}', "is not a notebook of format 4"),
        (b'{"nbformat": 4, "cells": []}', "has no cells at all"),
        (b'{"nbformat": 4, "cells": [7]}', "cell 1 has no text or no known type"),
        (b'{"nbformat": 4, "cells": [{"cell_type": "code", "source": [1]}]}', "cell 1 has no text or no known type"),
        (b'{"nbformat": 4, "cells": [{"cell_type": "page", "source": ""}]}', "cell 1 has no text or no known type"),
    ],
)
def test_what_is_no_notebook_is_said(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "start.ipynb"
    path.write_bytes(content)
    with pytest.raises(NotebookError, match=said):
        read_cells(path)


def one_sentence(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What a command that must fail says."""
    assert main(["grade", *arguments]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    return said


def test_no_such_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = one_sentence(capsys, str(tmp_path / "nowhere"))
    assert f"there is no class folder {tmp_path / 'nowhere'}: check its name, or make it" in said


def test_a_file_in_place_of_the_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "class").write_text("")
    assert "is a file and not a class folder" in one_sentence(capsys, str(tmp_path / "class"))


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("", "is no class folder, since it holds class and no submitted/: name the folder that holds submitted/"),
        ("course", "is no class folder, since it holds start.ipynb and no submitted/"),
        ("class/submitted", "lies inside a class, whose folder is"),
        ("class/submitted/one", "lies inside a class, whose folder is"),
        ("class/submitted/one/00_start", "lies inside a class, whose folder is"),
        ("class/submitted/nobody", "lies inside a class, whose folder is"),
    ],
)
def test_answers_are_put_into_no_folder_that_is_something_else(
    tmp_path: Path, released: Notebook, capsys: pytest.CaptureFixture[str], place: str, said: str
) -> None:
    (tmp_path / "course").mkdir()
    (tmp_path / "course" / "start.ipynb").write_text("{}")
    hand_in(tmp_path / "class", "one", released)
    (tmp_path / "class" / "submitted" / "nobody").mkdir()
    open_classroom(tmp_path / "class")
    before = sorted(tmp_path.rglob("*"))
    assert said in one_sentence(capsys, str(tmp_path / place))
    assert sorted(tmp_path.rglob("*")) == before


def test_a_folder_that_cannot_be_written_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*arguments: object, **options: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system", "a temporary name")

    monkeypatch.setattr(tempfile, "mkstemp", refused)
    said = one_sentence(capsys, str(tmp_path))
    place = tmp_path / "nbgrader_config.py"
    assert f"{place} cannot be written (Read-only file system): make room, or allow it" in said


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("0_start", "00_start"),
        ("start", "00_start"),
        ("Tensor", "01_tensor"),
        ("01-tensor", "01_tensor"),
        ("08_data", None),  # a chapter to come, and the letters of another
        ("1_start", None),
        ("homework", None),
        ("7", "07_schedulers"),
        ("8", None),
        ("_", None),
    ],
)
def test_the_chapter_that_a_folder_is_meant_for(name: str, folder: str | None) -> None:
    assert meant(name, {chapter.folder: chapter for chapter in chapters()}) == folder


def test_an_empty_class_gets_what_to_hand_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], released: Notebook
) -> None:
    said = one_sentence(capsys, str(tmp_path))
    assert f"{tmp_path} holds no submission yet: put the first at submitted/<student>/00_start/start.ipynb" in said
    handed_out = tmp_path / "release" / START.folder / START.notebook
    assert json.loads(handed_out.read_text(encoding="utf-8")) == released
    assert (tmp_path / "nbgrader_config.py").is_file()


def test_the_archive_of_an_lms_is_told_how_it_is_unpacked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "submitted").mkdir()
    (tmp_path / "submitted" / "all.zip").write_bytes(b"PK")
    said = one_sentence(capsys, str(tmp_path))
    assert "submitted/all.zip is an archive: put it at downloaded/<NN_name>/archive/all.zip and run" in said


def test_an_unknown_chapter_alone_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "submitted" / "one" / "start").mkdir(parents=True)
    assert "submitted/one/start is no chapter: rename it to 00_start." in one_sentence(capsys, str(tmp_path))


@pytest.mark.skipif(sys.platform != "linux", reason="other systems keep such names out of their folders")
def test_a_name_that_is_no_text_is_left_out(tmp_path: Path, released: Notebook) -> None:
    for student in ("one", "two\n", os.fsdecode(b"\xff")):
        hand_in(tmp_path, student, released)
    found = collect(Classroom(tmp_path), [START])
    assert found.students == ["one"]
    assert found.remarks == [
        "submitted/'two\\n' is no name that can be printed: rename it.",
        "submitted/'\\udcff' is no name that can be printed: rename it.",
    ]


def test_a_file_in_place_of_all_submissions(tmp_path: Path) -> None:
    (tmp_path / "submitted").write_text("")
    with pytest.raises(BadInput, match="is a file where the folder of submissions belongs"):
        collect(Classroom(tmp_path), [START])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text[:-9], "is not a released notebook"),
        (
            lambda text: text.replace('"start-dot"', '"start-gone"'),
            "checks 'start-gone', an exercise that this version",
        ),
    ],
)
def test_a_broken_official_notebook_stops_before_anybody_gets_a_zero(tmp_path: Path, change, said: str) -> None:
    room = open_classroom(tmp_path)
    official(room, START)
    path = room.release / START.folder / START.notebook
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")
    with pytest.raises(NotebookError, match=said):
        official(room, START)


def test_an_instructors_configuration_is_kept(tmp_path: Path) -> None:
    (tmp_path / "nbgrader_config.py").write_text("# mine")
    open_classroom(tmp_path)
    assert (tmp_path / "nbgrader_config.py").read_text() == "# mine"


def test_a_configuration_that_cannot_be_run_is_said(
    tmp_path: Path, released: Notebook, capsys: pytest.CaptureFixture[str]
) -> None:
    hand_in(tmp_path, "one", released)
    (tmp_path / "nbgrader_config.py").write_text("c.Execute.timeout = thirty")
    said = one_sentence(capsys, str(tmp_path))
    assert "nbgrader_config.py cannot be run (NameError: name 'thirty' is not defined): correct it." in said


@pytest.mark.parametrize("limit", ["'soon'", "-1", "0", "None", "float('inf')", "[10]", "1e-9", "1e300"])
def test_a_limit_that_is_none_is_said(
    tmp_path: Path, released: Notebook, capsys: pytest.CaptureFixture[str], limit: str
) -> None:
    hand_in(tmp_path, "one", released)
    (tmp_path / "nbgrader_config.py").write_text(f"c = get_config()\nc.Execute.timeout = {limit}")
    said = one_sentence(capsys, str(tmp_path))
    assert (
        f"c.Execute.timeout is {eval(limit)!r} in nbgrader_config.py: give it seconds, such as 10, from 1 to 3600."
        in said
    )


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("gradebook.db", "no database at all", "gradebook.db cannot be used (file is not a database)"),
        ("nbgrader_config.py", "raise SystemExit(0)", "nbgrader_config.py cannot be run (SystemExit: 0): correct it."),
    ],
)
def test_a_file_of_the_class_that_cannot_be_used_is_said(
    name: str, text: str, said: str, tmp_path: Path, released: Notebook, capsys: pytest.CaptureFixture[str]
) -> None:
    hand_in(tmp_path, "one", released)
    (tmp_path / name).write_text(text)
    assert said in one_sentence(capsys, str(tmp_path))


@contextlib.contextmanager
def as_an_ordinary_user() -> Iterator[None]:
    """Root reads everything."""
    before = os.geteuid()
    os.seteuid(before or 65534)
    try:
        yield
    finally:
        os.seteuid(before)


@pytest.mark.skipif(not hasattr(os, "seteuid"), reason="Windows has other permissions")
@pytest.mark.parametrize("mode", [0o000, 0o444])
@pytest.mark.parametrize("closed", ["student", "chapter", "notebook"])
def test_what_may_not_be_read_costs_that_submission(closed: str, mode: int, released: Notebook) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        root.chmod(0o755)
        hand_in(root, "other", released)
        path = hand_in(root, "one", released)
        place = {"student": path.parents[1], "chapter": path.parent, "notebook": path}[closed]
        place.chmod(mode if closed != "notebook" else 0)
        with as_an_ordinary_user():
            found = collect(Classroom(root), [START])
            remarks, unread = found.remarks, {}
            for each in found.submissions:
                notes_in(root / "submitted" / each.student / START.folder)
                try:
                    read_cells(each.path) if each.path else unread.update({each.student: each.trouble})
                except NotebookError as error:
                    unread[each.student] = str(error)
        place.chmod(0o755)
    said = [*remarks, *unread.values()]
    assert [each.student for each in found.submissions] == (["other"] if closed == "student" else ["one", "other"])
    assert "other" not in unread
    assert len(said) == 1
    assert "cannot be read (Permission denied): check its permissions." in said[0]


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOENT, errno.ESTALE, errno.EACCES], ids=errno.errorcode.get)
@pytest.mark.parametrize("closed", ["student", "chapter"])
def test_a_folder_that_fails_while_it_is_read_stops_nobody(
    code: int, closed: str, tmp_path: Path, released: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = hand_in(tmp_path, "one", released)
    hand_in(tmp_path, "other", released)
    bad = path.parents[1] if closed == "student" else path.parent
    kept = intake.visible

    def visible(folder: Path) -> list[Path]:
        if folder == bad:
            raise OSError(code, os.strerror(code))
        return kept(folder)

    monkeypatch.setattr(intake, "visible", visible)
    found = collect(Classroom(tmp_path), [START])
    assert [each.student for each in found.submissions if each.path] == ["other"]
    assert os.strerror(code) in " ".join([*found.remarks, *(each.trouble for each in found.submissions)])


@pytest.mark.skipif(sys.platform == "win32", reason="Windows needs rights to make links, and has no FIFOs")
@pytest.mark.parametrize("change", ["gone", "link", "pipe", "folder", "folder gone"])
def test_a_notebook_that_changes_after_it_was_found(change: str, tmp_path: Path, released: Notebook) -> None:
    path = hand_in(tmp_path, "one", released)
    other = hand_in(tmp_path, "other", released)
    (found,) = [each for each in collect(Classroom(tmp_path), [START]).submissions if each.student == "one"]
    path.unlink()
    if change == "link":
        path.symlink_to(other)
    elif change == "pipe":
        os.mkfifo(path)
    elif change == "folder":
        path.mkdir()
    elif change == "folder gone":
        path.parent.rmdir()
    with pytest.raises(NotebookError, match=r"cannot be read|is no file"):
        read_cells(found.path)


def test_of_many_notebooks_a_few_are_named(tmp_path: Path, released: Notebook) -> None:
    """The sentence goes into the gradebook, into a page and on a line of the terminal."""
    for number in range(300):
        hand_in(tmp_path, "one", released, name=f"{number:03}{'x' * 200}.ipynb")
    (found,) = collect(Classroom(tmp_path), [START]).submissions
    assert "and 295 more and none is start.ipynb: rename the one that counts." in found.trouble
    assert len(found.trouble) < 1500
