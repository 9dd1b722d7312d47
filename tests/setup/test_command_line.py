"""`autograder` and the Makefile: each command calls one function, and each is where the help says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest

from autograder.__main__ import main
from autograder.course import ROOT, chapter, chapters
from autograder.errors import BadInput, GradwrightError
from gradwright._chapters import find_chapter

COMMANDS = ["learn", "status", "check", "fresh", "grade", "build", "references", "mistakes", "bench"]
TARGETS = ["help", "learn", "test", "grade", "build", "references", "bench", "clean"]


@pytest.fixture
def course(tmp_path: Path) -> Path:
    for name in ["00_start/start", "02_autodiff/autodiff", "gradwright/not_a_chapter", "01_tensor/tensor"]:
        path = tmp_path / "course" / f"{name}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text("{}")
    return tmp_path


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, tuple, dict]]:
    """Calls of the functions behind the commands, each replaced by one that returns 3."""
    calls: list[tuple[str, tuple, dict]] = []

    def replace(module: str, name: str) -> None:
        stand_in = sys.modules.get(f"stand-in {module}") or types.ModuleType(module)
        monkeypatch.setitem(sys.modules, f"stand-in {module}", stand_in)
        monkeypatch.setitem(sys.modules, module, stand_in)

        def record(*arguments, **options):
            calls.append((name, arguments, options))
            return 3

        setattr(stand_in, name, record)

    replace("autograder.learn", "learn")
    replace("autograder.learn", "fresh")
    replace("autograder.shell", "status")
    replace("autograder.shell", "check_chapter")
    replace("autograder.build.notebook", "build_all")
    replace("autograder.build.references", "rebuild")
    replace("autograder.build.mistakes", "report")
    replace("autograder.bench", "bench")
    monkeypatch.setattr("autograder.course.chapter", lambda wanted: find_chapter(2))
    return calls


@pytest.mark.parametrize(
    ("line", "call", "code"),
    [
        ("learn", ("learn", (None, True), {}), 3),
        ("learn --port 9000 --no-browser", ("learn", (9000, False), {}), 3),
        ("status", ("status", (), {}), 3),
        ("check 2", ("check_chapter", (2,), {}), 3),
        ("fresh autodiff", ("fresh", (find_chapter(2),), {}), 0),
        ("build", ("build_all", (), {}), 0),
        ("references", ("rebuild", (), {}), 3),
        ("mistakes", ("report", (), {"as_json": False}), 3),
        ("mistakes --json", ("report", (), {"as_json": True}), 3),
        ("bench", ("bench", ([],), {}), 3),
        ("bench tensor start", ("bench", (["tensor", "start"],), {}), 3),
    ],
)
def test_a_command_calls_one_function(line: str, call: tuple, code: int, called: list) -> None:
    assert main(line.split()) == code
    assert called == [call]


def test_an_error_is_one_sentence_on_stderr(
    called: list, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails() -> int:
        raise GradwrightError("the disk is on fire: put it out.")

    monkeypatch.setattr(sys.modules["autograder.shell"], "status", fails)
    assert main(["status"]) == 2
    assert capsys.readouterr() == ("", "autograder: the disk is on fire: put it out.\n")


def test_a_reader_who_has_seen_enough_ends_a_command_in_silence() -> None:
    """`autograder check --help | head -1`, with a pipe that is closed before anything is written."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        code = "import autograder.__main__ as m, sys; m.parser = lambda: P; sys.exit(m.main([]))"
        code = code.replace("P", "types.SimpleNamespace(parse_args=lambda a: types.SimpleNamespace(run=print))", 1)
        run = [sys.executable, "-c", f"import types; {code}"]
        ended = subprocess.run(run, stdout=writing, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    finally:
        os.close(writing)
    assert (ended.returncode, ended.stderr) == (1, "")


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["--help"])
    assert left.value.code == 0
    assert re.findall(r"^    ([a-z]+)\b", capsys.readouterr().out, re.MULTILINE) == COMMANDS


@pytest.mark.parametrize("wanted", ["2", "02", "autodiff", "02_autodiff"])
def test_a_chapter_has_four_names(wanted: str, course: Path) -> None:
    assert chapter(wanted, course) == find_chapter(2)


@pytest.mark.parametrize("wanted", ["3", "002", "Autodiff", "autodif", "", "02_tensor", "-1", "../00_start"])
def test_an_unknown_chapter_is_told_what_there_is(wanted: str, course: Path) -> None:
    with pytest.raises(BadInput) as caught:
        chapter(wanted, course)
    assert str(caught.value) == (
        f"there is no chapter {wanted!r}: choose one of 00_start, 01_tensor, 02_autodiff, by number or by name."
    )


def test_chapters_come_in_order(course: Path) -> None:
    assert [one.folder for one in chapters(course)] == ["00_start", "01_tensor", "02_autodiff"]
    assert chapters(course)[2].notebook == "autodiff.ipynb"


# The Makefile --------------------------------------------------------------------------------------------------------


def recipes() -> dict[str, list[str]]:
    """The lines of each target of the Makefile."""
    found: dict[str, list[str]] = {}
    for line in (ROOT / "Makefile").read_text(encoding="utf-8").splitlines():
        if match := re.match(r"([a-z]+):", line):
            lines = found[match[1]] = []
        elif line.startswith("\t"):
            lines.append(line.strip())
    return found


def test_each_target_is_one_line_and_is_explained() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert list(recipes()) == TARGETS
    assert [len(lines) for lines in recipes().values()] == [1] * len(TARGETS)
    assert re.findall(r"^([a-z]+): +## \S", text, re.MULTILINE) == TARGETS
    assert f".PHONY: {' '.join(TARGETS)}\n" in text


def test_learn_passes_options_on() -> None:
    assert recipes()["learn"] == ["@$(SET_UP) learn $(ARGS)"]


@pytest.mark.parametrize("target", ["test", "build", "references", "bench"])
def test_a_target_sets_up_and_names_a_command(target: str) -> None:
    assert recipes()[target] == [f"@$(SET_UP) {target}"]
    assert target == "test" or target in COMMANDS


def test_clean_keeps_what_people_made() -> None:
    removed = recipes()["clean"][0].removeprefix("@rm -rf ").split()
    assert ".venv" in removed
    assert [name for name in removed if not re.fullmatch(r"\.[a-z_.]+|dist", name)] == []
