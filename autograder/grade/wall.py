"""The wall itself: how bubblewrap is started, and all that is to be seen inside.

That is Python, the checks without their reference values and the answers of earlier chapters: no class, no network.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from autograder.course import ROOT, chapters
from autograder.errors import SetupError
from autograder.grade.isolate import INSIDE, PRIVATE, SPARED

APP = "/course"
"""Where the project's files stand in the sandbox."""
INNER = ("__init__.py", "cells.py", "protocol.py", "isolate.py", "worker.py")
"""The files of this package that are in there."""
SYSTEM = ("/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/local/bin", "/usr/local/lib",
          "/usr/share/zoneinfo")  # fmt: skip
"""The folders of the system that are seen. People keep work in others, such as /usr/src."""
ORACLE = ("torch",)
"""Libraries that nobody finds in there: the reference values were made with them."""
SETTINGS = {
    "PATH": "/usr/bin:/bin",
    "HOME": PRIVATE,
    "TMPDIR": PRIVATE,
    "MPLCONFIGDIR": PRIVATE,
    "MPLBACKEND": "Agg",
    "LANG": "C.UTF-8",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
}


SPARE = range(60706, 61184, 2)
"""Users that neither systemd nor the distributions give to anybody. Of each pair the second has runs, and the first
nothing: bubblewrap asks for a user 0 inside."""
NEEDED = 1 << 6 | 1 << 7 | 1 << 31
"""CAP_SETGID, CAP_SETUID, CAP_SETFCAP: to give a namespace other users than one's own, and root."""


def started(number: int, **how: Any) -> subprocess.Popen[bytes]:
    """bubblewrap with a warm process. Raises SetupError where it may not have the users that it needs."""
    first = spare()
    if not first:
        return subprocess.Popen(command(number), **how)
    ours, theirs = socket.socketpair()
    with ours, theirs, theirs.dup() as again:
        ends = theirs.fileno(), again.fileno()
        process = subprocess.Popen(command(number, *ends), pass_fds=ends, **how)
        theirs.close()
        again.close()
        child = child_of(ours)
        try:
            if child:
                map_users(child, first)
                ours.send(b"\n")
        except OSError as error:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)  # it waits for a word of its parent's, and does not see that one end
            process.kill()
            process.wait()
            raise SetupError(f"bubblewrap cannot be given a user for submissions: {error}") from error
    return process


def spare() -> int:
    """Where root grades, the first of two users out here that nobody has; else 0, and where none can be had.

    Each process that grades has its own, since kernels before 5.14 count the threads of all runs of a user together.
    """
    if os.geteuid() != 0:
        return 0
    held = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("CapEff"))
    first = SPARE[os.getpid() % len(SPARE)]
    there = all(is_mapped(kind, first) for kind in ("uid", "gid"))
    return first if there and int(held.split()[1], 16) & NEEDED == NEEDED else 0


def is_mapped(kind: str, first: int) -> bool:
    """Whether this and the next number are users or groups here: a container may have but a few."""
    rows = (map(int, line.split()) for line in Path(f"/proc/self/{kind}_map").read_text().splitlines())
    return any(start <= first and first + 1 < start + count for start, _, count in rows)


def child_of(bubblewrap: socket.socket) -> int:
    """The number of the process that a new bubblewrap has made; 0 where it has ended, and says why on stderr."""
    told = b""
    while b"}" not in told:
        data = bubblewrap.recv(1 << 12)
        if not data:
            return 0
        told += data
    return json.loads(told)["child-pid"]


def map_users(child: int, first: int) -> None:
    """Give a process its users: ours, who can read what we can, and the two that nobody has."""
    for kind, inner in zip(("uid", "gid"), INSIDE, strict=True):
        ours = os.geteuid() if kind == "uid" else os.getegid()
        text = f"{SPARED - 1} {first} 2\n{inner} {ours} 1\n"
        Path(f"/proc/{child}/{kind}_map").write_text(text)


def command(number: int, *ends: int) -> list[str]:
    """bubblewrap, and what is to be seen inside.

    ends  where it tells its process's number, and where it waits until that has its users
    """
    user, group = map(str, INSIDE)
    wall = ["--unshare-all", "--unshare-user", "--uid", user, "--gid", group, "--cap-drop", "ALL"]
    wall += ["--die-with-parent", "--new-session", "--clearenv", "--hostname", "sandbox"]
    if ends:
        user = str(SPARED)
        wall += ["--info-fd", str(ends[0]), "--userns-block-fd", str(ends[1])]
        wall += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    for name, value in SETTINGS.items():
        wall += ["--setenv", name, value]
    shown = [*system(), *interpreter(), *project(number)]
    wall += [*folders_above(shown), *shown, "--remount-ro", "/"]
    python = [str(direct(sys.executable)), "-I", "-S", "-c", PROGRAM, str(number), "warm", user]
    return [shutil.which("bwrap") or "bwrap", *wall, "--", *python]


