"""A learner's copies: what is missing comes, what is there stays."""

from __future__ import annotations

import errno
import os
import shlex
import shutil
import socket
import sys
import tempfile
from pathlib import Path
from pkgutil import iter_modules

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jupyterlab_server.config import get_page_config
from nbgrader import server_extensions

from autograder import learn
from autograder.errors import BadInput, SetupError
from gradwright._chapters import find_chapter

FILES = ["00_start/start.ipynb", "01_tensor/tensor.ipynb", "01_tensor/figures/strides.png"]
AUTODIFF = find_chapter(2)


def make_course(root: Path) -> Path:
    for name in [*FILES, "02_autodiff/autodiff.ipynb"]:
        path = root / "course" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"released: {name}")
    (root / "course" / "data").mkdir()
    (root / "course" / "data" / "digits.npz").write_text("not a chapter's")
    return root


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_course(tmp_path)


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Every file below a folder: its bytes and the time of its last change."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


there = st.dictionaries(
    st.sampled_from([*FILES, "00_start/notes.ipynb", "01_tensor/.ipynb_checkpoints/old", "mine.txt"]),
    st.binary(max_size=20),
)


@given(there)
@settings(max_examples=40, deadline=None)
def test_what_is_there_is_never_touched_and_what_is_missing_comes(before: dict[str, bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = make_course(Path(folder))
        work = root / "work"
        for name, content in before.items():
            (work / name).parent.mkdir(parents=True, exist_ok=True)
            (work / name).write_bytes(content)
            os.utime(work / name, ns=(10**18, 10**18))
        released = {*FILES, "02_autodiff/autodiff.ipynb"}

        copied = learn.copy_missing(root)

        after = contents(work)
        assert {name: after[name] for name in before} == {name: (text, 10**18) for name, text in before.items()}
        assert {path.as_posix() for path in copied} == released - set(before)
        assert set(after) == released | set(before)
        for name in released - set(before):
            assert after[name][0] == (root / "course" / name).read_bytes()
        assert learn.copy_missing(root) == []


def test_a_link_that_leads_nowhere_stays(project: Path) -> None:
    target = project / "work" / FILES[0]
    target.parent.mkdir(parents=True)
    target.symlink_to("on-another-disk.ipynb")
    learn.copy_missing(project)
    assert target.readlink() == Path("on-another-disk.ipynb")
    assert not target.exists()


def test_a_file_where_a_folder_belongs_is_named(project: Path) -> None:
    (project / "work").mkdir()
    (project / "work" / "01_tensor").write_text("mine")
    with pytest.raises(BadInput, match="01_tensor is a file where a folder belongs: rename it and try again"):
        learn.copy_missing(project)
    assert (project / "work" / "01_tensor").read_text() == "mine"


def test_a_copy_that_fails_leaves_no_half_notebook(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full_disk(path: Path) -> bytes:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "read_bytes", full_disk)
    with pytest.raises(SetupError) as caught:
        learn.copy_missing(project)
    target = project / "work" / FILES[0]
    assert str(caught.value) == (
        f"{target} cannot be written (No space left on device): free some space, and run the same command again."
    )
    assert contents(project / "work") == {}


def test_a_folder_that_cannot_be_written_is_named(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_only(path: Path, **options: bool) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", read_only)
    with pytest.raises(SetupError) as caught:
        learn.fresh(AUTODIFF, project)
    target = project / "work" / "02_autodiff" / "autodiff.ipynb"
    assert str(caught.value) == (
        f"{target} cannot be written (Permission denied): make its folder writable, or move the project to a folder "
        "of your own, and run the same command again."
    )


def test_learn_says_what_it_copied(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(learn, "hand_over", lambda command, environment: 0)
    assert learn.learn(root=project) == 0
    assert learn.learn(root=project) == 0
    assert capsys.readouterr().out.splitlines() == [
        "Copied to work/: 00_start, 01_tensor, 02_autodiff.",
        "work/ has a copy of every chapter; nothing was copied.",
    ]


def test_the_lab_opens_the_first_chapter_with_the_project_as_its_root(project: Path) -> None:
    command = learn.lab_command(9000, browser=False, root=project)
    assert f"--ServerApp.root_dir={project}" in command
    assert "--LabApp.default_url=/lab/tree/work/00_start/start.ipynb" in command
    assert {"--ServerApp.port=9000", "--ServerApp.port_retries=0", "--no-browser"} <= set(command)


def test_the_lab_s_tabs_are_this_project_s_and_no_other_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JUPYTERLAB_WORKSPACES_DIR", raising=False)
    assert Path(learn.lab_environment()["JUPYTERLAB_WORKSPACES_DIR"]).is_relative_to(sys.prefix)
    monkeypatch.setenv("JUPYTERLAB_WORKSPACES_DIR", "elsewhere")
    assert learn.lab_environment()["JUPYTERLAB_WORKSPACES_DIR"] == "elsewhere"


def test_without_a_port_the_lab_chooses_one(project: Path) -> None:
    assert not [
        part for part in learn.lab_command(None, browser=True, root=project) if part.startswith("--ServerApp.port")
    ]


def test_a_port_in_use_is_refused_before_anything_is_copied(project: Path) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        with pytest.raises(BadInput, match=f"port {port} is in use: choose another, or leave --port out"):
            learn.learn(port, root=project)
    assert not (project / "work").exists()
    learn.require_free(port)


@pytest.mark.parametrize("port", [0, -1, 65536])
def test_a_port_that_does_not_exist_is_refused(port: int) -> None:
    with pytest.raises(BadInput, match=f"port {port} does not exist"):
        learn.require_free(port)


def test_a_course_without_chapters_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="holds no chapter"):
        learn.learn(root=tmp_path)


def test_fresh_copies_stand_beside_the_learner_s(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    learn.copy_missing(project)
    folder = project / "work" / "02_autodiff"
    (folder / "autodiff.ipynb").write_text("three evenings of work")
    names = [learn.fresh(AUTODIFF, project).name for _ in range(3)]
    assert names == ["autodiff-fresh.ipynb", "autodiff-fresh-2.ipynb", "autodiff-fresh-3.ipynb"]
    assert (folder / "autodiff.ipynb").read_text() == "three evenings of work"
    for name in names:
        assert (folder / name).read_text() == "released: 02_autodiff/autodiff.ipynb"
    first = Path("work/02_autodiff/autodiff-fresh.ipynb")
    assert capsys.readouterr().out.startswith(f"{first} is an untouched copy; what was in work/ is as it was.\n")


def test_fresh_never_overwrites(project: Path) -> None:
    folder = project / "work" / "02_autodiff"
    folder.mkdir(parents=True)
    for name in ["autodiff.ipynb", "autodiff-fresh.ipynb", "autodiff-fresh-3.ipynb"]:
        (folder / name).write_text("mine")
    made = [learn.fresh(AUTODIFF, project).name for _ in range(2)]
    assert made == ["autodiff-fresh-2.ipynb", "autodiff-fresh-4.ipynb"]
    assert (folder / "autodiff-fresh-3.ipynb").read_text() == "mine"


def test_fresh_is_the_plain_copy_where_there_is_none(project: Path) -> None:
    assert learn.fresh(AUTODIFF, project) == project / "work" / "02_autodiff" / "autodiff.ipynb"


def test_a_terminal_of_the_lab_finds_the_commands() -> None:
    assert shutil.which("autograder", path=learn.lab_environment()["PATH"].split(os.pathsep)[0])


def test_a_terminal_of_the_lab_is_no_login_shell_which_would_reset_the_path(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, shell in [("/opt/my shells/fish", ["/opt/my shells/fish"]), ("", ["/bin/sh"])]:
        monkeypatch.setenv("SHELL", name)
        option = next(part for part in learn.lab_command(None, True, project) if "terminado_settings" in part)
        assert shlex.split(option.partition("shell_command=")[2]) == shell


def test_nothing_of_nbgrader_runs_in_a_learner_s_lab(project: Path) -> None:
    command = learn.lab_command(None, True, project)
    names = [module.name for module in iter_modules(server_extensions.__path__, "nbgrader.server_extensions.")]
    assert names
    assert {f"--ServerApp.jpserver_extensions={name}=False" for name in names} <= set(command)
    settings = next(part for part in command if "app_settings_dir" in part).partition("=")[2]
    assert "@jupyter/nbgrader" in get_page_config([], settings)["disabledExtensions"]
