"""What a process does to itself before it runs a learner's code. Linux does most of it; elsewhere less is possible.

The process is started by worker.py. It lives in namespaces of its own (files, processes, users, IPC), where nobody else
is; here it gets an empty place to write, limits, and loses the right to start programs, processes and connections.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import signal
import struct
import sys
import threading
from collections.abc import Iterable, Iterator
from functools import cache
from typing import NoReturn

try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None

NEW_NAMESPACES = 0x00020000 | 0x08000000 | 0x10000000 | 0x20000000
"""CLONE_NEWNS, NEWIPC, NEWUSER, NEWPID. The network namespace of the sandbox is empty already."""
PRIVATE = "/private"
"""The only place where a learner's code can write: empty at the start of a run, gone at its end."""
HIDDEN = ("/proc", "/tmp", "/dev/shm")
DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "pts")
"""This machine's own: whoever owns them outside could take away everybody's right to use them. Mounted read-only they
can be written to and not be changed."""
SPACE = "size=32m,nr_inodes=1k,mode=700"
MEMORY = 2 * 2**30
"""Bytes of address space."""
LARGEST_FILE = 16 * 2**20
MOST_FILES = 64
MOST_THREADS = 64

NOSUID_NODEV_NOEXEC, READ_ONLY = 2 | 4 | 8, 1
REMOUNT_READ_ONLY = 32 | 4096 | READ_ONLY
MOUNT_FLAGS = {2: 2, 4: 4, 8: 8, 1024: 1024, 2048: 2048, 4096: 1 << 21}
"""What statvfs says of a mount, and the same for mount: such flags cannot be taken away in a namespace below."""
SET_LEASE = 1024
"""Of fcntl: a lease on a file, while it is held, makes all others on this machine wait who open the file."""
SET_DUMPABLE, SET_SECCOMP, SET_NO_NEW_PRIVILEGES = 4, 22, 38

CALLS = {
    "x86_64": {
        "audit": 0xC000003E,
        "clone": 56,
        "clone3": 435,
        "fcntl": 72,
        "refused": (
            *(29, 30, 41, 57, 58, 59, 64, 68, 101, 135, 155, 161, 165, 166, 240, 248, 249, 250, 272, 298, 303, 304),
            *(308, 310, 311, 319, 321, 322, 323, 425, 426, 427, 428, 429, 430, 431, 432, 434, 438, 442, 447),
            *(103, 141, 142, 144, 162, 203, 251, 306, 314),
        ),
    },
    "aarch64": {
        "audit": 0xC00000B7,
        "clone": 220,
        "clone3": 435,
        "fcntl": 25,
        "refused": (
            *(39, 40, 41, 51, 92, 97, 117, 180, 186, 190, 194, 196, 198, 217, 218, 219, 221, 241, 264, 265, 268, 270),
            *(271, 279, 280, 281, 282, 425, 426, 427, 428, 429, 430, 431, 432, 434, 438, 442, 447),
            *(30, 81, 116, 118, 119, 122, 140, 267, 274),
        ),
    },
}
"""Numbers of system calls by kind of processor. Refused: to start processes and programs, to connect, to trace or look
into processes, to share memory or leave messages, to change mounts and namespaces, keys, BPF, io_uring; to read the
kernel's log, to make all disks wait, and to be scheduled after others: time without a processor is not counted."""


@cache
def load(library: type[ctypes.CDLL] = ctypes.CDLL) -> ctypes.CDLL:
    return library(None, use_errno=True)


