"""The set-up script: what it says when it cannot go on, and when it leaves .venv alone."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from autograder import bootstrap
from autograder.course import ROOT

SCRIPT = ROOT / "autograder" / "bootstrap.py"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with nothing to install: a lock, a pyproject.toml and no .venv."""
    root = tmp_path / "a project with blanks"
    root.mkdir()
    (root / "requirements.txt").write_text("")
    (root / "pyproject.toml").write_text('[project]\nname = "gradwright"\n')
    return root


@pytest.fixture
def installs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What set-up did, with the slow steps replaced."""
    done: list[str] = []

    def make_environment(root: Path) -> None:
        done.append("environment")
        python = bootstrap.python_of(root)
        python.parent.mkdir(parents=True, exist_ok=True)
        if not python.exists():
            python.symlink_to(sys.executable)
        if Path(sys.prefix, "pyvenv.cfg").exists() and not (root / ".venv" / "lib").exists():
            (root / ".venv" / "lib").symlink_to(Path(sys.prefix, "lib"))
            (root / ".venv" / "pyvenv.cfg").write_text(Path(sys.prefix, "pyvenv.cfg").read_text())
        bootstrap.write_stamp(root, "empty")

    monkeypatch.setattr(bootstrap, "make_environment", make_environment)
    monkeypatch.setattr(bootstrap, "install", lambda root: done.append("install"))
    return done


@pytest.mark.parametrize("version", [(3, 6, 15), (3, 10, 13)])
def test_an_old_python_is_named_with_the_remedy(
    version: tuple[int, ...], project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bootstrap.main(["learn"], root=project, version=version) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == (
        f"This is Python 3.{version[1]} and Gradwright needs 3.11 or newer: install one from python.org or your "
        "system's packages and name it, as in `make learn PYTHON=python3.12` or `python3.12 autograder/bootstrap.py "
        "learn`.\n"
    )
    assert not (project / ".venv").exists()


def test_the_oldest_python_accepted_is_the_one_that_is_stated() -> None:
    bootstrap.require_python((3, 11, 0))
    bootstrap.require_python((4, 0, 0))


def test_every_python_since_3_6_can_parse_the_script() -> None:
    text = SCRIPT.read_text(encoding="utf-8")
    ast.parse(text, feature_version=(3, 6))
    assert "from __future__" not in text  # `annotations` is an error before 3.7


def test_the_script_needs_the_standard_library_alone() -> None:
    tree = ast.parse(SCRIPT.read_text(encoding="utf-8"))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported <= sys.stdlib_module_names


def test_set_up_once_then_never_again(project: Path, installs: list[str]) -> None:
    bootstrap.set_up(project)
    bootstrap.set_up(project)
    assert installs == ["environment", "install"]


@pytest.mark.parametrize("name", ["requirements.txt", "pyproject.toml"])
def test_a_changed_lock_is_installed_in_place(name: str, project: Path, installs: list[str]) -> None:
    bootstrap.set_up(project)
    with open(project / name, "a") as file:
        file.write("# changed\n")
    bootstrap.set_up(project)
    assert installs == ["environment", "install", "install"]


def test_a_half_made_environment_is_made_again(project: Path, installs: list[str]) -> None:
    bootstrap.set_up(project)
    bootstrap.write_stamp(project, "unfinished")  # what a killed set-up leaves
    bootstrap.set_up(project)
    assert installs == ["environment", "install"] * 2


def test_an_environment_that_somebody_made_is_kept(project: Path, installs: list[str]) -> None:
    bootstrap.make_environment(project)
    bootstrap.stamp_path(project).unlink()
    installs.clear()
    bootstrap.set_up(project)
    assert installs == ["install"]


def test_an_environment_without_pip_is_made_again(project: Path, installs: list[str]) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(project / ".venv")], check=True)
    bootstrap.set_up(project)
    assert installs == ["environment", "install"]


def test_an_environment_that_moved_is_made_again(project: Path, installs: list[str]) -> None:
    bootstrap.set_up(project)
    moved = project.rename(project.with_name("moved"))
    bootstrap.set_up(moved)
    assert installs == ["environment", "install"] * 2


def test_an_environment_whose_python_is_gone_is_made_again(project: Path, installs: list[str]) -> None:
    bootstrap.set_up(project)
    bootstrap.python_of(project).unlink()
    bootstrap.set_up(project)
    assert installs == ["environment", "install"] * 2


def test_an_interrupted_installation_leaves_its_mark(
    project: Path, installs: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(root: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(bootstrap, "install", interrupted)
    assert bootstrap.main([], root=project) == 130
    assert bootstrap.read_stamp(project)["state"] == "unfinished"
    assert capsys.readouterr().err == "Set-up was interrupted; the next run repairs what is half done.\n"


def test_an_update_that_fails_keeps_what_worked(
    project: Path, installs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    bootstrap.set_up(project)
    before = bootstrap.read_stamp(project)
    (project / "requirements.txt").write_text("# newer\n")

    def offline(root: Path) -> None:
        raise bootstrap.no_network()

    monkeypatch.setattr(bootstrap, "install", offline)
    with pytest.raises(bootstrap.SetUpFailed):
        bootstrap.set_up(project)
    assert bootstrap.read_stamp(project) == before
    assert bootstrap.is_usable(project)


def test_an_incomplete_project_is_named(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "requirements.txt").unlink()
    assert bootstrap.main(["learn"], root=project) == 2
    path = project / "requirements.txt"
    assert capsys.readouterr().err == f"{path} is missing: fetch a complete copy of the project.\n"


def test_without_network_one_sentence_says_so(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A real .venv and a real pip, whose registry refuses every connection."""
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("UV_INDEX_URL", "http://127.0.0.1:9/simple")
    assert bootstrap.main(["learn"], root=project) == 2
    assert capsys.readouterr().err == (
        "The package registry cannot be reached, and set-up needs it once for requirements.txt: connect to the network "
        "(or name a mirror in PIP_INDEX_URL) and run the same command again.\n"
    )
    assert not bootstrap.is_current(project)
    assert bootstrap.is_usable(project)


