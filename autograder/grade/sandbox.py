"""The outside of the wall: starts the processes in which learners' code runs, and hears what they say.

Two levels. *bubblewrap*: a warm process for each chapter lives in a sandbox with Python, the checks without their
reference values and the answers of earlier chapters, and with nothing else of this machine: no class, no network. Each
run is a copy of it, apart from all others (isolate.py). *None*: a plain process with limits and with your rights, for
where bubblewrap is missing; it is as fair, but it can read and change what you can.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import queue
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import numpy as np

from autograder.course import ROOT
from autograder.errors import SetupError
from autograder.grade.clock import BUSY, SHORTEST, RunClock, Watch, children, last_below
from autograder.grade.isolate import CALLS
from autograder.grade.protocol import Frames, Message, ProtocolError
from autograder.grade.wall import SETTINGS, started

MOST_BYTES = 64 * 2**20
"""Of all that one run may say."""
PATIENCE = 300.0
"""Seconds in which the warm process must be ready, and must have ended a run that it was told to end."""


class Talk(Protocol):
    """The judge's side of a conversation with a run."""

    naps: float
    """Seconds that the run may sleep or wait in all, however it divides them."""

    def opening(self) -> bytes:
        """The first frame to send."""

    def patience(self) -> float:
        """Seconds of CPU time until the next frame must be there."""

    def hear(self, message: Message, arrays: list[np.ndarray]) -> bytes | None:
        """Take a frame; returns what is to be sent next, or None when all is said. Raises ProtocolError for a frame
        that is out of place."""


@dataclass(frozen=True)
class Ending:
    """How a run ended."""

    way: str
    """`done`, `died`, `overran` or `garbled`: it had said all, it was gone, it was late, it spoke nonsense."""
    signal: int = 0
    """What killed it, where it died of a signal."""
    seconds: float = 0.0
    """CPU time, or where the system does not tell, the time in which it was not idle."""
    idle: float = 0.0
    """Time in which it slept or waited, as far as that can be told."""


# Levels


@cache
def weakness() -> str:
    """Why there is no isolation on this machine; empty where there is. Found out by a run that does nothing."""
    if not sys.platform.startswith("linux"):
        return "bubblewrap needs Linux"
    if platform.machine() not in CALLS:
        return f"there is no list of system calls for {platform.machine()}"
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed (in Debian, Ubuntu and Fedora it is the package bubblewrap)"
    probe = Walled(0)
    try:
        probe.start()
    except SetupError as error:
        return str(error)
    finally:
        probe.stop()
    return ""


def level(weak: bool) -> tuple[bool, str]:
    """Whether submissions run in bubblewrap, and the line a run prints about what they could do.

    `weak`: they may also run without. Raises SetupError where they would have to and may not.
    """
    reason = weakness()
    if not reason:
        return True, "Isolation: bubblewrap. Submissions see neither your files nor answers, each other or a network."
    if not weak:
        raise SetupError(
            f"submissions cannot be kept away from your files here: {reason}. Install what is missing, or grade people "
            f"whom you trust with --allow-weak-isolation."
        )
    return False, f"Isolation: none ({reason}). Submissions run as programs of yours, with your rights."


# bubblewrap


class Walled:
    """A warm process in bubblewrap, started when it is first wanted and again when it has been lost."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.process: subprocess.Popen[bytes] | None = None
        self.control: socket.socket | None = None
        self.warm = 0
        """The warm process's number, out here; 0 where the system does not tell."""

    def start(self) -> None:
        """Raises SetupError where bubblewrap cannot be started or a first, empty run fails."""
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.control.settimeout(PATIENCE)
        with theirs, tempfile.TemporaryFile() as complaints:
            quiet = {"stdout": subprocess.DEVNULL, "stderr": complaints, "start_new_session": True}  # no Ctrl-C
            self.process = started(self.number, stdin=theirs, env={}, **quiet)
            theirs.close()
            if self.heard() != b"ready":
                self.stop()
                complaints.seek(0)
                said = complaints.read().decode(errors="replace").strip().splitlines() or ["it gave no reason"]
                raise SetupError(f"bubblewrap cannot make a sandbox here: {said[-1]}")
        self.warm = last_below(self.process.pid)
        with self.begun() as connection:
            connection.shutdown(socket.SHUT_WR)  # nothing is asked
            connection.recv(1)
        if self.ended().code != 0:
            self.stop()
            raise SetupError("namespaces cannot be nested here, or the kernel has no filter for system calls")

    def heard(self) -> bytes:
        """The next word of the warm process; nothing where it is gone or does not answer."""
        try:
            return self.control.recv(1 << 16) if self.control else b""
        except OSError:
            return b""

    def begun(self) -> socket.socket:
        """A connection to a new run."""
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(self.control, [b"run"], [theirs.fileno()])
        return ours

    def ended(self) -> Told:
        """What the warm process says of the run that has ended. Raises SetupError where it is lost itself."""
        try:
            return Told(**json.loads(self.heard()))
        except (ValueError, TypeError) as error:
            self.stop()
            raise SetupError("the sandbox was lost: is the machine out of memory?") from error

    def run(self, talk: Talk) -> Ending:
        """One run. Raises SetupError where the sandbox fails, and OSError where the machine does."""
        if self.process is None or self.process.poll() is not None:
            self.stop()
            self.start()
        clock = RunClock(lambda: next(iter(children(self.warm)), 0) if self.warm else 0)
        try:
            with self.begun() as connection:
                way = converse(connection, talk, clock)
                idle = clock.idle()
            self.control.send(b"stop")
        except OSError:
            self.stop()
            raise
        told = self.ended()
        return Ending(way, told.signal if way == "died" else 0, told.seconds, idle)

    def stop(self) -> None:
        if self.control is not None:
            self.control.close()
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        self.process = self.control = None