def call(name: str, *arguments: object) -> int:
    """A function of the C library. Raises OSError where it fails."""
    result = getattr(load(), name)(*arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
    return result


def become(user: int) -> None:
    """Another user of this namespace, and the group of the same number, from now on and with no way back."""
    if user != os.getuid():
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
        drop_capabilities()


def closed_places(project: str) -> list[str]:
    """What this process may not read of the libraries and of the project, of which two levels say enough."""
    places: dict[str, None] = {}
    for path in unreadable([*sys.path, *(folder for folder, _, _ in os.walk(project))]):
        inside = path.removeprefix(f"{project}/")
        places["/".join(inside.split("/")[:2]) if inside != path else path] = None
    return [*places]


def unreadable(folders: Iterable[str]) -> Iterator[str]:
    """Of these folders, and of what is in them, all that this process may not read."""
    for folder in folders:
        try:
            inside = sorted(os.listdir(folder))
        except PermissionError:
            while not os.access(os.path.dirname(folder), os.X_OK):
                folder = os.path.dirname(folder)
            yield folder
            continue
        except OSError:  # sys.path names a zip file that need not be there
            continue
        for path in (os.path.join(folder, name) for name in inside):
            wanted = os.R_OK | os.X_OK if os.path.isdir(path) else os.R_OK
            if not os.access(path, wanted) and not os.path.islink(path):
                yield path


def is_limited() -> bool:
    """Whether the kernel holds this process's user to a number of threads. Root it does not."""
    before = resource.getrlimit(resource.RLIMIT_NPROC)
    resource.setrlimit(resource.RLIMIT_NPROC, (0, before[1]))
    try:
        threading.Thread(target=int).start()
    except RuntimeError:
        return True
    finally:
        resource.setrlimit(resource.RLIMIT_NPROC, before)
    return False


def hide_memory() -> None:
    """Nobody may look into this process from another of the same user."""
    call("prctl", SET_DUMPABLE, 0, 0, 0, 0)


def fork_apart() -> int:
    """os.fork() into new namespaces, in which the child is process 1: when it ends, whatever it started ends too."""
    numbers = CALLS[platform.machine()]
    python = load(ctypes.PyDLL)  # it keeps hold of the interpreter's lock
    python.PyOS_BeforeFork()
    pid = python.syscall(numbers["clone"], NEW_NAMESPACES | signal.SIGCHLD, 0, 0, 0, 0)
    if pid == 0:
        python.PyOS_AfterFork_Child()
        return 0
    python.PyOS_AfterFork_Parent()
    if pid < 0:
        raise OSError(ctypes.get_errno(), "clone: new namespaces are refused")
    return pid


def isolate(outer: tuple[int, int]) -> None:
    """In a child of `fork_apart`: an empty private place, nothing of /proc, no capabilities, no new processes.

    outer  user and group of the process that it was forked from
    """
    call("prctl", SET_DUMPABLE, 1, 0, 0, 0)  # else /proc/self is not ours
    users, groups = (f"{inner} {number} 1" for inner, number in zip(INSIDE, outer, strict=True))
    for name, text in (("setgroups", "deny"), ("uid_map", users), ("gid_map", groups)):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    for place in hidden():
        if os.path.isdir(place):
            call("mount", b"none", place.encode(), b"tmpfs", NOSUID_NODEV_NOEXEC | READ_ONLY, b"size=4k")
    for device in map("/dev/{}".format, DEVICES):
        if os.path.exists(device):
            call("mount", None, device.encode(), None, REMOUNT_READ_ONLY | kept_flags(device), None)
    call("mount", b"none", PRIVATE.encode(), b"tmpfs", NOSUID_NODEV_NOEXEC, SPACE.encode())
    os.chdir(PRIVATE)
    drop_rights()


def hidden() -> list[str]:
    """The places that a run does not see, but for one in which libraries are installed: what it has not imported yet
    would be gone. Nothing else of that place is in the sandbox, and it can only be read."""
    return [place for place in HIDDEN if not any(folder.startswith(f"{place}/") for folder in sys.path)]


def kept_flags(place: str) -> int:
    there = os.statvfs(place).f_flag
    return sum(flag for said, flag in MOUNT_FLAGS.items() if there & said)


INSIDE = (1000, 1000)
"""User and group in the sandbox."""
SPARED = 1
"""Where root grades: user and group of the warm process once it has read what it needs, and so of all runs. Outside
they are nobody's. Root's own processes the kernel does not limit."""


def drop_capabilities() -> None:
    header, nothing = struct.pack("<Ii", 0x20080522, 0), bytes(24)
    call("capset", header, nothing)


def drop_rights() -> None:
    call("prctl", SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    drop_capabilities()
    program = filter_program(platform.machine())
    code = ctypes.create_string_buffer(program, len(program))
    pointer = struct.pack("@HP", len(program) // 8, ctypes.addressof(code))
    call("prctl", SET_SECCOMP, 2, ctypes.c_char_p(pointer), 0, 0)


@cache
def filter_program(machine: str) -> bytes:
    """The system calls that are refused, as a program for the kernel's filter (seccomp)."""
    numbers = CALLS[machine]
    load_word, equal, larger, any_bit, answer = 0x20, 0x15, 0x35, 0x45, 0x06
    allow, refuse, absent, kill = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS, 0x80000000
    thread = 0x00010000  # CLONE_THREAD: a thread is no new process

    def step(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
        return struct.pack("@HBBI", code, yes, no, value)

    steps = [step(load_word, 4), step(equal, numbers["audit"], 1, 0), step(answer, kill), step(load_word, 0)]
    steps += [step(larger, 0x40000000, 0, 1), step(answer, absent)]  # x32: the same calls under other numbers
    steps += [step(equal, numbers["clone3"], 0, 1), step(answer, absent)]
    for number in numbers["refused"]:
        steps += [step(equal, number, 0, 1), step(answer, refuse)]
    steps += [step(equal, numbers["clone"], 0, 3), step(load_word, 16), step(any_bit, thread, 1, 0)]
    steps += [step(answer, refuse)]
    steps += [
        step(load_word, 0),
        step(equal, numbers["fcntl"], 0, 3),
        step(load_word, 24),
        step(equal, SET_LEASE, 0, 1),
    ]
    steps += [step(answer, refuse), step(answer, allow)]
    return b"".join(steps)


def limit(seconds: float) -> None:
    """Limits on CPU time, memory and files, where the system has them. They cannot be raised again."""
    if resource is None:
        return
    cpu = int(seconds) + 1
    wanted = {"CPU": cpu, "FSIZE": LARGEST_FILE, "NOFILE": MOST_FILES, "CORE": 0}
    if sys.platform == "linux":  # macOS refuses the first, and counts all processes of a user for the second
        wanted |= {"AS": MEMORY, "NPROC": MOST_THREADS}
    for name, most in wanted.items():
        kind = getattr(resource, f"RLIMIT_{name}")
        hard = resource.getrlimit(kind)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (most, most))


def end(code: int = 0) -> NoReturn:
    """Without anything that was to be done at exit."""
    os._exit(code)
