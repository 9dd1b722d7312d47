"""Set the project up and run one of its commands.

    python autograder/bootstrap.py                 set up, nothing else
    python autograder/bootstrap.py test [...]      set up, then pytest
    python autograder/bootstrap.py COMMAND [...]   set up, then `autograder COMMAND`

Set-up makes .venv, installs requirements.txt into it (by uv where it can be had, otherwise by pip) and the project
itself, editable. A second run sees from a stamp in .venv that nothing changed. This file needs the standard library
alone, and every Python from 3.6 on can parse it: an old one is told what is missing, not shown a syntax error.
"""

import contextlib
import hashlib
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

OLDEST = (3, 11)
UV = "uv==0.13.9"
ROOT = Path(__file__).resolve().parent.parent

NO_NETWORK = re.compile(
    r"connection broken|NewConnectionError|ConnectTimeout|ReadTimeout|ProxyError|name resolution|getaddrinfo"
    r"|Name or service not known|Network is unreachable|Connection refused",
    re.IGNORECASE,
)


class SetUpFailed(Exception):
    """Set-up cannot go on; the message is one sentence with the remedy."""


def main(arguments: list, root: Path = ROOT, version: tuple = sys.version_info) -> int:
    """Set up `root` and run the command; returns an exit code where the command has not taken the process over."""
    try:
        require_python(version)
        set_up(root)
        return run(root, list(arguments))
    except SetUpFailed as failure:
        print(failure, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("Set-up was interrupted; the next run repairs what is half done.", file=sys.stderr)
        return 130


def require_python(version: tuple) -> None:
    """Raise SetUpFailed unless this Python is new enough."""
    if tuple(version[:2]) < OLDEST:
        raise SetUpFailed(
            "This is Python {}.{} and Gradwright needs {}.{} or newer: install one from python.org or your system's "
            "packages and name it, as in `make learn PYTHON=python3.12` or `python3.12 autograder/bootstrap.py "
            "learn`.".format(version[0], version[1], *OLDEST)
        )


def run(root: Path, arguments: list) -> int:
    """Hand over to the command named first in `arguments`."""
    python = str(python_of(root))
    if not arguments:
        print("Gradwright is set up in {}.".format(root / ".venv"))
        return 0
    if arguments[0] == "test":
        os.chdir(str(root))
        # Two workers with one thread each beat two with two: idle threads of the other's products stall both.
        environment = dict({"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}, **os.environ)
        # Shares made beforehand leave one worker with minutes of grading, and the other with nothing, at the end.
        return hand_over([python, "-m", "pytest", "-n", "auto", "--dist", "worksteal", *arguments[1:]], environment)
    if arguments[0] == "references":
        install_oracle(root)
    return hand_over([python, "-m", "autograder", *arguments], os.environ)


def hand_over(command: list, environment: dict) -> int:
    """Let `command` take the place of this process, so that Ctrl-C and the exit code are the command's alone."""
    if os.name != "nt":
        sys.stdout.flush()
        os.execve(command[0], command, environment)
    process = subprocess.Popen(command, env=environment)
    while True:
        # Windows sends Ctrl-C to both; JupyterLab answers it with a question, so the one who waits must go on waiting.
        with contextlib.suppress(KeyboardInterrupt):
            return process.wait()


# Set-up ---------------------------------------------------------------------------------------------------------------


def set_up(root: Path) -> None:
    """Make .venv equal to requirements.txt, unless its stamp says that it is."""
    if is_current(root):
        return
    with only_one(root):
        if is_current(root):
            return
        if not is_usable(root):
            make_environment(root)
        before = read_stamp(root)
        write_stamp(root, "unfinished")
        try:
            install(root)
        except SetUpFailed:
            # Both installers fetch everything before they change anything: what worked before still works.
            stamp_path(root).write_text(json.dumps(before))
            raise
        write_stamp(root, lock_hash(root))


def python_of(root: Path) -> Path:
    """The path of .venv's interpreter."""
    return root / ".venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def stamp_path(root):
    """The file that says what .venv holds: written last, "unfinished" while set-up runs."""
    return root / ".venv" / "gradwright-setup.json"


def write_stamp(root, state):
    stamp_path(root).write_text(json.dumps({"state": state, "root": str(root)}))


def read_stamp(root):
    """The stamp's content, or None where there is no stamp that can be read."""
    try:
        return json.loads(stamp_path(root).read_text())
    except (OSError, ValueError):
        return None


def lock_hash(root):
    """A digest of all that decides what .venv holds."""
    digest = hashlib.sha256(UV.encode())
    for name in ("requirements.txt", "pyproject.toml"):
        path = root / name
        if not path.is_file():
            raise SetUpFailed("{} is missing: fetch a complete copy of the project.".format(path))
        digest.update(path.read_bytes())
    return digest.hexdigest()


def is_current(root):
    """Whether .venv is finished, for this lock and this folder (a moved .venv has scripts that point elsewhere)."""
    wanted = {"state": lock_hash(root), "root": str(root)}
    return python_of(root).exists() and read_stamp(root) == wanted


def is_usable(root):
    """Whether .venv can be brought up to date in place: not half made, not moved, a new enough Python, with pip."""
    stamp = read_stamp(root)
    if not python_of(root).exists() or (stamp and (stamp["state"] == "unfinished" or stamp["root"] != str(root))):
        return False
    probe = "import sys, pip; sys.exit(sys.version_info[:2] < {})".format(OLDEST)
    return subprocess.call([str(python_of(root)), "-c", probe], stderr=subprocess.DEVNULL) == 0


def make_environment(root):
    """A new .venv with pip in it, in place of whatever is there."""
    print("Making {} with Python {}.{}.{}.".format(root / ".venv", *sys.version_info[:3]), flush=True)
    steps = [
        ([sys.executable, "-m", "venv", "--clear", "--without-pip", str(root / ".venv")], "unfinished"),
        ([str(python_of(root)), "-m", "ensurepip", "--upgrade", "--default-pip"], "empty"),
    ]
    for command, state in steps:
        code, text = listen(command)
        if code:
            print(text, file=sys.stderr)
            raise SetUpFailed(
                "Python could not make {}: see the lines above (on Debian and Ubuntu, `apt install python3-venv` "
                "brings what is missing).".format(root / ".venv")
            )
        write_stamp(root, state)


def install(root):
    """Everything in requirements.txt, then the project itself, into .venv."""
    print("Installing requirements.txt: seconds when it was downloaded before, a minute or two if not.", flush=True)
    project = ["--no-deps", "--no-build-isolation", "-e", str(root)]
    requirements = ["-r", str(root / "requirements.txt")]
    if has_uv(root) and uv_install(root, ["--compile-bytecode", *requirements]) and uv_install(root, project):
        return
    print("uv cannot be used here; pip does the same in a few minutes.", flush=True)
    pip_install(root, requirements)
    pip_install(root, project)


def has_uv(root):
    """Whether uv is in .venv, or could be put there; raises SetUpFailed where the registry cannot be reached at all."""
    code, text = pip(root, ["--retries", "2", "--only-binary", ":all:", UV])
    if code and NO_NETWORK.search(text):
        raise no_network()
    return code == 0


def uv_install(root, arguments):
    """Whether uv installed it. A failure has no consequence but that pip, which knows pip.conf, has its turn."""
    python = str(python_of(root))
    command = [python, "-m", "uv", "pip", "install", "--quiet", "--python", python, *arguments]
    return subprocess.call(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) == 0


def pip_install(root, arguments):
    """Install by pip; raises SetUpFailed, after pip's own words, where it cannot."""
    code, text = pip(root, arguments)
    if code and NO_NETWORK.search(text):
        raise no_network()
    if code:
        print(text, file=sys.stderr)
        raise SetUpFailed("pip could not install {}: its reason is above.".format(arguments[-1]))


def pip(root, arguments):
    """Run `pip install` in .venv; returns its exit code and what it said."""
    command = [str(python_of(root)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments]
    return listen(command)


def listen(command):
    """Run a command that prints nothing if all is well; returns its exit code and what it said."""
    environment = dict(os.environ, PIP_USER="0")
    done = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True
    )
    return done.returncode, done.stdout


def no_network():
    return SetUpFailed(
        "The package registry cannot be reached, and set-up needs it once for requirements.txt: connect to the network "
        "(or name a mirror in PIP_INDEX_URL) and run the same command again."
    )


def install_oracle(root):
    """PyTorch, which only `references` needs and which is not in the lock: an author's tool of several hundred MB."""
    import tomllib  # here, where the version has been checked: Python 3.10 has no such module

    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pip_install(root, ["-c", str(root / "requirements.txt")] + project["optional-dependencies"]["references"])


@contextlib.contextmanager
def only_one(root):
    """Hold the set-up lock of the project. The system frees it when this process ends, however it ends."""
    with open(str(root / ".venv.lock"), "a+") as file:
        if not got_lock(file):
            print("Another set-up is running here; waiting for it.", flush=True)
            while not got_lock(file):
                time.sleep(0.2)
        yield


def got_lock(file):
    """Whether this process now holds the lock on an open file."""
    if os.name == "nt":
        import msvcrt

        file.seek(0)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
    import fcntl

    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a network folder without locks: better set up unguarded than not at all
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
