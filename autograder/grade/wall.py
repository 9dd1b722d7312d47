"""The wall itself: the command that starts bubblewrap, and all that is to be seen inside.

That is Python, the checks without their reference values and the answers of earlier chapters: no class, no network.
"""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path

from autograder.course import ROOT, chapters
from autograder.grade.isolate import INSIDE, PRIVATE

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


def direct(path: str) -> Path:
    """A path without `..`, of which bubblewrap makes another; else as it is: an environment's Python is a link."""
    return Path(path).parent.resolve() / Path(path).name if ".." in Path(path).parts else Path(path)


def command(number: int) -> list[str]:
    """bubblewrap, and what is to be seen inside."""
    user, group = map(str, INSIDE)
    wall = ["--unshare-all", "--unshare-user", "--uid", user, "--gid", group, "--cap-drop", "ALL"]
    wall += ["--die-with-parent", "--new-session", "--clearenv", "--hostname", "sandbox"]
    for name, value in SETTINGS.items():
        wall += ["--setenv", name, value]
    python = [str(direct(sys.executable)), "-I", "-S", "-c", PROGRAM, str(number), "warm"]
    wall += [*system(), *interpreter(), *project(number), "--remount-ro", "/"]
    return [shutil.which("bwrap") or "bwrap", *wall, "--", *python]


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