@dataclass(frozen=True)
class Told:
    """The warm process on a run that has ended."""

    signal: int
    code: int
    seconds: float


class Connection(Protocol):
    """The part of a socket that is used here."""

    def settimeout(self, seconds: float) -> None: ...
    def sendall(self, data: bytes) -> None: ...
    def recv(self, most: int) -> bytes: ...


def converse(connection: Connection, talk: Talk, clock: RunClock) -> str:
    """Ask and hear to the end of the talk, to the end of patience or to the first nonsense."""
    frames, heard = Frames(), 0
    try:
        connection.settimeout(PATIENCE)
        connection.sendall(talk.opening())
        watch = Watch(talk.patience(), clock)
        while data := received(connection, watch):
            heard += len(data)
            if heard > MOST_BYTES:
                return "garbled"
            if clock.age() > talk.naps and clock.idle() > talk.naps:
                return "overran"
            answer = None
            for message, arrays in frames.take(data):
                answer = talk.hear(message, arrays)
                if answer is None:
                    return "done"
                if answer:
                    connection.settimeout(BUSY * talk.patience())
                    connection.sendall(answer)
            if answer is not None:
                watch = Watch(talk.patience(), clock)
    except TimeoutError:
        return "overran"
    except ConnectionError:
        return "died"
    except ProtocolError:
        return "garbled"
    return "died"


def received(connection: Connection, watch: Watch) -> bytes:
    """The next bytes; none where the other end is gone. Raises TimeoutError where they are late."""
    while True:
        left = watch.left()  # where it is 0, what is there already is not late: this process may have had to wait
        connection.settimeout(max(left, SHORTEST))
        try:
            return connection.recv(1 << 16)
        except TimeoutError:
            if left <= 0:
                raise


# Without isolation


class Bare:
    """A new process for each run, with your rights."""

    def __init__(self, number: int) -> None:
        self.number = number

    def run(self, talk: Talk) -> Ending:
        """One run. Raises OSError where the machine fails."""
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            paths = os.pathsep.join([str(ROOT), str(ROOT / "course")])
            settings = {**os.environ, **SETTINGS, "HOME": folder, "TMPDIR": folder, "MPLCONFIGDIR": folder}
            settings |= {"PATH": os.environ.get("PATH", ""), "PYTHONPATH": paths, "PYTHONSAFEPATH": "1"}
            program = [sys.executable, "-m", "autograder.grade.worker", str(self.number), "once"]
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
            process = subprocess.Popen(program, cwd=folder, env=settings, start_new_session=True, bufsize=0, **pipes)
            with process:
                clock = RunClock(lambda: process.pid)
                way = converse(Pipes(process), talk, clock)
                idle = clock.idle()
                seconds = clock.cpu() or clock.age() - idle  # where the system does not tell, all that it lasted
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL) if hasattr(os, "killpg") else process.kill()
                code = process.wait()
        return Ending(way, max(0, -code) if way == "died" else 0, seconds, idle)

    def stop(self) -> None:
        """Nothing: no process outlives its run."""


class Pipes:
    """A process's stdin and stdout as one connection, on every system."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.seconds = PATIENCE
        self.heard: queue.Queue[bytes] = queue.Queue(maxsize=64)
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self) -> None:
        while True:
            try:
                data = self.process.stdout.read(1 << 18)
            except (OSError, ValueError):
                data = b""
            self.heard.put(data)
            if not data:
                return

    def settimeout(self, seconds: float) -> None:
        self.seconds = seconds

    def sendall(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[self.process.stdin.write(view) :]

    def recv(self, most: int) -> bytes:
        try:
            return self.heard.get(timeout=self.seconds)
        except queue.Empty:
            raise TimeoutError from None
