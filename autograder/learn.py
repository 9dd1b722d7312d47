"""A learner's own copies in work/: made when they are missing, never touched when they are there."""

from __future__ import annotations

import errno
import os
import shlex
import socket
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from autograder.bootstrap import hand_over
from autograder.course import ROOT, Chapter, chapters
from autograder.errors import BadInput, SetupError

__all__ = ["copy_missing", "fresh", "learn"]

SETTINGS = Path(__file__).parent / "lab_settings"
"""JupyterLab's settings where they differ from its own: no question about news on the first start, and nothing of
nbgrader's, which is the instructor's (its Validate button runs the whole notebook and blocks the Lab meanwhile)."""
INSTRUCTORS = ("formgrader", "validate_assignment", "assignment_list", "course_list")
"""nbgrader's server extensions: each would look for a class and complain that there is none."""
HIDDEN = {".ipynb_checkpoints", "__pycache__"}


def learn(port: int | None = None, browser: bool = True, root: Path = ROOT) -> int:
    """Copy what is missing from course/ to work/ and open JupyterLab on the first chapter.

    Raises BadInput for a port that cannot be had. JupyterLab takes the process over; on Windows its exit code returns.
    """
    if port is not None:
        require_free(port)
    copied = copy_missing(root)
    folders = ", ".join(sorted({path.parts[0] for path in copied}))
    print(f"Copied to work/: {folders}." if copied else "work/ has a copy of every chapter; nothing was copied.")
    return hand_over(lab_command(port, browser, root), lab_environment())


def copy_missing(root: Path) -> list[Path]:
    """Copy every file of course/NN_name/ that work/NN_name/ lacks; returns their paths inside work/.

    Whatever is in work/ stays as it is: an empty file, a link that leads nowhere and a file with other content too.
    """
    course, work = root / "course", root / "work"
    sources = [path for one in chapters(root) for path in files_below(course / one.folder)]
    wanted = [path.relative_to(course) for path in sources]
    return [path for path in wanted if place_copy(course / path, work / path)]


def fresh(chapter: Chapter, root: Path = ROOT) -> Path:
    """Put an untouched copy of a chapter's notebook beside the learner's in work/; returns its path, and prints it."""
    source = root / "course" / chapter.folder / chapter.notebook
    folder = root / "work" / chapter.folder
    copy = next(folder / name for name in free_names(chapter) if place_copy(source, folder / name))
    print(f"{copy.relative_to(root)} is an untouched copy; what was in work/ is as it was.")
    return copy


def free_names(chapter: Chapter) -> Iterator[str]:
    """Names for copies, the plain one first: start.ipynb, start-fresh.ipynb, start-fresh-2.ipynb ..."""
    yield chapter.notebook
    yield f"{chapter.name}-fresh.ipynb"
    for number in count(2):
        yield f"{chapter.name}-fresh-{number}.ipynb"


def files_below(folder: Path) -> list[Path]:
    """The files of a chapter, without what Jupyter and Python leave beside them."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and not HIDDEN.intersection(path.parts))


def place_copy(source: Path, target: Path) -> bool:
    """Copy a file to a name that is free; False, and nothing done, where something has that name.

    Raises BadInput where a file takes a folder's place, SetupError where nothing can be written.
    """
    try:
        write_copy(source, target)
    except (FileExistsError, NotADirectoryError) as taken:
        for folder in reversed(target.parents):
            if not folder.is_dir():
                raise BadInput(f"{folder} is a file where a folder belongs: rename it and try again.") from taken
        return False
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        remedy = "free some space" if full else "make its folder writable, or move the project to a folder of your own"
        raise SetupError(
            f"{target} cannot be written ({error.strerror}): {remedy}, and run the same command again."
        ) from error
    return True


def write_copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    file = open(target, "xb")  # noqa: SIM115 - closed below, where a failure is not mistaken for a name taken
    try:
        with file:
            file.write(source.read_bytes())
    except BaseException:
        target.unlink()  # half a notebook would be kept for ever: it is never touched again
        raise


def require_free(port: int) -> None:
    """Raise BadInput unless a server can listen on this port of localhost."""
    if not 1 <= port <= 65535:
        raise BadInput(f"port {port} does not exist: choose one from 1024 to 65535.")
    for family, kind, protocol, _, address in socket.getaddrinfo("localhost", port, type=socket.SOCK_STREAM):
        with socket.socket(family, kind, protocol) as probe:
            if os.name != "nt":
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server does
            try:
                probe.bind(address)
            except PermissionError as error:
                raise BadInput(f"port {port} is reserved by the system: choose one from 1024 to 65535.") from error
            except OSError as error:
                raise BadInput(
                    f"port {port} is in use: choose another, or leave --port out and JupyterLab takes a free one."
                ) from error


def lab_environment() -> dict[str, str]:
    """The environment for JupyterLab: `autograder` and `jupyter` are found in its terminals too.

    Left to itself, it opens the tabs and terminals that its user had in another project.
    """
    workspaces = Path(sys.prefix, "share", "jupyter", "lab", "workspaces")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return {"JUPYTERLAB_WORKSPACES_DIR": str(workspaces), **os.environ, "PATH": path}


def lab_command(port: int | None, browser: bool, root: Path) -> list[str]:
    """The command that opens JupyterLab on the first chapter, its root the project so that all links resolve."""
    first = chapters(root)[0]
    command = [sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={root}", "--log-level=WARN"]
    command += [f"--LabApp.app_settings_dir={SETTINGS}"]
    command += [f"--ServerApp.jpserver_extensions=nbgrader.server_extensions.{name}=False" for name in INSTRUCTORS]
    if os.name != "nt":
        # Left to itself, the server starts a login shell where its output goes to a file, and that resets PATH.
        shell = shlex.quote(os.environ.get("SHELL") or "/bin/sh")
        command += [f"--ServerApp.terminado_settings=shell_command={shell}"]
    command += [f"--LabApp.default_url=/lab/tree/work/{first.folder}/{first.notebook}"]
    if port is not None:
        command += [f"--ServerApp.port={port}", "--ServerApp.port_retries=0"]
    if not browser:
        command += ["--no-browser"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command += ["--allow-root"]  # in a container the only user is root, and Jupyter would refuse to start
    return command