def direct(path: str) -> Path:
    """A path without `..`, of which bubblewrap makes another; else as it is: an environment's Python is a link."""
    return Path(path).parent.resolve() / Path(path).name if ".." in Path(path).parts else Path(path)


def folders_above(shown: Sequence[str]) -> Iterator[str]:
    """The folders that lead to what is shown. Where bubblewrap makes them by itself, they are its own user's alone."""
    places = [place for way, place in zip(shown, shown[2:], strict=False) if way in ("--ro-bind", "--ro-bind-try")]
    for folder in sorted({folder for place in places for folder in Path(place).parents}):
        if not folder.is_symlink():
            yield from ("--dir", str(folder))


PROGRAM = (
    "import sys; "
    f"sys.path[:0] = [{APP!r}, {APP + '/course'!r}, {str(direct(sysconfig.get_path('purelib')))!r}, "
    f"{str(direct(sysconfig.get_path('platlib')))!r}]; import runpy; "
    "runpy.run_module('autograder.grade.worker', run_name='__main__', alter_sys=True)"
)


def system() -> Iterator[str]:
    """The system's libraries, an empty place to write, and the few devices that Python knows."""
    for place in (*SYSTEM, "/etc/ld.so.cache"):
        yield from ("--ro-bind-try", place, place)
    for place in map(Path, ("/bin", "/lib", "/lib64", "/lib32", "/sbin")):
        if place.is_symlink():
            yield from ("--symlink", os.readlink(place), str(place))
        elif place.is_dir():
            yield from ("--ro-bind", str(place), str(place))
    yield from ("--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev", "--dir", PRIVATE, "--dir", "/tmp")
    yield from ("--chdir", PRIVATE)


def interpreter() -> Iterator[str]:
    """Python and its packages: the environment, and the installation that it was made from."""
    places = [*dict.fromkeys((Path(sys.base_prefix).resolve(), direct(sys.base_prefix), direct(sys.prefix)))]
    for place in places:
        if str(place) not in ("/usr", "/usr/local"):
            yield from ("--ro-bind", str(place), str(place))
    bound = [*map(Path, SYSTEM), *(place for place in places if str(place) not in ("/usr", "/usr/local"))]
    for answers in (*other_packages(), *own_folders(bound)):
        yield from ("--tmpfs", str(answers), "--remount-ro", str(answers))


def packages() -> set[Path]:
    """Where the packages of this environment are."""
    return {direct(sysconfig.get_path(name)) for name in ("purelib", "platlib")}


def other_packages() -> Iterator[Path]:
    """Libraries that nobody shall find: those that made the reference values, ours in full, and those of the Python
    installations below the environment, where another PyTorch may be."""
    for place in packages():
        yield from filter(Path.is_dir, (place / name for name in (*ORACLE, "autograder", "gradwright")))
    for lib in {Path("/usr/lib"), Path("/usr/local/lib"), Path(sys.base_prefix).resolve() / "lib"}:
        for found in (*lib.glob("python3*/site-packages"), *lib.glob("python3*/dist-packages")):
            if not found.is_symlink() and not any(place.is_relative_to(found) for place in packages()):
                yield found


def own_folders(bound: Sequence[Path]) -> Iterator[Path]:
    """Folders of the project that would be seen because Python is installed around it, or it into Python."""
    if not any(ROOT.is_relative_to(place) for place in bound):
        return
    needed = {direct(sys.executable), *packages()}
    for folder in filter(Path.is_dir, ROOT.iterdir()):
        ours = ROOT not in packages() or folder.name in ("autograder", "solutions")
        if ours and not folder.is_symlink() and not any(place.is_relative_to(folder) for place in needed):
            yield folder


def project(number: int) -> Iterator[str]:
    """What a run needs of the project: the checks without reference values, gradwright, and earlier chapters."""
    checks = ROOT / "autograder" / "checks"
    shown = [ROOT / "autograder" / name for name in ("__init__.py", "errors.py")]
    shown += [*checks.glob("*.py"), *(checks / "exercises").glob("*.py"), ROOT / "course" / "gradwright"]
    shown += [ROOT / "autograder" / "grade" / name for name in INNER]
    for chapter in chapters():
        if chapter.number < number:
            shown.append(ROOT / "solutions" / f"{chapter.folder}.py")
        if chapter.number == number:
            shown.append(ROOT / "course" / chapter.folder / chapter.notebook)
    for path in shown:
        yield from ("--ro-bind", str(path), f"{APP}/{path.relative_to(ROOT)}")