@pytest.mark.parametrize("missing", ["no uv", "uv cannot install"])
def test_pip_takes_over_where_uv_cannot_be_had(
    missing: str, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[list[str]] = []

    def pip(root: Path, arguments: list[str]) -> tuple[int, str]:
        asked.append(arguments)
        refused = missing == "no uv" and bootstrap.UV in arguments
        return (1, "ERROR: No matching distribution found") if refused else (0, "")

    monkeypatch.setattr(bootstrap, "pip", pip)
    monkeypatch.setattr(bootstrap, "uv_install", lambda root, arguments: False)
    bootstrap.install(project)
    assert [arguments[-1] for arguments in asked] == [bootstrap.UV, str(project / "requirements.txt"), str(project)]
    assert "uv cannot be used here" in capsys.readouterr().out


def test_what_pip_says_is_shown_when_it_is_not_the_network(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bootstrap, "pip", lambda root, arguments: (1, "ERROR: No space left on device"))
    with pytest.raises(bootstrap.SetUpFailed, match="pip could not install numpy: its reason is above"):
        bootstrap.pip_install(project, ["numpy"])
    assert "No space left on device" in capsys.readouterr().err


def test_references_brings_the_pinned_pytorch(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = '[project.optional-dependencies]\nreferences = ["torch==1.2.3"]\n'
    (project / "pyproject.toml").write_text("[project]\n" + text)
    asked: list[list[str]] = []
    monkeypatch.setattr(bootstrap, "pip_install", lambda root, arguments: asked.append(arguments))
    monkeypatch.setattr(bootstrap, "hand_over", lambda command, environment: 0)
    assert bootstrap.run(project, ["references"]) == 0
    assert asked == [["-c", str(project / "requirements.txt"), "torch==1.2.3"]]


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (["learn", "--port", "9000"], ["-m", "autograder", "learn", "--port", "9000"]),
        (["check", "02"], ["-m", "autograder", "check", "02"]),
        (["test", "-x"], ["-m", "pytest", "-n", "auto", "--dist", "worksteal", "-x"]),
    ],
)
def test_the_command_gets_the_rest_of_the_line(
    arguments: list[str], command: list[str], project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    monkeypatch.setattr(bootstrap, "hand_over", lambda command, environment: command)
    assert bootstrap.run(project, arguments) == [str(bootstrap.python_of(project)), *command]


def test_the_exit_code_is_the_command_s_own() -> None:
    program = (
        "import os, sys; from autograder.bootstrap import hand_over;"
        "hand_over([sys.executable, '-c', 'raise SystemExit(7)'], os.environ)"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT).returncode == 7


SET_UP_SLOWLY = """
import sys, time, venv
from pathlib import Path
from autograder import bootstrap
log = Path(sys.argv[1], "log")
def make_environment(root):
    venv.create(root / ".venv")
bootstrap.make_environment = make_environment
def slow(root):
    with log.open("a") as file: file.write("begin\\n")
    time.sleep(0.5)
    with log.open("a") as file: file.write("end\\n")
bootstrap.install = slow
sys.exit(bootstrap.main([], root=Path(sys.argv[1])))
"""


def test_two_at_once_do_the_work_once(project: Path) -> None:
    running = [
        subprocess.Popen([sys.executable, "-c", SET_UP_SLOWLY, str(project)], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    said = [process.communicate()[0] for process in running]
    assert [process.returncode for process in running] == [0, 0, 0]
    assert (project / "log").read_text() == "begin\nend\n"
    assert sum("waiting for it" in text for text in said) == 2
    assert json.loads(bootstrap.stamp_path(project).read_text())["state"] == bootstrap.lock_hash(project)
